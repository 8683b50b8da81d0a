import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments.data import Batches, evaluation_batches
from paci.microbatches import sizes

CONTEXT = 4

hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

blocks = st.integers(1, 40)
seeds = st.integers(0, 2**32)


def corpus(blocks):
    """Tokens whose first in each block is the block's number; three more do not fill a block."""
    tokens = np.arange(blocks * CONTEXT + 3, dtype=np.uint16)
    tokens[::CONTEXT] //= CONTEXT
    return tokens


def order(batches):
    return [int(block) for inputs, _ in batches for block in inputs[:, 0]]


@given(blocks, seeds, st.integers(1, 3))
def test_every_epoch_has_every_block_once(blocks, seed, epochs):
    n = order(Batches(corpus(blocks), CONTEXT, [1], seed, count=epochs * blocks))
    for epoch in range(epochs):
        assert sorted(n[epoch * blocks : (epoch + 1) * blocks]) == list(range(blocks))


@given(st.integers(6, 40), seeds, st.integers(0, 20), st.integers(1, 20))
def test_the_order_does_not_depend_on_the_size_of_micro_batches(blocks, seed, first, count):
    ones = order(Batches(corpus(blocks), CONTEXT, [1], seed, first * 6, count=count * 6))
    for size in (2, 3, 6):
        batches = Batches(
            corpus(blocks), CONTEXT, [size], seed, first * 6 // size, count=count * 6 // size
        )
        assert order(batches) == ones


@given(st.integers(3, 40), seeds, st.integers(0, 60), st.randoms())
def test_a_micro_batch_depends_on_seed_and_index_alone(blocks, seed, first, random):
    run = Batches(corpus(blocks), CONTEXT, [3], seed, count=80)
    resumed = Batches(corpus(blocks), CONTEXT, [3], seed, first, count=80 - first)
    indices = list(range(80 - first))
    random.shuffle(indices)  # nothing is remembered from one access to the next
    for m in indices:
        assert torch.equal(resumed[m][0], run[first + m][0])
        assert torch.equal(resumed[m][1], run[first + m][1])


@given(st.integers(1, 12), st.data(), st.integers(0, 20))
def test_uneven_micro_batches_share_the_sequences_of_their_window(batch, data, first):
    count = data.draw(st.integers(1, batch))
    split = sizes(batch, count)
    window = order(Batches(corpus(40), CONTEXT, [batch], 7, first, count=1))
    parts = Batches(corpus(40), CONTEXT, split, 7, first * count, count=count)
    assert [len(inputs) for inputs, _ in parts] == split
    assert order(parts) == window


def test_epochs_and_seeds_differ_in_order():
    two_epochs = order(Batches(corpus(40), CONTEXT, [1], 0, count=80))
    assert two_epochs[:40] != two_epochs[40:]
    assert two_epochs[:40] != order(Batches(corpus(40), CONTEXT, [1], 1, count=40))


def test_the_order_is_the_same_in_every_version_of_the_harness():
    # The example in the docstring: a run resumed after an upgrade must go on with the same data.
    example = [0, 4, 1, 3, 2, 0, 1, 4, 2, 3]
    assert order(Batches(corpus(5), CONTEXT, [2], 1234, count=5)) == example
    assert order(Batches(corpus(5), CONTEXT, [2, 1], 1234, count=6)) == example[:9]


def test_a_target_is_the_next_token_and_none_at_the_end_of_a_block():
    inputs, targets = Batches(np.arange(8, dtype=np.uint16), 4, [2], None, count=1)[0]
    assert inputs.dtype == targets.dtype == torch.int64
    assert inputs.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert targets.tolist() == [[1, 2, 3, -100], [5, 6, 7, -100]]


def test_batches_are_a_sequence():
    batches = Batches(corpus(7), CONTEXT, [2], 0, count=5)
    assert len(batches) == len(list(batches)) == 5
    assert torch.equal(batches[-1][0], batches[4][0])
    assert order(batches[1:3]) == order(batches)[2:6]
    with pytest.raises(IndexError, match="5 of 5"):
        batches[5]


def test_evaluation_takes_the_first_blocks_in_order():
    assert order(evaluation_batches(corpus(7), CONTEXT, 2, 4)) == [0, 1, 2, 3]
    assert order(evaluation_batches(corpus(7), CONTEXT, 2)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("sequences", [0, 3, 8, -2])
def test_evaluation_refuses_what_is_not_whole_micro_batches_of_the_corpus(sequences):
    with pytest.raises(ValueError, match="multiples of the micro-batch size 2 up to the 7 blocks"):
        evaluation_batches(corpus(7), CONTEXT, 2, sequences)


@pytest.mark.parametrize(
    "make", [evaluation_batches, lambda tokens, *a: Batches(tokens, a[0], [a[1]], 0, count=1)]
)
def test_a_corpus_smaller_than_a_micro_batch_is_refused(make):
    with pytest.raises(ValueError, match=r"the corpus has 7 tokens, .* needs 8"):
        make(np.zeros(7, np.uint16), 4, 2)


@pytest.mark.parametrize(
    ("context", "size", "first", "count"),
    [(1, 1, 0, 1), (4, 0, 0, 1), (4, 1, -1, 1), (4, 1, 0, -1)],
)
def test_impossible_arguments_are_refused(context, size, first, count):
    with pytest.raises(ValueError, match="accepted are"):
        Batches(corpus(7), context, [size], 0, first, count=count)
