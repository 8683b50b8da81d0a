"""Ranks with several adjacent stages, and other limits in flight, in processes."""

from paci.distributed.launch import spawn
from paci.schedules import build
from tests.paci import fleet, toys


def test_ranks_with_several_stages_equal_one_process():
    rules = [
        build("paci", 4, 2, stages_per_rank=2),
        build("1f1b-flush", 4, 2, stages_per_rank=2),
        build("paci", 4, 2, stages_per_rank=2, in_flight=[3, 1, 2, 1]),
    ]
    first, second = spawn(fleet.weights_of_own_stages, 2, rules)
    for k, rule in enumerate(rules):
        modules = toys.stages(4)
        toys.pipeline(modules, rule, None, seed=fleet.SEED).train(toys.batches(24))
        assert toys.same(first[k] + second[k], toys.weights(modules))
