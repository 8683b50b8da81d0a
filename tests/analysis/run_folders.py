"""Run folders with every number under the test's control, written through `runlog`."""

from pathlib import Path

import yaml

import runlog

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
    runlog.write(folder / runlog.CONFIG, yaml.safe_dump(resolved))
    if costs is not None:
        runlog.write_json(folder / runlog.COST, costs)
    status = runlog.Status(state, why, len(losses), len(losses))
    runlog.write_json(folder / runlog.STATUS, runlog.as_json(status))
    write_lines(
        folder / runlog.METRICS,
        [
            runlog.UpdateLine(k, 1024 * k, loss, 1e-3, 1.0, clock)
            for k, loss in enumerate(losses, start=1)
        ]
        + [
            runlog.EvaluationLine(k, 1024 * k, 1.0, perplexity, seconds, clock)
            for k, seconds, perplexity in [
                *((k, 1.0, p) for k, p in enumerate(perplexities, 1)),
                *evaluations,
            ]
        ],
    )
    histograms = drift if drift is not None else [{"0": 8}] * resolved["stages"]
    held = {"activation": activation_bytes, "version": version_bytes}
    write_lines(
        folder / runlog.STAGES,
        [
            stage_line(
                len(losses),
                stage,
                clock,
                held,
                drift=histogram,
                movement=[runlog.MovementSample(1, 0, 1, 0.01)],
                peak_in_flight=8 - stage,
            )
            for stage, histogram in enumerate(histograms)
        ],
    )
    return folder


BYTES = {"parameter": 10, "gradient": 10, "optimizer": 20, "activation": 100, "version": 0}


def stage_line(update: int, stage: int, clock: str, held: dict, **others) -> runlog.StageLine:
    """A line of stages.jsonl; `held` replaces some of BYTES, `others` any other field."""
    usual = {
        "rank": stage,
        "drift": {"0": 4},
        "staleness": {"0": 4},
        "movement": [],
        "peak_in_flight": 1,
        "busy_seconds": 1.0,
        "idle_seconds": 0.0,
    }
    sizes = {f"{part}_bytes": size for part, size in (BYTES | held).items()}
    return runlog.StageLine(update=update, stage=stage, clock=clock, **usual | sizes | others)


def write_lines(file: Path, records: list) -> None:
    """Write a log anew."""
    file.unlink(missing_ok=True)
    runlog.append(file, records)


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
    `config` is as in `write_run`."""
    accumulation = config.setdefault("accumulation", 4)
    given = {"experiment": "q3-real", "stages": 2, "batch": microbatch * accumulation}
    given |= {"task": "throughput", "executor": {"name": executor, "cost": cost}}
    folder = write_run(root, name, **given | config)
    (folder / runlog.METRICS).unlink()
    write_lines(
        folder / runlog.THROUGHPUT,
        [runlog.RepetitionLine(k, 4096, time, 4, clock) for k, time in enumerate(seconds, start=1)],
    )
    write_lines(
        folder / runlog.STAGES,
        [
            stage_line(k, stage, clock, sizes, busy_seconds=busy[stage])
            for k in range(len(seconds))
            for stage, sizes in enumerate((held or {}, {}))
        ],
    )
    return folder
