"""A schedule whose order of actions is written down: planned in advance, or recorded from a run.

0F0,0F1,0B0,0F2,0B1,0B2        the first line: every action of rank 0, from first to last
1F0,1B0,1F1,1B1,1F2,1B2
"""

from collections.abc import Iterable, Sequence

from paci.actions import Action
from paci.schedules.rule import Choice, Schedule, StageView, if_ready, progress


class FixedOrder(Schedule):
    """Run each rank's line of `orders`, each action as soon as its input is here.

    If there are more micro-batches than the orders hold, the orders start again.

    Raises ValueError unless every rank has a stage, every stage belongs to one rank, and the
    micro-batches of each stage are in order.
    """

    name = "fixed-order"
    flushes = False  # an order from elsewhere may or may not drain between windows

    def __init__(self, orders: Sequence[Sequence[Action]], accumulation: int | None = None):
        placement = tuple(tuple(sorted({action.stage for action in order})) for order in orders)
        stages = sorted(stage for own in placement for stage in own)
        if stages != list(range(len(stages))) or not all(placement):
            raise ValueError(
                f"an order has every stage at one rank, counted from 0; here ranks have {placement}"
            )
        super().__init__(len(stages), accumulation)
        self.placement = placement
        self.orders = [list(order) for order in orders]
        self._choices = {
            own[0]: _by_progress(own, order) for own, order in zip(placement, orders, strict=True)
        }

    def next(self, stages: tuple[StageView, ...]) -> Choice:
        choices = self._choices[stages[0].index]
        choice = choices[progress(stages) % len(choices)]
        return None if choice is None else if_ready(stages[choice[0]], choice[1])

    def truncated(self, microbatches: int) -> Schedule:
        """Return the same order of the first `microbatches` only."""
        if all(action.microbatch < microbatches for order in self.orders for action in order):
            return self
        orders = [
            [action for action in order if action.microbatch < microbatches]
            for order in self.orders
        ]
        return FixedOrder(orders, self.accumulation)


def number_actions(steps: Iterable[tuple[int, str]], microbatches: int) -> list[Action]:
    """Return the actions of (stage, kind) pairs: each gets the stage's next micro-batch.

    Pairs beyond the first `microbatches` micro-batches of a stage are left out.

    >>> [str(action) for action in number_actions([(0, "F"), (0, "F"), (0, "B"), (0, "F")], 2)]
    ['0F0', '0F1', '0B0']
    """
    views: dict[int, StageView] = {}
    actions = []
    for stage, kind in steps:
        view = views.setdefault(stage, StageView(stage))
        microbatch = view.microbatch(kind)
        if microbatch < microbatches:
            actions.append(Action(stage, kind, microbatch))
            view.finish(kind)
    return actions


def _by_progress(own: tuple[int, ...], order: Sequence[Action]) -> list[tuple[int, str] | None]:
    """Return (place of the stage in `own`, kind) for each value of the rank's `progress`.

    It is None in the middle of a full backward, which counts as two, and where the order lacks
    actions of its micro-batches.
    """
    views = [StageView(stage) for stage in own]
    microbatches = 1 + max(action.microbatch for action in order)
    choices: list[tuple[int, str] | None] = [None] * (3 * microbatches * len(own))
    for action in order:
        place = own.index(action.stage)
        view = views[place]
        if action.microbatch != view.microbatch(action.kind):
            raise ValueError(
                f"{action} is out of turn: next is micro-batch {view.microbatch(action.kind)}"
            )
        choices[progress(views)] = place, action.kind
        view.finish(action.kind)
    return choices
