"""DistributedPipeline over a gloo doorbell and NCCL, on emulated GPUs.

A deadlock would end in the time-out of the watcher below, which only guards against hanging.
"""

from functools import cache, partial
from multiprocessing import active_children
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest

from paci.distributed.failure import RankFailed
from paci.distributed.launch import spawn
from paci.segment import DeviceMemory
from tests.paci import fleet, toys
from tests.paci.distributed.comparison import CONFIGURATIONS, by_stage, check_equals_local
from tests.paci.distributed.cuda import ranks as gpu_ranks

HANGING = 200.0  # seconds
UPDATES = 3
RANKS = [2, pytest.param(3, marks=pytest.mark.stress), 4, pytest.param(8, marks=pytest.mark.stress)]
INTERRUPTED = [("paci", "dynamic", 0), ("paci", "static", 1)]


def spawn_or_fail(*arguments: object) -> list:
    """Run `spawn`; fail if it hangs."""
    outcome: list = []

    def run() -> None:
        try:
            outcome.append(spawn(*arguments))
        except BaseException as error:
            outcome.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(HANGING)
    if not outcome:
        for process in active_children():
            process.kill()
        pytest.fail(f"the ranks hang: nothing after {HANGING:.0f} s")
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


@cache
def attempt(ranks: int) -> tuple[dict, list[dict]] | BaseException:
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        jobs = {
            "train": (fleet.train_all, CONFIGURATIONS, UPDATES),
            "straight": (fleet.checkpoints, "paci", folder, True),
            "resumed": (fleet.checkpoints, "paci", folder, False),
            "scheduling": (fleet.scheduling,),
            "prefetching": (gpu_ranks.prefetching,),
        }
        for schedule, order, at in INTERRUPTED:
            jobs[schedule, order, at] = fleet.interrupted, schedule, order, at
        try:
            by_rank = spawn_or_fail(gpu_ranks.all_of, ranks, list(jobs.values()))
        except BaseException as error:
            return error
    results, seen = zip(*by_rank, strict=True)
    return dict(zip(jobs, zip(*results, strict=True), strict=True)), list(seen)


def results(ranks: int) -> tuple[dict, list[dict]]:
    """Return what the ranks made of every job, and what each one's device has seen."""
    outcome = attempt(ranks)
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


fleets = pytest.mark.parametrize("ranks", RANKS)


@fleets
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_every_schedule_equals_local(ranks, configuration):
    trained = [r[CONFIGURATIONS.index(configuration)] for r in results(ranks)[0]["train"]]
    check_equals_local(trained, configuration, UPDATES)


def test_eager_communicators_do_as_well():
    """Communicators do not depend on the schedule: one with one stage per rank, one with two."""
    configurations = [("paci", 4, "dynamic", 0), ("zbv", 4, "dynamic", 0)]
    eagerly = partial(gpu_ranks.on_gpus, eager=True)
    by_rank = spawn_or_fail(eagerly, 2, fleet.train_all, configurations, UPDATES)
    for configuration, *trained in zip(configurations, *by_rank, strict=True):
        check_equals_local(trained, configuration, UPDATES)


@fleets
def test_resuming_equals_going_on(ranks):
    straight, resumed = (results(ranks)[0][how] for how in ("straight", "resumed"))
    for key in ("before", "after"):
        assert toys.same(by_stage(straight, key), by_stage(resumed, key))
    assert [r["losses"] for r in resumed] == [r["losses"] for r in straight]


@fleets
@pytest.mark.parametrize("interruption", INTERRUPTED, ids=str)
def test_an_interruption_leaves_nothing_unanswered(ranks, interruption):
    by_rank = results(ranks)[0][interruption]
    ((done, after),) = {r["microbatches"] for r in by_rank}
    assert 0 < done < 4 * fleet.INTERRUPTED_WINDOWS
    assert done % 4 == 0
    assert after == done + 4  # the next segment went through


@fleets
def test_a_rank_touches_its_own_device_only(ranks):
    for rank, seen in enumerate(results(ranks)[1]):
        assert seen["contexts"] == {rank}
        assert seen["current device"] == rank


@fleets
def test_the_compute_stream_never_waits_for_another(ranks):
    assert [seen["waits of compute"] for seen in results(ranks)[1]] == [0] * ranks


@fleets
def test_no_thread_spins_and_none_is_put_behind(ranks):
    results_of_jobs, seen = results(ranks)
    assert [s["spins"] for s in seen] == [0] * ranks
    assert {policies for policies, _ in results_of_jobs["scheduling"]} == {frozenset([0])}


def test_busy_times_are_the_devices():
    """An action ends when the device has done it."""
    for of_rank in results(2)[0]["train"]:
        for trained in of_rank:
            for step in trained["segment"].timeline.rows if trained["segment"] else []:
                assert step.end - step.start >= gpu_ranks.KernelStage.seconds


def test_memory_is_told_apart():
    """The emulated device has allocated 1 byte at most, reserved 2, and 3 of 7 are in use."""
    memory = [
        rank.memory
        for of_rank in results(2)[0]["train"]
        for trained in of_rank
        if trained["segment"]
        for rank in trained["segment"].ranks
    ]
    assert memory == [DeviceMemory(allocated=1, reserved=2, used=3)] * 2 * len(CONFIGURATIONS)


def test_batches_are_built_ahead_by_another_thread():
    for built in results(2)[0]["prefetching"]:
        assert [number for number, _ in built] == list(range(len(built)))
        assert not any(in_the_engine for _, in_the_engine in built)


def test_messages_in_both_directions_cross():
    """Through one communicator each send would queue before the receive of the other."""
    assert spawn_or_fail(gpu_ranks.on_gpus, 2, gpu_ranks.crossing) == [1.0, 0.0]


def test_no_room_for_a_message_is_out_of_memory():
    said = spawn_or_fail(gpu_ranks.on_gpus, 3, gpu_ranks.out_of_memory, 1)
    assert {kind for kind, _ in said} == {"OutOfMemoryError"}
    assert all(sentence.startswith("rank 1") for _, sentence in said)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("rings_before", [False, True])
def test_survivors_hear_of_a_death_by_themselves(ranks, victim, rings_before, tmp_path):
    """On gloo: the kernels that wait for the dead spin for ever, and NCCL tells nobody. A rank may
    die after it has rung, and before its payload has left."""
    with pytest.raises(RankFailed, match="killed by SIGKILL") as caught:
        spawn_or_fail(gpu_ranks.dies, ranks, victim, tmp_path, rings_before)
    assert caught.value.rank == victim
    survivors = {str(rank) for rank in range(ranks)} - {str(victim)}
    assert {note.name for note in tmp_path.iterdir()} == survivors
    for note in tmp_path.iterdir():
        assert note.read_text().startswith(f"rank {victim}")
