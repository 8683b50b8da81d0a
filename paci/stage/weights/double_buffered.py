"""PipeDream-2BW (Narayanan et al., ICML 2021): two versions, and a delay of exactly one update.

    version     0 ─────────── 1 ─────────── 2 ─────────── 3
    window 1    .......... sees 0 ..........▲
    window 2                  .......... sees 1 ..........▲

The micro-batches of window k see version k - 1 at every stage, and their update makes version
k + 1 from k. Only the first window, before which there is no other version, sees its own.
"""

from collections.abc import Callable, Mapping, Sequence

import torch

from paci.stage.weights.versions import Version, Versioned


class DoubleBuffered(Versioned):
    """Raises ValueError if a window is shorter than the pipeline, for then micro-batches of three
    windows are in flight at once, and two versions do not serve them."""

    name = "double-buffered"

    def __init__(self, stage):
        super().__init__(stage)
        self.accumulation = stage.accumulation
        self._previous: Version | None = None
        if stage.accumulation < stage.stages:
            raise ValueError(
                f"double-buffered weights need an accumulation of at least the number of stages, "
                f"{stage.stages}, not {stage.accumulation}"
            )

    def choose(self, microbatch: int, version: int) -> tuple[int, Version]:
        wanted = microbatch // self.accumulation - 1
        if wanted > version:
            raise ValueError(
                f"double-buffered weights: micro-batch {microbatch} begins at version {version} "
                f"but must see version {wanted}; less slack or a longer accumulation would do"
            )
        if wanted == version or self._previous is None:
            return version, self.newest
        return wanted, self._previous

    def update(self, step: Callable[[], None]) -> None:
        self._keep(self.newest)
        super().update(step)

    def state(self) -> dict[str, Sequence[torch.Tensor]]:
        return {"previous": self._previous.tensors} if self._previous else {}

    def load(self, state: Mapping[str, Sequence[torch.Tensor]]) -> None:
        self._keep(None)
        if "previous" in state:
            pairs = zip(state["previous"], self.parameters, strict=True)
            self._keep(self.version_of([t.to(p, copy=True) for t, p in pairs]))

    def _keep(self, version: Version | None) -> None:
        """`version` is the previous one from now on."""
        if version:
            self.need(version)
        if self._previous:
            self.let_go(self._previous)
        self._previous = version
