"""The lines of a run's logs as columns of numbers, or the reason why they cannot be evidence."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from runlog import EvaluationLine, MovementSample, RepetitionLine, StageLine, UpdateLine, keys


def _numbers(record: type, *others: str) -> list[str]:
    """Return the keys of a record except `others`, which hold no number."""
    return [key for key in keys(record) if key not in others]


UPDATE_COLUMNS = _numbers(UpdateLine, "clock")
EVALUATION_COLUMNS = _numbers(EvaluationLine, "clock")
STAGE_COLUMNS = _numbers(StageLine, "clock", "staleness", "movement", "waiting_seconds", "skipped")
REPETITION_COLUMNS = _numbers(RepetitionLine, "clock")
MOVEMENT_COLUMNS = ["stage", *keys(MovementSample)]


class Unreadable(Exception):
    """A file of a run that cannot be evidence; the message says why."""


def frame(rows: list[dict], columns: list[str], unique=("update",), histograms=()) -> pd.DataFrame:
    """Return `rows` with a column of numbers, or of histograms, per name in `columns`.

    Of rows that agree in the columns `unique`, the last is kept: a resumed run writes some lines
    twice. Raises Unreadable if a value is of the wrong kind.
    """
    unique = list(unique)
    try:
        made = pd.DataFrame(
            {
                name: [_histogram(row.get(name)) for row in rows]
                if name in histograms
                else np.array([row.get(name) for row in rows], dtype=float)
                for name in columns
            }
        )
        made[unique] = made[unique].astype(int)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise Unreadable(f"a log has a value of the wrong kind ({error})") from None
    return made.drop_duplicates(unique, keep="last").sort_values(unique, ignore_index=True)


def _histogram(counts: dict | None) -> dict[int, int]:
    return {int(value): int(count) for value, count in (counts or {}).items()}


def one_clock(rows: list[dict], file: str) -> str | None:
    """Return the clock of all lines; None if there are no lines. Raises Unreadable if they have
    more than one."""
    clocks = sorted({str(row.get("clock")) for row in rows})
    if len(clocks) > 1:
        raise Unreadable(f"{file} mixes clocks ({'; '.join(clocks)})")
    return clocks[0] if clocks else None


def holes(updates: np.ndarray) -> np.ndarray:
    """Return the updates that lack a line before the last logged one, where every k-th update is
    logged and k is the smallest step between two lines."""
    if len(updates) < 2:
        return updates[:0]
    every = np.diff(updates).min()
    return np.setdiff1d(np.arange(min(every, updates[0]), updates[-1], every), updates)


def numbered(thing: str, which: Sequence[object] | np.ndarray) -> str:
    """Return text like "line 3" or "7 updates (2, 3, 4, 5, 6, …)"."""
    if len(which) == 1:
        return f"{thing} {which[0]}"
    listed = ", ".join(map(str, which[:5])) + (", …" if len(which) > 5 else "")
    return f"{len(which)} {thing}s ({listed})"
