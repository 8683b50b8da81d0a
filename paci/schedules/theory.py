"""Closed forms of bubble, memory and drift. `stage` and `rank` count from 0.

Sources: PACI, arXiv 2606.07881; GPipe, 1F1B and interleaved 1F1B, Narayanan et al., SC 2021; zero
bubble, Qi et al., ICLR 2024; DualPipeV, DeepSeek-AI, 2025.
"""

from collections.abc import Sequence


def bubble_efficiency(stages: int, microbatches: int) -> float:
    """Return the busy share of a flush pipeline (GPipe, 1F1B) of equal stages: m / (m + N - 1)."""
    return microbatches / (microbatches + stages - 1)


def in_flight_bound(
    stages: int,
    stage: int,
    slack: int = 0,
    stages_per_rank: int = 1,
    in_flight: int | Sequence[int] | None = None,
) -> int:
    """Return the most micro-batches in flight at a stage under PACI (and 1F1B, without slack).

    The paper admits a forward while q_i < N + 1 - i (its stages count from 1). The last stage
    gets no slack: its gradient is there as soon as its forward is done.

    With v adjacent stages on each of R = N/v ranks, a rank is one stage of the paper's that was cut
    into v: at each stage of rank r, R - r micro-batches fill the pipeline. `in_flight` is the limit
    itself, of all stages or of each.
    """
    if in_flight is not None:
        return in_flight if isinstance(in_flight, int) else in_flight[stage]
    ranks, rank = stages // stages_per_rank, stage // stages_per_rank
    return ranks - rank + (slack if rank < ranks - 1 else 0)


def drift_bound(stages: int, stage: int, accumulation: int, slack: int = 0) -> int:
    """Return the most updates of a stage between a micro-batch's forward and backward under PACI,
    with one stage per rank: ⌈(N - 1 - i + slack) / a⌉.

    `drift_of_limit` has the general form. One text of the paper
    prints a floor at stage 0, which its own examples (N = 8: a = 4 gives 2, a = 8 gives 1) and the
    simulation of its rule contradict.
    """
    return drift_of_limit(in_flight_bound(stages, stage, slack), accumulation)


def drift_of_limit(limit: int, accumulation: int) -> int:
    """Return the drift bound of a stage with at most `limit` micro-batches in flight.

    Micro-batches leave a stage in the order in which they came, so at most limit - 1 other
    backwards run between a forward and its backward, and every `a`-th of them ends in an update:
    ⌈(limit - 1) / a⌉.
    """
    return -(-(limit - 1) // accumulation)


def bubble_rate(schedule: str, ranks: int, microbatches: int, stages_per_rank: int = 1) -> float:
    """Return the idle time of a rank over its work, in each of many windows of `microbatches`.

    For equal stages with T_F = T_B = T_W: forward, input gradient and weight gradient take one
    unit each. Windows follow one another rank by rank, so the time that the first window takes to
    reach the last rank counts once and not here. For N ranks of v stages, and windows of at least N
    micro-batches (shorter ones idle more, as below):

        gpipe, 1f1b-flush     3 v (N-1)               of 3 v m: (N-1) / m
        interleaved-1f1b      3 (N-1)                 of 3 v m: (N-1) / (v m)
        zb-h1, zb-1p            (N-1)                 of 3 m, a third of 1F1B's
        interleaved-zb-h1       (N-1)                 of 3 v m
        zb-h2, zb-2p, zbv       0                     once 2N - 1 micro-batches fill the pipeline
        dualpipev               (N-1)                 of 6 m
        paci, async-1f1b        0

    Raises ValueError for a schedule without a closed form.
    """
    N, m, v = ranks, microbatches, stages_per_rank
    missing = max(0, 2 * N - 1 - m)  # micro-batches short of filling the pipeline there and back
    if schedule in ("gpipe", "1f1b-flush"):
        idle = 3 * v * (N - 1)
    elif schedule == "interleaved-1f1b":
        idle = 3 * (N - 1 + (v - 1) * max(0, N - m))
    elif schedule == "interleaved-zb-h1":
        short = max(0, N - m)
        idle = N - 1 + max(v * short, (3 * v - 2) * short - (v - 1) * N)
    elif schedule in ("zb-h1", "zb-1p"):
        idle = max(N - 1, missing)
    elif schedule in ("zb-h2", "zb-2p"):
        idle = missing
    elif schedule == "zbv":
        idle = 2 * missing
    elif schedule == "dualpipev":
        idle = N - 1
    elif schedule in ("paci", "async-1f1b"):
        idle = 0
    else:
        raise ValueError(f"no closed form for the bubble of {schedule!r}")
    return idle / (3 * v * m)


def activation_units(
    schedule: str,
    stages: int,
    rank: int,
    accumulation: int,
    slack: int = 0,
    stages_per_rank: int = 1,
    in_flight: int | Sequence[int] | None = None,
) -> int:
    """Return a rank's peak activation memory, in activations of one micro-batch at one stage.

    If a rank owns v stages, each of them is a v-th as large as the one stage it would own instead.
    `in_flight` is that of `in_flight_bound`; limits that do not fall from stage to stage may not be
    reached, and then give an upper bound.
    Raises ValueError for a schedule without a closed form.
    """
    m, v, ranks = accumulation, stages_per_rank, stages // stages_per_rank
    below = ranks - 1 - rank
    if schedule == "gpipe":
        return m
    if schedule == "1f1b-flush":
        return v * min(m, in_flight_bound(ranks, rank))
    if schedule == "interleaved-1f1b":
        round = m // max(1, m // ranks)
        return min(v * m, (v - 1) * round + 2 * below + 1)
    if schedule == "interleaved-zb-h1":
        return min(v * m, (v - 1) * (m // max(1, m // ranks)) + ranks)
    if schedule in ("zb-h1", "zb-1p"):
        return min(m, stages)
    if schedule == "zb-h2":
        return min(m, 2 * stages - 1)
    if schedule == "zb-2p":
        return min(m, 2 * stages)
    if schedule == "zbv":
        return min(2 * m, m + rank + 1, 2 * ranks)
    if schedule == "dualpipev":
        return 2 * ranks + 1
    if schedule in ("paci", "async-1f1b"):
        own = range(rank * v, (rank + 1) * v)
        return sum(in_flight_bound(stages, stage, slack, v, in_flight) for stage in own)
    raise ValueError(f"no closed form for the activation memory of {schedule!r}")


def parameter_units(weights: str, drift: int) -> int:
    """Return the peak parameter memory, in copies of its weights, of a stage that makes at most
    `drift` updates between a micro-batch's forward and its backward.

    stashed          the newest version, and one for each update that a micro-batch drifts by
    double-buffered  the newest version and the one before
    predicted        the weights, the step, and during a forward the weights that it replaces
    corrected        the weights, their mean change, and during a backward the weights it replaces

    Raises ValueError for other policies.
    """
    units = {
        "live": 1,
        "stashed": 1 + drift,
        "double-buffered": 2,
        "predicted": 3 if drift else 1,
        "corrected": 3 if drift else 2,
    }
    if weights not in units:
        raise ValueError(f"no closed form for the parameter memory of {weights!r} weights")
    return units[weights]
