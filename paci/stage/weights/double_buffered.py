"""PipeDream-2BW (Narayanan et al., ICML 2021): two versions, and a delay of exactly one update.

    version     0 ─────────── 1 ─────────── 2 ─────────── 3
    window 1    .......... sees 0 ..........▲
    window 2                  .......... sees 1 ..........▲

The micro-batches of window k see version k - 1 at every stage, and their update makes version
k + 1 from k. Only the first window, before which there is no other version, sees its own.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn

from paci.stage.weights.policy import Position
from paci.stage.weights.versions import Version, Versioned


class DoubleBuffered(Versioned):
    """Every micro-batch sees the version before that of its window.

    Raises ValueError if more micro-batches may be in flight than a window has: those of three
    windows could then be in flight at once, and two versions do not serve them.
    """

    name = "double-buffered"

    def __init__(self, module: nn.Module, optimizer: torch.optim.Optimizer, position: Position):
        super().__init__(module, optimizer, position)
        self._accumulation = position.accumulation
        self._previous: Version | None = None
        if position.accumulation < position.in_flight:
            raise ValueError(
                f"double-buffered weights need an accumulation of at least {position.in_flight}, "
                f"as many micro-batches as may be in flight at stage {position.index}, not "
                f"{position.accumulation}"
            )

    def choose(self, microbatch: int, version: int) -> tuple[int, Version]:
        wanted = microbatch // self._accumulation - 1
        if wanted > version:
            raise ValueError(
                f"double-buffered weights: micro-batch {microbatch} begins at version {version} "
                f"but must see version {wanted}; less slack or a longer accumulation would do"
            )
        if wanted == version or self._previous is None:
            return version, self.newest
        return wanted, self._previous

    def update(self, step: Callable[[], None]) -> None:
        newest = self.newest
        self.acquire(newest)
        self._drop_previous()
        self._previous = newest
        super().update(step)

    def state(self) -> dict[str, Sequence[torch.Tensor]]:
        return {"previous": self._previous.tensors} if self._previous else {}

    def load(self, state: Mapping[str, Sequence[torch.Tensor]]) -> None:
        self._drop_previous()
        if "previous" in state:
            pairs = zip(state["previous"], self.parameters, strict=True)
            self._previous = Version(tuple(t.to(p.data, copy=True) for t, p in pairs))
            self._users[self._previous] = 1

    def _drop_previous(self) -> None:
        if self._previous:
            self.release_version(self._previous)
            self._previous = None
