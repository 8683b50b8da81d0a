import pytest
import torch
from torch import nn

from paci.stage.memory import MemoryUsage, SavedTensors
from paci.stage.stage import Stage
from tests.paci import toys

ROWS, IN, OUT = 3, 4, 8


def held_by(module):
    saved, x = SavedTensors(list(module.parameters())), torch.ones(ROWS, IN, requires_grad=True)
    with saved.saving(0, x):
        module(x)
    return saved.peak


def test_by_hand():
    linear = nn.Linear(IN, OUT)
    activations = 4 * ROWS * IN + 4 * ROWS * OUT  # the linear's input, the output of tanh
    assert held_by(nn.Sequential(linear, nn.Tanh())) == MemoryUsage(activations, copies=0)


def test_by_hand_under_autocast():
    """In bfloat16: the linear's input, the output of tanh, and a copy of the weight."""
    module = toys.Autocast(nn.Linear(IN, OUT), nn.Tanh())
    assert held_by(module) == MemoryUsage(2 * ROWS * IN + 2 * ROWS * OUT, copies=2 * IN * OUT)


def test_a_storage_counts_once_however_often_it_is_saved():
    (module,) = toys.stages(1)
    size = 4 * ROWS * toys.WIDTH
    saved, x = SavedTensors(list(module.parameters())), torch.ones(ROWS, toys.WIDTH)
    with saved.saving(0, x):
        module(x) * module(x)
    assert saved.peak.activations == 5 * size  # x, the outputs of two linears, two factors


def test_the_peak_is_that_of_all_microbatches_in_flight():
    (module,) = toys.stages(1)
    saved, size = SavedTensors(list(module.parameters())), 4 * toys.WIDTH
    for m, rows in enumerate((1, 1, 3, 1)):
        x = torch.ones(rows, toys.WIDTH)
        with saved.saving(m, x):
            module(x)  # saves x and the output of the linear
        if m == 1:
            saved.release(0)
    assert saved.peak.activations == 2 * (1 + 3 + 1) * size
    saved.clear()
    assert saved.peak == MemoryUsage(0, 0)


def test_an_activation_changed_in_place_is_an_error():
    """But in the one micro-batch of its shape that is weighed."""
    (module,) = toys.stages(1)
    one, ((x, g), (y, h)) = Stage(0, 2, module, 1, toys.sgd), toys.batches(2)
    one.forward(0, x)
    one.forward(1, y)
    y.add_(1)
    toys.sent(one.backward, 0, g)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        toys.sent(one.backward, 1, h)


@pytest.mark.parametrize("N", [2, 4])
def test_paci_holds_what_1f1b_holds_and_one_copy_of_the_weights(N):
    flush = toys.pipeline(toys.stages(N), "1f1b-flush", N).train(toys.batches(4 * N))
    paci = toys.pipeline(toys.stages(N), "paci", N).train(toys.batches(4 * N))
    held = [stage.peak_held for stage in paci.stages]
    assert held == [stage.peak_held for stage in flush.stages]
    assert [stage.peak_in_flight for stage in paci.stages] == list(range(N, 0, -1))
    assert [of_stage.copies for of_stage in held] == [0] * N


def test_under_autocast_every_microbatch_in_flight_holds_a_copy_of_the_weights():
    """Not at the first stage, whose linear has no input gradient to compute."""
    N = 4
    modules = [toys.Autocast(nn.Linear(toys.WIDTH, toys.WIDTH)) for _ in range(N)]

    def loss_fn(output, target):
        return toys.loss_fn(output.float(), target)

    run = toys.pipeline(modules, accumulation=2, loss_fn=loss_fn).train(toys.batches(16))
    copy = 2 * toys.WIDTH**2
    assert [stage.peak_held.copies for stage in run.stages] == [0, 3 * copy, 2 * copy, 1 * copy]


def test_versions_beside_the_live_one_count_as_copies():
    (module,) = toys.stages(1)
    saved = SavedTensors(list(module.parameters()))
    saved.note_versions(300)
    saved.note_versions(100)
    assert saved.peak.copies == 300
    saved.clear()
    with saved.saving(0, torch.ones(1, toys.WIDTH)):
        module(torch.ones(1, toys.WIDTH))
    assert saved.peak.copies == 100


def test_under_autocast_a_stash_holds_both():
    """Every micro-batch in flight its own cast, and the versions in flight besides."""
    N = 4
    modules = [toys.Autocast(nn.Linear(toys.WIDTH, toys.WIDTH, bias=False)) for _ in range(N)]

    def loss_fn(output, target):
        return toys.loss_fn(output.float(), target)

    local = toys.pipeline(modules, accumulation=1, weights="stashed", loss_fn=loss_fn)
    cast, version = 2 * toys.WIDTH**2, 4 * toys.WIDTH**2
    copies = [stage.peak_held.copies for stage in local.train(toys.batches(16)).stages]
    assert copies == [3 * version, 3 * cast + 2 * version, 2 * cast + version, cast]


@pytest.mark.parametrize(
    ("optimizer", "state"),
    [
        (lambda parameters: torch.optim.SGD(parameters, 0.1), 0),
        (toys.sgd, 4 * (IN + 1) * OUT),  # its momentum
        (torch.optim.AdamW, 2 * 4 * (IN + 1) * OUT + 2 * 4),  # two moments, and a count for each
    ],
)
def test_an_update_finds_gradients_and_leaves_optimizer_state(optimizer, state):
    """Weight and bias of a linear layer in float32; before any update there is neither."""
    one, x = Stage(0, 2, nn.Linear(IN, OUT), 2, optimizer), torch.ones(ROWS, IN)
    for microbatch, known in ((0, False), (1, True), (2, True), (3, True)):
        gradient = torch.ones_like(one.forward(microbatch, x))
        toys.sent(one.backward, microbatch, gradient)
        peak = one.saved.peak
        assert (peak.gradients, peak.optimizer) == (known * 4 * (IN + 1) * OUT, known * state)
