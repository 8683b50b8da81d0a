import pytest

from paci import LocalPipeline, simulate
from paci.schedules import SCHEDULES, build
from tests.paci import toys

BAD = [
    ({"schedule": "1f1b"}, "unknown schedule '1f1b': choose from gpipe, .*1f1b-flush, .*paci"),
    ({"accumulation": 0}, "accumulation must be a whole number of at least 1, not 0"),
    ({"accumulation": -1}, "accumulation must be a whole number of at least 1, not -1"),
    ({"accumulation": True}, "accumulation must be a whole number of at least 1, not True"),
    ({"accumulation": 4.0}, "accumulation must be a whole number of at least 1, not 4.0"),
    ({"slack": -1}, "slack must be a whole number of at least 0, not -1"),
    ({"slack": 1.5}, "slack must be a whole number of at least 0, not 1.5"),
    ({"slack": True}, "slack must be a whole number of at least 0, not True"),
    ({"schedule": "async-1f1b", "accumulation": 4}, "accumulation must be 1, not 4"),
    ({"schedule": "1f1b-flush", "slack": 1}, "1f1b-flush has no option 'slack': its options"),
    ({"schedule": "gpipe", "slack": 1}, "gpipe has no option 'slack'"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD)
def test_bad_input_is_refused_by_every_executor(wrong, message):
    arguments = {"schedule": "paci", "accumulation": 4, **wrong}
    with pytest.raises(ValueError, match=message):
        simulate(stages=2, microbatches=8, **arguments)
    with pytest.raises(ValueError, match=message):
        LocalPipeline(toys.stages(2), optimizer=toys.adamw, loss_fn=toys.loss_fn, **arguments)


@pytest.mark.parametrize("stages", [0, -1, True, 2.0])
def test_stages_are_counted(stages):
    with pytest.raises(ValueError, match="stages must be a whole number of at least 1, not"):
        simulate("paci", stages)


def test_an_option_that_no_schedule_has():
    with pytest.raises(ValueError, match="paci has no option 'chunks': its options are slack"):
        simulate("paci", chunks=2)


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_by_its_name(name):
    rule = build(name, 4)
    assert rule.name == name
    assert rule.accumulation == (1 if name == "async-1f1b" else 4)
    assert sorted(sum(rule.placement, ())) == list(range(4))
    assert all(stage in rule.placement[rank] for stage, rank in enumerate(rule.rank_of))
    assert len(rule.rank_of) == 4
    assert build(rule, 4) is rule
    with pytest.raises(ValueError, match="the schedule is for 4 stages, not for 5"):
        build(rule, 5)
