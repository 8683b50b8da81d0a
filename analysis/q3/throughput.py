"""How fast runs trained and what they held: tokens/s, their error, bubbles and bytes."""

from math import nan
from operator import itemgetter

import numpy as np
import pandas as pd

from analysis.cells import CannotAnswer, unequal
from analysis.frames import Frames
from analysis.states import THROUGHPUT
from analysis.statistics import mean_and_interval
from analysis.variants import Variant
from paci.schedules.theory import bubble_efficiency

EXPERIMENTS = ("q3", "q3-emulated", "q3-real")
SOURCES = {"local": "simulated", "emulated": "emulated", "distributed": "real"}
"""What the times of an executor are: of a clock that plays measured costs, of processes that wait,
of processes that compute."""

CLOCKS = {"local": "simulated", "emulated": "emulated", "distributed": "wall"}
"""The clock of a run that ran out of memory before it logged one."""

SHARED = {
    ("scale", "source"): ("model", "data", "precision"),
    ("scale", "source", "clock", "stages"): ("times",),  # given for each stage of a rank
}
"""What runs must share of their recipe, if they are alike in these columns."""

SETTING = ["scale", "source", "clock", "ranks", "microbatch"]
"""What two throughputs must share to be compared."""

PARTS = {
    "parameters": "parameter_bytes",
    "gradients": "gradient_bytes",
    "optimizer state": "optimizer_bytes",
    "activations": "activation_bytes",
    "parameter copies": "version_bytes",
}
"""What a rank's memory is for, and the column of `Frames.stages` that tells."""


def is_papers_paci(variant: Variant) -> bool:
    """PACI as the paper has it, which has no slack."""
    return variant.is_paci and not variant.slack


def throughput(frames: Frames) -> pd.DataFrame:
    """A row for each method at each setting, over all repetitions of its runs.

    Columns: those of SETTING (microbatch in sequences), variant, m (micro-batches of an update),
    batch, state, runs, repetitions, rate (tokens/s), doubt (half of the 95 % interval of the mean
    over repetitions, over it; 0 on a simulated clock, NaN for one repetition on any other),
    balance (the ranks' busy time over that of the busiest: N if all are alike). A run out of
    memory has no rate. Raises CannotAnswer if there is none, or if runs differ in what is
    SHARED, or in the measured costs of micro-batches of one size.
    """
    runs = _runs(frames)
    rates = frames.throughput["tokens"] / frames.throughput["seconds"]
    rates.index = rates.index.get_level_values("run")
    rows = []
    for key, group in runs.groupby([*SETTING, "variant"]):
        known = rates[rates.index.isin(group.index)]
        logged = frames.stages.index.get_level_values("run").isin(group.index)
        busy = frames.stages[logged].groupby("rank")["busy_seconds"].sum(min_count=1)
        simulated = group["clock"].str.startswith("simulated").all()
        variant = key[-1]
        rows.append(
            dict(zip([*SETTING, "variant"], key, strict=True))
            | {
                "m": variant.accumulation,
                "batch": group["batch"].iloc[0],
                "state": "completed" if group["state"].eq("completed").any() else "out-of-memory",
                "runs": len(group),
                "repetitions": len(known),
                "rate": known.mean(),
                "doubt": 0.0 if simulated and len(known) == 1 else relative_interval(known),
                "balance": busy.sum() / busy.max() if len(busy) else nan,
            }
        )
    order = itemgetter(*SETTING)
    return pd.DataFrame(
        sorted(rows, key=lambda row: (*order(row), row["variant"].method, row["m"]))
    )


def relative_interval(rates: pd.Series) -> float:
    """Half of the 95 % interval of the mean, over the mean; NaN for fewer than two."""
    mean, doubt = mean_and_interval(rates)
    return doubt / mean


def theory_check(made: pd.DataFrame) -> pd.DataFrame:
    """Flush over its bubble efficiency m/(m+N-1) against PACI, wherever both were measured.

    Takes `throughput`'s rows. Columns: those of SETTING, m, flush, paci (tokens/s), efficiency,
    predicted (flush over efficiency), deviation (PACI over predicted, minus one), speedup (PACI
    over flush), doubt (of that ratio, relative: those of both in quadrature), and `deviation as
    they are`: that from flush over the efficiency of stages as unequal as they are. m/(m+N-1) is
    of equal ones; where a flush of m micro-batches takes m-1 times what the busiest stage takes
    for one, and once what all take, it is m/(m-1+balance).
    """
    made = made[made["rate"].notna()]
    key = [*SETTING, "m"]
    flush, paci = (
        made.loc[made["variant"].map(is_it), [*key, "rate", "doubt", "balance"]]
        for is_it in (lambda it: it.is_flush, is_papers_paci)
    )
    both = flush.merge(paci, on=key, suffixes=("", " of paci"))
    found = both[key].assign(flush=both["rate"], paci=both["rate of paci"])
    found["efficiency"] = [
        bubble_efficiency(n, m) for n, m in zip(both["ranks"], both["m"], strict=True)
    ]
    found["predicted"] = found["flush"] / found["efficiency"]
    found["deviation"] = found["paci"] / found["predicted"] - 1
    found["doubt"] = np.hypot(both["doubt"], both["doubt of paci"])
    found["speedup"] = found["paci"] / found["flush"]
    as_they_are = both["m"] / (both["m"] - 1 + both["balance"])
    found["deviation as they are"] = found["speedup"] * as_they_are - 1
    return found


def memory(frames: Frames) -> pd.DataFrame:
    """Peak bytes of every rank of every method at every setting that computes: a row a rank.

    Columns: those of SETTING, variant, m, runs, rank, those of PARTS, total, allocated (by CUDA's
    allocator, else NaN). A rank's are the sums over its stages of the largest over segments and
    runs; where it has several stages, their peaks need not fall together, and the sum is a bound.
    Emulated runs hold nothing and have no row.
    """
    runs = _runs(frames)
    runs = runs[runs["source"] != "emulated"]
    stages = frames.stages.reset_index(level=-1, drop=True)
    rows = []
    for key, group in runs.groupby([*SETTING, "variant"]):
        mine = stages[stages.index.isin(group.index)]
        if mine.empty or mine["rank"].isna().any():
            continue
        by_stage = mine.groupby(["rank", "stage"]).max(numeric_only=True)
        sums = by_stage[list(PARTS.values())].groupby("rank").sum(min_count=1)
        sums.columns = list(PARTS)
        sums["total"] = sums.sum(axis=1, skipna=False)
        sums["allocated"] = by_stage["allocated_bytes"].groupby("rank").max()
        place = dict(zip([*SETTING, "variant"], key, strict=True))
        place |= {"m": key[-1].accumulation, "runs": len(group)}
        rows += [place | {"rank": int(rank)} | row for rank, row in sums.to_dict("index").items()]
    return pd.DataFrame(
        rows, columns=[*SETTING, "variant", "m", "runs", "rank", *PARTS, "total", "allocated"]
    )


def _runs(frames: Frames) -> pd.DataFrame:
    """The results among the throughput runs of Q3, with source, ranks and micro-batch."""
    used = frames.of(*EXPERIMENTS).used
    runs = used[used["task"].eq(THROUGHPUT) & used["executor"].isin(list(SOURCES))]
    if runs.empty:
        raise CannotAnswer("no throughput run of q3 is completed")
    ranks = frames.stages.groupby(level="run")["rank"].nunique().reindex(runs.index)
    stages = runs["variant"].map(lambda it: it.stages)
    counts = runs["variant"].map(lambda it: it.accumulation)
    clocks = runs["executor"].map(CLOCKS)
    clocks += np.where(runs["costs"].notna(), ", measured costs", "")
    runs = runs.assign(
        source=runs["executor"].map(SOURCES),
        clock=runs["clock"].where(runs["clock"].notna(), clocks),
        stages=stages,
        ranks=ranks.where(ranks > 0, stages).astype(int),
        microbatch=(runs["batch"] // counts).astype(int),
    )
    _refuse_mixed(runs)
    return runs


def _refuse_mixed(runs: pd.DataFrame) -> None:
    for keys, shared in SHARED.items():
        for (scale, source, *_), group in runs.groupby(list(keys)):
            first, known = next(group["recipe"].items())
            for run, recipe in group["recipe"].items():
                if differing := [name for name in unequal(known, recipe) if name in shared]:
                    raise CannotAnswer(
                        f"{first} and {run}, {source} at {scale} scale, differ in "
                        f"{' and '.join(differing)}; point at a folder with one of the two"
                    )
    measured = runs.dropna(subset="costs")
    for _, group in measured.groupby(["scale", "source", "stages", "microbatch"]):
        if group["costs"].nunique() > 1:
            one, other = group.drop_duplicates("costs").index[:2]
            raise CannotAnswer(
                f"{one} and {other} have different measured costs of the same micro-batch size; "
                "point at a folder with one of the two"
            )
