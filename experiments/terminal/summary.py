"""A run in a line: its name, and what became of it."""

from pathlib import Path
from statistics import mean

from experiments.run.folder import RunFolder


def summary(folder: RunFolder, status: dict, log: Path | None = None) -> str:
    """What became of the run; if that is not all good, where its log is."""
    known = log is None or status.get("state") == "completed"
    return line(folder, end(folder, status) + ("" if known else f"  (log: {log})"))


def line(folder: RunFolder, text: str) -> str:
    """The name of a run and a `text` about it, aligned with those of others."""
    return f"{folder.path.name:<28} {text}"


def end(folder: RunFolder, status: dict) -> str:
    """The state it is in, why, and its last losses, or its throughput."""
    state = status.get("state", "not started")
    if state == "running":  # its process is gone, or this would not be asked
        state += f" when its process ended, at update {status['update']}"
    if status.get("why"):
        state += f": {status['why']}"
    if status.get("state") == "completed":
        state += "".join(f"  {name} {value}" for name, value in last_values(folder).items())
    return state


def last_values(folder: RunFolder) -> dict[str, str]:
    """The last loss and perplexity, or the mean throughput of the repetitions, as text."""
    values: dict[str, float] = {}
    for line in folder.lines("metrics.jsonl"):
        values |= line
    shown = {name: f"{values[name]:.3f}" for name in ("loss", "perplexity") if name in values}
    rates = [line["tokens"] / line["seconds"] for line in folder.lines("throughput.jsonl")]
    return shown | ({"tokens/s": f"{mean(rates):.4g}"} if rates else {})
