"""PACI: pipeline-parallel training without bubbles and with one copy of the weights.

    paci.simulate             any schedule on a cost model, without tensors
    paci.LocalPipeline        the same schedule on real tensors, stages taking turns in one process
    paci.DistributedPipeline  the same again, one process per rank on torch.distributed

What they are made of; the first two lines import no torch, so that `import paci` and a simulation
take a fraction of a second:

    actions cost schedules/ clock simulate timeline  what happens when
    theory traits delay partition label checks       closed forms, and what follows from them
    stage split weights/ ledger memory draws         one stage: its mathematics and its books
    local                                            all stages in one process
    perform segment checkpoint                       what both executors do, and what is left
    distributed engine links transport books         a rank a process: its loop, its messages
    handshake bulletin failure evaluation wakeups    what ranks settle, tell each other, do besides
    launch emulated                                  processes here; devices that are not there
"""

from paci.actions import read_orders, write_orders
from paci.cost import Cost
from paci.schedules import SCHEDULES, Recorded, Schedule
from paci.simulation.simulate import Simulation, simulate

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
        from paci.distributed.pipeline import DistributedPipeline

        return DistributedPipeline
    raise AttributeError(f"module 'paci' has no attribute {name!r}")
