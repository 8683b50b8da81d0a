"""The peak memory of every rank, split into its parts."""

import pandas as pd

from analysis.frames import Frames
from analysis.q3.throughput import FIXED_BATCH, PLACE, SETTING, timed_runs

PARTS = {
    "parameters": "parameter_bytes",
    "gradients": "gradient_bytes",
    "optimizer state": "optimizer_bytes",
    "activations": "activation_bytes",
    "parameter copies": "version_bytes",
}
"""The parts of a rank's memory, and the columns of `Frames.stages` that hold them."""


def memory(frames: Frames) -> pd.DataFrame:
    """Return the peak bytes of every rank of every method at every setting that computes.

    One row a rank. Columns: those of SETTING, variant, m, even (see `throughput`), runs, rank,
    those of PARTS, total, allocated (by CUDA's allocator, else NaN). A rank's are the sums over its
    stages of the largest over segments and runs; where it has several stages, their peaks need not
    fall together, and the sum is a bound. Emulated runs hold nothing and have no row.
    """
    runs = timed_runs(frames)
    runs = runs[runs["source"] != "emulated"]
    stages = frames.stages.reset_index(level=-1, drop=True)
    rows = []
    for key, group in runs.groupby([*FIXED_BATCH, "variant"]):
        mine = stages[stages.index.isin(group.index)]
        if mine.empty or mine["rank"].isna().any():
            continue
        by_stage = mine.groupby(["rank", "stage"]).max(numeric_only=True)
        sums = by_stage[list(PARTS.values())].groupby("rank").sum(min_count=1)
        sums.columns = list(PARTS)
        sums["total"] = sums.sum(axis=1, skipna=False)
        sums["allocated"] = by_stage["allocated_bytes"].groupby("rank").max()
        batch, variant = int(key[-2]), key[-1]
        m = variant.accumulation
        place = dict(zip(PLACE, key[:-2], strict=True))
        place |= {"microbatch": batch // m, "variant": variant, "m": m, "even": batch % m == 0}
        place["runs"] = len(group)
        rows += [place | {"rank": int(rank)} | row for rank, row in sums.to_dict("index").items()]
    return pd.DataFrame(
        rows,
        columns=[*SETTING, "variant", "m", "even", "runs", "rank", *PARTS, "total", "allocated"],
    )
