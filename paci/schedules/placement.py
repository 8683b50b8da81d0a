"""Which stages a rank owns: `placement[rank]`, where a rank owns more than one.

Eight stages on four ranks:

    looped       rank 0   0  4        v-shaped     rank 0   0  7
                 rank 1   1  5                     rank 1   1  6
                 rank 2   2  6                     rank 2   2  5
                 rank 3   3  7                     rank 3   3  4
"""

from paci.checks import positive

Placement = tuple[tuple[int, ...], ...]


def looped(schedule: str, stages: int, stages_per_rank: int) -> Placement:
    """Stage after stage, rank after rank, and round again (Megatron's virtual pipeline)."""
    positive("stages_per_rank", stages_per_rank)
    ranks = _ranks(schedule, stages, stages_per_rank)
    return tuple(tuple(range(rank, stages, ranks)) for rank in range(ranks))


def v_shaped(schedule: str, stages: int) -> Placement:
    """Down the ranks and up again: the last stage, where gradients begin, is at rank 0."""
    ranks = _ranks(schedule, stages, 2)
    return tuple((rank, stages - 1 - rank) for rank in range(ranks))


def _ranks(schedule: str, stages: int, per_rank: int) -> int:
    if positive("stages", stages) % per_rank:
        raise ValueError(
            f"{schedule} puts {per_rank} stages on each rank: stages must be a multiple of "
            f"{per_rank}, not {stages}"
        )
    return stages // per_rank
