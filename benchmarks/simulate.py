"""The speed of simulations, and of a cold start to one."""

import subprocess
import sys
import time

import paci

REPEATS = 5


def measure() -> dict[str, float]:
    """Return actions a second on one core at 8 stages; time per action at 1,024 stages over that
    at 8; seconds from a cold start to a simulated 8 x 512, which fails if it loads torch."""
    at_8, at_1024 = [], []
    for _ in range(REPEATS):  # side by side, so that a busy moment hits both
        at_8.append(_seconds_per_action(stages=8, microbatches=8192))
        at_1024.append(_seconds_per_action(stages=1024, microbatches=64))
    return {
        "simulate_actions_per_s": 1 / min(at_8),
        "simulate_growth_1024_vs_8": min(at_1024) / min(at_8),
        "import_and_simulate_s": min(_cold_start() for _ in range(REPEATS)),
    }


def _seconds_per_action(stages: int, microbatches: int) -> float:
    start = time.perf_counter()
    paci.simulate("paci", stages, microbatches)
    return (time.perf_counter() - start) / (2 * stages * microbatches)


def _cold_start() -> float:
    code = "import sys, paci; paci.simulate('paci', 8, 512); assert 'torch' not in sys.modules"
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start
