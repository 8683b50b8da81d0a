"""Closed forms: what a schedule should cost, before anything runs. `stage` counts from 0.

Sources: PACI, arXiv 2606.07881; bubble and memory of GPipe and 1F1B, Narayanan et al., SC 2021.
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


def activation_units(schedule: str, stages: int, stage: int, accumulation: int, slack=0) -> int:
    """Peak activation memory of a stage, in saved activations of one micro-batch at one stage."""
    if schedule == "gpipe":
        return accumulation
    if schedule == "1f1b-flush":
        return min(accumulation, in_flight_bound(stages, stage))
    if schedule in ("paci", "async-1f1b"):
        return in_flight_bound(stages, stage, slack)
    raise ValueError(f"no closed form for the activation memory of {schedule!r}")


def parameter_units(weights: str) -> int:
    """Parameter memory of a stage, in copies of its weights: live weights are the only copy."""
    if weights == "live":
        return 1
    raise ValueError(f"no closed form for the parameter memory of {weights!r} weights")
