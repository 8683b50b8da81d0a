from dataclasses import replace

import pytest

from paci.method import Method

PACI = Method("paci", "paci", 4)


@pytest.mark.parametrize(
    ("method", "label"),
    [
        (Method("1f1b-flush", "1f1b-flush", 8), "1f1b-flush m=8"),
        (PACI, "paci a=4"),
        (replace(PACI, slack=7), "paci a=4 slack=7"),
        (replace(PACI, weights="stashed"), "paci a=4 stashed"),
        (Method("async-1f1b", "async-1f1b", 1), "async-1f1b"),
        (Method("pipedream", "paci", 1, weights="stashed"), "pipedream"),
        (
            Method("zb-2p", "zb-2p", 8, options={"held": 0.5, "measured": None, "limit": 16}),
            "zb-2p m=8 held=0.5 limit=16",
        ),
        (replace(PACI, options={"in_flight": [4, 4, 2]}), "paci a=4 in_flight=4,4,2"),
    ],
)
def test_labels(method, label):
    assert method.label == label


def test_a_table_of_the_configuration_is_read():
    table = {"name": "paci", "schedule": "paci", "accumulation": 4, "slack": None, "options": None}
    assert Method.read(table) == PACI
    assert Method.read(table | {"options": {"in_flight": [2, 1]}}) != PACI
    with pytest.raises(KeyError, match="schedule"):
        Method.read({"name": "paci", "accumulation": 4})


def test_the_optimizer_is_no_part_of_a_comparison():
    assert replace(PACI, optimizer="nadamw") == PACI
    assert hash(replace(PACI, optimizer="nadamw", options={"in_flight": 2})) == hash(PACI)


def test_its_schedule_and_bounds():
    method = Method("paci", "paci", 2, options={"stages_per_rank": 2})
    rule = method.schedule_of(8)
    assert len(rule.placement) == 4
    assert [method.drift_bound_at(8, i) for i in range(8)] == [2, 2, 1, 1, 1, 1, 0, 0]
    assert [rule.drift_bound(i) for i in range(8)] == [2, 2, 1, 1, 1, 1, 0, 0]
    stashed = replace(method, weights="stashed")
    assert stashed.drift_bound_at(8, 0) == 0
    assert stashed.staleness_bound_at(8, 0) == 2
    assert method.mean_delay(8, 0) == 1.5
    assert method.with_window(16) is method
    flush = Method("zbv", "zbv", 4)
    assert flush.with_window(16).accumulation == 16
    assert flush.stages_per_rank == 2
    assert flush.drift_bound_at(8, 0) == 0


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (replace(PACI, weights="double-buffered"), "accumulation of at least 8, as many .*, not 4"),
        (
            Method("paci", "paci", 4, weights="double-buffered", options={"in_flight": 5}),
            "accumulation of at least 5",
        ),
        (replace(PACI, weights="predicted", optimizer="nadamw"), "need optimizer adamw"),
        (replace(PACI, schedule="nonesuch"), "unknown schedule 'nonesuch'"),
        (replace(PACI, options={"chunks": 2}), "paci has no option 'chunks'"),
        (replace(PACI, slack=1, options={"in_flight": 2}), "in_flight=2 and slack=1"),
    ],
)
def test_what_does_not_go_together_is_refused(method, message):
    PACI.check(8)
    with pytest.raises(ValueError, match=message):
        method.check(8)
