"""The assignment of tokens to micro-batches: a pure function of (order seed, index).

The corpus is cut into blocks of `context` tokens. Sequence n of a run is the n-th block in an
endless list: a permutation of all blocks, then another one for the next epoch, each drawn from
(order seed, epoch) alone. Each window takes the next sequences of that list, and its
micro-batches share them in order. Here 5 blocks, and windows of 3 sequences in 2 micro-batches:

    epoch        0               | 1             | ...
    block        0  4  1  3   2  | 0  1  4  2  3 | ...
    sequence     0  1  2  3   4    5  6  7  8  9   ...
    micro-batch  0     1  2        3  4     5  6   ...
    window       0        1           2        3   ...

So there is no loader and no loader state: the first rank reads inputs and the last rank targets
with nothing shipped between them, a resumed run starts at `first`, and runs with the same global
batch see the same sequences whatever their seeds and micro-batch sizes.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

if TYPE_CHECKING:  # whoever prepares data or submits runs needs no batch, and no torch
    import torch

# The target of a block's last position lies in another block; cross-entropy skips this value.
IGNORED = -100


class Batches(Sequence):
    """Micro-batches `first` .. `first + count - 1` of a run.

    Item m is `(input, target)`, int64 tensors of shape (size of m, context), where target[:, t]
    is input[:, t + 1] and the last column is -100.

    Args:
        tokens: integer array of shape (tokens,), such as `TokenFile.tokens`; what is left after
            the last whole block is not used.
        context: tokens per block.
        sizes: sequences in each micro-batch of a window, as `paci.microbatches.sizes` returns.
        order_seed: seed of the order of the blocks; None for their order in the corpus.
        first: index in the run of the first micro-batch here.
        count: number of micro-batches here.
    Raises:
        ValueError: an argument is impossible, or the corpus is smaller than one micro-batch.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        context: int,
        sizes: Sequence[int],
        order_seed: int | None,
        first: int = 0,
        *,
        count: int,
    ):
        if first < 0 or count < 0:
            raise ValueError(f"first is {first}, count {count}; accepted are integers from 0")
        if not sizes or min(sizes) < 1:
            raise ValueError(f"sizes are {list(sizes)}; accepted are integers from 1")
        self.blocks = _count_blocks(tokens, context, max(sizes))
        self.tokens, self.context, self.order_seed = tokens, context, order_seed
        self.first, self._count = first, count
        self._borders = [0, *itertools.accumulate(sizes)]  # of micro-batches within a window

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> "tuple[torch.Tensor, torch.Tensor]": ...

    @overload
    def __getitem__(self, index: slice) -> "list[tuple[torch.Tensor, torch.Tensor]]": ...

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[m] for m in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(f"micro-batch {index} of {self._count}")
        import torch

        rows = np.stack([self._block(n) for n in self._sequences(self.first + index % self._count)])
        inputs = torch.from_numpy(rows.astype(np.int64))
        targets = torch.full_like(inputs, IGNORED)
        targets[:, :-1] = inputs[:, 1:]
        return inputs, targets

    def _sequences(self, microbatch: int) -> range:
        """Return the numbers of the sequences in a micro-batch of the run."""
        window, position = divmod(microbatch, len(self._borders) - 1)
        start = window * self._borders[-1]
        return range(start + self._borders[position], start + self._borders[position + 1])

    def _block(self, sequence: int) -> np.ndarray:
        epoch, block = divmod(sequence, self.blocks)
        if self.order_seed is not None:
            block = _permutation(self.blocks, self.order_seed, epoch)[block]
        return self.tokens[block * self.context : (block + 1) * self.context]


def evaluation_batches(
    tokens: np.ndarray, context: int, size: int, sequences: int | None = None
) -> Batches:
    """Return the first `sequences` blocks of a corpus in order, `size` in each micro-batch.

    Args:
        tokens, context: as for `Batches`.
        size: sequences per micro-batch.
        sequences: a multiple of `size`; None for all whole micro-batches of the corpus.
    Raises:
        ValueError: the corpus has fewer blocks than that.
    """
    blocks = _count_blocks(tokens, context, size)
    if sequences is None:
        sequences = blocks // size * size
    if sequences % size or not size <= sequences <= blocks:
        raise ValueError(
            f"{sequences} sequences to evaluate on; accepted are multiples of the micro-batch "
            f"size {size} up to the {blocks} blocks of the corpus"
        )
    return Batches(tokens, context, [size], order_seed=None, count=sequences // size)


def _count_blocks(tokens: np.ndarray, context: int, size: int) -> int:
    if context < 2 or size < 1:
        raise ValueError(f"context is {context}, size {size}; accepted are context ≥ 2, size ≥ 1")
    blocks = len(tokens) // context
    if blocks < size:
        raise ValueError(
            f"the corpus has {len(tokens)} tokens, and one micro-batch of {size} sequences of "
            f"{context} needs {size * context}"
        )
    return blocks


@functools.lru_cache(maxsize=2)  # a micro-batch may lie across the border of two epochs
def _permutation(blocks: int, order_seed: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([order_seed, epoch]).permutation(blocks)
