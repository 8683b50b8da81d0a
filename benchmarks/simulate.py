"""The speed of simulations, and of a cold start to one."""

import subprocess
import sys
import time

import paci
from benchmarks.rounds import Estimate, in_rounds


def measure() -> dict[str, Estimate]:
    """Return actions a second on one core at 8 stages; time per action at 1,024 stages over that
    at 8; seconds from a cold start to a simulated 8 x 512, which fails if it loads torch."""
    sides = (
        lambda: _seconds_per_action(stages=8, microbatches=8192),
        lambda: _seconds_per_action(stages=1024, microbatches=64),
    )
    return in_rounds(
        sides,
        lambda s: {"simulate_actions_per_s": 1 / s[0], "simulate_growth_1024_vs_8": s[1] / s[0]},
        most_seconds=15,
    ) | in_rounds([_cold_start], lambda s: {"import_and_simulate_s": s[0]}, most_seconds=5)


def _seconds_per_action(stages: int, microbatches: int) -> float:
    start = time.perf_counter()
    paci.simulate("paci", stages, microbatches)
    return (time.perf_counter() - start) / (2 * stages * microbatches)


def _cold_start() -> float:
    code = "import sys, paci; paci.simulate('paci', 8, 512); assert 'torch' not in sys.modules"
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start
