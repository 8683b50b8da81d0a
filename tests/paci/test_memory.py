import pytest
import torch
from torch import nn

from paci.memory import Held, SavedTensors
from paci.stage import Stage
from tests.paci import toys

ROWS, IN, OUT = 3, 4, 8


class Autocast(nn.Sequential):
    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return super().forward(x)


def held_by(module, **options):
    saved = SavedTensors(module.parameters())
    with saved.saving(0):
        output = module(torch.ones(ROWS, IN, requires_grad=True))
    now = saved.now
    output.sum().backward()
    saved.release(0)
    assert saved.now == Held(0, 0)
    assert saved.peak == now
    return now


def test_by_hand():
    linear = nn.Linear(IN, OUT)
    activations = 4 * ROWS * IN + 4 * ROWS * OUT  # the linear's input, the output of tanh
    assert held_by(nn.Sequential(linear, nn.Tanh())) == Held(activations, copies=0)


def test_by_hand_under_autocast():
    """In bfloat16: the linear's input, the output of tanh, and a copy of the weight."""
    module = Autocast(nn.Linear(IN, OUT), nn.Tanh())
    assert held_by(module) == Held(2 * ROWS * IN + 2 * ROWS * OUT, copies=2 * IN * OUT)


def test_a_storage_counts_once_a_microbatch():
    (module,) = toys.stages(1)
    saved, x = SavedTensors(module.parameters()), torch.ones(ROWS, toys.WIDTH)
    kept = []
    for m, bytes in enumerate((1, 2)):
        with saved.saving(m):
            kept.append((module(x) * module(x)).sum())
        assert saved.now.activations == bytes * 4 * 5 * ROWS * toys.WIDTH  # x, 2 linears, 2 factors
    saved.release(0)
    assert saved.peak.activations == 2 * saved.now.activations
    saved.clear()
    assert saved.peak == Held(0, 0)


def test_an_activation_changed_in_place_is_still_an_error():
    (module,) = toys.stages(1)
    one, ((x, g),) = Stage(0, 2, module, 1, toys.sgd), toys.batches(1)
    one.forward(0, x)
    x.add_(1)
    with pytest.raises(RuntimeError, match=r"shape \(3, 4\) .* micro-batch 0 needs was changed"):
        one.backward(0, g)


def test_a_weight_changed_by_anything_but_the_update_is_an_error():
    (module,) = toys.stages(1)
    one, ((x, g),) = Stage(1, 3, module, 1, toys.sgd), toys.batches(1)
    one.forward(0, x)
    with torch.no_grad():
        module[0].weight.add_(1)
    with pytest.raises(RuntimeError, match="changed in place"):
        one.backward(0, g)


@pytest.mark.parametrize("N", [2, 4])
def test_paci_holds_what_1f1b_holds_and_one_copy_of_the_weights(N):
    flush = toys.pipeline(toys.stages(N), "1f1b-flush", N).train(toys.batches(4 * N))
    paci = toys.pipeline(toys.stages(N), "paci", N).train(toys.batches(4 * N))
    assert paci.peak_held == flush.peak_held
    assert paci.peak_in_flight == list(range(N, 0, -1))
    assert [held.copies for held in paci.peak_held] == [0] * N


def test_under_autocast_every_microbatch_in_flight_holds_a_copy_of_the_weights():
    """Not at the first stage, whose linear has no input gradient to compute."""
    N = 4
    modules = [Autocast(nn.Linear(toys.WIDTH, toys.WIDTH)) for _ in range(N)]

    def loss_fn(output, target):
        return toys.loss_fn(output.float(), target)

    run = toys.pipeline(modules, accumulation=2, loss_fn=loss_fn).train(toys.batches(16))
    copy = 2 * toys.WIDTH**2
    assert [held.copies for held in run.peak_held] == [0, 3 * copy, 2 * copy, 1 * copy]
