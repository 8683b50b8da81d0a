"""PACI: pipeline-parallel training without bubbles and with one copy of the weights.

    paci.simulate             any schedule on a cost model, without tensors
    paci.LocalPipeline        the same schedule on real tensors, stages taking turns in one process

What needs no torch imports none: `import paci` and a simulation take a fraction of a second.
"""

from paci.cost import Cost
from paci.schedules import SCHEDULES, Schedule
from paci.simulate import Simulation, simulate

__all__ = ["SCHEDULES", "Cost", "LocalPipeline", "Schedule", "Simulation", "simulate"]


def __getattr__(name: str):
    if name == "LocalPipeline":
        from paci.local import LocalPipeline

        return LocalPipeline
    raise AttributeError(f"module 'paci' has no attribute {name!r}")
