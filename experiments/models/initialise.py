"""Initial weights as a pure function of (seed, parameter name), whoever holds the parameter."""

import hashlib

import torch
from torch import nn


def initialise(stage: nn.Module, seed: int, std: float, residual_std: float) -> None:
    """Give a module built on the meta device its real weights, on the CPU in float32.

    The draws depend on the names of the whole model's parameters, so any cut into stages gives
    bitwise the same model. The global random state is not touched.
    """
    weights = {
        name: initial_weight(name, parameter.shape, seed, std, residual_std)
        for name, parameter in stage.named_parameters()
    }
    # Strict, and assigned rather than copied: a tensor without a value here, such as a buffer of a
    # future transformers, raises or stays on the meta device, and never holds garbage.
    stage.load_state_dict(weights, assign=True)


def initial_weight(
    name: str, shape: torch.Size, seed: int, std: float, residual_std: float
) -> torch.Tensor:
    """Return a parameter's initial value as in GPT-2: biases 0, layer norms 1, the rest normal.

    `std` is the standard deviation of embeddings, projections and the head; `residual_std` that of
    c_proj, the two projections of each block that write into the residual stream (Radford et al.
    2019, section 2.3).
    """
    if name.endswith(".bias"):
        return torch.zeros(shape)
    if ".ln_" in name:
        return torch.ones(shape)
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big"))
    scale = residual_std if name.endswith(".c_proj.weight") else std
    return torch.empty(shape).normal_(0.0, scale, generator=generator)
