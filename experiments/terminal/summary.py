"""Summaries of runs, one line each."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import runlog
from experiments.run.folder import RunFolder


def summary(folder: RunFolder, status: dict, log: Path | None = None) -> str:
    """Return the run's name and end, and the path of its log unless it is completed."""
    known = log is None or status.get("state") == "completed"
    return line(folder, end(folder, status) + ("" if known else f"  (log: {log})"))


def preview(folder: RunFolder) -> str:
    """Return the run's line in a dry run: its state, and whether it would be run."""
    status = folder.status()
    state = status.get("state", "not started")
    if folder.finished:
        return f"{summary(folder, status)}  (from before)"
    if folder.held:
        return line(folder, f"{state}: held by another process that runs it")
    if shorter := folder.shorter():
        state += f" with tokens={shorter.tokens}"
    begun = f" from update {status['update']}" if status.get("update") else ""
    return line(folder, f"{state}: would be run{begun}")


def place(folders: Sequence[RunFolder]) -> str:
    """Return how many runs there are, and where."""
    places = dict.fromkeys(str(folder.path.parent) for folder in folders)
    return f"{len(folders)} run{'s' * (len(folders) != 1)} in {', '.join(places)}"


def line(folder: RunFolder, text: str) -> str:
    """Return the name of a run and a `text` about it, aligned with other runs' lines."""
    return f"{folder.path.name:<28} {text}"


def end(folder: RunFolder, status: dict) -> str:
    """Return the run's state, the reason for it, its last losses or its throughput, and the wall
    time that it took."""
    state = status.get("state", "not started")
    if state == "running":  # by its status alone: its process has ended without another word
        state += f" when its process ended, at update {status['update']}"
    if status.get("why"):
        state += f": {status['why']}"
    if status.get("state") == "completed":
        state += "".join(f"  {name} {value}" for name, value in last_values(folder).items())
        if "wall_seconds" in status:
            state += f"  in {duration(status['wall_seconds'])}"
    return state


def duration(seconds: float) -> str:
    """Return a time as text: 19 ms, 1.9 s, 119 s, 119 min or 2 h."""
    if seconds < 0.1:
        return f"{1000 * seconds:.2g} ms"
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"


def rate(per_second: float) -> str:
    """Return a rate as text: 12,345 or 12.3."""
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"


def last_values(folder: RunFolder) -> dict[str, str]:
    """Return the last loss and perplexity, or the mean throughput over repetitions, as text."""
    values: dict[str, float] = {}
    for line in runlog.read_last_lines(folder.path / runlog.METRICS):
        values |= line
    shown: dict[str, str] = {
        name: f"{values[name]:.3f}" for name in ("loss", "perplexity") if name in values
    }
    repetitions = folder.lines(runlog.THROUGHPUT)
    if not repetitions:
        return shown
    mean_rate = mean(line["tokens"] / line["seconds"] for line in repetitions)
    in_units = repetitions[0].get("clock") == runlog.UNITS  # as only older versions measured
    return shown | {"tokens/unit" if in_units else "tokens/s": rate(mean_rate)}


def wall_rate(folder: RunFolder, status: dict) -> str:
    """Return the tokens that a training has done per second of its wall time, as text; "" if there
    are none."""
    lines = runlog.read_last_lines(folder.path / runlog.METRICS)
    tokens = max((line.get("tokens", 0) for line in lines), default=0)
    seconds = status.get("wall_seconds", 0)
    return rate(tokens / seconds) if tokens and seconds else ""
