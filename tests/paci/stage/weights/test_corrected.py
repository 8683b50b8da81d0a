from functools import partial

import pytest
import torch
from torch import nn

from paci.schedules import theory
from paci.schedules.delay import delay_of_limit
from paci.schedules.paci import PACI
from paci.stage.stage import Stage
from paci.stage.weights.corrected import Corrected
from tests.paci import toys
from tests.paci.stage.weights.test_stashed import copies


def test_decay_none_and_one_step_of_drift_are_the_past_weights_exactly():
    """Two stages, a = 1: stage 0 drifts by one; its gradient of the input tells what it saw."""
    linear = nn.Linear(2, 2, bias=False)
    linear.weight.data = torch.tensor([[1.0, 2.0], [3.0, -4.0]])
    stage = Stage(
        1, 3, linear, 1, lambda p: torch.optim.SGD(p, lr=0.125),
        weights=partial(Corrected, decay=0.0),
    )  # fmt: skip
    one, gradients = (
        torch.eye(2),
        torch.tensor([[[1.0, -2.0], [0.5, 4.0]], [[3.0, 1.0], [2.0, 1.0]]]),
    )
    history = []
    stage.forward(0, one)
    for m in range(1, 8):
        history.append(linear.weight.detach().clone())
        stage.forward(m, one)
        gradient = gradients[m % 2]
        read = torch.linalg.solve(gradient, toys.sent(stage.backward, m - 1, gradient))
        expected = history[max(m - 2, 0)]
        torch.testing.assert_close(read, expected)
        if m > 1:
            assert not torch.equal(expected, history[m - 1])
    assert stage.versions.drift == {0: 1, 1: 6}


def test_decay_none_and_one_step_of_drift_train_as_stashed_weights():
    """Drift is at most one, so all that is left of it is rounding."""
    ours, theirs = toys.stages(4), toys.stages(4)
    one, other = (
        toys.pipeline(modules, accumulation=4, weights=weights, optimizer=toys.sgd)
        for modules, weights in ((ours, partial(Corrected, decay=0.0)), (theirs, "stashed"))
    )
    losses = one.train(toys.batches(40)).losses
    torch.testing.assert_close(losses, other.train(toys.batches(40)).losses)
    torch.testing.assert_close(toys.weights(ours), toys.weights(theirs))


@pytest.mark.parametrize("limits", [{"slack": 2}, {"in_flight": [1, 7, 2, 1]}])
def test_changes_fade_over_the_delay_at_the_limits_of_the_schedule(limits):
    local = toys.pipeline(toys.stages(4), PACI(4, 2, **limits), None, weights="corrected")
    for stage in local.stages:
        delay = delay_of_limit(theory.in_flight_bound(4, stage.index, **limits), 2)
        assert stage.weights.fading == (0.135 ** (1 / delay) if delay else 0.0)


def test_the_backward_is_nearer_to_the_forward_than_without():
    def moved(weights):
        local = toys.pipeline(
            toys.stages(4), accumulation=1, weights=weights, measure_every=1,
            lr_lambda=lambda version: 0.1,
        )  # fmt: skip
        run = local.train(toys.batches(40))
        assert run.stages[0].staleness == {0: 1, 1: 1, 2: 1, 3: 37} == run.drift[0]
        return sum(movement.relative for movement in run.stages[0].movements[20:])

    assert moved("corrected") < 0.5 * moved("live")


def test_the_weights_are_what_they_were_after_a_backward():
    modules = toys.stages(3)
    local = toys.pipeline(modules, accumulation=2, weights="corrected")
    stage, before = local.stages[0], []
    release = stage.weights.release

    def spy(microbatch):  # after a backward, before its update
        before.append((microbatch, toys.weights(modules)[0]))
        release(microbatch)

    stage.weights.release = spy
    local.train(toys.batches(8))
    for (m, ones), (_, others) in zip(before[1:], before, strict=False):
        assert toys.same(ones, others) == (m % 2 == 1)


def test_memory():
    """The mean change always; weights set aside, while a backward runs, where there is drift."""
    modules = toys.stages(4)
    run = toys.pipeline(modules, accumulation=2, weights="corrected").train(toys.batches(16))
    units = [
        theory.parameter_units("corrected", theory.drift_bound(4, stage, 2)) for stage in range(4)
    ]
    assert [1 + extra for extra in copies(run, modules)] == units == [3, 3, 3, 2]


@pytest.mark.parametrize(("index", "fading"), [(0, 0.25 ** (2 / 3)), (1, 0.25), (3, 0.0)])
def test_the_mean_fades_by_decay_over_the_delay_of_the_stage(index, fading):
    stage = Stage(
        index, 4, toys.layer(), 2, toys.sgd, loss_fn=toys.loss_fn,
        weights=partial(Corrected, decay=0.25),
    )  # fmt: skip
    assert stage.weights.fading == pytest.approx(fading)
