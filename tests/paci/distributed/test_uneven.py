"""Micro-batches that are not equally large, in a pipeline of processes."""

from functools import cache

import pytest
import torch.distributed as dist

from paci import Cost
from paci.distributed.emulated import Emulation
from paci.distributed.launch import spawn
from paci.schedules import FixedOrder
from tests.paci import fleet, toys
from tests.paci.distributed.comparison import by_stage

RANKS, BATCH, SIZES = 2, 11, [3, 3, 3, 2]
SCHEDULES = ["gpipe", "paci", "zb-h1", "interleaved-1f1b", "zbv"]
ORDERS = ["static", "dynamic"]
CASES = [(schedule, order) for schedule in SCHEDULES for order in ORDERS]


def train(schedule: str, order: str) -> dict:
    """Make six updates."""
    updates: list = []
    modules = fleet.own_stages(schedule)
    with fleet.pipeline(modules, schedule, len(SIZES), order=order, batch=BATCH) as pipeline:
        segment = pipeline.train(toys.uneven_batches(SIZES, 6), updates.append)
        indices = [stage.index for stage in pipeline.stages]
    weights = dict(zip(indices, toys.weights(modules), strict=True))
    return {"weights": weights, "segment": segment, "losses": [update.loss for update in updates]}


def interrupt(windows: int) -> int:
    """Interrupt a segment from the start, train another; return the micro-batches done."""
    batches = toys.uneven_batches(SIZES, windows)
    pipeline = fleet.pipeline(fleet.own_stages("paci"), accumulation=len(SIZES), batch=BATCH)
    with pipeline:
        if dist.get_rank() == 1:
            pipeline.interrupt()
        pipeline.train(batches)
        done = pipeline.microbatch
        pipeline.train(batches)
        assert pipeline.microbatch == done + len(batches)
    return done


def emulate(cost: Cost) -> object:
    """Train on stages that wait instead of computing."""
    pipeline = fleet.pipeline(
        fleet.own_stages("paci"), accumulation=len(SIZES), batch=BATCH, make_stage=Emulation(cost)
    )
    with pipeline:
        return pipeline.train(toys.uneven_batches(SIZES, 3))


def refused(sizes: list[int], batch_here: int) -> str:
    """Return what this rank says to micro-batches of other sizes, or to another batch at rank 1."""
    batch = batch_here if dist.get_rank() == 1 else BATCH
    modules = fleet.own_stages("paci")
    try:
        with fleet.pipeline(modules, accumulation=len(SIZES), batch=batch) as pipeline:
            pipeline.train(toys.uneven_batches(sizes, 2))
    except ValueError as error:
        return str(error)
    return ""


@cache
def results() -> list:
    jobs = [(train, *case) for case in CASES]
    jobs += [
        (interrupt, 40),
        (emulate, Cost(forward=0.002, backward=0.004, sizes=[1.0, 1.0, 1.0, 2 / 3])),
    ]
    jobs += [(refused, [3, 3, 2, 3], BATCH), (refused, SIZES, 10)]
    return list(zip(*spawn(fleet.all_of, RANKS, jobs), strict=True))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_local_to_the_last_bit(case):
    """Static order: the same. Dynamic order: the same once the recording is replayed."""
    schedule, order = case
    ours = results()[CASES.index(case)]
    (reporting,) = (result for result in ours if result["segment"])
    modules = toys.stages(fleet.stages_of(schedule, RANKS), dropout=0.3)
    rule, accumulation = schedule, len(SIZES)
    if order == "dynamic":
        rule, accumulation = FixedOrder(reporting["segment"].timeline.orders(), len(SIZES)), None
    updates: list = []
    one = toys.pipeline(modules, rule, accumulation, batch=BATCH, seed=fleet.SEED)
    expected = one.train(toys.uneven_batches(SIZES, 6), updates.append)
    assert reporting["segment"].losses == expected.losses
    assert reporting["losses"] == [update.loss for update in updates]
    assert toys.same(by_stage(list(ours), "weights"), toys.weights(modules))


def test_after_an_interrupted_segment_messages_have_their_sizes():
    done = results()[len(CASES)]
    assert len(set(done)) == 1
    assert done[0] % len(SIZES) == 0
    assert done[0] < 40 * len(SIZES)


def test_emulated_stages_send_messages_of_every_size():
    first, last = results()[len(CASES) + 1]
    assert first is None
    assert last.losses == [0.0] * 3 * len(SIZES)


def test_other_sizes_are_refused_at_every_rank():
    sizes, batch = results()[len(CASES) + 2 :]
    assert all("micro-batch 2 must have 3 sequences" in said for said in sizes)
    assert all("the same batch: it is 11 at rank 0 and 10 at rank 1" in said for said in batch)
