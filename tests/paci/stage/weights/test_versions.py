"""Modules that notice which tensors their parameters are, under every policy."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.utils.checkpoint import checkpoint

from paci.stage.weights import WEIGHTS
from tests.paci import toys


class Recomputing(nn.Sequential):
    """A stage that computes its forward again during the backward."""

    def __init__(self, layers: nn.Sequential, use_reentrant: bool):
        super().__init__(*layers)
        self.use_reentrant, self.forwards = use_reentrant, 0

    def forward(self, x):
        return checkpoint(self.run, x, use_reentrant=self.use_reentrant)

    def run(self, x):
        self.forwards += 1
        return super().forward(x)


class Listing(nn.Sequential):
    """A stage that also holds its parameters in a plain list, and uses those."""

    def __init__(self, layers: nn.Sequential):
        super().__init__(*layers)
        self.listed = [self[0].weight, self[0].bias]

    def forward(self, x):
        return nn.functional.leaky_relu(nn.functional.linear(x, *self.listed), 0.5)


def trained(modules, weights, schedule="paci", count=16):
    accumulation = 4 if weights == "double-buffered" else 1
    local = toys.pipeline(modules, schedule, accumulation, weights=weights)
    losses = local.train(toys.batches(count)).losses
    return [losses, toys.weights(modules)]


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("weights", ["stashed", "double-buffered"])
def test_a_recomputed_forward_sees_the_version_of_the_forward(weights, use_reentrant):
    """So recomputing changes nothing, to the last bit. Stage 0 is left as it is: its input needs
    no gradient, and then a reentrant checkpoint has none for the weights either."""
    first, *others = toys.stages(4)
    recomputing = [first, *(Recomputing(module, use_reentrant) for module in others)]
    assert toys.same(trained(recomputing, weights), trained(toys.stages(4), weights))
    assert [module.forwards for module in recomputing[1:]] == [1 + 2 * 16] * 3


@pytest.mark.parametrize("weights", ["live", "predicted"])
def test_a_recomputed_forward_sees_the_newest_weights(weights):
    """Both kinds of checkpoint agree on that, and it is not what the first forward saw."""
    results = {}
    for use_reentrant in (False, True, None):
        first, *others = toys.stages(4)
        if use_reentrant is not None:
            others = [Recomputing(module, use_reentrant) for module in others]
        results[use_reentrant] = trained([first, *others], weights)
    assert toys.same(results[False], results[True])
    assert not toys.same(results[False], results[None])


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_reentrant_checkpoint_cannot_be_split(weights):
    first, second = toys.stages(2)
    local = toys.pipeline([first, Recomputing(second, True)], "zb-h1", 4, weights=weights)
    with pytest.raises(ValueError, match="with use_reentrant=False"):
        local.train(toys.batches(4))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_hooks_of_parameters_fire_as_in_plain_pytorch(weights):
    modules, calls = toys.stages(3), []
    for module in modules:
        module[0].weight.register_hook(lambda gradient: calls.append("hook") or 2 * gradient)
        module[0].weight.register_post_accumulate_grad_hook(lambda p: calls.append("accumulated"))
    hooked = trained(modules, weights)
    assert calls.count("hook") == calls.count("accumulated") == 3 * 16
    assert not toys.same(hooked, trained(toys.stages(3), weights))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_registered_parameters_may_be_kept_in_a_list_as_well(weights):
    listing = [Listing(module) for module in toys.stages(4)]
    assert toys.same(trained(listing, weights), trained(toys.stages(4), weights))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_recurrent_layer_which_does_so(weights):
    class Recurrent(nn.GRU):
        def forward(self, x):
            return super().forward(x)[0]

    class Plain(nn.Module):
        """The same, with no list: weights are looked up at each call."""

        def __init__(self, gru):
            super().__init__()
            self.gru = gru

        def forward(self, x):
            self.gru._flat_weights = [getattr(self.gru, n) for n in self.gru._flat_weights_names]
            return self.gru(x)[0]

    torch.manual_seed(0)
    one = [Recurrent(toys.WIDTH, toys.WIDTH) for _ in range(3)]
    other = [Plain(copy.deepcopy(module)) for module in one]
    for module in other:
        module.gru.__class__ = nn.GRU
    assert toys.same(trained(one, weights), trained(other, weights))


def test_parameters_that_are_only_in_a_list_are_refused():
    class Hidden(nn.Linear):
        def __init__(self):
            super().__init__(toys.WIDTH, toys.WIDTH)
            self.hidden = [nn.Parameter(torch.ones(toys.WIDTH))]

        def forward(self, x):
            return super().forward(x) * self.hidden[0]

    first, _ = toys.stages(2)
    local = toys.pipeline([first, Hidden()])
    with pytest.raises(ValueError, match=r"stage 1 trains a tensor of shape \(4,\) that is not"):
        local.train(toys.batches(4))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_between_segments_parameters_may_be_bound_to_other_tensors(weights):
    """All of these bind `p.data`, which an alias from the segment before would not notice."""
    modules = toys.stages(3)
    local = toys.pipeline(modules, weights=weights, optimizer=toys.sgd)
    local.train(toys.batches(8))
    for module in modules:
        vector_to_parameters(
            torch.zeros_like(parameters_to_vector(module.parameters())), module.parameters()
        )
    assert not any(w.any() for stage in toys.weights(modules) for w in stage)
    x, y = toys.batches(1)[0]
    assert local.evaluate([(x, y)]) == toys.loss_fn(torch.zeros_like(y), y)
    losses = local.train(toys.batches(8)).losses
    if weights in ("live", "stashed"):  # the others look back, or ahead, by what they remember
        assert losses[0] == toys.loss_fn(torch.zeros_like(y), y)

    for module in modules:
        module.double()
    batches = [(x.double(), y.double()) for x, y in toys.batches(8)]
    for stage in local.stages:
        stage.optimizer.state.clear()
    local.train(batches)
    assert all(w.dtype == torch.float64 for stage in toys.weights(modules) for w in stage)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_of_a_pipeline_goes_on_by_itself(weights, copied):
    modules, batches = toys.stages(3), toys.batches(16)
    local = toys.pipeline(modules, weights=weights)
    local.train(batches[:8])
    other = copied(local)
    before = toys.weights(modules)
    losses = other.train(batches[8:]).losses
    assert toys.same(toys.weights(modules), before)
    assert local.train(batches[8:]).losses == losses
    assert toys.same(toys.weights(s.module for s in other.stages), toys.weights(modules))
