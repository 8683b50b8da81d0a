"""Twelve configurations of Qi et al. (Zero Bubble Pipeline Parallelism, ICLR 2024), published and
simulated, and PACI beside them.

`paci` simulates each schedule at the times that the authors profiled, under these assumptions:

- Times are equal at all ranks and for all micro-batches.
- A message travels while its rank computes.
- A stage of 1F1B-I is one layer, with its share of the times but whole messages.
- ZB-1p and ZB-2p run our greedy order, planned for these times, with N and 2N in flight.
- Updates, embedding, head and data loading take no time.
- Windows follow one another rank by rank, without a barrier at the optimizer.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pandas as pd

from analysis.steady_state import seconds_per_update
from paci import Cost
from paci.schedules import Schedule, build
from paci.schedules.theory import bubble_efficiency

PUBLISHED = ("1F1B", "1F1B-I", "ZB-1p", "ZB-2p")
SCHEDULES = (*PUBLISHED, "PACI")
SEQUENCE = 1024  # tokens of a sample


class Setting(NamedTuple):
    """A configuration of the published tables, as its authors profiled it."""

    model: str
    ranks: int
    microbatches: int  # of a window
    layers: int  # of the model, evenly over the ranks but for one less at the first and the last
    width: int
    heads: int
    samples: int  # of a micro-batch
    forward_us: float
    input_gradient_us: float
    weight_gradient_us: float
    transfer_us: float

    @property
    def work(self) -> float:
        """The computation of every rank for a micro-batch, microseconds."""
        return self.forward_us + self.input_gradient_us + self.weight_gradient_us

    @property
    def held(self) -> float:
        """The share of a layer's activations that weight gradients need: 32 h of 34 h + 5 a s bytes
        a token, for width h, a heads and s tokens (Qi et al.; the sum is Korthikanti et al.'s)."""
        h, a = self.width, self.heads
        return 32 * h / (34 * h + 5 * a * SEQUENCE)

    def cost(self, stages_per_rank: int = 1) -> Cost:
        """Return the microseconds of each stage of a rank; messages are not shared out."""
        v = stages_per_rank
        return Cost(
            forward=self.forward_us / v,
            backward=(self.input_gradient_us + self.weight_gradient_us) / v,
            weight=self.weight_gradient_us / v,
            transfer=self.transfer_us,
        )

    def rule(self, schedule: str) -> tuple[Schedule, Cost]:
        """Return the rule of one of `SCHEDULES` in this configuration, and its times."""
        N, m, cost = self.ranks, self.microbatches, self.cost()
        if schedule == "1F1B-I":
            v = (self.layers + 2) // N
            return build("interleaved-1f1b", v * N, m, stages_per_rank=v), self.cost(v)
        if schedule in ("ZB-1p", "ZB-2p"):
            return build(schedule.lower(), N, m, measured=cost, held=self.held), cost
        return build({"1F1B": "1f1b-flush", "PACI": "paci"}[schedule], N, m), cost


@cache
def window(setting: Setting, schedule: str) -> float:
    """Return the microseconds from one update of the first stage to the next."""
    return seconds_per_update(*setting.rule(schedule))


def bubble_rate(setting: Setting, schedule: str) -> float:
    """Return the idle share of a window."""
    return 1 - setting.microbatches * setting.work / window(setting, schedule)


def throughput(setting: Setting, schedule: str) -> float:
    """Return the samples per GPU and second."""
    samples = setting.samples * setting.microbatches
    return samples / (window(setting, schedule) / 1e6) / setting.ranks


def settings(times: pd.DataFrame) -> Iterator[Setting]:
    """Yield the configurations of reference/zero_bubble_times.csv."""
    return (Setting(*line) for line in times[list(Setting._fields)].itertuples(index=False))


def extrapolated(published: pd.DataFrame) -> pd.DataFrame:
    """Return the published numbers and, by the method of the PACI paper, those of PACI: the
    throughput of 1F1B over its bubble efficiency m / (m + N - 1), at the memory of 1F1B."""
    flush = published[published["variant"] == "1F1B"]
    efficiency = [
        bubble_efficiency(it.ranks, it.microbatches) for it in flush.itertuples(index=False)
    ]
    paci = flush.assign(
        variant="PACI",
        samples_per_gpu_per_second=flush["samples_per_gpu_per_second"] / efficiency,
        bubble_rate=float("nan"),
    )
    return pd.concat([published, paci], ignore_index=True)


def compared(published: pd.DataFrame, times: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each configuration and schedule, in the order of `SCHEDULES`.

    Columns: model, N, m, schedule; published and simulated (throughput in samples per GPU and
    second; PACI's is extrapolated, not published); memory (GB); published bubble and simulated
    bubble (rates; none is published for PACI).
    """
    theirs = extrapolated(published).set_index(["model", "ranks", "microbatches", "variant"])
    rows = []
    for setting in settings(times):
        for schedule in SCHEDULES:
            key = (setting.model, setting.ranks, setting.microbatches, schedule)
            line = theirs.loc[key]
            rows.append(
                {
                    "model": setting.model,
                    "N": setting.ranks,
                    "m": setting.microbatches,
                    "schedule": schedule,
                    "published": float(line["samples_per_gpu_per_second"]),
                    "simulated": throughput(setting, schedule),
                    "memory": int(line["memory_gb"]),
                    "published bubble": float(line["bubble_rate"]),
                    "simulated bubble": bubble_rate(setting, schedule),
                }
            )
    return pd.DataFrame(rows)
