"""PACI: pipeline-parallel training without bubbles and with one copy of the weights.

    paci.simulate             any schedule on a cost model, without tensors
    paci.LocalPipeline        the same schedule on real tensors, stages taking turns in one process
    paci.DistributedPipeline  the same again, one process per rank on torch.distributed

A schedule is a rule that all three executors ask what a rank does next. The layers, each of which
imports only from itself and from those above it:

    actions cost microbatches   what a rank does, and how long it takes; `draws` for jitter
    schedules/                  the rules, fixed orders, and closed forms (`theory`)
    simulation/                 the event loop, its results, the timeline
    explore/                    a page to explore schedules: `python -m paci.explore`
    method traits partition     a schedule with its weights and optimizer; cutting a model
    stage/                      one stage: its mathematics, weight versions, memory, random numbers
    segment pipeline            results of a `train`, and the interface of both pipelines
    checkpoint local            saved state, in `tensor_file`s; all stages in one process
    distributed/                one process per rank: engine, messages, failures, launching

Everything above `stage/` works without torch, so that `import paci` and a simulation start quickly.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from paci.actions import read_orders, write_orders
from paci.cost import Cost
from paci.schedules import SCHEDULES, FixedOrder, Schedule
from paci.simulation.simulate import Simulation, simulate

if TYPE_CHECKING:
    from paci.distributed.pipeline import DistributedPipeline
    from paci.local import LocalPipeline
    from paci.stage.compute import Compute
    from paci.stage.safeguards import NonFinite, Safeguards

try:
    __version__ = version("paci-harness")
except PackageNotFoundError:  # a checkout that is not installed
    __version__ = "0+unknown"

__all__ = [
    "SCHEDULES",
    "Compute",
    "Cost",
    "DistributedPipeline",
    "FixedOrder",
    "LocalPipeline",
    "NonFinite",
    "Safeguards",
    "Schedule",
    "Simulation",
    "read_orders",
    "simulate",
    "write_orders",
]

_WITH_TORCH = {
    "Compute": "paci.stage.compute",
    "LocalPipeline": "paci.local",
    "NonFinite": "paci.stage.safeguards",
    "Safeguards": "paci.stage.safeguards",
    "DistributedPipeline": "paci.distributed.pipeline",
}


def __getattr__(name: str) -> object:
    """Import the pipelines, and with them torch, when they are first used."""
    if name in _WITH_TORCH:
        return getattr(import_module(_WITH_TORCH[name]), name)
    raise AttributeError(f"module 'paci' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
