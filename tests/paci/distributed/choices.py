"""Trainings of one rank under choices of `Compute` and `Safeguards`."""

import math

import torch

from paci import Compute, NonFinite, Safeguards
from paci.distributed.failure import RankFailed
from tests.paci import fleet, toys

CHOICES = [
    ("paci", 4, {"compute": Compute(recompute="stage")}),
    ("paci", 4, {"compute": Compute("bfloat16")}),
    ("zb-h1", 4, {"compute": Compute("bfloat16", "stage"), "weights": "stashed"}),
    ("interleaved-1f1b", 4, {"compute": Compute("bfloat16-autocast", "stage")}),
    ("paci", 2, {"safeguards": Safeguards("stage", 0.05)}),
    ("paci", 4, {"safeguards": Safeguards("running", 0.5, "skip")}),
    ("1f1b-flush", 4, {"safeguards": Safeguards("global", 0.05)}),
    ("interleaved-1f1b", 4, {"safeguards": Safeguards("global", 0.05, "skip")}),
    ("zbv", 4, {"safeguards": Safeguards("global", 0.05)}),
    ("zb-h2", 4, {"safeguards": Safeguards("global", 0.05)}),
]


def loss_fn(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return toys.loss_fn(output.float(), target)


def batches(options: dict, windows: int = 6, a: int = 4) -> list:
    """Return batches; some hold no numbers if these are to be left out."""
    rules = options.get("safeguards")
    lost = {9, 13} if rules and rules.on_nonfinite == "skip" else {}
    found = toys.batches(windows * a)
    return [(x * math.nan if m in lost else x, y) for m, (x, y) in enumerate(found)]


def train(order: str) -> list[dict]:
    """Train under each choice."""
    results = []
    for schedule, a, options in CHOICES:
        modules = fleet.own_stages(schedule)
        line = fleet.pipeline(modules, schedule, a, order=order, loss_fn=loss_fn, **options)
        updates: list = []
        segment = line.train(batches(options, a=a), updates.append)
        weights = zip((s.index for s in line.stages), toys.weights(modules), strict=True)
        results.append({"weights": dict(weights), "segment": segment, "updates": updates})
        line.close()
    return results


def not_a_number() -> str:
    """Return what a rank raises at a loss that is not a number."""
    line = fleet.pipeline(fleet.own_stages("paci"), "paci", 4)
    try:
        line.train(batches({"safeguards": Safeguards(on_nonfinite="skip")}))
    except (RankFailed, NonFinite) as failure:
        return f"{type(failure).__name__} {failure}"
    return "nothing"


def all_of() -> tuple[list[dict], list[dict], str]:
    return train("static"), train("dynamic"), not_a_number()
