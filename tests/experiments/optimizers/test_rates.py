import math

import pytest

from experiments.config import compose
from experiments.config.derived import stable_end, warmup_updates
from experiments.optimizers.rates import constant, cosine, learning_rates, wsd


def test_cosine_follows_its_closed_form():
    factor = cosine(updates=1001, rising=100, final=0.1)
    assert [factor(v) for v in (0, 49, 99)] == pytest.approx([0.01, 0.5, 1.0])  # linear to 1
    assert factor(100) == 1.0
    assert factor(550) == pytest.approx(0.55)  # half-way down to 0.1
    assert factor(325) == pytest.approx(0.1 + 0.9 * (1 + math.cos(math.pi / 4)) / 2)
    assert factor(1000) == pytest.approx(0.1)
    assert factor(5000) == pytest.approx(0.1)


def test_constant_stays_at_its_peak():
    factor = constant(rising=4)
    assert [factor(v) for v in (0, 1, 2, 3, 4, 10**6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_wsd_is_constant_until_it_falls_as_a_root():
    factor = wsd(updates=100, rising=4, falling=16, final=0.1)
    assert [factor(v) for v in range(84)] == [constant(4)(v) for v in range(84)]
    assert factor(87) == pytest.approx(0.1 + 0.9 * (1 - math.sqrt(4 / 16)))
    assert factor(99) == pytest.approx(0.1)
    assert factor(500) == pytest.approx(0.1)


def test_a_run_of_one_update_has_a_learning_rate():
    assert cosine(updates=1, rising=1, final=0.1)(0) == 1.0
    assert wsd(updates=1, rising=1, falling=1, final=0.1)(0) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("warmup", "expected"), [(0, 1), (0.01, 10), (0.5, 500), (1, 1000), (7, 7)]
)
def test_a_warm_up_is_a_fraction_or_a_number(warmup, expected):
    assert warmup_updates(compose([f"optimizer.warmup={warmup}"]), 1000) == expected


def test_the_papers_schedule_is_the_default():
    config = compose(["scale=paper"])
    for factor in learning_rates(config, 1000):
        assert [factor(v) for v in range(1000)] == [cosine(1000, 10, 0.1)(v) for v in range(1000)]


@pytest.mark.parametrize(
    ("settings", "end"),
    [
        (["optimizer.cooldown=0.2"], 16),  # evaluations at 4, 8, 12, 16, 20 of 20 updates
        (["optimizer.cooldown=0.3"], 12),
        (["optimizer.cooldown=0.9"], None),
        (["optimizer.schedule=constant"], None),
    ],
)
def test_the_last_checkpoint_before_the_fall(settings, end):
    wsd = ["scale=smoke", "evaluations=5", "optimizer.schedule=wsd", "optimizer.warmup=2"]
    assert stable_end(compose([*wsd, *settings])) == end


@pytest.mark.parametrize("schedule", ["constant", "wsd"])
def test_a_run_that_can_be_made_longer_has_a_warm_up_that_its_length_does_not_change(schedule):
    sentence = f"optimizer.schedule={schedule} lets .* write optimizer.warmup=6, not 0.01"
    with pytest.raises(ValueError, match=sentence):
        compose(["scale=laptop", f"optimizer.schedule={schedule}"])
    with pytest.raises(ValueError, match=r"write optimizer.warmup=0, not 0.01"):
        compose(["scale=smoke", f"optimizer.schedule={schedule}"])
    compose(["scale=smoke", f"optimizer.schedule={schedule}", "optimizer.warmup=0"])
