"""Run folders written by hand, with every number under the test's control."""

import json
from pathlib import Path

import yaml

METHODS = {
    "1f1b-flush": {"schedule": "1f1b-flush", "accumulation": 8},
    "paci": {"schedule": "paci", "accumulation": 4},
    "async-1f1b": {"schedule": "paci", "accumulation": 1},
}


def write_run(
    root: Path,
    name: str = "run",
    *,
    losses=(4.0, 3.0, 2.0, 1.0),
    perplexities=(),
    evaluations=(),
    clock: str = "simulated",
    costs: dict | None = None,
    method: str = "1f1b-flush",
    state: str = "completed",
    why: str | None = None,
    drift=None,
    version_bytes: int = 0,
    activation_bytes: int = 1000,
    **config,
) -> Path:
    """A run folder of one loss per update; `config` overrides top-level keys, and accumulation,
    slack and weights. `drift` is one histogram per stage; `perplexities` has one per update, or
    `evaluations` triples of update, seconds and perplexity."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    resolved = {
        "experiment": "q1",
        "scale": "laptop",
        "seed": 0,
        "stages": 8,
        "batch": 16,
        "tokens": 1024 * len(losses),
        "method": {"name": method, "slack": 0, "weights": "live"} | METHODS[method],
        "model": {"name": "tiny", "layers": 8, "width": 64, "heads": 4, "context": 64},
        "data": {"source": "kjv", "tokeniser": "bytes"},
        "optimizer": {"name": "adamw", "lr": 0.001},
        "executor": {"name": "local"},
    }
    for key, value in config.items():
        (resolved["method"] if key in ("accumulation", "slack", "weights") else resolved)[key] = (
            value
        )
    (folder / "config.yaml").write_text(yaml.safe_dump(resolved))
    if costs is not None:
        (folder / "cost.json").write_text(json.dumps(costs))
    status = {"state": state, "why": why, "update": len(losses), "updates": len(losses)}
    (folder / "status.json").write_text(json.dumps(status))
    time = {"seconds": 1.0, "clock": clock}
    evaluations = [*((k, 1.0, p) for k, p in enumerate(perplexities, 1)), *evaluations]
    lines = [
        {"update": k, "tokens": 1024 * k, "loss": loss, "lr": 1e-3} | time
        for k, loss in enumerate(losses, start=1)
    ] + [
        {"update": k, "tokens": 1024 * k, "validation_loss": 1.0, "perplexity": value}
        | {"seconds": seconds, "clock": clock}
        for k, seconds, value in evaluations
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    histograms = drift if drift is not None else [{"0": 8}] * resolved["stages"]
    stages = [
        {
            "update": len(losses),
            "stage": stage,
            "drift": histogram,
            "movement": [{"update": 1, "microbatch": 0, "drift": 1, "relative": 0.01}],
            "peak_in_flight": 8 - stage,
            "activation_bytes": activation_bytes,
            "parameter_bytes": 10,
            "version_bytes": version_bytes,
            "busy_seconds": 1.0,
            "idle_seconds": 0.0,
            "clock": clock,
        }
        for stage, histogram in enumerate(histograms)
    ]
    (folder / "stages.jsonl").write_text("".join(json.dumps(line) + "\n" for line in stages))
    return folder


BYTES = {"parameter": 10, "gradient": 10, "optimizer": 20, "activation": 100, "version": 0}


def write_throughput(
    root: Path,
    name: str = "run",
    *,
    seconds=(2.0,),
    executor: str = "distributed",
    clock: str = "wall",
    microbatch: int = 4,
    held: dict | None = None,
    busy: tuple[float, float] = (1.0, 1.0),
    cost: dict | None = None,
    **config,
) -> Path:
    """A throughput run of repetitions of 4096 tokens that took these `seconds`, on two ranks of a
    stage each, `busy` seconds, at given times `cost`; `held` replaces some of BYTES at stage 0,
    `config` is that of `write_run`."""
    accumulation = config.setdefault("accumulation", 4)
    given = {"experiment": "q3-real", "stages": 2, "batch": microbatch * accumulation}
    given |= {"task": "throughput", "executor": {"name": executor, "cost": cost}}
    folder = write_run(root, name, **given | config)
    (folder / "metrics.jsonl").unlink()
    repetitions = [
        {"repetition": k, "tokens": 4096, "seconds": time, "updates": 4, "clock": clock}
        for k, time in enumerate(seconds, start=1)
    ]
    stages = [
        {"update": k, "stage": stage, "rank": stage, "drift": {"0": 4}, "busy_seconds": busy[stage]}
        | {f"{part}_bytes": size for part, size in kept.items()}
        for k in range(len(seconds))
        for stage, kept in enumerate((BYTES | (held or {}), BYTES))
    ]
    for file, lines in (("throughput.jsonl", repetitions), ("stages.jsonl", stages)):
        (folder / file).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder
