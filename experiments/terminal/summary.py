"""Summaries of runs, one line each."""

from pathlib import Path
from statistics import mean

from experiments.run.folder import RunFolder
from runlog import METRICS, THROUGHPUT, UNITS


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
    """Return a time as text: 119 s, 119 min or 2 h."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"


def last_values(folder: RunFolder) -> dict[str, str]:
    """Return the last loss and perplexity, or the mean throughput over repetitions, as text."""
    values: dict[str, float] = {}
    for line in folder.lines(METRICS):
        values |= line
    shown: dict[str, str] = {
        name: f"{values[name]:.3f}" for name in ("loss", "perplexity") if name in values
    }
    repetitions = folder.lines(THROUGHPUT)
    if not repetitions:
        return shown
    rate = mean(line["tokens"] / line["seconds"] for line in repetitions)
    in_units = repetitions[0].get("clock") == UNITS  # as only older versions measured
    return shown | {"tokens/unit" if in_units else "tokens/s": f"{rate:.4g}"}
