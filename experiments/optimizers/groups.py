"""Parameter groups of a stage: which weights decay, and which are hidden matrices."""

from collections.abc import Iterable, Sequence
from typing import Any

from omegaconf import DictConfig
from torch import nn

Group = dict[str, Any]


def decay_groups(parameters: Iterable[nn.Parameter], settings: DictConfig) -> list[Group]:
    """Return the parameters in up to two groups, with and without weight decay.

    `optimizer.decay` says which weights decay: `matrices`, all tensors of 2+ dimensions, or
    `matrices-but-embeddings`.
    """
    parameters = list(parameters)

    def decays(parameter: nn.Parameter) -> bool:
        exempt = settings.decay == "matrices-but-embeddings" and hasattr(parameter, "is_embedding")
        return parameter.dim() >= 2 and not exempt

    groups: Sequence[Group] = (
        {"params": [p for p in parameters if decays(p)], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if not decays(p)], "weight_decay": 0.0},
    )
    return [group for group in groups if group["params"]]


def is_hidden_matrix(parameter: nn.Parameter) -> bool:
    """Return whether this is a matrix inside of a block, neither an embedding nor the head."""
    at_an_end = hasattr(parameter, "is_embedding") or hasattr(parameter, "is_head")
    return parameter.dim() == 2 and not at_an_end
