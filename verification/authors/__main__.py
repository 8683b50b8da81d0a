"""Compare paci with the authors' own code: python -m verification.authors CHECKOUT [CASE ...]

CHECKOUT is a folder with the authors' repository, CASE a name as the table has it; default: all.
Prints one table and writes it, with what the authors' code left of each case, below
runs/verify-authors. The exit status is 1 if anything differs that is not known to.

    =   equal to the last bit        ≠   different, and by how much at most        –   not compared

decisions is how often paci's schedule, shown what the authors' stage saw, decides as it did; drift
and in flight are histograms and peaks of every stage, of which the table names the largest.
"""

import os
import signal
import sys
from pathlib import Path

import torch
from tqdm import tqdm

from verification.authors.cases import CASES
from verification.authors.checkout import (
    COMMIT,
    REPOSITORY,
    checked,
    difference_from_known,
    make_importable,
)
from verification.authors.compare import compare_case
from verification.authors.recording import AuthorsFailed
from verification.authors.table import Failure, Row, render

FOLDER = Path("runs/verify-authors")


def main() -> None:
    arguments = sys.argv[1:]
    if {"-h", "--help"} & set(arguments):
        print(__doc__.strip())
        return
    try:
        checkout = checked(arguments[0] if arguments else None)
        names = _chosen(arguments[1:])
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    warning = difference_from_known(checkout)
    if warning:
        print(f"warning: {warning}", file=sys.stderr)
    make_importable(checkout)
    torch.set_num_threads(1)  # rounding depends on it

    # Whoever ends this command ends the authors' processes too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rows: list[Row | Failure] = []
    try:
        for name in tqdm(names, unit="case"):
            rows += _compared(checkout, name)
            _write(FOLDER / "table.md", _heading(warning) + render(rows))
    except KeyboardInterrupt:
        print(f"interrupted; {FOLDER / 'table.md'} has what is done", file=sys.stderr)
        raise SystemExit(130) from None
    print((FOLDER / "table.md").read_text(), end="")
    raise SystemExit(not all(row.as_expected for row in rows))


def _chosen(names: list[str]) -> list[str]:
    unknown = set(names) - set(CASES)
    if unknown:
        raise ValueError(f"there is no case {unknown.pop()!r}: choose from {', '.join(CASES)}")
    return names or list(CASES)


def _compared(checkout: Path, name: str) -> list[Row] | list[Failure]:
    try:
        return list(compare_case(checkout, name, FOLDER / "".join(filter(str.isalnum, name))))
    except AuthorsFailed as failure:
        return [Failure(name, f"the authors' code {failure}")]


def _heading(warning: str | None) -> str:
    against = f"{REPOSITORY} at {COMMIT[:7]}" if warning is None else warning
    return f"paci and the authors' code ({against}), PyTorch {torch.__version__} on a CPU\n\n"


def _write(path: Path, text: str) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    os.replace(draft, path)


if __name__ == "__main__":
    main()
