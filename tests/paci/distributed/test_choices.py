from functools import cache

import pytest

from paci.distributed.launch import spawn
from paci.schedules import FixedOrder
from tests.paci import fleet, toys
from tests.paci.distributed import choices
from tests.paci.distributed.choices import CHOICES
from tests.paci.distributed.comparison import by_stage

RANKS = 3


@cache
def results() -> tuple:
    return tuple(zip(*spawn(choices.all_of, RANKS), strict=True))


@pytest.mark.parametrize("order", ["static", "dynamic"])
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_every_choice_trains_as_in_one_process(choice, order):
    """To the last bit; a dynamic order is replayed."""
    schedule, a, options = choice
    ours = [of_rank[CHOICES.index(choice)] for of_rank in results()[order == "dynamic"]]
    (segment,) = (r["segment"] for r in ours if r["segment"])
    modules = toys.stages(fleet.stages_of(schedule, RANKS), dropout=0.3)
    one = toys.pipeline(modules, schedule, a, seed=fleet.SEED, loss_fn=choices.loss_fn, **options)
    if order == "dynamic" and not one.stages[0].waits_for_update:
        one.schedule = FixedOrder(segment.timeline.orders(), a)
    expected = one.train(choices.batches(options, a=a))
    assert toys.same(by_stage(ours, "weights"), toys.weights(modules))
    assert str(segment.losses) == str(expected.losses)  # some are not numbers
    assert [s.skipped for s in segment.stages] == [s.skipped for s in expected.stages]
    assert [s.copied for s in segment.stages] == [s.copied for s in expected.stages]
    if order == "static":
        assert [s.peak_held for s in segment.stages] == [s.peak_held for s in expected.stages]
    (updates,) = (r["updates"] for r in ours if r["updates"])
    assert [update.number for update in updates] == [1, 2, 3, 4, 5, 6]


def test_every_rank_raises_what_is_not_a_number():
    assert set(results()[2]) == {
        "RankFailed rank 2 (stage 2, micro-batch 9): NonFinite: stage 2, update 3: the loss of "
        "micro-batch 9 is not finite"
    }
