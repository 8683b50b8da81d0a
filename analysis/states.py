"""The states in which runs end, and which of them count as evidence."""

import pandas as pd

RESULTS = ("completed", "diverged")
"""A diverged run is a result: a mean over the seeds that survived would flatter the method."""

TRAINING = "training"
"""The task of runs that train."""

THROUGHPUT = "throughput"
"""The task of runs that are timed, and do not train to learn."""


def is_result(runs: pd.DataFrame) -> pd.Series:
    """Return which rows of `Frames.runs` are evidence: runs that completed or diverged and, among
    measurements of throughput, which also ask what fits, those out of memory."""
    full = runs["task"].eq(THROUGHPUT) & runs["state"].eq("out-of-memory")
    return runs["state"].isin(RESULTS) | full


def judge(status: dict, updates: pd.DataFrame) -> tuple[str, str | None]:
    """Return a training's state and, unless it is "completed", the reason.

    A failed run whose last loss is not finite has diverged; older versions wrote "failed". A
    completed run may lack its last update, whose line a crash can truncate, but no other.
    """
    state = str(status["state"])
    why = str(status.get("why") or "").partition("\n")[0].rstrip(".")
    last = int(updates["update"].iloc[-1]) if len(updates) else 0
    total = status.get("updates") or last
    progress = f"{last} of {total} updates in metrics.jsonl"
    if state == "failed" and last and updates["loss"].isna().iloc[-1]:
        state = "diverged"
    if state != "completed":
        return state, f"{progress}, {why}" if why else progress
    if last == 0 or last < total - 1:
        return "unfinished", f"status.json says completed but there are only {progress}"
    return state, None


def judge_throughput(status: dict, repetitions: pd.DataFrame) -> tuple[str, str | None]:
    """Return a throughput run's state and, unless it is "completed", the reason."""
    state, why = str(status["state"]), str(status.get("why") or "").partition("\n")[0].rstrip(".")
    if state != "completed":
        progress = f"after {len(repetitions)} repetition(s)"
        return state, f"{progress}, {why}" if why else progress
    if repetitions.empty:
        return "unfinished", "status.json says completed but throughput.jsonl has no repetition"
    return state, None
