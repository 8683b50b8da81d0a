"""Safeguards of an update: clipped gradients, and gradients that are not finite.

    gradients of a window ──▶ finite? ──▶ norm ──▶ factor ──▶ optimizer step
                                └ no: stop, or leave this update out

A stage without a barrier knows the gradients of its own parameters only. So the norm of the whole
model's gradient can be had where all stages end a window together, and nowhere else; the other
rules need nothing from other stages.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from paci.checks import is_number, positive
from paci.schedules import Schedule
from paci.stage.torch_private import scale_each

CLIP = ("none", "stage", "global", "running")
ON_NONFINITE = ("stop", "skip")
MEMORY = 0.99
"""The weight of the past in a running norm: its memory is about a hundred updates."""


@dataclass(frozen=True)
class Safeguards:
    """What is done to the gradients of a window before the optimizer's step.

    clip           none
                   stage: to `max_norm`, the norm of the stage's own gradient
                   global: to `max_norm`, the norm of all stages' gradients together; only for
                   schedules that flush, whose ranks then end every window together
                   running: to `max_norm` times the mean norm of the stage's own earlier gradients,
                   which removes spikes whatever the scale of the gradients
    max_norm       above 0
    on_nonfinite   stop: raise `NonFinite` for a loss or gradient that is infinite or not a number
                   skip: leave the stage's window out of its update, whose version counts all the
                   same
    most_skips     updates that a stage leaves out in a row before it raises `NonFinite`

    Raises ValueError for other values.
    """

    clip: str = "none"
    max_norm: float = 1.0
    on_nonfinite: str = "stop"
    most_skips: int = 10

    def __post_init__(self) -> None:
        for name, choices in (("clip", CLIP), ("on_nonfinite", ON_NONFINITE)):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be {' or '.join(choices)}, not {getattr(self, name)!r}"
                )
        if not is_number(self.max_norm) or self.max_norm <= 0:
            raise ValueError(f"max_norm must be a number above 0, not {self.max_norm!r}")
        positive("most_skips", self.most_skips)


def check_schedule(safeguards: Safeguards, schedule: Schedule) -> None:
    """Raise ValueError if gradients cannot be clipped to their global norm under `schedule`."""
    if safeguards.clip == "global" and not schedule.flushes:
        raise ValueError(
            f"clip=global needs a schedule that flushes, and {schedule.name} does not: a stage "
            "would wait at every update for the gradients of all others; choose stage or running"
        )


class NonFinite(ArithmeticError):
    """A loss or a gradient is infinite or not a number."""


class GradientGuard:
    """The safeguards of stage `index`, with what they remember of earlier windows.

    `skipped` are the updates left out in this segment: (the stage's version, what was not finite).
    """

    def __init__(self, index: int, rules: Safeguards):
        self._index, self._rules = index, rules
        self._found: dict[int, str] = {}  # by micro-batch
        self._in_a_row = 0
        self._running_norm = 0.0  # 0: no window yet
        self.clear()

    def clear(self) -> None:
        """Start a new segment."""
        self._found = {}
        self.skipped: list[tuple[int, str]] = []

    def state(self) -> list[float]:
        """Return what a checkpoint needs: the running norm, and the updates left out in a row."""
        return [self._running_norm, self._in_a_row]

    def load(self, state: Sequence[float]) -> None:
        """Go on from what `state` once returned."""
        self._running_norm, self._in_a_row = state[0], int(state[1])

    def check(self, what: str, tensor: torch.Tensor, microbatch: int, version: int) -> None:
        """Note, or raise `NonFinite`, if a loss or gradient that `microbatch` brings is not finite.

        One sum is enough: it is finite if all numbers are, unless they are so large that their
        sum is not.
        """
        if not math.isfinite(tensor.detach().sum().item()):
            self._report(f"{what} of micro-batch {microbatch}", microbatch, version)

    def admit(
        self,
        parameters: Sequence[torch.Tensor],
        microbatches: range,
        version: int,
        norm: float | None = None,
    ) -> bool:
        """Clip the gradients of `parameters`, which `microbatches` have made, and return True; or
        return False if this update must be left out.

        norm   of all stages together, if they are clipped to that
        """
        if self._rules.clip == "none" and self._rules.on_nonfinite == "stop":
            return True  # the next loss tells of bad weights, and reading all gradients takes time
        gradients = [p.grad for p in parameters if p.grad is not None]
        own = total_norm(gradients)
        found = [self._found.pop(m) for m in microbatches if m in self._found]
        if not found and not math.isfinite(own if norm is None else norm):
            first, last = microbatches[0], microbatches[-1]
            what = f"gradient of the weights from micro-batches {first} to {last}"
            self._report(what, last, version)
            found = [self._found.pop(last)]
        if found:
            self._skip(version, found[0])
            return False
        self._in_a_row = 0
        self._clip(gradients, own if norm is None else norm)
        return True

    def _report(self, what: str, microbatch: int, version: int) -> None:
        found = self._found.setdefault(microbatch, f"the {what} is not finite")
        if self._rules.on_nonfinite == "stop":
            raise NonFinite(f"stage {self._index}, update {version + 1}: {found}")

    def _skip(self, version: int, found: str) -> None:
        self.skipped.append((version, found))
        self._in_a_row += 1
        if self._in_a_row >= self._rules.most_skips:
            raise NonFinite(
                f"stage {self._index} has left out {self._in_a_row} updates in a row, the last, "
                f"{version + 1}, because {found}"
            )

    def _clip(self, gradients: list[torch.Tensor], norm: float) -> None:
        if self._rules.clip == "none":
            return
        limit = self._rules.max_norm
        if self._rules.clip == "running":
            limit *= self._running_norm or norm
        factor = min(1.0, limit / (norm + 1e-6))
        if factor < 1.0:
            scale_each(gradients, factor)
        if self._rules.clip == "running":
            seen = norm * factor
            past = self._running_norm or seen
            self._running_norm = MEMORY * past + (1 - MEMORY) * seen


def global_norm(norms: Mapping[int, float]) -> float:
    """Return the norm of all gradients, given that of each stage."""
    return math.sqrt(sum(norms[stage] ** 2 for stage in sorted(norms)))


def total_norm(gradients: Sequence[torch.Tensor]) -> float:
    """Return the Euclidean norm of all `gradients` together, as `clip_grad_norm_` computes it."""
    return torch.nn.utils.get_total_norm(gradients).item() if gradients else 0.0
