import pytest
import torch
from torch import nn

from paci.stage.stage import Stage
from paci.stage.weights import WEIGHTS, make_policy
from paci.stage.weights.policy import in_place
from tests.paci import toys


def stage(weights="live", index=0, stages=1, accumulation=1, optimizer=toys.sgd, module=None):
    module = module or toys.stages(1)[0]
    return Stage(
        index, stages, module, accumulation, optimizer, loss_fn=toys.loss_fn, weights=weights
    )


def test_a_change_in_place_is_what_the_backward_reads():
    weight, x = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    y = weight * x
    with in_place((weight,)):
        weight.fill_(5.0)
    y.backward()
    assert (x.grad, weight.grad) == (5, 3)


def test_autograd_refuses_any_other_change():
    weight, x = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    y = weight * x
    with torch.no_grad():
        weight.fill_(5.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_unknown_weights():
    with pytest.raises(
        ValueError,
        match="unknown weights 'old': choose from live, stashed, double-buffered, predicted, cor",
    ):
        make_policy("old")


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("optimizer", [toys.adamw, toys.sgd])
def test_without_a_pipeline_all_are_the_same(weights, optimizer):
    """One stage: a backward follows its forward, so there is nothing to answer."""
    modules, plain = toys.stages(1), toys.stages(1)
    run = toys.pipeline(modules, accumulation=1, weights=weights, optimizer=optimizer)
    losses = run.train(toys.batches(6)).losses
    expected = toys.pipeline(plain, accumulation=1, optimizer=optimizer).train(toys.batches(6))
    same = toys.same([losses, toys.weights(modules)], [expected.losses, toys.weights(plain)])
    # Double-buffered has a delay of one update, whether the pipeline asks for it or not.
    assert same == (weights != "double-buffered")


class Tied(nn.Module):
    """One weight at two places."""

    def __init__(self):
        super().__init__()
        self.one, self.two = (nn.Linear(toys.WIDTH, toys.WIDTH, bias=False) for _ in range(2))
        with torch.no_grad():
            self.one.weight.copy_(torch.eye(toys.WIDTH) + 0.1)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.two(torch.tanh(self.one(x)))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_weight_may_be_used_twice(weights):
    """An update between forward and backward; nothing to predict yet, nor two versions to hold."""
    module = Tied()
    one = stage(weights, index=1, stages=2, accumulation=2, module=module, optimizer=small_sgd)
    one.is_last = False  # in the middle of a longer pipeline, but two versions will do
    (x0, g0), (x1, g1), (x2, g2), _ = toys.batches(4)
    one.forward(0, x0), one.forward(1, x1), one.forward(2, x2)
    before = module.one.weight.detach().clone()
    toys.sent(one.backward, 0, g0), toys.sent(one.backward, 1, g1)
    after = module.one.weight.detach().clone()
    result = toys.sent(one.backward, 2, g2)

    backward_on = after if weights in ("live", "predicted") else before
    hidden = torch.tanh(x2 @ before.T)
    expected = ((g2 @ backward_on) * (1 - hidden**2)) @ backward_on
    torch.testing.assert_close(result, expected)
    assert module.two.weight is module.one.weight is one.optimizer.param_groups[0]["params"][0]


def small_sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_evaluation_is_on_the_newest_weights(weights):
    N, batches = 3, toys.batches(12)
    modules = toys.stages(N)
    local = toys.pipeline(modules, accumulation=3, weights=weights)
    seen = []

    def on_update(update):
        seen.append((local.evaluate(batches), nn.Sequential(*modules)(batches[0][0])))

    local.train(batches, on_update)
    model = nn.Sequential(*modules)
    with torch.no_grad():
        expected = torch.stack([toys.loss_fn(model(x), y) for x, y in batches]).mean()
    assert local.evaluate(batches) == pytest.approx(expected.item())
    assert len(seen) == 4


@pytest.mark.parametrize("weights", ["double-buffered", "corrected", "predicted"])
def test_state_goes_on(weights):
    """A policy's state between updates survives a checkpoint, in whatever form it comes back."""
    batches, N, a = toys.batches(16), 3, 4
    whole, parts, resumed = toys.stages(N), toys.stages(N), toys.stages(N)
    one, two, three = (
        toys.pipeline(modules, accumulation=a, weights=weights, optimizer=small_sgd)
        for modules in (whole, parts, resumed)
    )
    for half in (batches[:8], batches[8:]):
        one.train(half)
    two.train(batches[:8])
    for ours, theirs in zip(three.stages, two.stages, strict=True):
        ours.module.load_state_dict(theirs.module.state_dict())
        ours.optimizer.load_state_dict(theirs.optimizer.state_dict())
        ours.at_version(theirs.versions.version)
        state = theirs.weights.state()
        assert state
        ours.weights.load({key: [t.detach().clone() for t in state[key]] for key in state})
    three.microbatch = two.microbatch
    three.train(batches[8:])
    assert toys.same(toys.weights(resumed), toys.weights(whole))
