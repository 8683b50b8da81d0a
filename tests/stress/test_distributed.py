"""Long runs of DistributedPipeline: many configurations, late messages, and many deaths."""

import random
import time
from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch import nn

from paci.distributed import pipeline as distributed
from paci.distributed.failure import RankFailed
from paci.distributed.inbox import Inbox
from paci.distributed.launch import spawn
from paci.schedules.theory import drift_bound
from tests.paci import fleet, toys

pytestmark = pytest.mark.stress


class Late(nn.Module):
    """A layer that now and then takes a while."""

    def __init__(self, width: int, delay: float, seed: int):
        super().__init__()
        self.linear, self.delay, self.random = nn.Linear(width, width), delay, random.Random(seed)

    def forward(self, x):
        if self.random.random() < 0.3:
            time.sleep(self.random.random() * self.delay)
        return self.linear(x)


class LateInbox(Inbox):
    """An inbox that now and then, in the receiving thread, takes a while to take a message."""

    def __init__(self, delay: float, seed: int):
        super().__init__()
        self.delay, self.random = delay, random.Random(seed)

    def put(self, message):
        if self.random.random() < 0.3:
            time.sleep(self.random.random() * self.delay)
        super().put(message)


def random_configurations(count: int, seed: int) -> list[tuple[dict, list[int]]]:
    draw, results = random.Random(seed), []
    for _ in range(count):
        c = {
            "schedule": draw.choice(["paci", "paci", "1f1b-flush", "gpipe"]),
            "accumulation": draw.randint(1, 6),
            "slack": draw.randint(0, 5),
            "order": draw.choice(["dynamic", "static"]),
            "width": draw.choice([1, 50, 3000, 40000]),
            "delay": draw.choice([0, 0, 0.002, 0.01]),
            "late": draw.choice([0, 0.002, 0.01]),
            "windows": draw.randint(1, 6),
        }
        if c["schedule"] != "paci":
            c["slack"] = 0
        distributed.Inbox = partial(LateInbox, c["late"], seed + dist.get_rank())
        width = min(c["width"], 200)  # of the layers; the rows make up the size
        rows = max(1, c["width"] // width)
        line = fleet.pipeline(
            Late(width, c["delay"], seed + dist.get_rank()),
            c["schedule"], c["accumulation"], slack=c["slack"], order=c["order"],
            optimizer=lambda p: torch.optim.SGD(p, lr=1e-3),
        )  # fmt: skip
        batch = torch.ones(rows, width), torch.zeros(rows, width)
        segment = line.train([batch] * c["accumulation"] * c["windows"])
        line.close()
        results.append((c, segment and [max(drift) for drift in segment.drift]))
    return results


@pytest.mark.parametrize(("ranks", "count"), [(1, 20), (2, 50), (3, 50), (4, 50), (6, 30)])
def test_random_configurations_end_and_keep_the_bound(ranks, count):
    results = spawn(random_configurations, ranks, count, 10 * ranks)[-1]
    assert len(results) == count
    if ranks > 1:
        assert any(c["late"] for c, _ in results)
    for c, drift in results:
        assert len(drift) == ranks
        for stage, worst in enumerate(drift):
            bound = drift_bound(ranks, stage, c["accumulation"], c["slack"])
            assert worst <= (bound if c["schedule"] == "paci" else 0), c


def until_killed(folder, segments: int, victim=-1, after=0.0) -> tuple[list, int]:
    """Segments of 4 windows, a checkpoint after each; goes on from the newest. The victim's time
    runs from the first checkpoint on."""
    module = fleet.own_stage(dist.get_world_size())
    line = fleet.pipeline(module, "paci", 2, order="static")
    line.load(folder)
    begun = line.microbatch
    batches, is_victim = toys.batches(8 * segments), dist.get_rank() == victim
    while line.microbatch < len(batches):
        if is_victim and line.microbatch:
            fleet.kill_this_process(after)
            is_victim = False
        line.train(batches[line.microbatch : line.microbatch + 8])
        line.save(folder)
    line.close()
    return toys.weights([module])[0], begun


def test_twenty_deaths_lose_nothing(tmp_path):
    ranks, segments, draw = 3, 2500, random.Random(1)
    killed = tmp_path / "killed"
    for _ in range(20):
        victim, after = draw.randrange(ranks), draw.uniform(0.1, 2.0)
        with pytest.raises(RankFailed, match="killed by SIGKILL"):
            spawn(until_killed, ranks, killed, segments, victim, after)
    newest = max(p.name for p in killed.iterdir() if p.name.isdigit())
    segments = int(newest) // 8 + 2
    resumed = spawn(until_killed, ranks, killed, segments)
    straight = spawn(until_killed, ranks, tmp_path / "straight", segments)
    for (weights, begun), (expected, fresh) in zip(resumed, straight, strict=True):
        assert begun > fresh == 0
        assert toys.same(weights, expected)
