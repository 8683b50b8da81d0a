"""A trial of one micro-batch on a stage, which reports before any training what does not fit."""

from collections.abc import Callable, Sequence

import torch
from torch.autograd.graph import get_gradient_edge

from paci.stage.split_backward import children_first
from paci.stage.torch_private import leaf_of, times_written
from paci.stage.weights import Position


def probe(
    position: Position,
    run: Callable[[torch.Tensor], object],
    parameters: Sequence[torch.Tensor],
    input: torch.Tensor,
    target: torch.Tensor | None,
) -> torch.Tensor:
    """Return `run(input)`, the output of the stage at `position`, detached.

    Raises ValueError if the stage cannot take the input or changes it in place, if the output is no
    tensor of floating-point numbers (at the last stage, whose output is the loss: no single
    number), or if the stage trains tensors that are not among its `parameters`.
    """
    stage = f"stage {position.index}"
    leaf = input.detach()
    if not position.is_first:
        leaf.requires_grad_()
    given = leaf.clone()  # no leaf, so that a stage may be found to change it
    written = times_written(given)
    try:
        output = run(given)
    except torch.OutOfMemoryError:
        raise  # not the micro-batch's fault
    except (RuntimeError, IndexError) as error:
        raise ValueError(
            f"{stage} cannot take its input of shape {tuple(input.shape)} "
            f"(target: {None if target is None else tuple(target.shape)}): {error}"
        ) from error
    if times_written(given) != written:
        raise ValueError(
            f"{stage} changes its input in place: let its first operation make a new tensor "
            "(a ReLU without inplace=True)"
        )
    result = _checked("loss_fn" if position.is_last else stage, output, position.is_last)
    known = {leaf, *parameters}
    for node, _ in children_first(get_gradient_edge(result).node):
        trained = leaf_of(node)
        if trained is not None and trained not in known:
            raise ValueError(
                f"{stage} trains a tensor of shape {tuple(trained.shape)} that is not among its "
                "module's parameters(): assign it to the module as an nn.Parameter (several: in an "
                "nn.ParameterList or nn.ModuleList)"
            )
    return result.detach()


def _checked(who: str, output: object, is_loss: bool) -> torch.Tensor:
    wanted = "one number, as a tensor" if is_loss else "one tensor"
    if not isinstance(output, torch.Tensor):
        raise ValueError(f"{who} must give {wanted}, not {_described(output)}")
    if is_loss and output.dim() != 0:
        raise ValueError(f"{who} must give {wanted}, not a shape of {tuple(output.shape)}")
    if not output.is_floating_point():
        raise ValueError(f"{who} must give floating-point numbers, not {output.dtype}")
    if not output.requires_grad:
        raise ValueError(f"what {who} gives depends on no parameter and not on the input")
    return output


def _described(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
