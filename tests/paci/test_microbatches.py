import pytest

from paci.microbatches import sizes


@pytest.mark.parametrize("batch", range(1, 20))
def test_the_first_micro_batches_take_the_sequences_that_are_left_over(batch):
    for count in range(1, batch + 1):
        assert sizes(batch, count) == [batch // count + (m < batch % count) for m in range(count)]


@pytest.mark.parametrize("count", [0, -1, 9])
def test_no_micro_batch_may_be_empty(count):
    with pytest.raises(ValueError, match=f"8 sequences cannot be cut into {count}"):
        sizes(8, count)
