"""Runs that differ in nothing but their seed, and the tables of losses they make together."""

import json
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import groupby
from typing import NamedTuple

import pandas as pd

from analysis.frames import Frames
from analysis.variants import Variant


class CannotAnswer(Exception):
    """The runs at hand do not answer the question; the message says why."""


class Setting(NamedTuple):
    """What two variants must share to be compared. Its fields are the first columns of a table."""

    scale: str
    clock: str
    batch: int


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
    def setting(self) -> Setting:
        return Setting(self.scale, self.clock, self.batch)

    @property
    def seeds(self) -> int:
        return len(self.runs)

    @property
    def completed(self) -> list[str]:
        """Names of the runs that did not diverge."""
        return [name for name in self.runs if self.frames.runs.loc[name, "state"] == "completed"]

    @property
    def recipe(self) -> str:
        """`configs.RECIPE`, precision and times of every seed, as JSON."""
        return self.frames.runs.loc[next(iter(self.runs)), "recipe"]

    @property
    def token(self) -> str:
        """What the text is cut into: "byte" or "token". Losses are in nats per it."""
        data = json.loads(self.recipe)["data"] or {}
        return "byte" if data.get("tokeniser") == "bytes" else "token"

    @cached_property
    def losses(self) -> pd.DataFrame:
        """Training loss, nats per token: updates that every seed logged × seeds.

        A diverged seed's loss is NaN from there on.
        """
        return self._by_seed(self.frames.updates, "loss")

    @cached_property
    def perplexities(self) -> pd.DataFrame:
        """Validation perplexity: evaluations (by update) that every seed made × seeds."""
        return self._by_seed(self.frames.evaluations, "perplexity")

    @cached_property
    def evaluations(self) -> dict[int, pd.DataFrame]:
        """Of every seed: update, tokens, perplexity and seconds of training, in order."""
        return {seed: _run(self.frames.evaluations, name) for name, seed in self._in_order}

    @property
    def costs(self) -> dict[str, str]:
        """The table of measured times that each run was timed with, as JSON, where it has one."""
        return self.frames.runs.loc[list(self.runs), "costs"].dropna().to_dict()

    @cached_property
    def tokens(self) -> pd.Series:
        """Tokens seen after each update that was logged or evaluated."""
        logs = [_of(log, self.runs) for log in (self.frames.updates, self.frames.evaluations)]
        return pd.concat(log.set_index("update")["tokens"] for log in logs).groupby(level=0).max()

    @cached_property
    def stages(self) -> pd.DataFrame:
        """Every stage and segment of these runs."""
        return _of(self.frames.stages, self.runs)

    @cached_property
    def movement(self) -> pd.DataFrame:
        """Sampled movements of the weights between a forward and its backward."""
        return _of(self.frames.movement, self.runs)

    @property
    def _in_order(self) -> list[tuple[str, int]]:
        """Names of the runs and their seeds, by seed."""
        return sorted(self.runs.items(), key=lambda run: run[1])

    def _by_seed(self, frame: pd.DataFrame, column: str) -> pd.DataFrame:
        curves = {
            seed: _run(frame, name).set_index("update")[column] for name, seed in self._in_order
        }
        whole = [curves[self.runs[name]].index for name in self.completed]
        # If no seed was completed, the one that lasted longest sets the length.
        longest = max((curve.index for curve in curves.values()), key=len)
        index = reduce(pd.Index.intersection, whole or [longest])
        return pd.DataFrame({seed: curve.reindex(index) for seed, curve in curves.items()})


def _run(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    return frame.loc[name] if name in frame.index else frame[:0]


def _of(frame: pd.DataFrame, runs: dict[str, int]) -> pd.DataFrame:
    return frame[frame.index.get_level_values("run").isin(runs)]


def cells(frames: Frames, experiment: str) -> list[Cell]:
    """The cells of an experiment's completed and diverged runs, in the order of every table.

    Raises CannotAnswer if there is none, or if runs that would share a cell were trained
    with different models, data, optimizers, token budgets or numbers of stages.
    """
    mine = frames.of(experiment)
    if mine.used.empty:
        raise CannotAnswer(f"no run of experiment {experiment} is completed")
    made = []
    for key, runs in mine.used.groupby(["scale", "clock", "batch", "variant"]):
        scale, clock, batch, variant = key
        if runs["recipe"].nunique() > 1:
            first, other = runs.drop_duplicates("recipe")["recipe"][:2].items()
            raise CannotAnswer(
                f"{first[0]} and {other[0]} are both {variant.label} at batch {batch} but differ "
                f"in {' and '.join(unequal(first[1], other[1]))}; point at a folder with one of "
                "the two"
            )
        made.append(Cell(scale, clock, int(batch), variant, runs["seed"].to_dict(), mine))
    return sorted(made, key=lambda cell: (*cell.setting, cell.variant.order))


def by_setting(made: list[Cell]) -> dict[Setting, list[Cell]]:
    """Cells that may be compared with each other."""
    return {key: list(group) for key, group in groupby(made, lambda cell: cell.setting)}


def differences(one: Cell, other: Cell) -> list[str]:
    """What two cells differ in besides their method: "optimizer", "tokens", ..."""
    return unequal(one.recipe, other.recipe)


def unequal(one: str, other: str) -> list[str]:
    """What two recipes differ in."""
    mine, theirs = json.loads(one), json.loads(other)
    return [key for key in mine if mine[key] != theirs.get(key)]
