"""Messages that travel in bfloat16 between stages that compute in float32."""

from functools import cache

import pytest
import torch
from torch import nn

from paci.distributed.launch import spawn
from tests.paci import fleet, toys
from tests.paci.distributed.comparison import by_stage
from tests.paci.distributed.cuda import ranks as gpu_ranks

RANKS, LOW = 3, torch.bfloat16
BATCHES, WIDE_ROWS, WIDE_BATCHES = 24, 4096, 8


def round_off(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(LOW).to(tensor.dtype)


class RoundOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, output):
        return round_off(output)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class RoundGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        return input.view_as(input)

    @staticmethod
    def backward(ctx, gradient):
        return round_off(gradient)


class Rounding(nn.Module):
    """A stage that rounds the activations and gradients that it sends."""

    def __init__(self, module: nn.Module, is_first: bool, is_last: bool):
        super().__init__()
        self.module, self.is_first, self.is_last = module, is_first, is_last

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        output = self.module(input if self.is_first else RoundGradient.apply(input))
        return output if self.is_last else RoundOutput.apply(output)


def train(message_dtype: torch.dtype | None) -> dict:
    """Train; then once more on large micro-batches, to count bytes."""
    options = {"order": "static", "message_dtype": message_dtype}
    modules = fleet.own_stages("paci")
    with fleet.pipeline(modules, "paci", 4, **options) as line:
        segment = line.train(toys.batches(BATCHES))
        weights = {line.stages[0].index: toys.weights(modules)[0]}
        batch = torch.ones(WIDE_ROWS, toys.WIDTH), torch.zeros(WIDE_ROWS, toys.WIDTH)
        before = sum(fleet.bytes_received())
        line.train([batch] * WIDE_BATCHES)
        received = sum(fleet.bytes_received()) - before
    return {"weights": weights, "segment": segment, "bytes": received}


@cache
def results(gpus: bool, message_dtype: torch.dtype | None) -> list[dict]:
    function = (gpu_ranks.on_gpus, RANKS, train) if gpus else (train, RANKS)
    return spawn(*function, message_dtype)


transports = pytest.mark.parametrize("gpus", [False, True], ids=["gloo", "emulated NCCL"])


@transports
def test_equals_stages_that_round_what_they_send(gpus):
    """To the last bit."""
    ours = results(gpus, LOW)
    modules = [
        Rounding(module, is_first=i == 0, is_last=i == RANKS - 1)
        for i, module in enumerate(toys.stages(RANKS, dropout=0.3))
    ]
    expected = toys.pipeline(modules, "paci", 4, seed=fleet.SEED).train(toys.batches(BATCHES))
    (segment,) = (r["segment"] for r in ours if r["segment"])
    assert segment.losses == expected.losses
    assert toys.same(by_stage(ours, "weights"), toys.weights(modules))


@transports
@pytest.mark.parametrize("message_dtype", [None, LOW], ids=str)
def test_a_number_takes_as_many_bytes_as_its_type(gpus, message_dtype):
    bytes_of_message = WIDE_ROWS * toys.WIDTH * (message_dtype or torch.float32).itemsize
    for rank, of_rank in enumerate(results(gpus, message_dtype)):
        links = (rank > 0) + (rank < RANKS - 1)
        messages = links * WIDE_BATCHES * bytes_of_message
        assert messages <= of_rank["bytes"] < 1.2 * messages
