"""Cells on a clock, and flush mapped to other micro-batch counts.

The number of micro-batches m into which a flush splits its batch changes its time and, dropout and
rounding apart, nothing else: its update is that of the batch. So flush is trained at one m, as in
the paper, and its curve against time at another m follows from the steady-state throughput of both:

    seconds at m  =  seconds at the trained m  ·  T(m) / T(trained m)

T is the time of an update. It comes

- from Q2's runs, where these time the trainings (`analysis.q2.rates`);
- else, on the clock of measured costs, from a simulation with the costs of micro-batches of batch/m
  sequences;
- else, on the wall clock, from Q3's real runs.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite

import pandas as pd

from analysis.cells import CannotAnswer, Cell, of_paper, planned
from analysis.frames import Frames
from analysis.q2.rates import GIVEN_COSTS, on_clocks, rates_of_q2
from analysis.q2.thresholds import PAPERS_WAY, Thresholds, lowest_common
from analysis.q3.throughput import throughput
from analysis.steady_state import seconds_per_update
from analysis.variants import Variant
from paci import Cost
from paci.schedules import build

MEASURED_COSTS = "simulated, measured costs"
WALL = "wall"


@dataclass(frozen=True, eq=False)
class Timed:
    """A cell with m micro-batches of an update; `pace` is its time over the time of its runs."""

    cell: Cell
    m: int
    pace: float = 1.0
    thresholds: Thresholds = PAPERS_WAY

    @property
    def mapped(self) -> bool:
        """Whether no run was timed with these micro-batches."""
        return self.m != self.cell.variant.accumulation

    @property
    def variant(self) -> Variant:
        """The cell's method with m micro-batches."""
        return replace(self.cell.variant, accumulation=self.m)

    @property
    def label(self) -> str:
        return self.variant.label

    @property
    def basis(self) -> str:
        """The origin of the time: "measured", "mapped from m=16" or "tokens ÷ throughput"."""
        if self.mapped:
            return f"mapped from m={self.cell.variant.accumulation}"
        return "measured" if self.cell.rate is None else "tokens ÷ throughput"

    @cached_property
    def total(self) -> pd.Series:
        """Seconds of the whole training, by seed."""
        return self._last("seconds") * self.pace

    @cached_property
    def final_perplexity(self) -> pd.Series:
        """Perplexity of the last evaluation, by seed."""
        return self._last("perplexity")

    def time_to(self, perplexity: float) -> pd.Series:
        """Return the seconds to a perplexity, by seed: see `Thresholds.crossing`."""
        return self._crossings(perplexity, "seconds") * self.pace

    def tokens_to(self, perplexity: float) -> pd.Series:
        """Return the tokens to a perplexity as a share of all, by seed."""
        return self._crossings(perplexity, "tokens") / self.cell.tokens.max()

    def _crossings(self, perplexity: float, of: str) -> pd.Series:
        read, logs = self.thresholds.crossing, self.cell.evaluations
        return pd.Series({seed: read(log, perplexity, of) for seed, log in logs.items()})

    def _last(self, column: str) -> pd.Series:
        logs = self.cell.evaluations
        return pd.Series({seed: log[column].iloc[-1] for seed, log in logs.items()}, dtype=float)


def timed(made: Sequence[Cell]) -> tuple[list[Cell], str]:
    """Return the cells that can answer a question about time, and a sentence about the others.

    No cell on the clock of given costs can, and no cell without a finite perplexity in every seed.
    Raises CannotAnswer if none is left, or if two runs were timed with different measurements of
    the same micro-batch size.
    """
    given = [cell for cell in made if cell.clock == GIVEN_COSTS]
    rest = [cell for cell in made if cell.clock != GIVEN_COSTS]
    able = [cell for cell in rest if isfinite(lowest_common([cell]))]
    unable = [cell.variant.label for cell in rest if cell not in able]
    said = []
    if given:
        said.append(
            f"{sum(cell.seeds for cell in given)} runs on the clock '{GIVEN_COSTS}', whose costs "
            "are given and not measured, say nothing about time without the throughputs of "
            "experiment=q2"
        )
    if unable:
        said.append(f"without a validation perplexity in every seed: {', '.join(unable)}")
    if not able:
        raise CannotAnswer("; ".join(said) or "no training run is completed")
    for scale in {cell.scale for cell in able}:
        costs_by_size([cell for cell in able if cell.scale == scale])
    return able, "; ".join(said)


def costs_by_size(made: Sequence[Cell]) -> dict[tuple[str, float], Cost]:
    """Return the measured costs of the cells' runs by recipe and sequences of a micro-batch.

    Raises CannotAnswer if two runs were timed with different measurements of one size.
    """
    known: dict[tuple[str, float], tuple[str, str]] = {}
    for cell in made:
        key = cell.recipe, cell.batch / cell.variant.accumulation
        for name, table in cell.costs.items():
            other, first = known.setdefault(key, (name, table))
            if table != first:
                raise CannotAnswer(
                    f"{other} and {name} have different measured costs of the same micro-batch "
                    "size; point at a folder with one of the two"
                )
    return {key: _cost(table) for key, (_, table) in known.items()}


@dataclass(frozen=True, eq=False)
class Timings:
    """The times of trained cells.

    made        all cells, whose runs bring the measured costs
    frames      the data frames, which hold the throughput runs of Q2 and Q3
    thresholds  the perplexities to time training to
    left_out    what to say of cells that have no time; "" if there are none
    """

    made: Sequence[Cell]
    frames: Frames
    thresholds: Thresholds = PAPERS_WAY
    left_out: str = ""

    @classmethod
    def of_paper(cls, frames: Frames, thresholds: Thresholds = PAPERS_WAY) -> "Timings":
        """Return the times of the methods that the paper trains. Raises CannotAnswer if none has
        one; see `timed`."""
        made, left_out = timed(of_paper(on_clocks(planned(frames), frames)))
        return cls(made, frames, thresholds, left_out)

    def as_trained(self, cell: Cell) -> Timed:
        """Return a cell with the micro-batches that it was trained with."""
        return Timed(cell, cell.variant.accumulation, thresholds=self.thresholds)

    def flushes(self, group: Sequence[Cell]) -> list[Timed]:
        """Return the flushes of one setting, trained and mapped, the fewest micro-batches first.

        A trained flush is mapped to every count at which flush or PACI is trained at this scale, if
        both counts have a steady state on the clock in use.
        """
        place = group[0].scale, group[0].clock
        here = [it for it in self.made if (it.scale, it.clock) == place]
        wanted = {
            it.variant.accumulation for it in here if it.variant.is_flush or it.variant.is_mild_paci
        }
        trained = [cell for cell in group if cell.variant.is_flush]
        found = {cell.variant.accumulation: self.as_trained(cell) for cell in trained}
        for cell in trained:
            m = cell.variant.accumulation
            times = _seconds_per_update(cell, here, self.frames, wanted | {m})
            if m in times:
                for other in wanted & {*times} - {*found}:
                    found[other] = Timed(cell, other, times[other] / times[m], self.thresholds)
        return [found[m] for m in sorted(found)]

    def everything(self, group: Sequence[Cell]) -> list[Timed]:
        """Return everything of one setting that has a time, in the order of every table:
        `flushes`, then all other cells as they were timed."""
        others = [self.as_trained(it) for it in group if not it.variant.is_flush]
        found = [*others, *self.flushes(group)]
        return sorted(found, key=lambda it: (not it.cell.variant.is_flush, it.variant.order))


def _seconds_per_update(
    flush: Cell, here: Sequence[Cell], frames: Frames, counts: set[int]
) -> dict[int, float]:
    """Return the time of an update of `flush` by micro-batches, where it is known."""
    sizes = {m: flush.batch // m for m in counts if flush.batch % m == 0}
    stages = flush.variant.stages
    if flush.rate is not None:
        known = rates_of_q2(frames)[flush.scale, flush.clock]
        splits = {
            m: known.get((flush.batch, replace(flush.variant, accumulation=m))) for m in counts
        }
        return {m: 1 / rate for m, rate in splits.items() if rate}
    if flush.clock == MEASURED_COSTS:
        costs = costs_by_size(here)
        return {
            m: seconds_per_update(build("1f1b-flush", stages, m), costs[flush.recipe, size])
            for m, size in sizes.items()
            if (flush.recipe, size) in costs
        }
    if flush.clock != WALL:
        return {}
    try:
        rates = throughput(frames)
    except CannotAnswer:
        return {}
    real = rates[rates["source"].eq("real") & rates["scale"].eq(flush.scale)]
    real = real[real["ranks"].eq(stages) & real["rate"].notna()]
    real = real[[it.is_flush for it in real["variant"]]]
    by_size = real.set_index(["m", "microbatch"])["rate"].to_dict()
    return {m: 1 / by_size[m, size] for m, size in sizes.items() if (m, size) in by_size}


def _cost(table: str) -> Cost:
    times = {name: value for name, value in json.loads(table).items() if name != "microbatch"}
    try:
        return Cost(**times)
    except (TypeError, ValueError) as error:
        raise CannotAnswer(f"a cost.json is no table of costs ({error})") from None
