"""Runs that differ in nothing but their seed, and the tables of losses they make together."""

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import pandas as pd

from analysis.runs import Frames
from analysis.variants import Variant


class CannotAnswer(Exception):
    """The runs at hand do not answer the question; the message says why."""


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell of an experiment's design: a variant at a batch size, over its seeds."""

    scale: str
    clock: str
    batch: int
    variant: Variant
    runs: dict[str, int]  # name of the run -> seed
    frames: Frames

    @property
    def setting(self) -> tuple[str, str, int]:
        """Scale, clock and batch: what two variants must share to be compared."""
        return self.scale, self.clock, self.batch

    @property
    def seeds(self) -> int:
        return len(self.runs)

    @property
    def recipe(self) -> dict:
        """The model, data, optimizer, token budget and number of stages of every seed."""
        return json.loads(self.frames.runs.loc[next(iter(self.runs)), "recipe"])

    @cached_property
    def losses(self) -> pd.DataFrame:
        """Training loss, nats per token: updates that every seed logged × seeds."""
        return self._by_seed(self.frames.updates, "loss")

    @cached_property
    def perplexities(self) -> pd.DataFrame:
        """Validation perplexity: evaluations (by update) that every seed made × seeds."""
        return self._by_seed(self.frames.evaluations, "perplexity")

    @cached_property
    def tokens(self) -> pd.Series:
        """Tokens seen after each update."""
        frame = self.frames.updates.loc[next(iter(self.runs))]
        return frame.set_index("update")["tokens"]

    @cached_property
    def stages(self) -> pd.DataFrame:
        """Every stage and segment of these runs."""
        return _of(self.frames.stages, self.runs)

    @cached_property
    def movement(self) -> pd.DataFrame:
        """Sampled movements of the weights between a forward and its backward."""
        return _of(self.frames.movement, self.runs)

    def _by_seed(self, frame: pd.DataFrame, column: str) -> pd.DataFrame:
        known = frame.index.get_level_values("run").unique()
        curves = {
            seed: frame.loc[name].set_index("update")[column]
            for name, seed in sorted(self.runs.items(), key=lambda run: run[1])
            if name in known
        }
        if len(curves) < len(self.runs):
            return pd.DataFrame(columns=sorted(self.runs.values()), dtype=float)
        return pd.concat(curves, axis=1, join="inner")


def _of(frame: pd.DataFrame, runs: dict[str, int]) -> pd.DataFrame:
    return frame[frame.index.get_level_values("run").isin(runs)]


def cells(frames: Frames, experiment: str) -> list[Cell]:
    """The cells of an experiment's completed runs, in the order of every table.

    Raises CannotAnswer if no run is completed, or if runs that would share a cell were trained
    with different models, data, optimizers, token budgets or numbers of stages.
    """
    mine = frames.of(experiment)
    if mine.completed.empty:
        raise CannotAnswer(f"no run of experiment {experiment} is completed")
    made = []
    for key, runs in mine.completed.groupby(["scale", "clock", "batch", "variant"]):
        scale, clock, batch, variant = key
        if runs["recipe"].nunique() > 1:
            first, other = runs.drop_duplicates("recipe").index[:2]
            raise CannotAnswer(
                f"{first} and {other} are both {variant.label} at batch {batch} but differ in "
                "more than their seed; point at a folder that holds one of the two"
            )
        made.append(Cell(scale, clock, int(batch), variant, runs["seed"].to_dict(), mine))
    return sorted(made, key=lambda cell: (*cell.setting, cell.variant.order))


def by_setting(made: list[Cell]) -> dict[tuple[str, str, int], list[Cell]]:
    """Cells that may be compared with each other, under their (scale, clock, batch)."""
    return {key: list(group) for key, group in groupby(made, lambda cell: cell.setting)}


def differences(one: Cell, other: Cell) -> list[str]:
    """What two cells differ in besides their method: "optimizer", "tokens", ..."""
    mine, theirs = one.recipe, other.recipe
    return [key for key in mine if mine[key] != theirs[key]]
