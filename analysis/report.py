"""List the runs of a folder and what was made of them: python -m analysis.report RUNS

The report counts runs by experiment and state, and says of every run that is not a result why it is
none. It lists the figures and tables that the last `python -m paper_figures RUNS` made, with their
numbers of runs and seeds, and those that it did not make, with the reason.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from analysis.frames import Frames, sentences
from analysis.manifest import BROKEN, MADE, REFUSED, Item, read_manifest
from analysis.runs import NoRuns, read_runs
from analysis.states import is_result
from runlog.terminal import tolerant_output

STATES = (
    "completed",
    "diverged",
    "out-of-memory",
    "failed",
    "unfinished",
    "never started",
    "repeated",
    "unreadable",
)
"""The states of a run, in the order of every table."""
UNFINISHED = ("running", "preempted")
"""States of status.json that are shown as "unfinished": a log cannot tell whether its process
still lives, and either way the run's numbers are not yet to be had."""
UNKNOWN = "unknown"
"""Stands for the experiment and scale of a run whose configuration cannot be read."""


def by_state(runs: pd.DataFrame) -> pd.DataFrame:
    """Count runs by experiment and scale (rows) and state (columns)."""
    states = runs["state"].where(~runs["state"].isin(UNFINISHED), "unfinished")
    place = [runs[name].fillna(UNKNOWN) for name in ("experiment", "scale")]
    counts = pd.crosstab(place, states)
    shown = [state for state in STATES if state in counts]
    others = [state for state in counts if state not in STATES]
    table = counts[shown + others]
    table.insert(0, "runs", table.sum(axis=1))
    return table.rename_axis(columns=None).reset_index()


def not_results(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs whose numbers are not used: run, state, why."""
    left_out = runs[~is_result(runs)]
    return left_out[["state", "why"]].fillna("").rename_axis("run").reset_index()


def outdated(items: Iterable[Item], frames: Frames) -> list[Item]:
    """Return the items that were made from other runs than those that are a result now."""
    return [
        item
        for item in items
        if item.state == MADE
        and item.needs
        and set(item.runs) != set(frames.of(*item.needs).used.index)
    ]


@tolerant_output()
def main(argv: list[str] | None = None) -> int:
    """Print the report; return the exit status, 2 if there are no runs."""
    parser = argparse.ArgumentParser(
        prog="python -m analysis.report",
        description="List the runs of a folder by state, and what was made of them.",
    )
    parser.add_argument("runs", type=Path, help="folder of run folders, at any depth")
    parser.add_argument("--figures", type=Path, help="where those are (default: RUNS/figures)")
    args = parser.parse_args(argv)
    try:
        frames = read_runs(args.runs)
    except NoRuns as error:
        print(error, file=sys.stderr)
        return 2
    folder = args.figures or args.runs / "figures"

    print(_grid(by_state(frames.runs)) if len(frames.runs) else "no runs, only simulations")
    if len(left_out := not_results(frames.runs)):
        print(f"\nNot used:\n\n{_grid(left_out)}")
    if other := [remark for remark in frames.remarks if not remark[1].refuses]:
        print("\nAbout the runs:", *sentences(other), sep="\n  ")

    items = read_manifest(folder)
    if not items:
        print(f"\nNothing is made of them in {folder} yet: python -m paper_figures {args.runs}")
        return 0
    for state, heading in ((MADE, "Made"), (REFUSED, "Not made"), (BROKEN, "Broken, a bug")):
        lines = [(item.name, item.why or item.basis) for item in items.values()]
        lines = [line for line in lines if items[line[0]].state == state]
        if lines:
            print(f"\n{heading}, in {folder}:\n\n{tabulate(lines, tablefmt='plain')}")
    if old := outdated(items.values(), frames):
        names = ", ".join(item.name for item in old)
        print(f"\nMade from other runs than are there now: {names}; make them again.")
    return 0


def _grid(table: pd.DataFrame) -> str:
    return tabulate(table, headers="keys", showindex=False, maxcolwidths=60, disable_numparse=True)


if __name__ == "__main__":
    sys.exit(main())
