import gc
import weakref

import pytest
import torch
from torch import nn

from paci.stage.stage import Stage
from tests.paci import toys


def stage(index=1, stages=2, accumulation=2, optimizer=toys.sgd, **options):
    (module,) = toys.stages(1)
    return Stage(index, stages, module, accumulation, optimizer, loss_fn=toys.loss_fn, **options)


def test_a_window_is_one_step_on_the_mean_of_its_losses():
    last = stage(accumulation=3)
    module, batches = *toys.stages(1), toys.batches(3)
    mean = torch.stack([toys.loss_fn(module(x), y) for x, y in batches]).mean()
    mean.backward()
    toys.sgd(module.parameters()).step()

    losses = [last.forward(m, *batch) for m, batch in enumerate(batches)]
    for m in range(3):
        assert last.versions.version == 0
        toys.sent(last.backward, m)
    assert last.versions.version == 1
    assert torch.stack(losses).mean() == mean
    for ours, theirs in zip(last.module.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-7)
        assert ours.grad is None


def test_gradients_pass_on_unscaled_in_the_middle():
    middle, ((x, g),) = stage(0, 2), toys.batches(1)
    output = middle.forward(0, x)
    assert not output.requires_grad
    assert toys.sent(middle.backward, 0, g) is None
    middle, (module,) = stage(1, 3), toys.stages(1)
    middle.forward(0, x)
    x.requires_grad_()
    (expected,) = torch.autograd.grad(module(x), x, g)
    assert torch.equal(toys.sent(middle.backward, 0, g), expected)


def test_a_gradient_that_only_passes_through_is_not_copied():
    class Shift(nn.Linear):
        def forward(self, x):
            return x + self.bias

    middle, ((x, g),) = Stage(1, 3, Shift(1, toys.WIDTH), 1, toys.sgd), toys.batches(1)
    middle.forward(0, x)
    assert toys.sent(middle.backward, 0, g).data_ptr() == g.data_ptr()


@pytest.mark.parametrize("kind", ["backward", "backward_input"])
def test_what_leaves_a_stage_is_contiguous(kind):
    """An output is contiguous, as at another rank: other strides may mean other roundings there."""

    class Turned(nn.Linear):
        def forward(self, x):
            return super().forward(x.t()).t()

    middle, x = Stage(1, 3, Turned(toys.ROWS, toys.ROWS), 1, toys.sgd), toys.batches(1)[0][0]
    output = middle.forward(0, x)
    gradient = toys.sent(getattr(middle, kind), 0, torch.randn(output.shape))
    assert output.is_contiguous()
    assert gradient.is_contiguous()
    assert middle.evaluate(x).is_contiguous()


def test_an_output_that_ignores_the_input_is_an_error():
    class Deaf(nn.Linear):
        def forward(self, x):
            return super().forward(torch.ones_like(x))

    middle, ((x, g),) = Stage(1, 3, Deaf(toys.WIDTH, 2), 1, toys.sgd), toys.batches(1)
    middle.forward(0, x)
    with pytest.raises(ValueError, match="must depend on its input"):
        toys.sent(middle.backward, 0, g[:, :2])


def test_an_update_in_between_changes_what_the_backward_reads():
    """The input gradient is that of the new weights, the weight gradient that of the old input."""
    linear = nn.Linear(4, 4, bias=False)
    middle = Stage(1, 3, linear, 1, lambda p: torch.optim.SGD(p, lr=1.0))
    (x0, g0), (x1, g1) = toys.batches(2)
    old = linear.weight.detach().clone()
    middle.forward(0, x0)
    output = middle.forward(1, x1)
    toys.sent(middle.backward, 0, g0)
    new = old - g0.T @ x0
    assert torch.equal(output, x1 @ old.T)
    torch.testing.assert_close(toys.sent(middle.backward, 1, g1), g1 @ new)
    torch.testing.assert_close(linear.weight.detach(), new - g1.T @ x1)
    assert middle.versions.drift == {0: 1, 1: 1}


def test_the_learning_rate_follows_the_stages_own_version():
    last, rates = stage(accumulation=1, lr_lambda=lambda version: 1 / (1 + version)), []
    for m, batch in enumerate(toys.batches(3)):
        rates.append(last.learning_rate)
        last.forward(m, *batch)
        toys.sent(last.backward, m)
    assert rates == pytest.approx([0.1, 0.1 / 2, 0.1 / 3])
    last.at_version(9)
    assert last.learning_rate == pytest.approx(0.1 / 10)


def test_each_stage_may_have_a_learning_rate_of_its_own():
    factors = [lambda version, stage=stage: (1 + stage) / 4 for stage in range(2)]
    assert stage(index=0, lr_lambda=factors).learning_rate == pytest.approx(0.1 / 4)
    assert stage(index=1, lr_lambda=factors).learning_rate == pytest.approx(0.1 / 2)
    with pytest.raises(ValueError, match="one for each of the 3 stages, not 2 functions"):
        stage(stages=3, lr_lambda=factors)


def test_each_parameter_group_keeps_its_own_rate():
    def optimizer(parameters):
        weight, bias = parameters
        return torch.optim.SGD([{"params": [weight], "lr": 0.1}, {"params": [bias], "lr": 0.01}])

    last = stage(optimizer=optimizer, lr_lambda=lambda version: 0.5**version)
    last.at_version(2)
    assert [g["lr"] for g in last.optimizer.param_groups] == pytest.approx([0.025, 0.0025])


def test_dropout_depends_on_seed_stage_and_microbatch_only():
    def output(seed, index, m, before=()):
        (module,) = toys.stages(1, dropout=0.5)
        one = Stage(index, 9, module, 1, toys.sgd, seed=seed)
        x = torch.ones(50, toys.WIDTH)
        for other in before:
            one.forward(other, x)
        return one.forward(m, x)

    assert torch.equal(output(0, 1, 5), output(0, 1, 5, before=(7, 3)))
    for other in ((1, 1, 5), (0, 2, 5), (0, 1, 6)):
        assert not torch.equal(output(0, 1, 5), output(*other))


def test_evaluation_leaves_no_trace():
    (module,) = toys.stages(1, dropout=0.5)
    one, ((x, y),) = Stage(0, 1, module, 1, toys.sgd, loss_fn=toys.loss_fn), toys.batches(1)
    state = torch.get_rng_state()
    loss = one.evaluate(x, y)
    assert loss == one.evaluate(x, y)
    assert not loss.requires_grad
    assert one.module.training
    assert one.saved.peak.activations == one.versions.peak_in_flight == 0
    assert torch.equal(torch.get_rng_state(), state)


def test_a_stage_has_something_to_train():
    with pytest.raises(ValueError, match="stage 3 has no parameters to train"):
        Stage(3, 4, nn.Tanh(), 1, toys.sgd)


def test_unknown_weights():
    with pytest.raises(ValueError, match="unknown weights 'frozen'"):
        stage(weights="frozen")


def run_split(one, batches, when):
    """Forwards and input gradients of a window at once, then its weight gradients in order."""
    results = []
    for m, (x, g) in enumerate(batches):
        one.forward(m, x)
        backward = one.backward_input if when == "split" else one.backward
        results.append(toys.sent(backward, m, g))
    if when == "split":
        assert one.versions.version == 0
        for m in range(len(batches)):
            one.backward_weight(m)
    return results


@pytest.mark.parametrize("index", [0, 1])
def test_two_halves_of_a_backward_are_the_whole(index):
    """At stage 0 the first does nothing, for nobody waits for it."""
    whole, split = (stage(index, stages=3, accumulation=3) for _ in "ws")
    batches = toys.batches(3)
    assert toys.same(run_split(whole, batches, "whole"), run_split(split, batches, "split"))
    assert toys.same(toys.weights([whole.module]), toys.weights([split.module]))
    assert whole.versions.version == split.versions.version == 1
    assert whole.versions.drift == split.versions.drift == {0: 3}
    assert (whole.versions.peak_in_flight, split.versions.peak_in_flight) == (1, 3)


def test_the_last_stage_splits_too():
    whole, split = (stage(accumulation=2) for _ in "ws")
    for m, batch in enumerate(toys.batches(2)):
        assert whole.forward(m, *batch) == split.forward(m, *batch)
        assert torch.equal(toys.sent(whole.backward, m), toys.sent(split.backward_input, m))
        split.backward_weight(m)
    assert toys.same(toys.weights([whole.module]), toys.weights([split.module]))


def test_a_weight_gradient_after_an_update_is_what_it_was_before():
    """0 and 1 are in flight; the update of 0 comes between the halves of 1, whose first half saw
    the weights of then."""
    linear = nn.Linear(4, 4, bias=False)
    middle = Stage(1, 3, linear, 1, lambda p: torch.optim.SGD(p, lr=1.0))
    (x0, g0), (x1, g1) = toys.batches(2)
    old = linear.weight.detach().clone()
    middle.forward(0, x0), middle.forward(1, x1)
    toys.sent(middle.backward_input, 0, g0)
    assert torch.equal(toys.sent(middle.backward_input, 1, g1), g1 @ old)
    middle.backward_weight(0)
    assert middle.versions.version == 1
    middle.backward_weight(1)
    torch.testing.assert_close(linear.weight.detach(), old - g0.T @ x0 - g1.T @ x1)
    assert middle.versions.drift == {0: 2}
    assert middle.versions.staleness == {0: 1, 1: 1}


def test_stage_0_meets_its_weights_in_the_second_half():
    first = Stage(0, 3, nn.Linear(4, 4), 1, toys.sgd)
    (x0, g0), (x1, g1) = toys.batches(2)
    first.forward(0, x0), first.forward(1, x1)
    assert toys.sent(first.backward_input, 0, g0) is toys.sent(first.backward_input, 1, g1) is None
    first.backward_weight(0), first.backward_weight(1)
    assert first.versions.drift == {0: 1, 1: 1}


def test_what_is_held_between_the_halves():
    """The activations of the forward and the gradient of the output of the linear."""
    middle, ((x, g),) = stage(stages=3, accumulation=2), toys.batches(1)
    middle.forward(0, x)
    before = middle.saved.peak.activations
    toys.sent(middle.backward_input, 0, g)
    assert middle.saved.peak.activations == before + 4 * toys.ROWS * toys.WIDTH
    middle.backward_weight(0)
    middle.forward(1, x)
    assert middle.saved.peak.activations == before + 4 * toys.ROWS * toys.WIDTH


def test_a_probe_leaves_no_graph():
    """Not even until the garbage collector comes by: training needs the memory."""
    outputs = []

    class Noting(nn.Linear):
        def forward(self, input):
            output = super().forward(input)
            outputs.append(weakref.ref(output))
            return output.relu()

    stage = Stage(1, 3, Noting(3, 3), 1, toys.adamw)
    gc.disable()
    try:
        stage.probe(torch.ones(2, 3))
        assert [output() for output in outputs] == [None]
    finally:
        gc.enable()
