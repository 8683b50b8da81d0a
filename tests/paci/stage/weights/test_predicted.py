import pytest
import torch
from torch import nn

from paci.schedules import theory
from paci.stage.stage import Stage
from tests.paci import toys
from tests.paci.stage.weights.test_stashed import copies

RATE = 0.125  # and small whole numbers below: nothing is ever rounded


def sgd(parameters, **options):
    return torch.optim.SGD(parameters, lr=RATE, **options)


def averaging_sgd(parameters):
    """The momentum of a constant gradient is the gradient."""
    return sgd(parameters, momentum=0.5, dampening=0.5)


def adamw(parameters, weight_decay=0.0):
    return torch.optim.AdamW(parameters, lr=RATE, weight_decay=weight_decay)


def seen_and_found(optimizer, ahead=2, updates=5):
    """A linear stage with `ahead` + 1 micro-batches in flight and one gradient for ever: the
    weights that each forward saw, and those that its backward then found."""
    linear = nn.Linear(2, 2, bias=False)
    linear.weight.data = torch.tensor([[1.0, 2.0], [3.0, -4.0]])
    stage = Stage(1, 3, linear, 1, optimizer, weights="predicted")
    one, gradient = torch.eye(2), torch.tensor([[1.0, -2.0], [0.5, 4.0]])
    seen, found = [], []
    for m in range(ahead + updates):
        seen.append(stage.forward(m, one).T)  # of the identity: the weights
        if m >= ahead:
            found.append(linear.weight.detach().clone())
            toys.sent(stage.backward, m - ahead, gradient)
    return seen[:updates], found, stage


@pytest.mark.parametrize("optimizer", [sgd, averaging_sgd])
def test_a_perfect_predictor_sees_the_future_weights(optimizer):
    """To the last bit, from the first forward on that has seen a step."""
    seen, found, stage = seen_and_found(optimizer)
    assert all(torch.equal(s, f) for s, f in zip(seen[3:], found[3:], strict=True))
    assert not torch.equal(seen[2], found[2])  # nothing to go by before the first update
    assert stage.versions.drift == {0: 1, 1: 1, 2: 3}


def test_adam_of_a_constant_gradient_is_foretold():
    seen, found, _ = seen_and_found(adamw)
    for s, f in zip(seen[3:], found[3:], strict=True):
        torch.testing.assert_close(s, f)


def test_weight_decay_is_foretold():
    seen, found, _ = seen_and_found(lambda p: adamw(p, weight_decay=0.1), ahead=1)
    for s, f in zip(seen[2:], found[2:], strict=True):
        torch.testing.assert_close(s, f)


def test_the_weights_are_what_they_were_after_a_forward():
    _, _, stage = seen_and_found(sgd)
    before = stage.module.weight.detach().clone()
    stage.forward(7, torch.eye(2))
    assert torch.equal(stage.module.weight, before)


@pytest.mark.parametrize("optimizer", [toys.adamw, toys.sgd])
def test_the_backward_is_nearer_to_the_forward_than_without(optimizer):
    def moved(weights):
        local = toys.pipeline(
            toys.stages(4), accumulation=1, weights=weights, optimizer=optimizer,
            measure_every=1, lr_lambda=lambda version: 0.1,
        )  # fmt: skip
        movements = local.train(toys.batches(40)).stages[0].movements[20:]
        return sum(movement.relative for movement in movements)

    assert moved("predicted") < 0.8 * moved("live")


def test_memory():
    """Weights set aside and a step, while a forward runs; nothing where nothing drifts."""
    modules = toys.stages(4)
    run = toys.pipeline(modules, accumulation=2, weights="predicted").train(toys.batches(16))
    units = [
        theory.parameter_units("predicted", theory.drift_bound(4, stage, 2)) for stage in range(4)
    ]
    assert [1 + extra for extra in copies(run, modules)] == units == [3, 3, 3, 1]


def test_an_optimizer_that_nobody_can_predict():
    with pytest.raises(ValueError, match="predict the steps of Adam, AdamW and SGD, not of Rprop"):
        Stage(0, 2, nn.Linear(2, 2), 1, torch.optim.Rprop, weights="predicted")


def test_parameters_that_the_optimizer_does_not_hold_are_not_moved():
    modules = toys.stages(3)

    def weights_only(parameters):
        return toys.adamw([parameter for parameter in parameters if parameter.dim() == 2])

    local = toys.pipeline(modules, accumulation=1, weights="predicted", optimizer=weights_only)
    biases = [
        module.get_parameter(name).clone()
        for module in modules
        for name, p in module.named_parameters()
        if p.dim() == 1
    ]
    local.train(toys.batches(8))
    after = [p for module in modules for p in module.parameters() if p.dim() == 1]
    assert toys.same(biases, after)
    for stage in local.stages:
        for parameter, step in zip(stage.weights.parameters, stage.weights.steps(), strict=True):
            assert bool(step.any()) == (parameter.dim() == 2)
