from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from paci import Compute
from paci.stage.compute import PRECISIONS
from paci.stage.stage import Stage
from tests.paci import toys

RECOMPUTED = Compute(recompute="stage")
LOW = Compute(precision="bfloat16")
DELAYED = [("paci", 2), ("async-1f1b", 1), ("zb-h1", 4), ("interleaved-1f1b", 4), ("paci", 4)]


def train(count: int, *arguments, dropout: float = 0.3, updates: int = 6, **options):
    """Return (weights, losses, pipeline) after so many windows."""
    modules = toys.stages(count, dropout)
    local = toys.pipeline(modules, *arguments, **options)
    run = local.train(toys.batches(updates * local.accumulation))
    return toys.weights(modules), run.losses, run


def float_loss(output, target):
    return toys.loss_fn(output.float(), target)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"precision": "float16"}, "precision must be float32 or .* or bfloat16, not 'float16'"),
        ({"recompute": True}, "recompute must be none or stage, not True"),
        ({"compile": "yes"}, "compile must be true or false, not 'yes'"),
    ],
)
def test_other_values_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Compute(**options)


@pytest.mark.parametrize(("schedule", "a"), DELAYED)
@pytest.mark.parametrize("weights", ["stashed", "double-buffered"])
def test_recomputation_on_the_weights_of_the_forward_changes_nothing(schedule, a, weights):
    if weights == "double-buffered" and (schedule, a) in DELAYED[:2]:
        pytest.skip("two versions do not serve it")
    kept = train(4, schedule, a, weights=weights)
    again = train(4, schedule, a, weights=weights, compute=RECOMPUTED)
    assert again[1] == kept[1]
    assert toys.same(again[0], kept[0])
    assert again[2].drift == kept[2].drift


def test_recomputation_on_live_weights_gives_the_gradient_at_the_weights_of_the_backward():
    """One stage, by hand: the forward sees w, the backward w'."""
    (module,) = toys.stages(1)
    stage = Stage(1, 3, module, 1, toys.sgd, compute=RECOMPUTED)
    ((x, g), (y, h)) = toys.batches(2)
    stage.begin_segment()
    stage.forward(0, x)
    stage.forward(1, y)
    toys.sent(stage.backward, 0, g)  # an update
    now = deepcopy(module)
    y = y.clone().requires_grad_()
    (expected,) = torch.autograd.grad(now(y), y, h)
    assert torch.equal(toys.sent(stage.backward, 1, h), expected)


def test_recomputation_on_live_weights_differs_where_weights_drift():
    kept, again = (train(4, "paci", 2, compute=compute)[1] for compute in (None, RECOMPUTED))
    assert kept[:2] == again[:2]
    assert kept != again
    kept, again = (train(4, "1f1b-flush", 4, compute=c) for c in (None, RECOMPUTED))
    assert toys.same(kept[0], again[0])


def test_recomputation_keeps_inputs_and_one_micro_batch_of_activations():
    N = 4
    kept = train(N, "paci", 4)[2].stages
    again = train(N, "paci", 4, compute=RECOMPUTED)[2].stages
    input = 4 * toys.ROWS * toys.WIDTH
    for i, stage in enumerate(again):
        of_one = kept[i].peak_held.activations // (N - i)
        assert of_one > input
        assert stage.peak_held.activations == (N - i - 1) * input + of_one
        assert stage.peak_in_flight == N - i


@pytest.mark.parametrize("recompute", ["none", "stage"])
@pytest.mark.parametrize("schedule", ["1f1b-flush", "gpipe", "zb-h1"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_flush_equals_plain_accumulation_on_the_whole_model(precision, schedule, recompute):
    a, windows = 4, 5
    modules = toys.stages(3)
    local = toys.pipeline(
        modules, schedule, a, loss_fn=float_loss, compute=Compute(precision, recompute)
    )
    losses = local.train(toys.batches(a * windows)).losses

    plain = nn.Sequential(*toys.stages(3))
    low = deepcopy(plain).bfloat16() if precision == "bfloat16" else plain
    optimizer = toys.adamw(plain.parameters())
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, toys.warm_up)
    expected = []
    for m, (x, y) in enumerate(toys.batches(a * windows)):
        x = x.bfloat16() if precision == "bfloat16" else x
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16-autocast"):
            output = low(x)
        loss = float_loss(output, y)
        loss.backward(torch.full_like(loss, 1 / a))
        expected.append(loss.item())
        if low is not plain:
            for p, q in zip(plain.parameters(), low.parameters(), strict=True):
                p.grad = q.grad.float() if p.grad is None else p.grad + q.grad.float()
                q.grad = None
        if (m + 1) % a == 0:
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            with torch.no_grad():
                for p, q in zip(plain.parameters(), low.parameters(), strict=True):
                    q.copy_(p)
    assert losses == expected
    assert toys.same(toys.weights(modules), toys.weights(plain))


def linear_losses(precision: str, weights: str) -> tuple[list[float], list]:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        modules = [nn.Linear(toys.WIDTH, toys.WIDTH, bias=False) for _ in range(4)]
    local = toys.pipeline(
        modules, "paci", 2, weights=weights, loss_fn=float_loss,
        compute=Compute(precision=precision),
    )  # fmt: skip
    run = local.train(toys.batches(32))
    return run.losses, run.stages


def test_under_autocast_live_weights_are_stashed_in_effect_and_in_bfloat16_they_are_not():
    """A linear layer under autocast keeps a cast of the weights of its forward."""
    live, stashed = (linear_losses("bfloat16-autocast", weights) for weights in ("live", "stashed"))
    assert live[0] == stashed[0]
    assert [stage.copied > 0 for stage in live[1]] == [False, True, True, True]

    live, stashed = (linear_losses("bfloat16", weights) for weights in ("live", "stashed"))
    assert live[0] != stashed[0]
    assert [stage.peak_held.copies for stage in live[1]] == [0] * 4
    assert [stage.copied for stage in live[1]] == [0] * 4
    assert [max(stage.drift) for stage in live[1]] == [2, 1, 1, 0]


def test_recomputed_under_autocast_live_weights_drift():
    """The graph is made by the backward, from casts of the newest weights."""
    both = Compute("bfloat16-autocast", "stage")
    with torch.random.fork_rng():
        torch.manual_seed(1)
        layers = [nn.Linear(toys.WIDTH, toys.WIDTH, bias=False) for _ in range(4)]
    runs = {
        weights: toys.pipeline(
            deepcopy(layers), "paci", 2, weights=weights, loss_fn=float_loss, compute=both
        ).train(toys.batches(32))
        for weights in ("live", "stashed")
    }
    assert runs["live"].losses != runs["stashed"].losses
    assert [stage.copied for stage in runs["live"].stages] == [0] * 4
    assert runs["stashed"].losses == linear_losses("bfloat16-autocast", "stashed")[0]


@pytest.mark.parametrize("schedule", ["1f1b-flush", "zb-h1", "paci"])
def test_recomputation_writes_running_statistics_once(schedule):
    found = []
    for compute in (Compute(), RECOMPUTED):
        modules = [
            nn.Sequential(module, nn.BatchNorm1d(toys.WIDTH)) for module in toys.stages(3, 0.3)
        ]
        local = toys.pipeline(modules, schedule, 4, weights="stashed", compute=compute)
        losses = local.train(toys.batches(16)).losses
        found.append([losses, [list(module.buffers()) for module in modules]])
    assert toys.same(*found)


class Wrapped(nn.Sequential):
    """A stage that computes its own forward again, whatever the pipeline does."""

    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("weights", ["live", "stashed"])
def test_a_checkpoint_inside_a_stage_does_what_recomputation_of_the_stage_does(weights, precision):
    """Dropout included; and inside a recomputed stage it changes nothing any more."""
    runs = []
    for wrap, recompute in ((nn.Sequential, "stage"), (Wrapped, "none"), (Wrapped, "stage")):
        modules = [wrap(*module) for module in toys.stages(4, dropout=0.3)]
        local = toys.pipeline(
            modules, "paci", 2, weights=weights, loss_fn=float_loss,
            compute=Compute(precision, recompute),
        )  # fmt: skip
        run = local.train(toys.batches(16))
        runs.append([run.losses, toys.weights(modules), [s.copied for s in run.stages]])
    assert toys.same(runs[0], runs[1])
    assert toys.same(runs[0], runs[2])


def test_in_bfloat16_messages_are_so_and_the_masters_are_counted():
    (module,) = toys.stages(1)
    stage = Stage(1, 3, module, 1, toys.sgd, compute=LOW)
    ((x, g),) = toys.batches(1)
    stage.begin_segment()
    assert stage.probe(x).dtype == stage.evaluate(x).dtype == torch.bfloat16
    assert stage.forward(0, x.bfloat16()).dtype == torch.bfloat16
    assert toys.sent(stage.backward, 0, g.bfloat16()).dtype == torch.bfloat16
    masters = 4 * sum(p.numel() for p in module.parameters())
    assert stage.saved.peak.optimizer == 2 * masters  # momentum and masters
    assert stage.saved.peak.gradients == masters
    assert {p.dtype for p in module.parameters()} == {torch.float32}


@pytest.mark.parametrize("weights", ["stashed", "double-buffered", "predicted", "corrected"])
def test_every_policy_trains_in_bfloat16_close_to_float32(weights):
    losses = [
        train(3, "paci", 4, weights=weights, loss_fn=float_loss, compute=compute, dropout=0)[1]
        for compute in (Compute(), LOW)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=0.1)
    assert losses[1] != losses[0]


@pytest.mark.parametrize("compute", [LOW, RECOMPUTED, Compute("bfloat16", "stage")], ids=str)
def test_resuming_equals_going_on(compute, tmp_path):
    options = {"loss_fn": float_loss, "weights": "double-buffered", "compute": compute}
    straight = toys.pipeline(toys.cut(toys.stages(3, 0.3), 3), "paci", 4, **options)
    straight.train(toys.batches(8))
    straight.save(tmp_path)
    expected = straight.train(toys.batches(8)).losses
    resumed = toys.pipeline(toys.cut(toys.stages(3, 0.3), 3), "paci", 4, **options)
    assert resumed.load(tmp_path)
    assert resumed.evaluate(toys.batches(2)) > 0
    assert resumed.train(toys.batches(8)).losses == expected


@pytest.mark.stress
def test_a_compiled_stage_sees_live_weights():
    plain, compiled = (
        train(3, "paci", 2, compute=Compute(compile=compile), dropout=0)[1]
        for compile in (False, True)
    )
    assert compiled == pytest.approx(plain, rel=1e-4)
    stashed = train(3, "paci", 2, weights="stashed", dropout=0)[1]
    assert plain != pytest.approx(stashed, rel=1e-4)
