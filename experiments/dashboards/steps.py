"""The numbers of a run folder, by update."""

import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import runlog


class Step(NamedTuple):
    """The numbers that belong to one update, or to one repetition of a throughput run."""

    number: int
    values: dict[str, float]


def steps(run: Path, at_work: bool) -> list[Step]:
    """Return the steps of a run folder, in order.

    The last step of a run that is `at_work` is left out: an evaluation of the same update may
    follow. Times are named after their clock, so that no chart has two clocks on one axis.
    """
    by_number: defaultdict[int, dict[str, float]] = defaultdict(dict)
    before = {"tokens": 0, "seconds": 0.0, "units": 0.0}
    for line in runlog.read_lines(run / runlog.METRICS)[0]:
        if "loss" in line:
            by_number[line["update"]] |= _of_update(line, before)
            before = line
        else:
            by_number[line["update"]] |= _of_evaluation(line)
    for line in runlog.read_lines(run / runlog.STAGES)[0]:
        by_number[line["update"]] |= _of_stage(line)
    for line in runlog.read_lines(run / runlog.THROUGHPUT)[0]:
        by_number[line["repetition"]] |= _rate(line["clock"], line["tokens"], line["seconds"])
    ordered = [Step(number, by_number[number]) for number in sorted(by_number)]
    return ordered[:-1] if at_work else ordered


def _of_update(line: dict, before: dict) -> dict[str, float]:
    time = _time(line)
    return {
        "training/loss": line["loss"],
        "training/learning_rate": line["lr"],
        "training/tokens": line["tokens"],
        f"time/{_unit(line['clock'])}s_{_word(line['clock'])}": time,
        **_rate(line["clock"], line["tokens"] - before["tokens"], time - _time(before)),
    }


def _of_evaluation(line: dict) -> dict[str, float]:
    return {
        "validation/loss": line["validation_loss"],
        "validation/perplexity": line["perplexity"],
    }


def _of_stage(line: dict) -> dict[str, float]:
    drift = {int(versions): count for versions, count in line["drift"].items()}
    staleness = map(int, line["staleness"])
    in_units = line["clock"] == runlog.UNITS and line.get("busy_units") is not None
    busy, idle = (
        line[f"{state}_{'units' if in_units else 'seconds'}"] for state in ("busy", "idle")
    )
    values = {
        "drift_max": max(drift, default=0),
        "drift_mean": sum(v * n for v, n in drift.items()) / max(1, sum(drift.values())),
        "staleness_max": max(staleness, default=0),
        "peak_in_flight": line["peak_in_flight"],
        "activation_bytes": line["activation_bytes"],
        "version_bytes": line["version_bytes"],
        "busy_share": busy / (busy + idle) if busy + idle else 0.0,
    }
    return {f"stage_{line['stage']:02d}/{name}": value for name, value in values.items()}


def _rate(clock: str, tokens: float, time: float) -> dict[str, float]:
    """Return the tokens per unit of time; nothing if no time has passed, as in a window that ends
    at the instant of the one before."""
    if time <= 0:
        return {}
    return {f"throughput/tokens_per_{_unit(clock)}_{_word(clock)}": tokens / time}


def _time(line: dict) -> float:
    seconds = line["seconds"]
    return line["units"] if seconds is None else seconds


def _unit(clock: str) -> str:
    return "unit" if clock == runlog.UNITS else "second"


def _word(clock: str) -> str:
    return re.sub("[^a-z]+", "_", clock)
