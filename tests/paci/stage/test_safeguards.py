import math
from itertools import chain

import pytest
import torch
from torch import nn

from paci import Compute, NonFinite, Safeguards
from paci.stage.safeguards import GradientGuard
from tests.paci import toys

SKIP = Safeguards(on_nonfinite="skip")
FLUSHES = ["gpipe", "1f1b-flush", "zb-h1", "zb-h2", "zb-2p", "interleaved-1f1b", "zbv"]


def train(modules, *arguments, batches, **options):
    local = toys.pipeline(modules, *arguments, optimizer=toys.sgd, **options)
    run = local.train(batches)
    return toys.weights(modules), run


def flat(weights):
    return list(chain.from_iterable(weights))


def poisoned(batches, *numbers):
    """The same with inputs that are not numbers in some micro-batches."""
    return [(x * math.nan if m in numbers else x, target) for m, (x, target) in enumerate(batches)]


class SgdThatForgets(torch.optim.SGD):
    """SGD that leaves out its steps of some numbers."""

    def __init__(self, parameters, forgotten):
        super().__init__(parameters, lr=0.1, momentum=0.9)
        self.count, self.forgotten = -1, forgotten

    def step(self, closure=None):
        self.count += 1
        if self.count not in self.forgotten:
            super().step(closure)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"clip": "norm"}, "clip must be none or stage or global or running, not 'norm'"),
        ({"max_norm": 0}, "max_norm must be a number above 0, not 0"),
        ({"on_nonfinite": "hope"}, "on_nonfinite must be stop or skip, not 'hope'"),
        ({"most_skips": 0}, "most_skips must be .* at least 1, not 0"),
    ],
)
def test_other_values_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Safeguards(**options)


@pytest.mark.parametrize("schedule", ["paci", "zb-h1"])
def test_a_stage_clips_its_own_gradient(schedule):
    """A twin clips with PyTorch's own function in a hook of the optimizer."""
    batches = toys.batches(24)
    clipped, _ = train(
        toys.stages(3), schedule, 4, batches=batches, safeguards=Safeguards("stage", 0.05)
    )

    def clipping(parameters):
        parameters = list(parameters)
        optimizer = toys.sgd(parameters)
        optimizer.register_step_pre_hook(
            lambda *_: nn.utils.clip_grad_norm_(parameters, 0.05) and None
        )
        return optimizer

    twin = toys.stages(3)
    toys.pipeline(twin, schedule, 4, optimizer=clipping).train(batches)
    free, _ = train(toys.stages(3), schedule, 4, batches=batches)
    for one, other in zip(flat(clipped), flat(toys.weights(twin)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-8)
    assert not toys.same(clipped, free)


@pytest.mark.parametrize("schedule", FLUSHES)
def test_the_global_norm_is_that_of_the_whole_model(schedule):
    a, windows, norm = 4, 4, 0.05
    modules = toys.stages(4)
    reported = []
    local = toys.pipeline(
        modules, schedule, a, optimizer=toys.sgd, safeguards=Safeguards("global", norm)
    )
    run = local.train(toys.batches(a * windows), reported.append)

    whole = nn.Sequential(*toys.stages(4))
    optimizer = toys.sgd(whole.parameters())
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, toys.warm_up)
    for m, (x, y) in enumerate(toys.batches(a * windows)):
        (toys.loss_fn(whole(x), y) / a).backward()
        if (m + 1) % a == 0:
            nn.utils.clip_grad_norm_(whole.parameters(), norm)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
    for one, other in zip(flat(toys.weights(modules)), whole.parameters(), strict=True):
        torch.testing.assert_close(one, other.detach(), rtol=1e-5, atol=1e-7)
    assert [update.number for update in reported] == [1, 2, 3, 4]
    assert [stage.drift for stage in run.stages] == [{0: a * windows}] * 4
    begun = [
        min(row.start for row in run.timeline.rows if row.microbatch // a == w)
        for w in range(windows)
    ]
    ended = [
        max(row.end for row in run.timeline.rows if row.microbatch // a == w)
        for w in range(windows)
    ]
    assert begun[1:] == ended[:-1]


def test_the_global_norm_is_refused_without_a_flush():
    with pytest.raises(ValueError, match="a schedule that flushes, and paci does not"):
        toys.pipeline(toys.stages(2), "paci", 4, safeguards=Safeguards("global"))


def test_a_running_norm_takes_spikes_away():
    guard = GradientGuard(0, Safeguards("running", 2.0))
    parameter = nn.Parameter(torch.zeros(4))
    seen = []
    for size in (1.0, 1.0, 1000.0, 1.0):
        parameter.grad = torch.full((4,), size)
        assert guard.admit([parameter], range(4), 0)
        seen.append(parameter.grad.norm().item())
    assert seen == pytest.approx([2, 2, 4, 2], rel=0.02)
    assert guard.state()[0] == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("schedule", ["1f1b-flush", "paci", "zb-h1"])
def test_a_skipped_window_is_left_out_and_versions_go_on(schedule):
    """A twin whose optimizers leave out the same step, on numbers in place of the others."""
    batches = toys.batches(24)
    skipped, run = train(
        toys.stages(3), schedule, 4, batches=poisoned(batches, 9, 11), safeguards=SKIP
    )
    twin = toys.stages(3)
    toys.pipeline(twin, schedule, 4, optimizer=lambda p: SgdThatForgets(p, [2])).train(batches)
    assert toys.same(skipped, toys.weights(twin))
    assert [[update for update, _ in stage.skipped] for stage in run.stages] == [[2]] * 3
    assert run.stages[2].skipped[0][1] == "the loss of micro-batch 9 is not finite"
    assert run.stages[0].skipped[0][1] == "the gradient of micro-batch 9 is not finite"


@pytest.mark.parametrize("weights", ["stashed", "double-buffered", "predicted", "corrected"])
def test_a_skipped_window_leaves_every_policy_whole(weights):
    modules = toys.stages(3)
    local = toys.pipeline(modules, "paci", 4, weights=weights, safeguards=SKIP)
    run = local.train(poisoned(toys.batches(24), 9))
    assert all(weight.isfinite().all() for weight in flat(toys.weights(modules)))
    assert [stage.versions.version for stage in local.stages] == [6] * 3
    assert math.isfinite(run.losses[-1])


def test_a_loss_that_is_not_finite_is_named():
    with pytest.raises(NonFinite, match="stage 2, update 3: the loss of micro-batch 9 is not"):
        train(toys.stages(3), "paci", 4, batches=poisoned(toys.batches(24), 9))


def test_a_gradient_that_is_not_finite_is_named():
    """It is made between two stages, by the square root of zero."""

    class Root(nn.Module):
        def forward(self, x):
            return (x * 0).abs().sqrt() + x

    modules = toys.stages(3)
    modules[1] = nn.Sequential(modules[1], Root())
    with pytest.raises(NonFinite, match="stage 0, update 1: the gradient of micro-batch 0 is not"):
        train(modules, "paci", 4, batches=toys.batches(8))


def test_what_is_found_early_is_left_out_of_its_own_window():
    """A rule may run an action of the next window before this one's update."""
    guard = GradientGuard(0, SKIP)
    parameter = nn.Parameter(torch.zeros(4))
    parameter.grad = torch.ones(4)
    guard.check("loss", torch.tensor(math.nan), microbatch=5, version=0)
    assert guard.admit([parameter], range(4), 0)
    assert not guard.admit([parameter], range(4, 8), 1)
    assert guard.skipped == [(1, "the loss of micro-batch 5 is not finite")]


def test_a_skipped_window_is_left_out_under_every_choice_of_computation():
    for compute in (Compute("bfloat16"), Compute("bfloat16-autocast"), Compute(recompute="stage")):
        batches = toys.batches(24)
        options = {"loss_fn": lambda x, y: toys.loss_fn(x.float(), y), "compute": compute}
        skipped, _ = train(
            toys.stages(3), "paci", 4, batches=poisoned(batches, 9), safeguards=SKIP, **options
        )
        twin = toys.stages(3)
        local = toys.pipeline(
            twin, "paci", 4, optimizer=lambda p: SgdThatForgets(p, [2]), **options
        )
        local.train(batches)
        assert toys.same(skipped, toys.weights(twin))


def test_too_many_left_out_in_a_row_stop():
    rules = Safeguards(on_nonfinite="skip", most_skips=3)
    two = poisoned(toys.batches(24), 0, 4, 12, 16)
    train(toys.stages(3), "paci", 4, batches=two, safeguards=rules)
    three = poisoned(toys.batches(24), 0, 4, 8)
    with pytest.raises(NonFinite, match="has left out 3 updates in a row, the last, 3, because"):
        train(toys.stages(3), "paci", 4, batches=three, safeguards=rules)


@pytest.mark.parametrize("rules", [Safeguards("running", 0.5), SKIP], ids=str)
def test_resuming_equals_going_on(rules, tmp_path):
    batches = poisoned(toys.batches(32), 9, 13)

    def pipeline():
        return toys.pipeline(toys.cut(toys.stages(3, 0.3), 3), "paci", 4, safeguards=rules)

    if rules is not SKIP:
        batches = toys.batches(32)
    straight = pipeline()
    straight.train(batches[:16])
    straight.save(tmp_path)
    straight.train(batches[16:])
    resumed = pipeline()
    assert resumed.load(tmp_path)
    resumed.train(batches[16:])
    for one, other in zip(straight.stages, resumed.stages, strict=True):
        assert toys.same(toys.weights([one.module]), toys.weights([other.module]))
        assert one.guard.state() == other.guard.state()
