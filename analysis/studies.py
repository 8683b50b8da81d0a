"""Studies beyond the paper: runs of one experiment that differ in one choice of computation."""

from collections.abc import Iterator

import pandas as pd

from analysis.cells import CannotAnswer, Cell, cells, leaves, of_experiments
from analysis.frames import Frames

PARTS = {
    "weights": "parameter_bytes",
    "copies": "version_bytes",
    "gradients": "gradient_bytes",
    "optimizer and masters": "optimizer_bytes",
    "activations": "activation_bytes",
}
"""The parts of a stage's memory, and their columns in `Frames.stages`."""

BEFORE = 10
"""Updates before an update whose lowest loss its rise is measured from."""


def study(frames: Frames, experiment: str) -> list[Cell]:
    """Return the cells of the trainings of an experiment, whose runs may have been made for another
    one as well. Raises CannotAnswer if there is none."""
    mine = of_experiments(frames, [experiment])
    if mine.used.empty:
        raise CannotAnswer(
            f"no run of experiment={experiment} is completed: "
            f"python -m experiments.sweep experiment={experiment}"
        )
    return cells(mine)


def choice(cell: Cell, key: str) -> str:
    """Return a setting of a cell's recipe as text: `choice(cell, "precision")`."""
    return str(leaves(cell.recipe).get(key))


def with_reference(made: list[Cell], key: str, reference: str) -> Iterator[tuple[Cell, Cell]]:
    """Yield each cell with the one that differs from it in `key` alone, whose value is `reference`
    (for a cell with that value, itself); cells that have none are left out."""
    for cell in made:
        for other in made:
            if choice(other, key) == reference and _apart(cell, other) <= {key}:
                yield cell, other


def _apart(cell: Cell, other: Cell) -> set[str]:
    """Return the settings in which two cells differ, their method among them."""
    one, two = leaves(cell.recipe), leaves(other.recipe)
    places = ("scale", "clock", "batch", "variant")
    return {key for key in one | two if one.get(key) != two.get(key)} | {
        place for place in places if getattr(cell, place) != getattr(other, place)
    }


def paired(cell: Cell, reference: Cell) -> pd.Series:
    """Return the final loss of a cell over that of its reference by seed, nats per token."""
    return (cell.final_losses - reference.final_losses).dropna()


def fullest(cell: Cell) -> pd.Series:
    """Return the bytes of each of PARTS at the stage that holds the most, each part at its peak."""
    by_stage = cell.stages.groupby("stage")[list(PARTS.values())].max()
    held = by_stage.loc[by_stage.sum(axis=1).idxmax()]
    return pd.Series({part: held[column] for part, column in PARTS.items()})


def copied(cell: Cell) -> float:
    """Return the share of the weights, over all stages, that graphs in flight keep copies of."""
    by_stage = cell.stages.groupby("stage")[["copied", "parameter_bytes"]].max().fillna(0)
    sizes = by_stage["parameter_bytes"]
    return float((by_stage["copied"] * sizes).sum() / sizes.sum())


def drift(cell: Cell) -> int:
    """Return the largest drift that the versions of any stage show, in updates."""
    return max((max(histogram, default=0) for histogram in cell.stages["drift"]), default=0)


def largest_rise(losses: pd.DataFrame) -> pd.Series:
    """Return by seed the most that an update's loss exceeds the lowest of the BEFORE updates before
    it, nats per token; NaN for a seed whose loss is undefined somewhere."""
    rises = losses - losses.rolling(BEFORE).min().shift()
    return rises.max().where(losses.notna().all())


def units(cell: Cell) -> float:
    """Return the simulated time of an update in the last half of the training, in units of the
    clock; NaN on another clock."""
    logs = cell.frames.updates.loc[list(cell.runs)]
    if "units" not in logs:
        return float("nan")
    late = logs[logs["update"] >= logs["update"].max() / 2].groupby(level="run")
    ends = late[["update", "units"]].agg(["first", "last"])
    time = ends["units", "last"] - ends["units", "first"]
    return float((time / (ends["update", "last"] - ends["update", "first"])).mean())
