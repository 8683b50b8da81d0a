"""The orders of actions that the page plays: those of each schedule at the default times."""

from typing import Any

from paci.actions import KINDS, Action
from paci.cost import Cost
from paci.schedules import SCHEDULES, build
from paci.simulation.simulate import simulate

RANKS = (2, 4, 8, 16)
WINDOWS = (1, 2, 4, 8, 16, 32)
MICROBATCHES = 32


def recorded() -> dict[str, dict[str, Any]]:
    """Return, by schedule, its `stages_per_rank`, and by "RANKS/WINDOW" its order.

    An order is {"placement": stages by rank, "letters": actions by rank}. A letter is the kind of
    an action, small at a rank's second stage; micro-batches follow from their order. A rank's
    letters are [text, times]: the text so many times over. A schedule that refuses a size has its
    sentence in place of the order. PACI and its case a = 1 decide by what has arrived, so they have
    no order: the page has their rule.
    """
    return {
        name: {
            "stages_per_rank": rule.stages_per_rank,
            "flushes": rule.flushes,
            "orders": {
                f"{ranks}/{window}": _order(name, ranks, window)
                for ranks in RANKS
                for window in WINDOWS
            }
            if rule.flushes
            else None,
        }
        for name, rule in SCHEDULES.items()
    }


def _order(name: str, ranks: int, window: int) -> dict[str, Any] | str:
    stages_per_rank = SCHEDULES[name].stages_per_rank
    try:
        rule = build(name, ranks * stages_per_rank, window)
    except ValueError as error:
        return str(error)
    cost = Cost().per_stage(stages_per_rank)
    orders = simulate(rule, rule.stages, MICROBATCHES, cost=cost).timeline.orders()
    letters = [
        _period("".join(_letter(action, own) for action in order))
        for order, own in zip(orders, rule.placement, strict=True)
    ]
    return {"placement": rule.placement, "letters": letters}


def _letter(action: Action, own: tuple[int, ...]) -> str:
    assert action.kind in KINDS
    return action.kind.lower() if own.index(action.stage) else action.kind


def _period(text: str) -> tuple[str, int]:
    """Return the shortest part of which `text` is a repetition, and how often.

    >>> _period("FFBBFFBB")
    ('FFBB', 2)
    """
    length = (text + text).index(text, 1)
    return text[:length], len(text) // length
