"""Run folders in, data frames out. Nothing is dropped without a sentence that names the run."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from analysis.jsonl import read_jsonl
from analysis.variants import Variant

RUN_FILES = {"config.yaml", "status.json", "metrics.jsonl", "throughput.jsonl", "stages.jsonl"}
STARTED = ("environment.json", "status.json", "metrics.jsonl")
"""A run that has none of them is only planned."""

RECIPE = ("model", "data", "optimizer", "tokens", "stages")
"""What runs must share, besides their method, before their losses may be compared."""

RESULTS = ("completed", "diverged")
"""A diverged run is a result: a mean over the seeds that survived would flatter the method."""

THROUGHPUT = "throughput"
"""The task of runs that are timed, and do not train to learn."""

NO_EXPERIMENT = "none"
"""The experiment of a run of its own."""

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
UPDATE_COLUMNS = ["update", "tokens", "loss", "lr", "seconds"]
EVALUATION_COLUMNS = ["update", "tokens", "validation_loss", "perplexity", "seconds"]
STAGE_COLUMNS = [
    "update",
    "stage",
    "drift",
    "rank",
    "peak_in_flight",
    "parameter_bytes",
    "gradient_bytes",
    "optimizer_bytes",
    "activation_bytes",
    "version_bytes",
    "allocated_bytes",
    "busy_seconds",
    "idle_seconds",
]
REPETITION_COLUMNS = ["repetition", "tokens", "seconds", "updates"]
MOVEMENT_COLUMNS = ["stage", "update", "microbatch", "drift", "relative"]


class NoRuns(Exception):
    """There is no run folder where one was asked for."""


class Unreadable(Exception):
    """A run folder whose files cannot be evidence; the message says why."""


@dataclass(frozen=True)
class Frames:
    """Everything that a set of run folders says.

    `runs` has one row per folder, readable or not, indexed by its path below the root; a folder
    that cannot be used has a `state` that `is_result` does not accept. The other frames are
    indexed by run and hold every update (loss in nats per token), evaluation, stage and segment
    (drift as a histogram {versions: micro-batches}), sampled weight movement (relative to the
    weights' norm) and, of runs whose task is throughput, repetition. `simulations` has a row per
    line of every `simulations.jsonl`, with whatever columns these have; it stands for no run.
    `notes` are sentences, each of which names a run.
    """

    runs: pd.DataFrame
    updates: pd.DataFrame
    evaluations: pd.DataFrame
    stages: pd.DataFrame
    movement: pd.DataFrame
    throughput: pd.DataFrame
    simulations: pd.DataFrame
    notes: tuple[str, ...] = ()

    def of(self, *experiments: str) -> "Frames":
        """The same frames with only these experiments' runs, and those whose own is unknown."""
        mine = self.runs["experiment"].isin(experiments) | self.runs["experiment"].isna()
        return replace(self, runs=self.runs[mine])

    @property
    def used(self) -> pd.DataFrame:
        """The rows of runs that are a result."""
        return self.runs[is_result(self.runs)]

    @property
    def partial(self) -> str:
        """ "11 of 12 runs" when some runs cannot be used, else an empty string."""
        used, known = len(self.used), len(self.runs)
        return "" if used == known else f"{used} of {known} runs"


def is_result(runs: pd.DataFrame) -> pd.Series:
    """Which rows of `Frames.runs` are evidence: completed, stopped because the loss diverged, or,
    where the question is what fits and how fast it is, out of memory."""
    full = runs["task"].eq(THROUGHPUT) & runs["state"].eq("out-of-memory")
    return runs["state"].isin(RESULTS) | full


def find_runs(root: Path) -> Iterator[Path]:
    """Run folders below a root (or the root itself), in the order of their names."""
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
    raise nothing: they get a row in `runs` and a sentence in `notes`.
    """
    root = Path(root)
    if not root.is_dir():
        raise NoRuns(f"There is no folder {root}.")
    read = {folder.relative_to(root).as_posix(): _read_run(folder) for folder in find_runs(root)}
    simulations, notes = _read_simulations(root)
    if not read and simulations.empty:
        raise NoRuns(f"No run folder (one with a config.yaml) below {root}.")
    if "." in read:  # the root is itself a run
        read = {root.resolve().name: read["."]}
    runs = pd.DataFrame.from_dict(
        {name: run.row for name, run in read.items()}, orient="index", columns=RUN_COLUMNS
    )
    notes += [f"{name}: {note}" for name, run in read.items() for note in run.notes]
    for name in _repeated(runs):
        runs.loc[name, ["state", "why"]] = ["repeated", "it repeats the configuration of another"]
        notes.append(f"{name}: not used: repeats the seed and configuration of another.")
    alone = list(runs.index[runs["experiment"] == NO_EXPERIMENT])
    if alone:
        notes.append(f"{_numbers('run', alone)}: left aside, of no experiment.")
    return Frames(
        runs.rename_axis("run"),
        *(
            pd.concat(
                {name: getattr(run, frame) for name, run in (read or {"": _unread()}).items()},
                names=["run"],
            )
            for frame in ("updates", "evaluations", "stages", "movement", "throughput")
        ),
        simulations,
        tuple(notes),
    )


@dataclass
class _Run:
    row: dict
    updates: pd.DataFrame
    evaluations: pd.DataFrame
    stages: pd.DataFrame
    movement: pd.DataFrame
    throughput: pd.DataFrame
    notes: list[str]


def _unread() -> _Run:
    return _Run(
        dict.fromkeys(RUN_COLUMNS),
        _frame([], UPDATE_COLUMNS),
        _frame([], EVALUATION_COLUMNS),
        _frame([], STAGE_COLUMNS),
        _frame([], MOVEMENT_COLUMNS),
        _frame([], REPETITION_COLUMNS, ["repetition"]),
        [],
    )


def _read_run(folder: Path) -> _Run:
    run = _unread()
    run.row["state"] = "unreadable"
    try:
        run.row |= _read_config(folder / "config.yaml")
        run.row["costs"] = _read_costs(folder / "cost.json")
        status = _read_status(folder / "status.json")
        if run.row["task"] == THROUGHPUT:
            _read_repetitions(folder / "throughput.jsonl", run)
        else:
            _read_metrics(folder / "metrics.jsonl", run)
        _read_stages(folder / "stages.jsonl", run)
    except Unreadable as error:
        run.row["why"] = str(error)
        run.notes.append(f"not used: {error}.")
        return run
    if not any((folder / file).exists() for file in STARTED):
        run.row["state"] = "never started"
        run.notes.append("not used: never started.")
        return run
    if run.row["task"] == THROUGHPUT:
        state, why = _judge_throughput(status, run.throughput)
    else:
        state, why = _judge(status, run.updates)
    run.row |= {"state": state, "why": why}
    missing = int(run.updates["loss"].isna().sum())
    if state == "diverged":
        run.notes.append(f"diverged, {why}.")
    elif state == "out-of-memory" and run.row["task"] == THROUGHPUT:
        run.notes.append(f"out of memory, {why}.")
    elif state != "completed":
        run.notes.append(f"not used: {state}, {why}.")
    elif missing:
        run.notes.append(f"{missing} of {len(run.updates)} training losses are not finite.")
    return run


def _read_simulations(root: Path) -> tuple[pd.DataFrame, list[str]]:
    rows, notes = [], []
    for folder in _folders_with({"simulations.jsonl"}, root):
        file = folder / "simulations.jsonl"
        read, unreadable = read_jsonl(file)
        rows += read
        if unreadable:
            name = file.relative_to(root).as_posix()
            notes.append(f"{name}: {len(unreadable)} unreadable lines are left out.")
    return pd.DataFrame(rows), notes


def _read_config(path: Path) -> dict:
    try:
        config = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    except FileNotFoundError:
        raise Unreadable("config.yaml is missing") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        raise Unreadable("config.yaml is not readable YAML") from None
    try:
        method = config["method"]
        variant = Variant(
            method=str(method["name"]),
            schedule=str(method["schedule"]),
            accumulation=int(method["accumulation"]),
            slack=int(method.get("slack") or 0),
            weights=str(method.get("weights") or "live"),
            stages=int(config["stages"]),
        )
        row = {
            "experiment": str(config["experiment"] or NO_EXPERIMENT),
            "scale": str(config["scale"]),
            "task": str(config.get("task") or "training"),
            "executor": str((config.get("executor") or {}).get("name")),
            "batch": int(config["batch"]),
            "seed": int(config["seed"]),
        }
    except KeyError as error:
        raise Unreadable(f"config.yaml has no {error.args[0]}") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise Unreadable(f"config.yaml has a value of the wrong kind ({error})") from None
    if variant.accumulation < 1 or variant.stages < 1:
        raise Unreadable("config.yaml has fewer than one stage or micro-batch per update")
    recipe = {key: config.get(key) for key in RECIPE}
    recipe["precision"] = (config.get("executor") or {}).get("precision")
    return row | {"variant": variant, "recipe": json.dumps(recipe, sort_keys=True, default=str)}


def _read_costs(path: Path) -> str | None:
    """The measured times that a simulated clock was set by, as JSON; None if it was not."""
    try:
        return json.dumps(json.loads(path.read_text(encoding="utf-8")), sort_keys=True)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise Unreadable("cost.json is not readable JSON") from None


def _read_status(path: Path) -> dict:
    try:
        status = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"state": "unfinished", "why": "status.json is missing"}
    except (OSError, ValueError):
        raise Unreadable("status.json is not readable JSON") from None
    if not isinstance(status, dict) or "state" not in status:
        raise Unreadable("status.json has no state")
    if not isinstance(status.get("updates", 0), int):
        raise Unreadable("status.json has a number of updates that is no number")
    return status


def _read_metrics(path: Path, run: _Run) -> None:
    rows = _rows(path, run)
    run.updates = _frame([row for row in rows if "loss" in row], UPDATE_COLUMNS)
    run.evaluations = _frame([row for row in rows if "validation_loss" in row], EVALUATION_COLUMNS)
    # An infinite loss is as diverged as an undefined one.
    run.updates["loss"] = run.updates["loss"].where(np.isfinite(run.updates["loss"]))
    run.row["clock"] = _one_clock(rows, path)
    missing = _missing(run.updates["update"].to_numpy())
    if len(missing):
        raise Unreadable(f"metrics.jsonl lacks the losses of {_numbers('update', missing)}")


def _read_repetitions(path: Path, run: _Run) -> None:
    rows = _rows(path, run)
    run.throughput = _frame(rows, REPETITION_COLUMNS, ["repetition"])
    run.row["clock"] = _one_clock(rows, path)
    if not (run.throughput[["tokens", "seconds"]] > 0).all(axis=None):
        raise Unreadable("throughput.jsonl has a repetition without tokens or seconds")


def _one_clock(rows: list[dict], path: Path) -> str | None:
    clocks = sorted({str(row.get("clock")) for row in rows})
    if len(clocks) > 1:
        raise Unreadable(f"{path.name} mixes clocks ({', '.join(clocks)})")
    return clocks[0] if clocks else None


def _read_stages(path: Path, run: _Run) -> None:
    rows = _rows(path, run)
    run.stages = _frame(rows, STAGE_COLUMNS, ["update", "stage"], histograms=("drift",))
    moves = [
        {"stage": row.get("stage")} | move
        for row in rows
        for move in _list(row.get("movement"))
        if isinstance(move, dict)
    ]
    run.movement = _frame(moves, MOVEMENT_COLUMNS, ["stage", "update", "microbatch"])


def _rows(path: Path, run: _Run) -> list[dict]:
    try:
        rows, unreadable = read_jsonl(path)
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read ({error.strerror})") from None
    if unreadable:
        run.notes.append(f"{path.name} has unreadable lines: {_numbers('line', unreadable)}.")
    return rows


def _missing(updates: np.ndarray) -> np.ndarray:
    """Updates without a line before the last that has one, if every k-th update has one."""
    if len(updates) < 2:
        return updates[:0]
    every = np.diff(updates).min()
    return np.setdiff1d(np.arange(min(every, updates[0]), updates[-1], every), updates)


def _numbers(thing: str, numbers: Sequence[int]) -> str:
    """ "line 3", "7 updates (2, 3, 4, 5, 6, …)"."""
    if len(numbers) == 1:
        return f"{thing} {numbers[0]}"
    listed = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
    return f"{len(numbers)} {thing}s ({listed})"


def _frame(rows: list[dict], columns: list[str], unique=("update",), histograms=()) -> pd.DataFrame:
    """One column of numbers, or of histograms, per key. A repeated line replaces the earlier."""
    unique = list(unique)
    try:
        frame = pd.DataFrame(
            {
                name: [_histogram(row.get(name)) for row in rows]
                if name in histograms
                else np.array([row.get(name) for row in rows], dtype=float)
                for name in columns
            }
        )
        frame[unique] = frame[unique].astype(int)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise Unreadable(f"a log has a value of the wrong kind ({error})") from None
    return frame.drop_duplicates(unique, keep="last").sort_values(unique, ignore_index=True)


def _list(value: object) -> list:
    return value if isinstance(value, list) else []


def _histogram(counts: dict | None) -> dict[int, int]:
    return {int(value): int(count) for value, count in (counts or {}).items()}


def _judge(status: dict, updates: pd.DataFrame) -> tuple[str, str | None]:
    """A run's state, and why it is not "completed" if it is not.

    A failed run whose last loss is not finite is "diverged". A completed run may lack its last
    update, whose line a crash can truncate, but no more.
    """
    state = str(status["state"])
    why = str(status.get("why") or "").partition("\n")[0].rstrip(".")
    last = int(updates["update"].iloc[-1]) if len(updates) else 0
    total = status.get("updates") or last
    progress = f"{last} of {total} updates in metrics.jsonl"
    if state == "failed" and last and updates["loss"].isna().iloc[-1]:
        state = "diverged"
    if state != "completed":
        return state, f"{progress}, {why}" if why else progress
    if last == 0 or last < total - 1:
        return "unfinished", f"status.json says completed but there are only {progress}"
    return state, None


def _judge_throughput(status: dict, repetitions: pd.DataFrame) -> tuple[str, str | None]:
    """A throughput run's state, and why it is not "completed" if it is not."""
    state, why = str(status["state"]), str(status.get("why") or "").partition("\n")[0].rstrip(".")
    if state != "completed":
        progress = f"after {len(repetitions)} repetition(s)"
        return state, f"{progress}, {why}" if why else progress
    if repetitions.empty:
        return "unfinished", "status.json says completed but throughput.jsonl has no repetition"
    return state, None


def _repeated(runs: pd.DataFrame) -> list[str]:
    """Finished runs that repeat the seed and configuration of an earlier one."""
    done = runs[runs["state"].isin(RESULTS)]
    key = ["experiment", "scale", "clock", "batch", "variant", "seed", "recipe"]
    return list(done.index[done.duplicated(key, keep="first")])
