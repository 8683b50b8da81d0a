"""Methods compared at the best learning rate of each, and at equal ones.

The learning rate is tuned on the final training loss: the mean over seeds, of which none diverged.
The best of a few rates is a little too good, for every method alike.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from analysis.cells import Cell, leaves
from analysis.variants import Variant


class Trained(NamedTuple):
    """What the cells of one contest share: everything but the method and the learning rate."""

    scale: str
    clock: str
    batch: int
    tokens: int
    optimizer: str


def trained(cell: Cell) -> Trained:
    """Return what `cell` must share with another one to be compared with it."""
    settings = leaves(cell.recipe)
    tokens, name = settings["tokens"], settings["optimizer.name"]
    return Trained(cell.scale, cell.clock, cell.batch, int(str(tokens)), str(name))


def rate(cell: Cell) -> float:
    """Return the peak learning rate at the reference batch, `optimizer.lr`."""
    return float(str(leaves(cell.recipe)["optimizer.lr"]))


def loss(cell: Cell) -> float:
    """Return the mean final training loss, nats per token; NaN if a seed diverged."""
    return float(cell.final_losses.mean(skipna=False))


def best(made: Iterable[Cell]) -> dict[Trained, dict[Variant, Cell]]:
    """Return of each method its cell of the lowest loss; methods of which every rate diverged are
    left out."""
    groups: defaultdict[Trained, dict[Variant, Cell]] = defaultdict(dict)
    for cell in made:
        held = groups[trained(cell)]
        if loss(cell) < (loss(held[cell.variant]) if cell.variant in held else float("inf")):
            held[cell.variant] = cell
    return {key: held for key, held in sorted(groups.items()) if held}


class Pair(NamedTuple):
    """A method and the flush that it is compared with."""

    method: Cell
    flush: Cell


def pairs(made: Sequence[Cell], equal: bool) -> list[Pair]:
    """Return each method beside flush: both at their best learning rates or, if `equal`, both at
    flush's best. A method without a run there, or that diverged there, is left out."""
    found = []
    for key, held in best(made).items():
        flush = next((cell for variant, cell in held.items() if variant.is_flush), None)
        if flush is None:
            continue
        for variant in sorted(held):
            if variant.is_flush:
                continue
            cells = [it for it in made if it.variant == variant and trained(it) == key]
            at = [it for it in cells if rate(it) == rate(flush)] if equal else [held[variant]]
            found += [Pair(it, flush) for it in at if loss(it) == loss(it)]
    return found
