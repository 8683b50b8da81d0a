"""Which tokens are in which micro-batch: a pure function of (seed, index).

The corpus is cut into blocks of `context` tokens. Sequence n of a run is row `n % size` of
micro-batch `n // size`, and its block is the n-th in an endless list: a permutation of all
blocks, then another one for the next epoch, each drawn from (seed, epoch) alone.

    epoch        0              | 1             | ...    (5 blocks, size 2, seed 1234)
    sequence     0  1  2  3  4  | 5  6  7  8  9 | ...
    block        0  4  1  3  2  | 0  1  4  2  3 | ...
    micro-batch  0     1     2       3     4      ...

So there is no loader and no loader state: the first rank reads inputs and the last rank targets
with nothing shipped between them, a resumed run starts at `first`, and two runs with the same
global batch see the same sequences whatever their micro-batch sizes.
"""

import functools
from collections.abc import Sequence

import numpy as np

# The target of a block's last position lies in another block; cross-entropy skips this value.
IGNORED = -100


class Batches(Sequence):
    """Micro-batches `first` .. `first + count - 1` of a run.

    Item m is `(input, target)`, int64 tensors of shape (size, context), where target[:, t] is
    input[:, t + 1] and the last column is -100.

    Args:
        tokens: integer array of shape (tokens,), such as `TokenFile.tokens`; what is left after
            the last whole block is not used.
        context: tokens per block.
        size: sequences per micro-batch.
        seed: of the order of the blocks; None for their order in the corpus.
        first: index in the run of the first micro-batch here.
        count: how many micro-batches there are here.
    Raises:
        ValueError: an argument is impossible, or the corpus is smaller than one micro-batch.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        context: int,
        size: int,
        seed: int | None,
        first: int = 0,
        *,
        count: int,
    ):
        if first < 0 or count < 0:
            raise ValueError(f"first is {first}, count {count}; accepted are integers from 0")
        self.blocks = _count_blocks(tokens, context, size)
        self.tokens, self.context, self.size = tokens, context, size
        self.seed, self.first, self.count = seed, first, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int | slice):
        if isinstance(index, slice):
            return [self[m] for m in range(*index.indices(self.count))]
        if not -self.count <= index < self.count:
            raise IndexError(f"micro-batch {index} of {self.count}")
        start = (self.first + index % self.count) * self.size
        rows = np.stack([self._sequence(start + row) for row in range(self.size)])
        import torch  # not above: whoever prepares data, or submits runs, needs no batch

        inputs = torch.from_numpy(rows.astype(np.int64))
        targets = torch.full_like(inputs, IGNORED)
        targets[:, :-1] = inputs[:, 1:]
        return inputs, targets

    def _sequence(self, n: int) -> np.ndarray:
        epoch, position = divmod(n, self.blocks)
        block = position
        if self.seed is not None:
            block = _permutation(self.blocks, self.seed, epoch)[position]
        return self.tokens[block * self.context : (block + 1) * self.context]


def evaluation_batches(
    tokens: np.ndarray, context: int, size: int, sequences: int | None = None
) -> Batches:
    """The first `sequences` blocks of a corpus in order, as `Batches` of `size` sequences.

    Args:
        tokens, context, size: as for `Batches`.
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
    return Batches(tokens, context, size, seed=None, count=sequences // size)


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
def _permutation(blocks: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(blocks)
