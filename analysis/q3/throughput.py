"""Throughput: tokens/s of every method at every setting, and its interval."""

import json
from math import nan

import numpy as np
import pandas as pd

from analysis.cells import CannotAnswer, unequal
from analysis.frames import Frames
from analysis.states import THROUGHPUT
from analysis.statistics import mean_and_interval
from analysis.variants import Variant

SOURCES = {"local": "simulated", "emulated": "emulated", "distributed": "real"}
"""The origin of an executor's times: a clock that plays measured costs, processes that wait, or
processes that compute."""

CLOCKS = {"local": "simulated", "emulated": "emulated", "distributed": "wall"}
"""The clock of a run that ran out of memory before it logged one."""

Q2 = "q2"
"""The experiment whose throughputs time the trainings."""

SHARED = {
    ("scale", "source"): ("model", "data", "precision"),
    ("scale", "source", "clock", "stages"): ("times",),  # given for each stage of a rank
}
"""Parts of the recipe that runs must share if they are alike in these columns."""

PLACE = ["scale", "source", "clock", "ranks"]
"""Columns that two throughputs must share to be compared at all."""

SETTING = [*PLACE, "microbatch"]
"""Columns that two throughputs share if only the number of micro-batches differs."""

FIXED_BATCH = [*PLACE, "batch"]
"""Columns that two throughputs share if they split one batch into micro-batches."""


def is_papers_paci(variant: Variant) -> bool:
    """Return whether a method is PACI as the paper has it, which has no slack."""
    return variant.is_paci and not variant.slack


def throughput(frames: Frames, q2: bool = False) -> pd.DataFrame:
    """Return a row for each method at each setting, over all repetitions of its runs: those of Q3,
    or of Q2, which measures for itself.

    Columns: those of SETTING (microbatch in sequences), variant, m (micro-batches of an update),
    batch, even (whether m divides the batch; else microbatch is the smaller of two sizes), state,
    runs, repetitions, rate (tokens/s), doubt (half of the 95 % interval of the mean over
    repetitions, over it; 0 on a simulated clock, NaN for one repetition on any other), balance (the
    ranks' busy time over that of the busiest: N if all are alike). A run out of memory has no rate.

    Raises CannotAnswer if there is none, or if runs differ in what is SHARED, or in the measured
    costs of micro-batches of one size.
    """
    runs = timed_runs(frames, q2)
    rates = frames.throughput["tokens"] / frames.throughput["seconds"]
    rates.index = rates.index.get_level_values("run")
    rows = []
    for key, group in runs.groupby([*FIXED_BATCH, "variant"]):
        known = rates[rates.index.isin(group.index)]
        logged = frames.stages.index.get_level_values("run").isin(group.index)
        busy = frames.stages[logged].groupby("rank")["busy_seconds"].sum(min_count=1)
        simulated = group["clock"].str.startswith("simulated").all()
        place, batch, variant = key[:-2], int(key[-2]), key[-1]
        m = variant.accumulation
        rows.append(
            dict(zip(PLACE, place, strict=True))
            | {
                "microbatch": batch // m,
                "variant": variant,
                "m": m,
                "batch": batch,
                "even": batch % m == 0,
                "state": "completed" if group["state"].eq("completed").any() else "out-of-memory",
                "runs": len(group),
                "repetitions": len(known),
                "rate": known.mean(),
                "doubt": 0.0 if simulated and len(known) == 1 else relative_interval(known),
                "balance": busy.sum() / busy.max() if len(busy) else nan,
            }
        )
    made = pd.DataFrame(rows).assign(method=lambda it: [one.name for one in it["variant"]])
    ordered = made.sort_values([*SETTING, "method", "m", "batch"], kind="stable", ignore_index=True)
    return ordered.drop(columns="method")


def of_sizes(made: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of PACI and of flush whose micro-batches have one size. A size of which only
    one number was tried belongs to a fixed batch, and is left out beside others."""
    made = made[made["even"]]
    made = made[[it.is_flush or is_papers_paci(it) for it in made["variant"]]]
    counts = made.groupby(SETTING)["m"].transform("nunique")
    most = counts.groupby([made[name] for name in PLACE]).transform("max")
    return made[(counts > 1) | (most == 1)]


def of_fixed_batch(made: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of PACI and of flush at batches that were split into micro-batches in at
    least three ways, of which one may leave a rest."""
    made = made[[it.is_flush or is_papers_paci(it) for it in made["variant"]]]
    splits = made.groupby(FIXED_BATCH)["m"].transform("nunique")
    return made[splits >= 3]


def relative_interval(rates: pd.Series) -> float:
    """Return half of the 95 % interval of the mean, over the mean; NaN for fewer than two."""
    mean, doubt = mean_and_interval(rates)
    return doubt / mean


def timed_runs(frames: Frames, q2: bool = False) -> pd.DataFrame:
    """Return the throughput runs of Q3, or of Q2, that are a result, with source, stages and
    ranks."""
    used = frames.of(THROUGHPUT).used
    runs = used[used["executor"].isin(list(SOURCES)) & used["experiment"].eq(Q2).eq(q2)]
    if runs.empty:
        raise CannotAnswer("no throughput run is completed")
    ranks = frames.stages.groupby(level="run")["rank"].nunique().reindex(runs.index)
    stages = runs["variant"].map(lambda it: it.stages)
    clocks = runs["executor"].map(CLOCKS)
    clocks += np.where(runs["costs"].notna(), ", measured costs", "")
    runs = runs.assign(
        source=runs["executor"].map(SOURCES),
        clock=runs["clock"].where(runs["clock"].notna(), clocks),
        stages=stages,
        ranks=ranks.where(ranks > 0, stages).astype(int),
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
    tables = [json.loads(table) for table in measured["costs"]]
    sizes = [table.get("microbatch", nan) for table in tables]
    own = [{key: it[key] for key in sorted({*it} - {"sizes"})} for it in tables]  # of one size
    texts = list(map(json.dumps, own))
    measured = measured.assign(size=sizes, costs=texts)
    for _, group in measured.groupby(["scale", "source", "stages", "size"], dropna=False):
        if group["costs"].nunique() > 1:
            one, other = group.drop_duplicates("costs").index[:2]
            raise CannotAnswer(
                f"{one} and {other} have different measured costs of the same micro-batch size; "
                "point at a folder with one of the two"
            )
