"""Placements: which stages a rank owns, where it owns more than one.

Eight stages on four ranks:

    contiguous              looped                  v-shaped
    rank 0   0  1           rank 0   0  4           rank 0   0  7
    rank 1   2  3           rank 1   1  5           rank 1   1  6
    rank 2   4  5           rank 2   2  6           rank 2   2  5
    rank 3   6  7           rank 3   3  7           rank 3   3  4
"""

from paci.checks import positive

Placement = tuple[tuple[int, ...], ...]


def contiguous(schedule: str, stages: int, stages_per_rank: int) -> Placement:
    """Give each rank adjacent stages, so that only its first and last stage send messages."""
    v = positive("stages_per_rank", stages_per_rank)
    ranks = _ranks(schedule, stages, v)
    return tuple(tuple(range(rank * v, (rank + 1) * v)) for rank in range(ranks))


def looped(schedule: str, stages: int, stages_per_rank: int) -> Placement:
    """Deal the stages to the ranks in turn: rank r gets r, r + ranks, ... (Megatron)."""
    positive("stages_per_rank", stages_per_rank)
    ranks = _ranks(schedule, stages, stages_per_rank)
    return tuple(tuple(range(rank, stages, ranks)) for rank in range(ranks))


def v_shaped(schedule: str, stages: int) -> Placement:
    """Place the stages down the ranks and up again, so that rank 0 has the first and the last."""
    ranks = _ranks(schedule, stages, 2)
    return tuple((rank, stages - 1 - rank) for rank in range(ranks))


def _ranks(schedule: str, stages: int, per_rank: int) -> int:
    """Return the number of ranks; ValueError unless every rank gets equally many stages."""
    if positive("stages", stages) % per_rank:
        raise ValueError(
            f"{schedule} puts {per_rank} stages on each rank: stages must be a multiple of "
            f"{per_rank}, not {stages}"
        )
    return stages // per_rank
