"""The trainings that are compared."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One training, in paci's words.

    stages          N, a process each on the authors' side
    accumulation    a, the micro-batches of an update
    batch           sequences of an update; if `accumulation` does not divide it, the first
                    micro-batches have one sequence more
    updates         length of the training
    schedule        "paci" or "1f1b-flush"
    in_flight       limit at every stage but the last; None: N - i at stage i
    jitter          seconds; every action of the authors' code is late by a random time of this size
                    (and now and then by three times as much), so that no two runs have one order
    recompute       every stage but the last keeps no activations, and repeats its forward with the
                    weights of the backward
    autocast        forwards and loss run under bfloat16 autocast
    evaluate_after  updates after which the pipeline drains and evaluates
    drain_after     updates after which the pipeline drains because its weights are read
    resume_at       the update after which training ends, and goes on in new processes
    distributed     also replayed by a process a rank
    """

    stages: int = 4
    accumulation: int = 4
    batch: int = 8
    updates: int = 16
    schedule: str = "paci"
    in_flight: int | None = None
    jitter: float = 0.02
    recompute: bool = False
    autocast: bool = False
    evaluate_after: tuple[int, ...] = ()
    drain_after: tuple[int, ...] = ()
    resume_at: int | None = None
    distributed: bool = False


CASES = {
    "paci N=4 a=4, undisturbed": Case(jitter=0.0),
    "paci N=4 a=4": Case(distributed=True),
    "paci N=4 a=2": Case(accumulation=2, batch=4, updates=24),
    "paci N=4 a=1": Case(accumulation=1, batch=2, updates=40, distributed=True),
    "paci N=8 a=4": Case(stages=8),
    "paci N=8 a=8": Case(stages=8, accumulation=8, batch=16, updates=10),
    "paci N=4 a=3, micro-batches of 3, 2, 2": Case(accumulation=3, batch=7, updates=14),
    "paci N=3 a=2, at most 1 in flight": Case(
        stages=3, accumulation=2, in_flight=1, updates=10, jitter=0.01
    ),
    "paci N=3 a=2, at most 6 in flight": Case(stages=3, accumulation=2, in_flight=6),
    "paci N=4 a=4, evaluated and read": Case(evaluate_after=(6, 12), drain_after=(9,)),
    "paci N=4 a=2, recomputed": Case(accumulation=2, batch=4, recompute=True),
    "paci N=4 a=2, bfloat16 autocast": Case(accumulation=2, batch=4, autocast=True),
    "paci N=4 a=4, resumed": Case(resume_at=8),
    "flush N=4 a=4": Case(schedule="1f1b-flush", updates=10, distributed=True),
    "flush N=4 a=8": Case(schedule="1f1b-flush", accumulation=8, batch=16, updates=8),
    "flush N=4 a=2": Case(schedule="1f1b-flush", accumulation=2, batch=4, updates=12),
}
