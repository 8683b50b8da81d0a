"""An order of actions as a rule: what was planned, or recorded, is done again.

0F0,0F1,0B0,0F2,0B1,0B2        the first line: all that rank 0 does, from first to last
1F0,1B0,1F1,1B1,1F2,1B2
"""

from paci.actions import Action
from paci.schedules.rule import Choice, Schedule, StageView, if_ready, progress


class Recorded(Schedule):
    """Every rank does the actions of its line of `orders`, each as soon as what it needs is here.

    Raises ValueError unless every stage is at one rank and does its micro-batches in order.
    """

    name = "recorded"
    flushes = False  # for all that it knows

    def __init__(self, orders: list[list[Action]], accumulation: int):
        placement = tuple(tuple(sorted({action.stage for action in order})) for order in orders)
        stages = sorted(stage for own in placement for stage in own)
        if stages != list(range(len(stages))):
            raise ValueError(
                f"an order has every stage at one rank, counted from 0; here ranks have {placement}"
            )
        super().__init__(len(stages), accumulation)
        self.placement = placement
        self.orders = orders
        self._actions = {}
        for own, order in zip(placement, orders, strict=True):
            self._actions |= self._by_progress(own, order)

    def next(self, stages: tuple[StageView, ...]) -> Choice:
        place, kind = self._actions.get((stages[0].index, progress(stages)), (0, None))
        if kind is None:
            return None
        return if_ready(stages[place], kind)

    def up_to(self, microbatches: int) -> "Recorded":
        """The same order of the first `microbatches` only."""
        orders = [[a for a in order if a.microbatch < microbatches] for order in self.orders]
        return Recorded(orders, self.accumulation)

    @staticmethod
    def _by_progress(own: tuple[int, ...], order: list[Action]) -> dict:
        """{(the rank's first stage, its progress): (place of the stage, kind)}."""
        views, actions = [StageView(stage) for stage in own], {}
        for action in order:
            view = views[own.index(action.stage)]
            if action.microbatch != view.microbatch(action.kind):
                raise ValueError(
                    f"{action} is out of turn: next is micro-batch {view.microbatch(action.kind)}"
                )
            actions[own[0], progress(views)] = own.index(action.stage), action.kind
            view.finish(action.kind)
        return actions
