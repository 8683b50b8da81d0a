"""Random numbers that depend on (seed, stage, micro-batch) and never on the order of execution."""

import hashlib
import struct

import torch

from paci.checks import is_whole

SEEDS = 2**63  # from 0


def check_seed(seed: int) -> int:
    """Return `seed`; raise ValueError unless it is a whole number from 0 to 2^63 - 1."""
    if not is_whole(seed, 0) or seed >= SEEDS:
        raise ValueError(f"seed must be a whole number from 0 to 2^63 - 1, not {seed!r}")
    return seed


class rng_of:
    """A context in which PyTorch's default generator of `device`, which dropout uses, is seeded for
    this micro-batch at this stage; afterwards the generator has its former state again."""

    __slots__ = ("_generator", "_key", "_state")

    def __init__(self, seed: int, stage: int, microbatch: int, device: torch.device):
        self._generator = _default_generator(device)
        self._key = _key(seed, stage, microbatch)

    def __enter__(self) -> None:
        self._state = self._generator.get_state()
        self._generator.manual_seed(self._key)

    def __exit__(self, *_: object) -> None:
        self._generator.set_state(self._state)


def _key(seed: int, stage: int, microbatch: int) -> int:
    digest = hashlib.blake2b(struct.pack("<qqq", seed, stage, microbatch), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _default_generator(device: torch.device) -> torch.Generator:
    if device.type == "cuda":
        torch.cuda.init()
        return torch.cuda.default_generators[device.index or 0]
    return torch.default_generator
