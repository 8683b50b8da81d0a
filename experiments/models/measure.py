"""Measure the time and memory of each unit of a GPT-2 on this machine."""

import statistics
from typing import Any

import torch

from experiments.models.gpt2 import GPT2Stage, config, loss, unit_names
from experiments.run.stopwatch import now
from paci.partition import UnitCost
from paci.stage.memory import saved_tensors

REPEATS = 5


def measure_units(
    model: Any, vocabulary: int, microbatch: int, device: torch.device | str = "cpu"
) -> list[UnitCost]:
    """Return seconds and bytes of each unit for one micro-batch of `microbatch` sequences.

    The units are in the order of `unit_names` and run under the caller's autocast, if any; the
    loss counts to the head. All blocks are alike, so one is measured for all. Two calls never
    agree to the last digit: a run that must be reproducible measures once and keeps the cut.
    """
    device = torch.device(device)
    gpt2 = config(model, vocabulary)

    def measure(unit: int) -> UnitCost:
        stage = GPT2Stage(gpt2, range(unit, unit + 1)).to(device)  # time does not depend on values
        tokens = torch.randint(vocabulary, (microbatch, model.context), device=device)
        hidden = torch.randn(microbatch, model.context, model.width, device=device)
        return _measure(stage, tokens if stage.first else hidden.requires_grad_(), tokens)

    embedding, attention, mlp = (measure(unit) for unit in range(3))
    head = measure(len(unit_names(gpt2)) - 1)
    return [embedding, *[attention, mlp] * model.layers, head]


def _measure(stage: GPT2Stage, hidden: torch.Tensor, targets: torch.Tensor) -> UnitCost:
    def forward() -> torch.Tensor:  # to a scalar that the backward can start from
        output = stage(hidden)
        return loss(output, targets) if stage.last else output.sum()

    with saved_tensors(stage.parameters()) as saved:
        forward()
    activation_bytes = sum(tensor.untyped_storage().nbytes() for tensor in saved)
    saved.clear()
    seconds = []
    for _ in range(2 + REPEATS):  # two to warm up: kernels are chosen, gradients allocated
        start = now(hidden.device)
        forward().backward()
        seconds.append(now(hidden.device) - start)
    return UnitCost(
        time=statistics.median(seconds[2:]),
        parameter_bytes=sum(parameter.nbytes for parameter in stage.parameters()),
        activation_bytes=activation_bytes,
    )
