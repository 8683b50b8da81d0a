"""Uniform random numbers from a key, the same with and without numpy.

They are those of `numpy.random.default_rng(key).uniform(-1, 1, count)`: the key is hashed as
numpy's SeedSequence does, and the draws are those of PCG64 (O'Neill, HMC-CS-2014-0905), XSL-RR
128/64. `numpy` makes them where it is installed, a hundred times faster; the module does without,
so that jitter needs no package.
"""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec

WITH_NUMPY = find_spec("numpy") is not None

_32, _64, _128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1
_POOL = 4  # words of 32 bits
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645


def uniform(key: Sequence[int], count: int) -> list[float]:
    """Return `count` numbers from [-1, 1) that `key`, whole numbers from 0 on, determines."""
    if WITH_NUMPY:
        import numpy

        drawn: list[float] = numpy.random.default_rng(key).uniform(-1, 1, count).tolist()
        return drawn
    draws = pcg64(key)
    return [-1.0 + 2.0 * ((next(draws) >> 11) * 2.0**-53) for _ in range(count)]


def pcg64(key: Sequence[int]) -> Iterator[int]:
    """Yield PCG64's numbers of 64 bits, seeded with `key`."""
    words = _seed(key, 8)
    seed, stream = (
        words[i + 1] << 32 | words[i] | (words[i + 3] << 32 | words[i + 2]) << 64 for i in (0, 4)
    )
    # numpy reads its seeds' halves of 64 bits with the upper one first.
    seed, stream = ((half & _64) << 64 | half >> 64 for half in (seed, stream))
    increment = (stream << 1 | 1) & _128
    state = ((increment + seed) * _MULTIPLIER + increment) & _128
    while True:
        state = (state * _MULTIPLIER + increment) & _128
        mixed, turn = (state >> 64) ^ (state & _64), state >> 122
        yield (mixed >> turn | mixed << (-turn & 63)) & _64


def _seed(key: Sequence[int], count: int) -> list[int]:
    """Return `count` words of 32 bits: SeedSequence's hash of the words of `key`."""
    words = [word for number in key for word in _words(number)]
    hash_constant = 0x43B0D7E5

    def hashed(value: int) -> int:
        nonlocal hash_constant
        value ^= hash_constant
        hash_constant = hash_constant * 0x931E8875 & _32
        value = value * hash_constant & _32
        return value ^ value >> 16

    def mixed(x: int, y: int) -> int:
        result = (x * 0xCA01F9DD - y * 0x4973F715) & _32
        return result ^ result >> 16

    pool = [hashed(word) for word in (words + [0] * _POOL)[:_POOL]]
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                pool[target] = mixed(pool[target], hashed(pool[source]))
    for word in words[_POOL:]:
        for target in range(_POOL):
            pool[target] = mixed(pool[target], hashed(word))

    result, hash_constant = [], 0x8B51F9DD
    for i in range(count):
        value = pool[i % _POOL] ^ hash_constant
        hash_constant = hash_constant * 0x58F38DED & _32
        value = value * hash_constant & _32
        result.append(value ^ value >> 16)
    return result


def _words(number: int) -> list[int]:
    """Return a number's words of 32 bits, the lowest first; 0 has one."""
    words = [number & _32]
    while number := number >> 32:
        words.append(number & _32)
    return words
