"""Comparisons of any runs: one number of each run, by any settings of their configurations."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml

from analysis.cells import CannotAnswer, by_setting, cells
from analysis.efficiency import at_share, flush_of, from_losses
from analysis.frames import Frames
from analysis.states import THROUGHPUT, TRAINING
from analysis.statistics import final_losses


class Metric(NamedTuple):
    """A number of each run: its label with its unit, the task of the runs that have it, and the
    function that gives it by run."""

    label: str
    task: str
    of: Callable[[Frames], pd.Series]


def compare(frames: Frames, root: Path, by: Sequence[str], metric: str) -> pd.DataFrame:
    """Return a row for each combination of the settings `by`, in order: these, then the mean of the
    metric over its runs (`metric`), their standard deviation (`metric ±`) and their number.

    A run that diverged makes its mean undefined. Raises CannotAnswer for an unknown metric or
    setting, and for a setting in which no two runs differ.
    """
    if metric not in METRICS:
        raise CannotAnswer(f"unknown metric {metric!r}: choose from {', '.join(METRICS)}")
    of = METRICS[metric]
    runs = frames.of(of.task).used
    if runs.empty:
        raise CannotAnswer(f"no {of.task} run is completed, which {metric} takes")
    settings = pd.DataFrame({name: read_settings(root, name) for name in runs.index}).T
    varying = [key for key in settings if settings[key].astype(str).nunique() > 1]
    offered = [key for key in varying if key not in ("runs", "seed", "named")]
    for key in by:
        if key not in varying:
            why = (
                f"is {settings[key].iloc[0]!r} in all runs" if key in settings else "is no setting"
            )
            raise CannotAnswer(f"{key} {why}: choose from {', '.join(offered) or 'nothing'}")
    values = of.of(frames).reindex(runs.index)
    if values.isna().all():
        raise CannotAnswer(f"no run here has a value for {metric}")
    keys = [settings[key].map(_ordered) for key in by]
    grouped = values.astype(float).groupby(keys)
    table = pd.DataFrame(
        {
            metric: grouped.agg(lambda it: it.mean(skipna=False)),
            f"{metric} ±": grouped.agg(lambda it: it.std(ddof=1, skipna=False)),
            "runs": grouped.size(),
        }
    )
    return table.rename_axis(list(by)).reset_index()


def read_settings(root: Path, name: str) -> dict[str, object]:
    """Return the settings of a run's configuration by their keys: {"optimizer.lr": 0.001, ...}."""
    folder = root / name if (root / name).is_dir() else root  # the root is itself the run
    config = yaml.load((folder / "config.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader)
    found: dict[str, object] = {}

    def add(prefix: str, value: object) -> None:
        if isinstance(value, dict) and value:
            for key, part in value.items():
                add(f"{prefix}.{key}" if prefix else key, part)
        else:
            found[prefix] = value

    add("", config)
    return found


def _ordered(value: object) -> object:
    """Return a number as it is, and anything else as text."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else str(value)


def _final_loss(frames: Frames) -> pd.Series:
    losses = {name: log["loss"].to_frame() for name, log in frames.updates.groupby(level="run")}
    return pd.Series({name: final_losses(loss)["loss"] for name, loss in losses.items()})


def _final_perplexity(frames: Frames) -> pd.Series:
    return frames.evaluations.groupby(level="run")["perplexity"].last()


def _largest_drift(frames: Frames) -> pd.Series:
    largest = frames.stages["drift"].map(lambda it: max(map(int, it), default=0))
    return largest.groupby(level="run").max()


def _rate(frames: Frames) -> pd.Series:
    log = frames.throughput
    return (log["tokens"] / log["seconds"]).groupby(level="run").mean()


def _held(column: str) -> Callable[[Frames], pd.Series]:
    """Return the function that gives the most bytes of `column` of any stage, in MiB."""

    def held(frames: Frames) -> pd.Series:
        return frames.stages[column].groupby(level="run").max() / 2**20

    return held


def _copied(frames: Frames) -> pd.Series:
    return frames.stages["copied"].groupby(level="run").max()


def _efficiency(frames: Frames) -> pd.Series:
    found: dict[str, float] = {}
    for group in by_setting(cells(frames)).values():
        for cell in group:
            flush = flush_of(cell, group)
            if flush is not None:
                late = at_share(from_losses(cell, flush), 1.0)
                found |= {name: late.get(seed, float("nan")) for name, seed in cell.runs.items()}
    return pd.Series(found, dtype=float)


METRICS = {
    "loss": Metric("final training loss (nats per token)", TRAINING, _final_loss),
    "perplexity": Metric("final validation perplexity", TRAINING, _final_perplexity),
    "E": Metric("update efficiency at the end", TRAINING, _efficiency),
    "drift": Metric("largest drift (updates)", TRAINING, _largest_drift),
    "activations": Metric("activations of the fullest stage (MiB)", TRAINING,
                          _held("activation_bytes")),
    "copies": Metric("copies of weights of the fullest stage (MiB)", TRAINING,
                     _held("version_bytes")),
    "copied": Metric("share of weights copied by graphs", TRAINING, _copied),
    "throughput": Metric("tokens/s", THROUGHPUT, _rate),
}  # fmt: skip
"""The numbers by which runs can be compared."""
