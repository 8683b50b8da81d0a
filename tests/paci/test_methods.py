"""Methods differ in what defines them, and in nothing else."""

from contextlib import nullcontext

import pytest
import torch
from torch import nn

from paci import NonFinite
from paci.schedules import SCHEDULES
from paci.stage.weights import WEIGHTS
from tests.paci import toys

METHODS = [(schedule, None, "live") for schedule in SCHEDULES]
METHODS += [("paci", 4 if weights == "double-buffered" else 1, weights) for weights in WEIGHTS]


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.SGD])
def test_nothing_but_the_learning_rate_moves_a_loss(optimizer):
    """None touches the data path: at a rate of 0 all of them only evaluate, dropout and all."""
    results = [
        toys.pipeline(
            toys.stages(4, dropout=0.3), schedule, accumulation, weights=weights,
            optimizer=lambda parameters: optimizer(parameters, lr=0.0, weight_decay=0.1),
        ).train(toys.batches(16)).losses
        for schedule, accumulation, weights in METHODS
    ]  # fmt: skip
    assert all(result == results[0] for result in results)


class Bent(nn.Module):
    """w x + k w² / 2: the backward of the square looks at w again."""

    def __init__(self, k=0.8):
        super().__init__()
        self.k, self.w = k, nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return x * self.w + self.k / 2 * self.w * self.w


class Passing(nn.Module):
    """Nothing but one more stage, and so more delay for those before."""

    def __init__(self):
        super().__init__()
        self.idle = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x + 0 * self.idle


@pytest.mark.parametrize(
    ("schedule", "accumulation", "weights", "converges"),
    [
        ("1f1b-flush", 4, "live", True),
        ("async-1f1b", 1, "live", False),
        ("paci", 4, "live", True),
        ("paci", 1, "stashed", True),
        ("paci", 8, "double-buffered", True),
        ("paci", 1, "corrected", True),
    ],
)
def test_where_inconsistency_diverges(schedule, accumulation, weights, converges):
    """PipeMare's quadratic model of inconsistency, made of a loss.

    On inputs ±1 with a target of 1 for both, the loss is 1 + (1 - k) w² near its minimum at w = 0:
    flat, because two large curvatures almost cancel, 1 from the slopes ±1 of the model and -k from
    its bend. A consistent gradient, however late, is the small one of the difference. One whose
    forward saw w(t - τ) and whose backward sees w(t) is late with the first only: w grows at once
    and is called back τ updates later, which is too late if 2 · rate · τ is above 1. It is 2.8
    for naive asynchronous 1F1B (τ = 7 at the first of eight stages), 0.7 for PACI with a = 4.
    """
    bent, inputs = Bent(), torch.tensor([1.0, -1.0])
    local = toys.pipeline(
        [bent, *(Passing() for _ in range(7))], schedule, accumulation, weights=weights,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.2), lr_lambda=None,
    )  # fmt: skip
    with nullcontext() if converges else pytest.raises(NonFinite, match="the loss of micro-batch"):
        local.train([(inputs, torch.ones(2))] * 800)
    assert (abs(bent.w.item()) < 1e-2) == converges
