"""Muon (Jordan et al., 2024) for the matrices inside of the blocks, AdamW for everything else.

    hidden matrices            momentum ─▶ orthogonalised ─▶ 0.2 · sqrt(larger side) · lr
    embeddings, head,
    gains and biases           AdamW                      ─▶ lr

The factor 0.2 · sqrt(larger side) gives Muon's steps the root mean square of AdamW's (Liu et al.,
arXiv 2502.16982, section 2.2), so that both have one learning rate and one schedule. It is the same
for a matrix and its transpose, as which transformers' GPT-2 stores its weights. A weight that holds
queries, keys and values is one matrix.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from omegaconf import DictConfig
from torch import nn

from experiments.optimizers.adamw import adamw
from experiments.optimizers.groups import decay_groups, is_hidden_matrix


class MuonAndAdamW(torch.optim.Optimizer):
    """Steps each of `parts`, optimizers of different parameters, as one optimizer.

    It has the groups of all parts, in order, and one state, which the parts share: who sets a
    learning rate in a group or loads a state here, sets it for the part.
    """

    def __init__(self, parts: Iterable[torch.optim.Optimizer]):
        self._parts = list(parts)
        super().__init__([group for part in self._parts for group in part.param_groups], {})
        self._share()

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Make a step of each part; there is no `closure` to compute the loss again."""
        if closure is not None:
            raise ValueError("Muon and AdamW step from gradients that are there: give no closure")
        for part in self._parts:
            part.step()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned, and share it with the parts again."""
        super().load_state_dict(state_dict)
        self._share()

    def _share(self) -> None:
        groups = iter(self.param_groups)
        for part in self._parts:
            part.param_groups = [next(groups) for _ in part.param_groups]
            part.state = self.state


def muon(parameters: Iterable[nn.Parameter], settings: DictConfig, peak: float) -> MuonAndAdamW:
    """Return Muon for hidden matrices and AdamW for the rest, both at the learning rate `peak`."""
    parameters = list(parameters)
    matrices = [p for p in parameters if is_hidden_matrix(p)]
    others = [p for p in parameters if not is_hidden_matrix(p)]
    parts: list[torch.optim.Optimizer] = []
    if matrices:
        groups = decay_groups(matrices, settings)
        parts.append(
            torch.optim.Muon(
                cast(Any, groups),
                lr=peak,
                momentum=settings.momentum,
                adjust_lr_fn="match_rms_adamw",
            )
        )
    if others:
        parts.append(adamw(others, settings, peak))
    return MuonAndAdamW(parts)
