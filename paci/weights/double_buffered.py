"""PipeDream-2BW (Narayanan et al., ICML 2021): two versions, and a delay of exactly one update.

    version     0 ─────────── 1 ─────────── 2 ─────────── 3
    window 1    .......... sees 0 ..........▲
    window 2                  .......... sees 1 ..........▲

The micro-batches of window k see version k - 1 at every stage, and their update makes version
k + 1 from k. Only the first window, before which there is no other version, sees its own.
"""

from collections.abc import Mapping, Sequence

import torch

from paci.ledger import Seen
from paci.weights.versions import Aliases, Versioned


class DoubleBuffered(Versioned):
    """Raises ValueError if a window is shorter than the pipeline, for then micro-batches of three
    windows are in flight at once, and two versions do not serve them."""

    name = "double-buffered"

    def __init__(self, stage):
        super().__init__(stage)
        self.accumulation = stage.accumulation
        self._previous: Aliases | None = None
        if stage.accumulation < stage.stages:
            raise ValueError(
                f"double-buffered weights need an accumulation of at least the number of stages, "
                f"{stage.stages}, not {stage.accumulation}"
            )

    def choose(self, microbatch: int, version: int) -> Seen:
        wanted = microbatch // self.accumulation - 1
        if wanted > version:
            raise ValueError(
                f"double-buffered weights: micro-batch {microbatch} begins at version {version} "
                f"but must see version {wanted}; less slack or a longer accumulation would do"
            )
        if wanted == version or self._previous is None:
            return Seen(version, self.newest)
        return Seen(wanted, self._previous)

    @property
    def needed(self) -> list[Aliases]:
        return [*super().needed, *([self._previous] if self._previous else [])]

    def update(self, step) -> None:
        self._previous = self.newest
        super().update(step)

    def state(self) -> dict[str, Sequence[torch.Tensor]]:
        return {"previous": self._previous} if self._previous else {}

    def load(self, state: Mapping[str, Sequence[torch.Tensor]]) -> None:
        self._previous = None
        if "previous" in state:
            newest = [parameter.data for parameter in self.parameters]
            self._move([t.to(n, copy=True) for t, n in zip(state["previous"], newest, strict=True)])
            self._previous = self.newest
            self._move(newest)
