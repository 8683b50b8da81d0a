import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from paci import Cost, checkpoint, simulate
from paci.distributed.failure import RankFailed
from paci.distributed.launch import spawn
from paci.schedules import SCHEDULES, FixedOrder
from paci.schedules.theory import drift_bound
from tests.paci import fleet, toys
from tests.paci.distributed.comparison import (
    CONFIGURATIONS,
    UPDATES,
    by_stage,
    check_equals_local,
)

EMULATED = ["paci", "1f1b-flush", "zb-h1", "interleaved-1f1b"]
COST = Cost(forward=0.004, backward=0.008, weight=0.003, update=0.002)

RESUMED = ["paci", "interleaved-1f1b", "zbv"]
INTERRUPTED = [("paci", "dynamic", 0), ("paci", "dynamic", -1), ("paci", "static", 0)]
INTERRUPTED += [("interleaved-1f1b", "static", 0), ("zbv", "dynamic", -1)]

BROKEN = ["module", "callback", "interrupt"]

MISFITS = {
    "shapes": "stage 1 cannot take its input of shape (3, 4)",
    "count": "the same microbatches: it is 8 at rank 0 and 4 at rank 1",
    "order": "the same order: it is 'dynamic' at rank 0 and 'static' at rank 1",
    "schedule": "the same schedule: it is 'paci' at rank 0 and '1f2b' at rank 1",
    "stages": "the same stages: it is 1 at rank 0 and 2 at rank 1",
    "unknown": "unknown schedule '1f2b': choose from ",
    "parameters": "stage 1 has no parameters to train",
    "placement": "rank(s), 1 on each: 2 on each of ",
    "names": "stages have a weight named 0.weight: to be saved together",
    "checkpoint": "does not fit the model: 1.0.weight wants (5, 4), there is a shape of (4, 4)",
}


def results(ranks: int) -> dict:
    """Run every job in one set of processes, and return each rank's results, failures included."""
    outcome = attempt(ranks)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


@cache
def attempt(ranks: int) -> dict | Exception:
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        jobs = {
            "train": (fleet.train_all, CONFIGURATIONS, UPDATES),
            "gradients": (fleet.gradients, 8),
            "emulated": (fleet.emulated, EMULATED, COST, 4),
            "load": (fleet.load_that_fails, folder / "elsewhere"),
            "widened": (fleet.widened,),
            "scheduling": (fleet.scheduling,),
            "left": (fleet.left_by_a_closed_pipeline,),
            "elsewhere": (fleet.checkpoints, "paci", folder / "elsewhere", False),
        }
        for schedule in RESUMED:
            for how, save in (("straight", True), ("resumed", False)):
                jobs[how, schedule] = fleet.checkpoints, schedule, folder / schedule, save
        for schedule, order, at in INTERRUPTED:
            jobs[schedule, order, at] = fleet.interrupted, schedule, order, at % ranks
        for misfit in MISFITS:
            jobs[misfit] = fleet.refused, misfit, folder / "elsewhere"
        for how in BROKEN:  # last: receivers of a broken pipeline wait as long as its process lives
            jobs["broken", how] = fleet.broken, how, folder / how
        write_elsewhere(folder / "elsewhere", ranks)
        try:
            by_rank = spawn(fleet.all_of, ranks, list(jobs.values()))
        except RankFailed as failure:
            return failure
        joined = in_one_process(ranks)
        joined.load(folder / "zbv")
    done = dict(zip(jobs, zip(*by_rank, strict=True), strict=True))
    return done | {"joined": toys.weights([joined.stages[0].module])[0]}


def in_one_process(ranks: int, layers_per_rank: int = 2):
    """All layers in one stage."""
    count = ranks * layers_per_rank
    return toys.pipeline(toys.cut(toys.stages(count, dropout=0.3), 1), "1f1b-flush", 4)


def write_elsewhere(folder: Path, ranks: int) -> None:
    """Two checkpoints of a pipeline of one stage; the newer one is damaged."""
    line = in_one_process(ranks, 1)
    for _ in range(2):
        line.train(toys.batches(4))
        line.save(folder)
    (part,) = (checkpoint.newest(folder)).glob("stage-*")
    part.write_bytes(part.read_bytes()[:-1])


def trained(ranks: int, configuration) -> list[dict]:
    return [r[CONFIGURATIONS.index(configuration)] for r in results(ranks)["train"]]


def test_no_schedule_is_missing():
    assert {schedule for schedule, *_ in CONFIGURATIONS} == set(SCHEDULES)


cases = pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
fleets = pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.stress), 4])


@cases
@fleets
def test_equals_local_to_the_last_bit(ranks, configuration):
    check_equals_local(trained(ranks, configuration), configuration)


@fleets
def test_every_link_is_widened(ranks):
    """One that is not stalls messages a little larger than 64 KB for 40 ms, now and then."""
    links = [1, *[2] * (ranks - 2), 1]  # that end at each rank
    assert results(ranks)["widened"] == tuple(links)


@fleets
def test_a_message_preempts_nobody(ranks):
    of_groups = 3  # for activations, gradients, and what is settled
    assert set(results(ranks)["scheduling"]) == {(frozenset([os.SCHED_BATCH]), of_groups)}


@fleets
def test_a_closed_pipeline_leaves_no_thread_and_no_connection(ranks):
    assert all(threads <= 0 and files <= 0 for threads, files in results(ranks)["left"])


@cases
@fleets
def test_statistics_and_times_of_updates_agree(ranks, configuration):
    schedule, accumulation, _, slack = configuration
    others = trained(ranks, configuration)
    last = others.pop(0 if schedule in ("zbv", "dualpipev") else -1)  # the rank with the last stage
    segment, updates = last["segment"], last["updates"]
    assert all(r["segment"] is None and not r["updates"] for r in others)
    assert [u.number for u in updates] == list(range(1, UPDATES + 1))
    assert [u.seconds for u in updates] == sorted(u.seconds for u in updates)
    assert 0 < updates[-1].seconds <= last["seconds"]
    assert {r["seconds"] for r in others} == {last["seconds"]}
    for rank, waiting in enumerate(statistics.waiting for statistics in segment.ranks):
        busy = segment.timeline.busy[rank]
        assert set(waiting) <= {"input", "gradient", "backpressure"}
        assert 0 < busy + sum(waiting.values()) <= last["seconds"] * 1.001
        if schedule in ("paci", "async-1f1b"):
            assert max(segment.drift[rank]) <= drift_bound(ranks, rank, accumulation, slack)
    assert not segment.interrupted


@fleets
@pytest.mark.parametrize("schedule", EMULATED)
def test_emulated_stages_take_their_time(ranks, schedule):
    """A wait may last longer than it was asked to, never shorter."""
    by_rank = [r[EMULATED.index(schedule)] for r in results(ranks)["emulated"]]
    (segment,) = filter(None, by_rank)
    stages = fleet.stages_of(schedule, ranks)
    expected = simulate(schedule, stages, 8, 4, cost=COST)
    assert segment.seconds > 0.95 * expected.makespan
    for ours, simulated in zip(segment.timeline.busy, expected.timeline.busy, strict=True):
        assert ours > 0.95 * simulated


@fleets
def test_flush_gradients_are_those_of_pytorchs_own_pipeline(ranks):
    """To the last bit: m is a power of two, so scaling by it rounds nothing."""
    for ours, theirs in results(ranks)["gradients"]:
        assert toys.same(ours, theirs)


@fleets
@pytest.mark.parametrize("schedule", RESUMED)
def test_resuming_equals_going_on(ranks, schedule):
    straight, resumed = (results(ranks)[how, schedule] for how in ("straight", "resumed"))
    for key in ("before", "after"):
        assert toys.same(by_stage(straight, key), by_stage(resumed, key))
    assert not toys.same(by_stage(resumed, "before"), by_stage(resumed, "after"))
    assert [r["losses"] for r in resumed] == [r["losses"] for r in straight]


@fleets
def test_one_process_goes_on_from_what_ranks_wrote(ranks):
    written = [p for stage in by_stage(results(ranks)["straight", "zbv"], "before") for p in stage]
    assert toys.same(results(ranks)["joined"], written)


@fleets
def test_ranks_go_on_from_what_one_process_wrote_before_the_damage(ranks, tmp_path):
    write_elsewhere(tmp_path, ranks)
    line = toys.pipeline(
        toys.cut(toys.stages(ranks, dropout=0.3), ranks), "paci", 4, seed=fleet.SEED
    )
    with pytest.warns(UserWarning, match="damaged"):
        line.load(tmp_path)
    elsewhere = results(ranks)["elsewhere"]
    modules = [stage.module for stage in line.stages]
    assert toys.same(by_stage(elsewhere, "before"), toys.weights(modules))
    segment = line.train(toys.batches(16)[8:])
    assert toys.same(by_stage(elsewhere, "after"), toys.weights(modules))
    assert elsewhere[-1]["losses"] == segment.losses
    first, *others = (r["warnings"] for r in elsewhere)
    assert [w.partition("000000008 is ")[2] for w in first] == [
        "damaged (stage-0.safetensors does not have its checksum): passed over"
    ]
    assert not any(others)


@fleets
@pytest.mark.parametrize("misfit", MISFITS)
def test_what_does_not_fit_is_refused_at_every_rank(ranks, misfit):
    for said in results(ranks)[misfit]:
        assert MISFITS[misfit] in said


@fleets
def test_a_load_that_fails_at_one_rank_fails_at_all_and_sets_nothing(ranks):
    assert set(results(ranks)["load"]) == {("rank 1: MemoryError: too large", True)}


@fleets
@pytest.mark.parametrize("interruption", INTERRUPTED, ids=str)
def test_an_interruption_ends_after_the_same_window_everywhere(ranks, interruption):
    by_rank = results(ranks)[interruption]
    ((done, after),) = {r["microbatches"] for r in by_rank}
    assert 0 < done < 4 * fleet.INTERRUPTED_WINDOWS
    assert done % 4 == 0
    assert after == done + 4
    assert {r["interrupted"] for r in by_rank} == {(True, False)}

    schedule = interruption[0]
    segments = next(r["segments"] for r in by_rank if r["segments"][0])
    assert [segment.interrupted for segment in segments] == [True, False]
    one = toys.pipeline(
        toys.stages(fleet.stages_of(schedule, ranks), dropout=0.3), schedule, 4, seed=fleet.SEED
    )
    for segment, count in zip(segments, (done, 4), strict=True):
        one.schedule = FixedOrder(segment.timeline.orders(), 4)
        assert one.train(toys.batches(4) * (count // 4)).losses == segment.losses
    assert toys.same(by_stage(by_rank, "weights"), toys.weights(s.module for s in one.stages))


@fleets
@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_pipeline_refuses_and_a_new_one_goes_on_bitwise(ranks, how):
    by_rank = results(ranks)["broken", how]
    *others, victim = [r["raised"] for r in by_rank]
    cause = "KeyboardInterrupt" if how == "interrupt" else "ArithmeticError: boom"
    assert all(cause in said and f"rank {ranks - 1}" in said for said in others)
    assert victim.startswith("KeyboardInterrupt" if how == "interrupt" else "RankFailed")
    assert [r["refused"] for r in by_rank] == [[True] * 5] * ranks
    assert all(r["untouched"] for r in by_rank)

    modules = toys.cut(toys.stages(ranks, dropout=0.3), ranks)
    one = toys.pipeline(modules, "paci", 4, seed=fleet.SEED)
    one.train(toys.batches(24)[:8])
    one.train(toys.batches(24)[8:])
    assert toys.same(by_stage(by_rank, "weights"), toys.weights(modules))


@pytest.mark.parametrize(
    ("how", "kind", "why"),
    [
        ("killed", "SIGKILL", "killed by SIGKILL"),
        ("raises", "ArithmeticError", "ArithmeticError: boom"),
    ],
)
def test_when_a_rank_dies_all_end_by_themselves_and_the_cause_is_named(how, kind, why, tmp_path):
    with pytest.raises(RankFailed, match=why) as caught:
        spawn(fleet.dies, 3, 1, how, 58, tmp_path)
    notes = {note.name: note.read_text() for note in tmp_path.iterdir()}
    assert {"0", "2"} <= set(notes)
    assert all(said.startswith("rank 1 ") for said in notes.values())
    assert (caught.value.rank, caught.value.stage, caught.value.kind) == (1, 1, kind)
    assert caught.value.microbatch == 57 if how == "raises" else caught.value.microbatch >= 0
