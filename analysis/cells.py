"""Runs that differ in nothing but their seed, and the tables of losses that they make together."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
    """Scale, clock, batch and whatever else two variants must share to be compared: the first
    columns of every table.

    `other` names the settings in which runs of one method differ, as "lr 0.001, precision float32";
    it is empty if there are none.
    """

    scale: str
    clock: str
    batch: int
    other: str = ""

    @property
    def columns(self) -> dict[str, object]:
        """The columns of a table; `other` only if there is anything."""
        return {name: value for name, value in self._asdict().items() if value != ""}


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell of the design of the study: a variant at a batch size, over its seeds."""

    scale: str
    clock: str
    batch: int
    variant: Variant
    runs: dict[str, int]  # name of the run -> seed
    frames: Frames
    other: str = ""  # of its `Setting`
    rate: float | None = None  # tokens/s that time it; None: its runs were timed themselves

    @property
    def setting(self) -> Setting:
        return Setting(self.scale, self.clock, self.batch, self.other)

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

    Q1 and Q2 read the same trainings, whatever the experiment that they were made for. Runs of one
    method that were trained with different models, data, optimizers, token budgets and so on are
    different cells, of different settings. Raises CannotAnswer if there is none.
    """
    mine = frames.of(TRAINING)
    if mine.used.empty:
        raise CannotAnswer("no training run is completed")
    varied = {scale: _varied(runs) for scale, runs in mine.used.groupby("scale")}
    made = []
    for key, runs in mine.used.groupby(KEY):
        scale, clock, batch, variant, recipe = key
        other = _named(recipe, varied[scale])
        made.append(Cell(scale, clock, int(batch), variant, runs["seed"].to_dict(), mine, other))
    return in_order(made)


PLACE = ["scale", "clock", "batch", "variant"]
"""The columns of `Frames.runs` that make a cell, besides the recipe."""
KEY = [*PLACE, "recipe"]


PLAN = ("trainings", "extras", "q1", "q2")
"""The experiments of the paper's plan of trainings, and of the extras beside it; in older versions
those of q1 and q2."""


def planned(frames: Frames) -> list[Cell]:
    """Return the cells of the paper's plan or, if there is none of it, all cells. Raises
    CannotAnswer if there is none."""
    found = of_experiments(frames, PLAN)
    return cells(frames if found.used.empty else found)


def of_experiments(frames: Frames, experiments: Sequence[str]) -> Frames:
    """Return the same frames with only the trainings of these experiments, and with those of other
    experiments that are the same but for their seed."""
    mine = frames.of(TRAINING)
    runs = mine.runs.dropna(subset=["experiment", "recipe"])
    keys = [tuple(key) for key in runs[KEY].itertuples(index=False)]
    wanted = {
        key for key, name in zip(keys, runs["experiment"], strict=True) if name in experiments
    }
    return replace(mine, runs=runs[[key in wanted for key in keys]])


def _varied(runs: pd.DataFrame) -> list[str]:
    """Return the settings in which runs of one place differ, in the order of a recipe."""
    varied: dict[str, None] = {}
    for _, group in runs.groupby(PLACE):
        recipes = [leaves(recipe) for recipe in group["recipe"].unique()]
        for key in dict.fromkeys(key for recipe in recipes for key in recipe):
            if len({json.dumps(recipe.get(key)) for recipe in recipes}) > 1:
                varied[key] = None
    return list(varied)


def _named(recipe: str, varied: Sequence[str]) -> str:
    """Return text like "lr 0.001, precision float32", without settings that are null or that the
    recipe lacks, like the files of data that have none."""
    of, last = leaves(recipe), [key.rpartition(".")[2] for key in varied]
    named = [
        f"{short if last.count(short) == 1 else key} {_shown(of[key])}"
        for key, short in zip(varied, last, strict=True)
        if of.get(key) is not None
    ]
    return ", ".join(named)


def _shown(value: object) -> str:
    """Return a value as a configuration has it: text without quotes, true and false."""
    return value if isinstance(value, str) else json.dumps(value)


def leaves(recipe: str) -> dict[str, object]:
    """Return the settings of a recipe by their keys: {"optimizer.lr": 0.001, ...}."""
    found: dict[str, object] = {}

    def add(prefix: str, value: object) -> None:
        if isinstance(value, dict):
            for key, part in value.items():
                add(f"{prefix}.{key}" if prefix else key, part)
        else:
            found[prefix] = value

    add("", json.loads(recipe))
    return found


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
