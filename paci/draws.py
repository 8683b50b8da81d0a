"""Random draws that depend on (seed, stage, micro-batch) and never on the order of execution."""

import hashlib
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def draws_of(seed: int, stage: int, microbatch: int, device: torch.device) -> Iterator[None]:
    """Inside, PyTorch's default generator of `device` (dropout uses it) draws what this
    micro-batch draws at this stage; afterwards it goes on as if nothing had been drawn."""
    generator = _default_generator(device)
    state = generator.get_state()
    generator.manual_seed(_key(seed, stage, microbatch))
    try:
        yield
    finally:
        generator.set_state(state)


def _key(seed: int, stage: int, microbatch: int) -> int:
    digest = hashlib.blake2b(struct.pack("<qqq", seed, stage, microbatch), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _default_generator(device: torch.device) -> torch.Generator:
    if device.type == "cuda":
        torch.cuda.init()
        return torch.cuda.default_generators[device.index or 0]
    return torch.default_generator
