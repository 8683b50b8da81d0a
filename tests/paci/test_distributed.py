import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from paci import Cost, simulate
from paci.failure import RankFailed
from paci.launch import spawn
from paci.schedules import Recorded
from paci.theory import drift_bound
from tests.paci import fleet, toys

CONFIGURATIONS = [
    (schedule, accumulation, order, slack)
    for schedule, accumulation, slack in (
        ("gpipe", 4, 0),
        ("1f1b-flush", 4, 0),
        ("paci", 4, 0),
        ("paci", 2, 2),
        ("async-1f1b", 1, 0),
        ("zb-h1", 4, 0),
        ("interleaved-1f1b", 4, 0),
        ("zbv", 4, 0),
    )
    for order in ("static", "dynamic")
]


EMULATED = ["paci", "1f1b-flush", "zb-h1", "interleaved-1f1b"]
COST = Cost(forward=0.004, backward=0.008, weight=0.003, update=0.002)

MISFITS = {
    "shapes": "stage 1 cannot take its input of shape (3, 4)",
    "count": "the same microbatches: it is 8 at rank 0 and 4 at rank 1",
    "order": "the same order: it is 'dynamic' at rank 0 and 'static' at rank 1",
}


def results(ranks: int) -> dict:
    """What each rank made of every job; one set of processes for all, even if they fail."""
    outcome = attempt(ranks)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


@cache
def attempt(ranks: int) -> dict | Exception:
    with TemporaryDirectory() as folder:
        jobs = {
            "train": (fleet.train_all, CONFIGURATIONS),
            "gradients": (fleet.gradients, 8),
            "emulated": (fleet.emulated, EMULATED, COST, 4),
            "straight": (fleet.checkpoints, Path(folder), True),
            "resumed": (fleet.checkpoints, Path(folder), False),
            "interrupted at first": (fleet.interrupted, 0),
            "interrupted at last": (fleet.interrupted, ranks - 1),
        } | {misfit: (fleet.refused, misfit) for misfit in MISFITS}
        try:
            by_rank = spawn(fleet.all_of, ranks, list(jobs.values()))
        except RankFailed as failure:
            return failure
    return dict(zip(jobs, zip(*by_rank, strict=True), strict=True))


def trained(ranks: int, configuration) -> list[dict]:
    return [r[CONFIGURATIONS.index(configuration)] for r in results(ranks)["train"]]


def local(ranks, configuration, schedule=None):
    """(weights by rank, segment) of LocalPipeline."""
    name, accumulation, _, slack = configuration
    modules = toys.stages(fleet.stages_of(name, ranks), dropout=0.3)
    options = {"slack": slack} if schedule is None else {}
    one = toys.pipeline(
        modules, schedule or name, accumulation if schedule is None else None, seed=fleet.SEED,
        **options,
    )  # fmt: skip
    segment = one.train(toys.batches(20 * accumulation))
    return toys.weights(modules), segment, one


cases = pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
fleets = pytest.mark.parametrize("ranks", [2, 3, 4])


@cases
@fleets
def test_equals_local_to_the_last_bit(ranks, configuration):
    """Static order: the same. Dynamic order: the same once the recording is replayed."""
    ours = trained(ranks, configuration)
    (segment,) = (r["segment"] for r in ours if r["segment"])
    static = configuration[2] == "static"
    rule = None if static else Recorded(segment.timeline.orders(), configuration[1])
    weights, expected, one = local(ranks, configuration, rule)
    by_stage = {stage: w for r in ours for stage, w in r["weights"].items()}
    assert toys.same([by_stage[stage] for stage in range(len(weights))], weights)
    assert segment.losses == expected.losses
    assert segment.drift == expected.drift
    assert segment.staleness == expected.staleness
    assert segment.peak_in_flight == expected.peak_in_flight
    assert segment.timeline.orders() == expected.timeline.orders()
    evaluation = one.evaluate(toys.batches(3))
    assert [r["evaluation"] for r in ours] == [evaluation] * ranks


@cases
@fleets
def test_books(ranks, configuration):
    schedule, accumulation, _, slack = configuration
    others = trained(ranks, configuration)
    last = others.pop(0 if schedule == "zbv" else -1)  # the rank with the last stage
    segment, updates = last["segment"], last["updates"]
    assert all(r["segment"] is None and not r["updates"] for r in others)
    assert [u.number for u in updates] == list(range(1, 21))
    assert [u.seconds for u in updates] == sorted(u.seconds for u in updates)
    assert segment.seconds * 0.5 < updates[-1].seconds <= last["seconds"]
    assert {r["seconds"] for r in others} == {last["seconds"]}
    for rank, waiting in enumerate(segment.waiting):
        busy = segment.timeline.busy[rank]
        assert set(waiting) <= {"input", "gradient", "backpressure"}
        assert 0 < busy + sum(waiting.values()) <= last["seconds"] * 1.001
        if schedule in ("paci", "async-1f1b"):
            assert max(segment.drift[rank]) <= drift_bound(ranks, rank, accumulation, slack)
    assert not segment.interrupted


@fleets
@pytest.mark.parametrize("schedule", EMULATED)
def test_emulated_stages_take_their_time(ranks, schedule):
    """No less than simulated; how much longer, whoever else is at the machine decides."""
    by_rank = [r[EMULATED.index(schedule)] for r in results(ranks)["emulated"]]
    (segment,) = filter(None, by_rank)
    stages = fleet.stages_of(schedule, ranks)
    expected = simulate(schedule, stages, 8, 4, cost=COST)
    assert 0.95 * expected.makespan < segment.seconds < 10 * expected.makespan
    for ours, simulated in zip(segment.timeline.busy, expected.timeline.busy, strict=True):
        assert ours > 0.95 * simulated


@fleets
def test_flush_gradients_are_those_of_pytorchs_own_pipeline(ranks):
    """To the last bit: m is a power of two, so scaling by it rounds nothing."""
    for ours, theirs in results(ranks)["gradients"]:
        assert toys.same(ours, theirs)


@fleets
def test_resuming_equals_going_on(ranks):
    straight, resumed = results(ranks)["straight"], results(ranks)["resumed"]
    assert toys.same([list(r) for r in resumed], [list(r) for r in straight])


@fleets
@pytest.mark.parametrize("misfit", MISFITS)
def test_what_does_not_fit_is_refused_at_every_rank(ranks, misfit):
    for said in results(ranks)[misfit]:
        assert MISFITS[misfit] in said


@fleets
@pytest.mark.parametrize("at", ["first", "last"])
def test_an_interruption_ends_after_the_same_window_everywhere(ranks, at):
    by_rank = results(ranks)[f"interrupted at {at}"]
    ((done, after),) = {(r[0], r[3]) for r in by_rank}
    assert 0 < done < 8000
    assert done % 2 == 0
    assert after == done + 4
    assert by_rank[-1][1:3] == (True, False)


@pytest.mark.parametrize(
    ("how", "after", "why"),
    [("killed", 0.3, "killed by SIGKILL"), ("raises", 57, "ArithmeticError: boom")],
)
def test_when_a_rank_dies_all_end_and_the_cause_is_named(how, after, why):
    start = time.monotonic()
    with pytest.raises(RankFailed, match=why) as caught:
        spawn(fleet.dies, 3, 1, how, after)
    assert time.monotonic() - start < 15
    assert (caught.value.rank, caught.value.stage) == (1, 1)
    assert caught.value.microbatch == 57 if how == "raises" else caught.value.microbatch >= 0
