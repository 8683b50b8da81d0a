"""Reading one run folder, in whatever state a crash, a resume or an editor has left it."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import runlog
from analysis.configs import read_config
from analysis.frames import Note
from analysis.logs import (
    EVALUATION_COLUMNS,
    MOVEMENT_COLUMNS,
    REPETITION_COLUMNS,
    STAGE_COLUMNS,
    UPDATE_COLUMNS,
    Unreadable,
    frame,
    holes,
    numbered,
    one_clock,
)
from analysis.states import THROUGHPUT, judge, judge_throughput

STARTED = (runlog.ENVIRONMENT, runlog.STATUS, runlog.METRICS)
"""Files of which a run that has started has at least one."""

RUN_COLUMNS = [
    "experiment",
    "scale",
    "task",
    "executor",
    "clock",
    "batch",
    "variant",
    "seed",
    "state",
    "why",
    "recipe",
    "costs",
]


@dataclass
class Run:
    """The row and the frames of one run, as `Frames` has them, and notes on the run."""

    row: dict
    updates: pd.DataFrame
    evaluations: pd.DataFrame
    stages: pd.DataFrame
    movement: pd.DataFrame
    throughput: pd.DataFrame
    notes: list[Note]


def unread() -> Run:
    """Return a run of which nothing is known: frames with every column and no line."""
    return Run(
        dict.fromkeys(RUN_COLUMNS),
        frame([], UPDATE_COLUMNS),
        frame([], EVALUATION_COLUMNS),
        frame([], STAGE_COLUMNS),
        frame([], MOVEMENT_COLUMNS),
        frame([], REPETITION_COLUMNS, ["repetition"]),
        [],
    )


def read_run(folder: Path) -> Run:
    """Read a folder. Nothing is raised: `state` and `why` in the row, and a sentence among `notes`,
    say what is wrong with it."""
    run = unread()
    state: str
    why: str | None
    try:
        run.row |= read_config(folder / runlog.CONFIG)
        run.row["costs"] = _read_costs(folder / runlog.COST)
        status = _read_status(folder / runlog.STATUS)
        timed = run.row["task"] == THROUGHPUT
        if timed:
            _read_repetitions(folder / runlog.THROUGHPUT, run)
        else:
            _read_metrics(folder / runlog.METRICS, run)
        _read_stages(folder / runlog.STAGES, run)
    except Unreadable as error:
        state, why = "unreadable", str(error)
    else:
        if not any((folder / file).exists() for file in STARTED):
            state, why = "never started", None
        elif timed:
            state, why = judge_throughput(status, run.throughput)
        else:
            state, why = judge(status, run.updates)
    run.row |= {"state": state, "why": why}
    run.notes += _notes(run)
    return run


def _notes(run: Run) -> list[Note]:
    """Return the note that a run's state calls for, if it calls for one."""
    state, why = run.row["state"], run.row["why"]
    if state == "unreadable":
        return [Note(f"not used: {why}.", refuses=True)]
    if state == "never started":
        return [Note("not used: never started.", refuses=True)]
    if state == "diverged":
        return [Note(f"diverged, {why}.")]
    if state == "out-of-memory" and run.row["task"] == THROUGHPUT:
        return [Note(f"out of memory, {why}.")]
    if state != "completed":
        return [Note(f"not used: {state}, {why}.", refuses=True)]
    undefined = int(run.updates["loss"].isna().sum())
    if undefined:
        return [Note(f"{undefined} of {len(run.updates)} training losses are not finite.")]
    return []


def _read_costs(path: Path) -> str | None:
    """Return the measured times that a simulated clock was set by, as JSON; None without any."""
    costs = _read_json(path)
    return None if costs is None else json.dumps(costs, sort_keys=True)


def _read_status(path: Path) -> dict:
    status = _read_json(path)
    if status is None:
        return {"state": "unfinished", "why": "status.json is missing"}
    if "state" not in status:
        raise Unreadable("status.json has no state")
    if not isinstance(status.get("updates", 0), int):
        raise Unreadable("status.json has a number of updates that is no number")
    return status


def _read_json(path: Path) -> dict | None:
    try:
        return runlog.read_json(path)
    except runlog.Damaged as error:
        raise Unreadable(str(error)) from None
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read ({error.strerror})") from None


def _read_metrics(path: Path, run: Run) -> None:
    rows = _rows(path, run)
    updates = [row for row in rows if "loss" in row]
    evaluations = [row for row in rows if "validation_loss" in row]
    run.updates = frame(updates, UPDATE_COLUMNS)
    run.evaluations = frame(evaluations, EVALUATION_COLUMNS)
    # An infinite loss is as diverged as an undefined one.
    run.updates["loss"] = run.updates["loss"].where(np.isfinite(run.updates["loss"]))
    run.row["clock"] = one_clock(rows, path.name)
    lacking = holes(run.updates["update"].to_numpy())
    if len(lacking):
        raise Unreadable(f"metrics.jsonl lacks the losses of {numbered('update', lacking)}")
    if any("loss" not in row and "validation_loss" not in row for row in rows):
        run.notes.append(Note("metrics.jsonl has lines with neither loss nor validation_loss."))
    _note_deviations(path, updates, runlog.UpdateLine, run)
    _note_deviations(path, evaluations, runlog.EvaluationLine, run)


def _read_repetitions(path: Path, run: Run) -> None:
    rows = _rows(path, run)
    run.throughput = frame(rows, REPETITION_COLUMNS, ["repetition"])
    run.row["clock"] = one_clock(rows, path.name)
    counted = run.throughput[["tokens", "seconds"]]
    if not ((counted > 0) & (counted < math.inf)).all(axis=None):
        raise Unreadable("throughput.jsonl has a repetition without tokens or seconds")
    _note_deviations(path, rows, runlog.RepetitionLine, run)


def _read_stages(path: Path, run: Run) -> None:
    rows = _rows(path, run)
    run.stages = frame(rows, STAGE_COLUMNS, ["update", "stage"], histograms=("drift",))
    moves = [
        {"stage": row.get("stage")} | move
        for row in rows
        for move in _list(row.get("movement"))
        if isinstance(move, dict)
    ]
    run.movement = frame(moves, MOVEMENT_COLUMNS, ["stage", "update", "microbatch"])
    _note_deviations(path, rows, runlog.StageLine, run)


def _rows(path: Path, run: Run) -> list[dict]:
    try:
        rows, unreadable = runlog.read_lines(path)
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read ({error.strerror})") from None
    if unreadable:
        lines = numbered("line", unreadable)
        run.notes.append(Note(f"{path.name} has unreadable lines: {lines}."))
    return rows


def _note_deviations(path: Path, rows: list[dict], record: type, run: Run) -> None:
    run.notes += map(Note, runlog.deviations(path.name, rows, record))


def _list(value: object) -> list:
    return value if isinstance(value, list) else []
