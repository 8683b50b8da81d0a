"""PyTorch's private functions: all that this package uses of them, and nothing else.

They were checked with the versions of PyTorch in `CHECKED`; a test fails under any other, so that
whoever upgrades looks at this file first.
"""

from contextlib import AbstractContextManager

import torch
from torch.autograd.graph import GradientEdge, Node, _engine_run_backward

CHECKED = ("2.13",)

Tensors = tuple[torch.Tensor, ...] | list[torch.Tensor]


def keep_version_counters(tensors: Tensors) -> AbstractContextManager[None]:
    """Return a context in which `tensors` may be written without autograd's noticing.

    Autograd counts how often a tensor is written and refuses a backward through one that has
    changed since its forward; public code can only give up the check for whole graphs.
    """
    return torch.autograd.grad_mode._unsafe_preserve_version_counter(tuple(tensors))


def times_written(tensor: torch.Tensor) -> int:
    """Return autograd's count of the changes of `tensor` in place."""
    return tensor._version


def run_backward(edge: GradientEdge, gradient: torch.Tensor) -> None:
    """Do what `torch.autograd.backward` does, without its comparison of shapes in Python, which
    takes a third of its time and which the engine repeats."""
    _engine_run_backward(
        (edge,), (gradient,), False, False, (), allow_unreachable=True, accumulate_grad=True
    )


def leaf_of(node: Node) -> torch.Tensor | None:
    """Return the leaf whose gradient `node` of a graph accumulates; None for all other nodes."""
    accumulates = isinstance(node, torch._C._functions.AccumulateGrad)  # type: ignore[attr-defined]
    leaf: torch.Tensor | None = node.variable if accumulates else None  # type: ignore[attr-defined]
    return leaf


def sparse_bytes(tensor: torch.Tensor) -> int:
    """Return the bytes of a sparse tensor as it is; the public accessors want it coalesced."""
    return tensor._values().nbytes + tensor._indices().nbytes


# One kernel for all tensors of a list, as PyTorch's optimizers use them.


def add_each(tensors: Tensors, others: Tensors, alpha: float = 1.0) -> None:
    """Add `alpha` times each of `others` to its tensor, in place."""
    torch._foreach_add_(tensors, others, alpha=alpha)


def scale_each(tensors: Tensors, factor: float) -> None:
    """Multiply each tensor by `factor`, in place."""
    torch._foreach_mul_(tensors, factor)


def copy_each(tensors: Tensors, others: Tensors) -> None:
    """Copy each of `others` to its tensor, in place."""
    torch._foreach_copy_(tensors, others)


def sums(tensors: Tensors, others: Tensors, alpha: float = 1.0) -> list[torch.Tensor]:
    """Return each tensor plus `alpha` times its other."""
    return list(torch._foreach_add(tensors, others, alpha=alpha))


def differences(tensors: Tensors, others: Tensors) -> list[torch.Tensor]:
    """Return each tensor minus its other."""
    return list(torch._foreach_sub(tensors, others))


def clones(tensors: Tensors) -> list[torch.Tensor]:
    """Return a copy of each tensor."""
    return list(torch._foreach_clone(tensors))
