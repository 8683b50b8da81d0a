"""Initial weights as a pure function of (seed, parameter name), whoever holds the parameter."""

import hashlib

import torch
from torch import nn


def initialise(stage: nn.Module, seed: int, std: float, residual_std: float) -> None:
    """Give a module built on the meta device its real weights, on the CPU in float32.

    Names are the whole model's, so any cut into stages gives bitwise the same model, and the
    global random state is not touched.
    """
    weights = {
        name: initial_weight(name, parameter.shape, seed, std, residual_std)
        for name, parameter in stage.named_parameters()
    }
    # Strict, and assigning rather than copying: whatever is not a parameter given here (a
    # buffer of a future transformers, say) raises or stays on the meta device, never garbage.
    stage.load_state_dict(weights, assign=True)


def initial_weight(
    name: str, shape: torch.Size, seed: int, std: float, residual_std: float
) -> torch.Tensor:
    """GPT-2's initialisation: biases 0, layer norms 1, the rest normal.

    `std` is for embeddings, projections and the head; `residual_std` for the two projections of
    each block that write into the residual stream, c_proj (Radford et al. 2019, section 2.3).
    """
    if name.endswith(".bias"):
        return torch.zeros(shape)
    if ".ln_" in name:
        return torch.ones(shape)
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big"))
    scale = residual_std if name.endswith(".c_proj.weight") else std
    return torch.empty(shape).normal_(0.0, scale, generator=generator)
