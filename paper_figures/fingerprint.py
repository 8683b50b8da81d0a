"""A fingerprint of all that a figure is drawn from, so that the same figure is drawn once."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import analysis
import paci
import paper_figures
from analysis import Frames, NoRuns

PACKAGES = (paci, analysis, paper_figures)
"""The packages that compute the content of figures."""


def fingerprint(
    root: Path, needs: Iterable[str], read: Frames | NoRuns, options: Iterable[object]
) -> str:
    """Return the fingerprint of the runs below `root` that have the tasks `needs`, by size and date
    of their files, of the code, and of `options`."""
    found = sha256(repr(tuple(options)).encode())
    for file in [*_of_runs(root, tuple(needs), read), *_of_code()]:
        state = file.stat()
        found.update(f"{file} {state.st_size} {state.st_mtime_ns}\n".encode())
    return found.hexdigest()[:16]


def _of_runs(root: Path, needs: tuple[str, ...], read: Frames | NoRuns) -> Iterator[Path]:
    if not needs or isinstance(read, NoRuns):
        return
    for name in sorted(read.of(*needs).runs.index):
        folder = root / name if (root / name).is_dir() else root
        yield from sorted(
            file for file in folder.iterdir() if file.is_file() and file.name[0] != "."
        )
    if "simulations" in needs:
        yield from sorted(root.rglob("simulations.jsonl"))


def _of_code() -> Iterator[Path]:
    for package in PACKAGES:
        for folder in package.__path__:
            yield from sorted(
                file
                for file in Path(folder).rglob("*")
                if file.is_file() and "__pycache__" not in file.parts
            )
