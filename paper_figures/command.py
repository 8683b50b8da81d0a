"""The command line that every script shares: read the runs, make what they allow, say the rest."""

import argparse
import shlex
import sys
import time
from importlib import import_module
from math import inf
from pathlib import Path
from pkgutil import iter_modules

import pandas as pd

import paper_figures
from analysis import Frames, NoRuns, read_runs
from analysis.manifest import BROKEN, MADE, REFUSED, Item, counted, read_manifest
from analysis.q2.thresholds import Thresholds
from paper_figures.fingerprint import fingerprint
from paper_figures.format import COLUMN, Format, formatted
from paper_figures.make import make, needs_of, parameters_of
from paper_figures.output import (
    NotWritable,
    check_writable,
    is_judged,
    on_screen,
    save_captions,
    save_manifest,
)
from runlog.terminal import tolerant_output

SHOWN = {
    "table_3_stability": "q1",
    "table_4_runtime": "q2",
    "table_6_time_to_perplexity": "q2",
    "figure_3_throughput_ratio": "q3",
}
"""Tables that are also printed, and the question that each answers; the claims come after them."""
QUESTIONS = ("q1", "q2", "q3")


def scripts() -> list[str]:
    """Return the names of the modules that draw a figure or make a table."""
    names = [found.name for found in iter_modules(paper_figures.__path__)]
    modules = {name: import_module(f"paper_figures.{name}") for name in names if name[0] != "_"}
    return [name for name, it in modules.items() if hasattr(it, "NEEDS")]


@tolerant_output()
def main(names: list[str] | None = None, argv: list[str] | None = None) -> int:
    """Make the named figures and tables, or all, and return the exit status.

    It is 0 if anything was made of the runs (or at all, by scripts that need none) and no script
    broke; 2 if there are no runs where some are needed, or nothing can be written; else 1.
    """
    modules = {name: import_module(f"paper_figures.{name}") for name in names or scripts()}
    needy = any(needs_of(module) for module in modules.values())
    timed = any("thresholds" in parameters_of(module) for module in modules.values())
    args = _arguments(names, needy, timed).parse_args(argv)
    options = {"thresholds": Thresholds(args.thresholds, args.log_linear)} if timed else {}
    format = Format(args.width, args.serif, args.caption)
    out = args.out or args.runs / "figures"

    read = _read(args.runs) if needy else NoRuns("none were asked for")
    if needy and isinstance(read, NoRuns):
        print(read, file=sys.stderr)
        if names or not args.runs.is_dir():
            return 2

    try:
        check_writable(out)
    except NotWritable as error:
        print(error, file=sys.stderr)
        return 2

    items, tables, former = {}, {}, read_manifest(out)
    try:
        for count, (name, module) in enumerate(modules.items(), start=1):
            print(f"[{count}/{len(modules)}] {name}", flush=True)
            inputs = fingerprint(args.runs, needs_of(module), read, (options, format))
            with formatted(format):
                items[name], tables[name] = make(
                    module, read, out, options, former.get(name), inputs
                )
        save_manifest(items, out)
        save_captions(read_manifest(out), out)
    except NotWritable as error:
        print(error, file=sys.stderr)
        return 2

    shown = names if names else [name for name, of in SHOWN.items() if args.question in (None, of)]
    for name in [*(name for name in shown if name != "claims"), "claims"]:
        if (table := tables.get(name)) is None:
            continue
        if name == "claims":
            table = _to_print(table, args.question, read)
        if table.empty:
            continue
        title, note = name.replace("_", " "), items[name].note
        print(f"\n{title}\n\n{on_screen(table, out / f'{name}.md')}")
        if names and note:
            print(f"\n{note}")
    if isinstance(read, Frames):
        mine = {it for module in modules.values() for it in needs_of(module)}
        if notes := (read.of(*mine) if names else read).notes:
            print("\nAbout the runs:", *notes, sep="\n  ")
    for state, heading in ((REFUSED, "Not made"), (BROKEN, "Broken, which is a bug")):
        those = [item for item in items.values() if item.state == state]
        if those and state == REFUSED and args.question:
            reasons = f"python -m analysis.report {shlex.quote(str(args.runs))}"
            print(f"\n{heading}: {len(those)} figures and tables; why: {reasons}")
        elif those:
            print(f"\n{heading}:", *(f"{item.name}: {item.why}." for item in those), sep="\n  ")
    made = [item for item in items.values() if item.state == MADE]
    kept = [it for it in made if it.inputs and it.inputs == _inputs(former.get(it.name))]
    same = f", {counted(len(kept), 'figure')} as before" if kept else ""
    print(f"\n{counted(sum(len(item.files) for item in made), 'file')} in {out}{same}")

    if needy and isinstance(read, NoRuns):
        return 2
    broken = any(item.state == BROKEN for item in items.values())
    # What needs no runs says nothing of them, nor does a table of claims that none speaks to.
    answered = [it for it in made if not needy or (it.needs and (it.runs or not it.known))]
    return 0 if answered and not broken else 1


def _read(root: Path) -> Frames | NoRuns:
    started = time.perf_counter()
    try:
        frames = read_runs(root)
    except NoRuns as error:
        return error
    read = counted(len(frames.runs), "run")
    print(f"read {read} in {time.perf_counter() - started:.1f} s", flush=True)
    return frames


def _to_print(claims: pd.DataFrame, question: str | None, read: Frames | NoRuns) -> pd.DataFrame:
    """Return the claims of `question`, if one is asked for, or all that the runs say anything of:
    those of the extrapolation need no runs."""
    if question:
        return claims[claims["question"] == question]
    if isinstance(read, Frames) and read.simulations.empty:
        claims = claims[claims["question"] != "extrapolation"]
    return claims if is_judged(claims).any() else claims.head(0)


def _inputs(item: Item | None) -> str:
    return item.inputs if item else ""


def _width(text: str) -> float:
    named = {"column": COLUMN, "full": 2 * COLUMN}
    try:
        width = named.get(text) or float(text)
    except ValueError:
        width = 0.0
    if not 2 <= width <= 20:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no width: write column, full, or 2 to 20 inches"
        )
    return width


def _perplexities(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(1 < each < inf for each in found):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no list of perplexities above 1, like 18,17,16"
        )
    return found


def _arguments(names: list[str] | None, needy: bool, timed: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m paper_figures{'.' + names[0] if names else ''}",
        description="Make the paper's figures and tables from run folders.",
    )
    runs = parser.add_argument("runs", type=Path, help="folder of run folders, at any depth")
    if not needy:
        runs.nargs, runs.default = "?", Path("runs")
        runs.help = "folder whose folder figures is written to (default: runs); none is read"
    if timed:
        parser.add_argument(
            "--thresholds",
            type=_perplexities,
            metavar="18,17,16",
            help="perplexities to time training to (default: the paper's at its scale, elsewhere "
            "as far above the lowest that all runs reach)",
        )
        parser.add_argument(
            "--log-linear",
            action="store_true",
            help="interpolate the logarithm of the perplexity (default: the perplexity)",
        )
    if not names or "claims" in names:
        parser.add_argument(
            "--question",
            choices=QUESTIONS,
            help="print this question's tables and claims only; all are written",
        )
    else:
        parser.set_defaults(question=None)
    parser.add_argument(
        "--width",
        type=_width,
        metavar="column|full|INCHES",
        help=f"width of an image: column ({COLUMN} inches) puts panels below each other, full is "
        "two columns (default: as wide as the panels need)",
    )
    parser.add_argument("--serif", action="store_true", help="set text in a serif typeface")
    parser.add_argument(
        "--caption",
        action="store_true",
        help="write captions into the images (default: into captions.md and the report)",
    )
    parser.add_argument("--out", type=Path, help="where to write (default: RUNS/figures)")
    return parser
