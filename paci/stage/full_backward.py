"""The whole backward of a graph: the gradients of the weights and of the input."""

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from paci.stage.torch_private import run_backward


def backward(edge: GradientEdge, gradient: torch.Tensor) -> None:
    """Backpropagate `gradient` from the output at `edge`; add to the gradients of the weights."""
    run_backward(edge, gradient)


def backward_to(input: torch.Tensor, edge: GradientEdge, gradient: torch.Tensor) -> torch.Tensor:
    """Backpropagate like `backward` and return the gradient of `input`, contiguous.

    The gradient is caught on its way into `input.grad`, where autograd would copy one that has
    only passed through. Raises ValueError if the output does not depend on `input`.
    """
    caught: list[torch.Tensor] = []

    def catch(gradients: tuple[torch.Tensor, ...]) -> tuple[None]:
        caught.extend(gradients)
        return (None,)

    get_gradient_edge(input).node.register_prehook(catch)
    run_backward(edge, gradient)
    if not caught:
        raise ValueError("the output of a stage must depend on its input")
    return caught.pop().contiguous()
