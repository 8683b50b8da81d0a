"""Orders as torch.distributed.pipelining gives them, without processes."""

from unittest.mock import MagicMock


def orders(schedule: type, ranks: int, stages_per_rank: int, microbatches: int) -> list[str]:
    """The compute actions of each rank, idle steps left out, pairs of actions taken apart."""
    stages = [
        MagicMock(group_size=ranks, group_rank=0, num_stages=ranks * stages_per_rank)
        for _ in range(stages_per_rank)
    ]
    theirs = schedule(stages, microbatches).pipeline_order
    return [
        [
            str(action)
            for step in theirs[rank]
            if step is not None
            for action in (step.sub_actions or (step,))
        ]
        for rank in range(ranks)
    ]
