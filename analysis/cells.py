"""Runs that differ in nothing but their seed, and the tables of losses that they make together."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import groupby
from typing import NamedTuple

import pandas as pd

from analysis.frames import Frames
from analysis.states import TRAINING
from analysis.statistics import binned, final_losses
from analysis.variants import Variant


class CannotAnswer(Exception):
    """The runs at hand do not answer the question; the message says why."""


class Setting(NamedTuple):
    """Scale, clock and batch, which two variants must share to be compared: the first columns of
    every table."""

    scale: str
    clock: str
    batch: int


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell of the design of the study: a variant at a batch size, over its seeds."""

    scale: str
    clock: str
    batch: int
    variant: Variant
    runs: dict[str, int]  # name of the run -> seed
    frames: Frames
    rate: float | None = None  # tokens/s that time it; None: its runs were timed themselves

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
        """`configs.RECIPE`, precision and times, which all seeds share, as JSON."""
        return self.frames.runs.loc[next(iter(self.runs)), "recipe"]

    @property
    def token(self) -> str:
        """The unit that the text is cut into, "byte" or "token"; losses are in nats per unit."""
        data = json.loads(self.recipe)["data"] or {}
        return "byte" if data.get("tokeniser") == "bytes" else "token"

    @cached_property
    def losses(self) -> pd.DataFrame:
        """Training loss, nats per token: updates that every seed logged × seeds.

        A diverged seed's loss is NaN from there on.
        """
        return self._by_seed(self.frames.updates, "loss")

    @cached_property
    def final_losses(self) -> pd.Series:
        """`statistics.final_losses` by seed."""
        return final_losses(self.losses)

    @cached_property
    def binned(self) -> pd.DataFrame:
        """`losses` in bins of equal tokens: bins (by the tokens at their end) × seeds."""
        return binned(self.losses, self.tokens)

    @cached_property
    def perplexities(self) -> pd.DataFrame:
        """Validation perplexity: evaluations (by update) that every seed made × seeds."""
        return self._by_seed(self.frames.evaluations, "perplexity")

    @cached_property
    def evaluations(self) -> dict[int, pd.DataFrame]:
        """Update, tokens, perplexity and seconds of training of each evaluation, by seed."""
        logs = {seed: _run(self.frames.evaluations, name) for name, seed in self._in_order}
        if self.rate is None:
            return logs
        return {seed: log.assign(seconds=log["tokens"] / self.rate) for seed, log in logs.items()}

    @property
    def costs(self) -> dict[str, str]:
        """The measured times of each run that has them, cost.json, by run."""
        return dict(self.frames.runs.loc[list(self.runs), "costs"].dropna().items())

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


def cells(frames: Frames) -> list[Cell]:
    """Return the cells of all training runs that are a result, in the order of every table.

    Q1 and Q2 read the same trainings, whatever the experiment that they were made for. Raises
    CannotAnswer if there is none, or if runs that would share a cell were trained with different
    models, data, optimizers, token budgets or numbers of stages.
    """
    mine = frames.of(TRAINING)
    if mine.used.empty:
        raise CannotAnswer("no training run is completed")
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
    return in_order(made)


def in_order(made: Sequence[Cell]) -> list[Cell]:
    """Sort cells as every table has them."""
    return sorted(made, key=lambda cell: (*cell.setting, cell.variant.order))


def of_paper(made: Sequence[Cell]) -> list[Cell]:
    """Return the cells of the methods that the paper trains. Raises CannotAnswer if there is
    none."""
    if found := [cell for cell in made if cell.variant.in_paper]:
        return found
    raise CannotAnswer("no training run of 1f1b-flush or paci is completed")


def by_setting(made: Iterable[Cell]) -> dict[Setting, list[Cell]]:
    """Group cells by setting: those of one group may be compared with each other."""
    return {key: list(group) for key, group in groupby(made, lambda cell: cell.setting)}


def differences(one: Cell, other: Cell) -> list[str]:
    """Name what two cells differ in besides their method: "optimizer", "tokens", ..."""
    return unequal(one.recipe, other.recipe)


def unequal(one: str, other: str) -> list[str]:
    """Name what two recipes differ in."""
    mine, theirs = json.loads(one), json.loads(other)
    return [key for key in mine if mine[key] != theirs.get(key)]
