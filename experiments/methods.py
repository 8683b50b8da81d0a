"""Compare the methods of conf/method/ by simulation: python -m experiments.methods [OVERRIDES]

    python -m experiments.methods stages=8 batch=32 executor.cost.transfer=0.1

All methods have `stages` ranks; one with v stages per rank cuts each rank's share of the model into
v. A micro-batch is one sequence. A method that flushes accumulates `batch` of them per update, any
other method as many as its file says. Times are those of `executor.cost`, on the simulated clock.
The method's own paper states the figures in brackets.
"""

import csv
from inspect import getdoc
from pathlib import Path
from typing import Any, NamedTuple, cast

from omegaconf import DictConfig, OmegaConf
from tabulate import tabulate

from experiments import CONF
from experiments.config import compose
from experiments.config.derived import cost_of, is_measured, method_of
from experiments.terminal.command_line import command, user_errors
from experiments.terminal.options import overrides
from paci.method import Method
from paci.traits import Traits, traits_of

PUBLISHED = Path(__file__).resolve().parents[1] / "paper_figures" / "reference" / "methods.csv"
ANY_MODEL = ["model.layers=10000", "evaluations=1", "tokens=1_000_000_000"]
"""Sizes that never limit the stages: no model is trained."""


@command()
def main() -> None:
    with user_errors():
        rows, refused = compare(overrides(f"{__doc__}\n{getdoc(Traits)}"))
    print(tabulate(table(rows), headers="keys", disable_numparse=True))
    missing = [name for name in published() if not is_implemented(name)]
    print("\nNot implemented:", tabulate(cited(missing), headers="keys"), sep="\n\n")
    if refused:
        print("\nNot in the table:", *(f"{n}: {why}" for n, why in refused.items()), sep="\n  ")
    names = [*(row.name for row in rows), *missing]
    sources = (f"{name}: {published()[name]['source']}" for name in names)
    print("\nThe figures in brackets are those of the methods' papers:", *sources, sep="\n  ")


class Row(NamedTuple):
    """A method and its traits in simulation."""

    name: str
    accumulation: int  # micro-batches per update
    flushes: bool
    traits: Traits


def compare(overrides: list[str]) -> tuple[list[Row], dict[str, str]]:
    """Return a row per method, in the order of `published`, and {method: why it is left out}.

    Raises ValueError for overrides that are wrong whatever the method.
    """
    for override in overrides:
        if override.startswith("method="):
            raise ValueError(f"the table has every method: leave out {override}")
    base = compose([*ANY_MODEL, *overrides, "method=paci", "method.accumulation=1"])
    if "cost" not in base.executor or is_measured(base):
        raise ValueError(
            f"executor {base.executor.name} has no times given to simulate: choose local or "
            "emulated, and a table of times as executor.cost"
        )
    rows, refused = [], {}
    for name in filter(is_implemented, published()):
        try:
            rows.append(row(configure(name, base, overrides)))
        except ValueError as error:
            refused[name] = str(error)
    return rows, refused


def configure(name: str, base: DictConfig, overrides: list[str]) -> DictConfig:
    """Return the configuration of one method at the ranks and the batch of `base`."""
    file = OmegaConf.load(CONF / "method" / f"{name}.yaml")
    table = cast(dict[str, Any], OmegaConf.to_container(file))
    method = Method.read(table.get("method", table))
    sizes = [f"method={name}", f"stages={method.stages_per_rank * base.stages}"]
    if method.flushes:
        sizes.append(f"method.accumulation={base.batch}")
    else:
        sizes.append("batch=${method.accumulation}")
    return compose([*ANY_MODEL, *overrides, *sizes])


def row(config: DictConfig) -> Row:
    """Simulate the method of `config` and return its row."""
    method = method_of(config)
    ranks = config.stages // method.stages_per_rank
    traits = traits_of(method, ranks, cost_of(config), config.seed)
    return Row(method.name, method.accumulation, method.flushes, traits)


def published() -> dict[str, dict[str, str]]:
    """Return {method: {figure: what its paper states, "source": which paper}}."""
    with PUBLISHED.open(newline="") as file:
        return {line.pop("method"): line for line in csv.DictReader(file)}


def is_implemented(name: str) -> bool:
    """Return whether there is a configuration of the method."""
    return (CONF / "method" / f"{name}.yaml").exists()


def cited(names: list[str]) -> list[dict[str, str]]:
    """Return the figures that the papers of methods state."""
    stated = published()
    return [
        {"method": name} | {k: v for k, v in stated[name].items() if k != "source"}
        for name in names
    ]


def table(rows: list[Row]) -> list[dict[str, str]]:
    """Return the cells of each row as text, with the papers' figures in brackets."""

    def cells(row: Row) -> dict[str, str]:
        it, theirs = row.traits, stated[row.name]
        return {
            "method": row.name,
            "a or m": str(row.accumulation),
            "bubble": f"{it.bubble:.3f} ({theirs['bubble']})",
            "utilisation": f"{it.utilization:.3f}",
            "drift": f"{it.drift} of {it.drift_bound} ({theirs['drift']})",
            "staleness": f"{it.staleness} of {it.staleness_bound} ({theirs['staleness']})",
            "copies": f"{it.copies} ({theirs['copies']})",
            "activations": f"{it.activations:.2f} ({theirs['activations']})",
            "synchronisation": "flush" if row.flushes else "none",
        }

    stated = published()
    return [cells(row) for row in rows]


if __name__ == "__main__":
    main()
