"""Closed forms: what a schedule should cost, before anything runs. `stage` counts from 0.

Sources: PACI, arXiv 2606.07881; GPipe, 1F1B and interleaved 1F1B, Narayanan et al., SC 2021; zero
bubble, Qi et al., ICLR 2024; DualPipeV, DeepSeek-AI, 2025.
"""


def bubble_efficiency(stages: int, microbatches: int) -> float:
    """Busy share of a flush pipeline (GPipe, 1F1B): m / (m + N - 1), for equal stages."""
    return microbatches / (microbatches + stages - 1)


def in_flight_bound(stages: int, stage: int, slack: int = 0) -> int:
    """Most micro-batches in flight at a stage under PACI (and, with no slack, under 1F1B).

    The paper admits a forward while q_i < N + 1 - i (its stages count from 1). The last stage
    gets no slack: its gradient is there as soon as its forward is done.
    """
    return stages - stage + (slack if stage < stages - 1 else 0)


def drift_bound(stages: int, stage: int, accumulation: int, slack: int = 0) -> int:
    """Most updates of a stage between a micro-batch's forward and its backward under PACI.

    At most in_flight_bound - 1 other backwards run in between, and every `a` of them end in an
    update: ⌈(N - 1 - i + slack) / a⌉. One text of the paper prints a floor at stage 0, which its
    own examples (N = 8: a = 4 gives 2, a = 8 gives 1) and the simulation of its rule contradict.
    """
    others = in_flight_bound(stages, stage, slack) - 1
    return -(-others // accumulation)


def bubble_rate(schedule: str, ranks: int, microbatches: int, stages_per_rank: int = 1) -> float:
    """Idle time of a rank over its work, in each of many windows of `microbatches`.

    For equal stages with T_F = T_B = T_W: forward, input gradient and weight gradient take one
    unit each. A window begins where the last one ended, rank by rank, so the time that the first
    window takes to reach the last rank counts once and not here.

        gpipe, 1f1b-flush     3 (N-1)                 of 3 m
        interleaved-1f1b      3 (N-1)                 of 3 v m: (N-1) / (v m)
        zb-h1, zb-1p            (N-1)                 a third of 1F1B's
        zb-h2, zb-2p, zbv       0                     once 2N - 1 micro-batches fill the pipe
        dualpipev               (N-1)                 of 6 m

    for N ranks with windows of at least N micro-batches. Shorter ones idle more, as below.
    """
    N, m, v = ranks, microbatches, stages_per_rank
    missing = max(0, 2 * N - 1 - m)  # micro-batches, to fill the pipe there and back
    if schedule in ("gpipe", "1f1b-flush"):
        idle = 3 * (N - 1)
    elif schedule == "interleaved-1f1b":
        idle = 3 * (N - 1 + (v - 1) * max(0, N - m))
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
) -> int:
    """Peak activation memory of a rank, in saved activations of one micro-batch at one stage.

    Where a rank owns v stages, each of them is a v-th of what it would be if it owned one.
    """
    m, v, ranks = accumulation, stages_per_rank, stages // stages_per_rank
    below = ranks - 1 - rank
    if schedule == "gpipe":
        return m
    if schedule == "1f1b-flush":
        return min(m, in_flight_bound(stages, rank))
    if schedule == "interleaved-1f1b":
        round = m // max(1, m // ranks)
        return min(v * m, (v - 1) * round + 2 * below + 1)
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
        return in_flight_bound(stages, rank, slack)
    raise ValueError(f"no closed form for the activation memory of {schedule!r}")


def parameter_units(weights: str, stages: int, stage: int, accumulation: int, slack=0) -> int:
    """Peak parameter memory of a stage under PACI, in copies of its weights (or as much again).

    `stashed`: the newest version and one for each update that a micro-batch drifts by.
    `predicted`: beside the weights a step and, for as long as a forward lasts, the weights that
    it does not see. `corrected`: likewise, a mean change always and the weights in a backward.
    """
    drift = drift_bound(stages, stage, accumulation, slack)
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
