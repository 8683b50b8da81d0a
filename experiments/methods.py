"""Compare the methods of conf/method/ by simulation: python -m experiments.methods [OVERRIDES]

    python -m experiments.methods stages=8 batch=32 executor.cost.transfer=0.1

All at `stages` ranks. A method with v stages a rank cuts each rank's share of the model into v. A
micro-batch is one sequence; a method that flushes has `batch` of them an update, any other its own
accumulation. Times are those of `executor.cost`, all on the simulated clock. Next to each figure is
what the method's own paper states.

bubble       idle time of the busiest rank over its work, where windows follow one another
utilisation  its busy time over all time, here from an empty pipeline to a drained one
drift        updates between forward and backward: the most measured, of at most
staleness    updates between forward and the update that uses its gradient, likewise
copies       of a stage's weights beyond the one that all have, at the most (of the two that
             predicted and corrected weights need, one lasts no longer than an action)
activations  most in flight at a rank, over those of 1F1B's first rank
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from tabulate import tabulate

from experiments.cli import arguments, user_errors
from experiments.config import CONF, compose, cost_of, schedule_of
from paci import Cost, Schedule, simulate, theory
from paci.clock import Step

PUBLISHED = Path(__file__).resolve().parents[1] / "paper_figures" / "reference" / "methods.csv"
V_SHAPED = ("zbv", "dualpipev")  # two stages a rank
ANY_MODEL = ["model.layers=10000", "evaluations=1", "tokens=1_000_000_000"]  # none is trained
VERSIONED = ("stashed", "double-buffered")  # a backward sees the weights of its forward
MICROBATCHES = 64  # simulated, for each rank


def main() -> None:
    with user_errors():
        rows, refused = compare(arguments(__doc__))
    print(tabulate(table(rows), headers="keys", disable_numparse=True))
    if refused:
        print("\nNot in the table:", *(f"{n}: {why}" for n, why in refused.items()), sep="\n  ")
    sources = (f"{row.name}: {published()[row.name]['source']}" for row in rows)
    print("\nIn brackets is what the papers state:", *sources, sep="\n  ")


@dataclass(frozen=True)
class Row:
    """One method: what was measured on its simulated timeline, and the bounds."""

    name: str
    accumulation: int  # micro-batches of an update
    flushes: bool
    bubble: float  # of the ideal time
    utilization: float
    drift: int
    drift_bound: int
    staleness: int
    staleness_bound: int
    copies: int
    activations: float  # of 1F1B's


def compare(overrides: list[str]) -> tuple[list[Row], dict[str, str]]:
    """A row a method, in the order of `published`, and {method: why} of those that cannot be at
    these sizes.

    Raises ValueError for overrides that are wrong whatever the method.
    """
    for override in overrides:
        if override.startswith("method="):
            raise ValueError(f"the table is of every method: leave out {override}")
    base = compose([*ANY_MODEL, *overrides, "method=paci", "method.accumulation=1"])
    if "cost" not in base.executor:
        raise ValueError(
            f"executor {base.executor.name} has no costs to simulate: choose local or emulated"
        )
    rows, refused = [], {}
    for name in published():
        try:
            rows.append(measure(configure(name, base, overrides)))
        except ValueError as error:
            refused[name] = str(error)
    return rows, refused


def configure(name: str, base: DictConfig, overrides: list[str]) -> DictConfig:
    """The configuration of one method, at the ranks and the batch of `base`."""
    method = OmegaConf.load(CONF / "method" / f"{name}.yaml")
    method = method.get("method", method)
    v = method.options.get("stages_per_rank", 2 if method.schedule in V_SHAPED else 1)
    sizes = [f"method={name}", f"stages={v * base.stages}"]
    if method.schedule not in ("paci", "async-1f1b"):
        sizes.append(f"method.accumulation={base.batch}")
    else:
        sizes.append("batch=${method.accumulation}")
    return compose([*ANY_MODEL, *overrides, *sizes])


def measure(config: DictConfig) -> Row:
    method, rule = config.method, schedule_of(config)
    a, slack, ranks = rule.accumulation, method.slack, len(rule.placement)
    v = rule.stages // ranks
    flushes = rule.flushes
    cost = cost_of_a_stage(config, v)
    half = -(-MICROBATCHES * ranks // (2 * a)) * a
    run, first = (
        simulate(rule, rule.stages, m, cost=cost, seed=config.seed) for m in (2 * half, half)
    )
    work = max(run.timeline.busy) - max(first.timeline.busy)
    late = 0 if flushes else theory.drift_bound(rule.stages, 0, a, slack)
    drift, staleness, copies = books(run.actions, rule, method.weights)
    if method.weights not in ("live", *VERSIONED):  # not versions, but buffers of the same size
        copies = theory.parameter_units(method.weights, rule.stages, 0, a, slack) - 1
    return Row(
        name=method.name,
        accumulation=a,
        flushes=flushes,
        bubble=(run.makespan - first.makespan) / work - 1,
        utilization=run.utilization,
        drift=drift,
        drift_bound=0 if method.weights in VERSIONED else late,
        staleness=staleness,
        staleness_bound=1 if method.weights == "double-buffered" else late,
        copies=copies,
        activations=max(run.peak_activations) / v / ranks,
    )


def cost_of_a_stage(config: DictConfig, stages_per_rank: int) -> Cost:
    """The configured times of a sequence at a rank, shared out among its stages; times that are
    given stage by stage, and those of messages, stay as they are."""
    cost = cost_of(config)
    shares = {
        name: time / stages_per_rank
        for name in ("forward", "backward", "weight", "update")
        if isinstance(time := getattr(cost, name), int | float)
    }
    return replace(cost, **shares)


def books(actions: Iterable[Step], rule: Schedule, weights: str) -> tuple[int, int, int]:
    """The largest drift and staleness of any micro-batch at any stage, and the most versions of a
    stage's weights that are held at once beside the newest.

    A double-buffered forward of window k sees version k - 1, every other the newest. Predicted and
    corrected weights have the drift of live ones: they estimate what it does.
    """
    seen: dict[int, dict[int, int]] = {stage: {} for stage in range(rule.stages)}
    drift = staleness = copies = 0
    for _, stage, kind, microbatch, _, _, version in actions:
        window, in_flight = microbatch // rule.accumulation, seen[stage]
        if weights in VERSIONED:
            copies = max(copies, len({*in_flight.values()} - {version}))
        if kind == "F":
            late = weights == "double-buffered"
            in_flight[microbatch] = max(0, window - 1) if late else version
            staleness = max(staleness, window - in_flight[microbatch])
        elif kind != "W":
            forward = in_flight.pop(microbatch)
            drift = max(drift, 0 if weights in VERSIONED else version - forward)
    return drift, staleness, copies


def published() -> dict[str, dict[str, str]]:
    """{method: {figure: what its paper states, "source": which paper}}."""
    with PUBLISHED.open(newline="") as file:
        return {line.pop("method"): line for line in csv.DictReader(file)}


def table(rows: list[Row]) -> list[dict[str, str]]:
    """Cells as text, in brackets what the papers state."""

    def beside(row: Row, figure: str, ours: str) -> str:
        return f"{ours} ({theirs[row.name][figure]})"

    theirs = published()
    return [
        {
            "method": row.name,
            "a or m": str(row.accumulation),
            "bubble": beside(row, "bubble", f"{row.bubble:.3f}"),
            "utilisation": f"{row.utilization:.3f}",
            "drift": beside(row, "drift", f"{row.drift} of {row.drift_bound}"),
            "staleness": beside(row, "staleness", f"{row.staleness} of {row.staleness_bound}"),
            "copies": beside(row, "copies", str(row.copies)),
            "activations": beside(row, "activations", f"{row.activations:.2f}"),
            "synchronisation": "flush" if row.flushes else "none",
        }
        for row in rows
    ]


if __name__ == "__main__":
    main()
