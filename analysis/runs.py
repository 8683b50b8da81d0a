"""Reading run folders into data frames. Nothing is dropped without a remark on the run."""

import os
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from analysis.frames import Frames, Note
from analysis.runfolder import RUN_COLUMNS, read_run, unread
from analysis.states import RESULTS, TRAINING
from runlog import CONFIG, METRICS, STAGES, STATUS, THROUGHPUT, read_lines

RUN_FILES = {CONFIG, STATUS, METRICS, THROUGHPUT, STAGES}


class NoRuns(Exception):
    """There is no run folder where one was asked for."""


def find_runs(root: Path) -> Iterator[Path]:
    """Yield the run folders below a root (or the root itself), in the order of their names."""
    return _folders_with(RUN_FILES, root)


def _folders_with(names: set[str], root: Path) -> Iterator[Path]:
    for folder, below, files in os.walk(root):
        if names & set(files):
            below.clear()  # checkpoints and the like
            yield Path(folder)
        below[:] = sorted(name for name in below if not name.startswith("."))


def read_runs(root: str | os.PathLike) -> Frames:
    """Read every run folder below `root`.

    Raises NoRuns if there is none, and no simulation either. Damaged, failed and unfinished runs
    raise nothing: they get a row in `runs` and a remark.
    """
    root = Path(root)
    if not root.is_dir():
        raise NoRuns(f"There is no folder {root}.")
    read = {folder.relative_to(root).as_posix(): read_run(folder) for folder in find_runs(root)}
    simulations, remarks = _read_simulations(root)
    if not read and simulations.empty:
        raise NoRuns(f"No run folder (one with a config.yaml) below {root}.")
    if "." in read:  # the root is itself a run
        read = {root.resolve().name: read["."]}
    runs = pd.DataFrame.from_dict(
        {name: run.row for name, run in read.items()}, orient="index", columns=RUN_COLUMNS
    )
    remarks += [(name, note) for name, run in read.items() for note in run.notes]
    for name in _repeated(runs):
        runs.loc[name, ["state", "why"]] = ["repeated", "it repeats the configuration of another"]
        why = "not used: repeats the seed and configuration of another."
        remarks.append((name, Note(why, refuses=True)))
    logs = {
        frame: pd.concat(
            {name: getattr(run, frame) for name, run in (read or {"": unread()}).items()},
            names=["run"],
        )
        for frame in ("updates", "evaluations", "stages", "movement", "throughput")
    }
    runs = runs.rename_axis("run")
    return Frames(runs=runs, **logs, simulations=simulations, remarks=tuple(remarks))


def _read_simulations(root: Path) -> tuple[pd.DataFrame, list[tuple[str, Note]]]:
    rows, remarks = [], []
    for folder in _folders_with({"simulations.jsonl"}, root):
        file = folder / "simulations.jsonl"
        read, unreadable = read_lines(file)
        rows += read
        if unreadable:
            name = file.relative_to(root).as_posix()
            remarks.append((name, Note(f"{len(unreadable)} unreadable lines are left out.")))
    return pd.DataFrame(rows), remarks


def _repeated(runs: pd.DataFrame) -> list[str]:
    """Return the finished trainings that repeat the seed and configuration of an earlier one."""
    done = runs[runs["state"].isin(RESULTS) & runs["task"].eq(TRAINING)]
    key = ["scale", "clock", "batch", "variant", "seed", "recipe"]
    return list(done.index[done.duplicated(key, keep="first")])
