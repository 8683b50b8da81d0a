"""PACI: pipeline-parallel training without bubbles and with one copy of the weights.

    paci.simulate             any schedule on a cost model, without tensors
    paci.LocalPipeline        the same schedule on real tensors, stages taking turns in one process
    paci.DistributedPipeline  the same again, one process per rank on torch.distributed

What needs no torch imports none: `import paci` and a simulation take a fraction of a second.
"""

from paci.actions import read_orders, write_orders
from paci.cost import Cost
from paci.schedules import SCHEDULES, Recorded, Schedule
from paci.simulate import Simulation, simulate

__all__ = [
    "SCHEDULES",
    "Cost",
    "DistributedPipeline",
    "LocalPipeline",
    "Recorded",
    "Schedule",
    "Simulation",
    "read_orders",
    "simulate",
    "write_orders",
]


def __getattr__(name: str):
    if name == "LocalPipeline":
        from paci.local import LocalPipeline

        return LocalPipeline
    if name == "DistributedPipeline":
        from paci.distributed import DistributedPipeline

        return DistributedPipeline
    raise AttributeError(f"module 'paci' has no attribute {name!r}")
