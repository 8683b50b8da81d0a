"""Schedules whose order is fixed: written down for one window, and the same in every window."""

from abc import abstractmethod
from collections.abc import Iterable

from paci.actions import Action
from paci.schedules.placement import Placement
from paci.schedules.rule import Choice, Schedule, StageView, if_ready, progress


class Ordered(Schedule):
    """A rank does the actions of its line of `orders`, each as soon as what it needs is here, and
    begins the next window when it is through. Subclasses say the order of a rank."""

    def __init__(self, placement: Placement, accumulation: int | None = None):
        super().__init__(sum(map(len, placement)), accumulation)
        self.placement = placement
        self.prepare()
        self.orders: list[list[Action]] = []
        self._order_of: dict[int, list] = {}  # by the first stage of the rank
        for rank, own in enumerate(placement):
            views = {stage: StageView(stage) for stage in own}
            order, by_progress = [], [None] * (3 * self.accumulation * len(own))
            for stage, kind in self.order(rank):
                microbatch = views[stage].microbatch(kind)
                if microbatch < self.accumulation:
                    by_progress[progress(views.values())] = own.index(stage), kind
                    order.append(Action(stage, kind, microbatch))
                    views[stage].finish(kind)
            self.orders.append(order)
            self._order_of[own[0]] = by_progress

    def prepare(self) -> None:
        """Find out what `order` needs. Raises ValueError if there is none for `accumulation`."""

    @abstractmethod
    def order(self, rank: int) -> Iterable[tuple[int, str]]:
        """The stage and the kind of each action of `rank` in a window, from first to last. What
        there is for micro-batches beyond the window is left out."""

    def next(self, stages: tuple[StageView, ...]) -> Choice:
        order = self._order_of[stages[0].index]
        place, kind = order[progress(stages) % len(order)]
        return if_ready(stages[place], kind)
