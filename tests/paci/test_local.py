import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from paci import Cost, simulate
from paci.cost import Durations
from paci.stage.rng import rng_of
from tests.paci import toys, twin

SEED = 5


def accumulated(modules, batches, accumulation, optimizer):
    """Plain gradient accumulation on the unsplit model, with the draws of the split one."""
    model = nn.Sequential(*modules)
    update = optimizer(model.parameters())
    rate, losses = update.param_groups[0]["lr"], []
    for m, (x, target) in enumerate(batches):
        for index, stage in enumerate(model):
            with rng_of(SEED, index, m, x.device):
                x = stage(x)
        loss = toys.loss_fn(x, target)
        (loss / accumulation).backward()
        losses.append(loss.item())
        if (m + 1) % accumulation == 0:
            update.param_groups[0]["lr"] = rate * toys.warm_up(m // accumulation)
            update.step()
            update.zero_grad()
    return losses, toys.weights(modules)


@pytest.mark.parametrize("optimizer", [toys.adamw, toys.sgd])
@pytest.mark.parametrize(
    ("schedule", "N", "a"),
    [
        ("1f1b-flush", 4, 6), ("1f1b-flush", 4, 3), ("1f1b-flush", 1, 3),
        ("gpipe", 4, 6), ("gpipe", 3, 1),
        ("interleaved-1f1b", 6, 6), ("zb-h1", 4, 6), ("zb-h2", 4, 9), ("zb-1p", 4, 6),
        ("zb-2p", 4, 9), ("zbv", 6, 7), ("dualpipev", 4, 6), ("dualpipev", 6, 8),
        ("paci", 1, 3), ("async-1f1b", 1, 1),
    ],
)  # fmt: skip
def test_equals_gradient_accumulation_to_the_last_bit(schedule, N, a, optimizer):
    modules, batches = toys.stages(N, dropout=0.3), toys.batches(5 * a)
    cost = Cost([1.0 + i for i in range(N)], transfer=0.3, jitter=0.3)
    run = toys.pipeline(modules, schedule, a, optimizer=optimizer, cost=cost, seed=SEED)
    losses = run.train(batches).losses
    expected = accumulated(toys.stages(N, dropout=0.3), batches, a, optimizer)
    assert toys.same([losses, toys.weights(modules)], [*expected])


CASES = [  # stages, accumulation, slack, cost, dropout
    (1, 2, 0, Cost(), 0.0),
    (2, 1, 0, Cost(), 0.0),
    (4, 1, 0, Cost(), 0.0),
    (4, 2, 0, Cost(1, 1), 0.3),
    (4, 3, 0, Cost(3, 2), 0.0),
    (6, 4, 0, Cost(), 0.3),
    (5, 2, 3, Cost(1, 1, transfer=1.5), 0.0),
    (3, 4, 2, Cost(1, 1.5, transfer=0.3, jitter=0.3, update=0.2), 0.3),
    (4, 2, 1, Cost([1, 3, 1, 2], [2, 2, 5, 1], update=1, transfer=[0, 1, 2, 0]), 0.0),
]


def both(case, optimizer=toys.adamw, weights="live", twins_weights=None):
    """Train a case with LocalPipeline and with the twin, and return both."""
    N, a, slack, cost, dropout = case
    modules, batches = toys.stages(N, dropout), toys.batches(8 * a)
    before = toys.weights(modules)
    local = toys.pipeline(
        modules, "paci", a, slack=slack, weights=weights, optimizer=optimizer, cost=cost, seed=SEED
    )
    run = local.train(batches)

    d = Durations(cost, N, len(batches), SEED)
    rows = twin.clock(
        N,
        a,
        slack,
        len(batches),
        lambda kind, i, m: d.of[kind][i][m],
        d.update,
        [time for time, *_ in d.transfer],
    )

    def masks(stage, m):
        with rng_of(SEED, stage, m, torch.device("cpu")):
            return F.dropout(torch.ones(toys.ROWS, toys.WIDTH), dropout)

    losses, after = twin.train(
        rows, before, batches, a, optimizer, toys.warm_up, masks, twins_weights or weights,
        slack=slack,
    )  # fmt: skip
    assert sorted(rows) == sorted(twin.Row(*row[1:]) for row in run.timeline.rows)
    return run, [run.losses, toys.weights(modules)], [losses, after]


@pytest.mark.parametrize("optimizer", [toys.adamw, toys.sgd])
@pytest.mark.parametrize("weights", ["live", "stashed"])
@pytest.mark.parametrize("case", CASES)
def test_equals_the_twin_to_the_last_bit(case, weights, optimizer):
    _, ours, twins = both(case, optimizer, weights)
    assert toys.same(ours, twins)


def test_nesterov_async_equals_the_twin_to_the_last_bit():
    def nadamw(parameters):
        return torch.optim.NAdam(
            parameters, lr=0.05, betas=(0.99, 0.95), weight_decay=0.1, decoupled_weight_decay=True
        )

    _, ours, twins = both((4, 1, 0, Cost(), 0.3), nadamw, "stashed")
    assert toys.same(ours, twins)


@pytest.mark.parametrize("case", CASES)
def test_the_twin_can_tell_live_from_stashed_weights(case):
    """Wherever a stage that has an input gradient to compute drifts, and only there."""
    run, ours, twins = both(case, twins_weights="stashed")
    drifts = any(max(drift) > 0 for drift in run.drift[1:])
    assert toys.same(ours, twins) != drifts


@pytest.mark.parametrize("optimizer", [toys.adamw, toys.sgd])
@pytest.mark.parametrize(
    "case",
    [
        (1, 2, 0, Cost(), 0.0),
        (3, 3, 0, Cost(), 0.3),
        (4, 6, 2, Cost(1, 1.5, transfer=0.3, jitter=0.3, update=0.2), 0.3),
        (4, 5, 0, Cost([1, 3, 1, 2], [2, 2, 5, 1], update=1, transfer=[0, 1, 2, 0]), 0.0),
    ],
)
def test_double_buffered_weights_equal_the_twin_to_the_last_bit(case, optimizer):
    _, ours, twins = both(case, optimizer, "double-buffered")
    assert toys.same(ours, twins)


@pytest.mark.parametrize("case", CASES)
def test_corrected_weights_equal_the_twin(case):
    """But for the order of roundings in the mean of the changes."""
    run, (losses, after), (twins_losses, twins_after) = both(case, toys.sgd, "corrected")
    torch.testing.assert_close(losses, twins_losses, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(after, twins_after, rtol=1e-4, atol=1e-6)
    if any(max(drift) > 0 for drift in run.drift[1:]):
        _, (_, live), _ = both(case, toys.sgd, "live", "live")
        assert not toys.same(after, live)


@given(toys.sizes(stages=4), st.sampled_from(["paci", "gpipe", "1f1b-flush"]))
@settings(max_examples=15)
def test_same_actions_as_the_simulation(sizes, schedule):
    sizes["slack"] = sizes["slack"] if schedule == "paci" else 0
    N, count = sizes.pop("stages"), sizes.pop("microbatches")
    local = toys.pipeline(toys.stages(N), schedule, **sizes)
    run = local.train(toys.batches(count))
    simulated = simulate(schedule, N, count, **sizes)
    assert run.timeline.rows == simulated.actions
    assert run.seconds == simulated.makespan
    assert [stage.peak_in_flight for stage in run.stages] == simulated.peak_in_flight
    assert [max(drift) for drift in run.drift] == simulated.max_drift
    assert [drift.total() for drift in run.drift] == [count] * N
    assert [
        stage.staleness for stage in run.stages
    ] == run.drift  # backwards are whole and in order


def test_a_flush_may_be_trained_in_segments():
    """Draws of dropout and of jitter go on where they were."""
    batches, cost = toys.batches(12), Cost(jitter=0.3)
    once, twice = (toys.stages(3, dropout=0.3) for _ in range(2))
    whole = toys.pipeline(once, "1f1b-flush", 3, cost=cost)
    parts = toys.pipeline(twice, "1f1b-flush", 3, cost=cost)
    losses = whole.train(batches).losses
    first, second = parts.train(batches[:6]), parts.train(batches[6:])
    assert toys.same(
        [losses, toys.weights(once)], [first.losses + second.losses, toys.weights(twice)]
    )
    assert parts.seconds == first.seconds + second.seconds == whole.seconds
    assert parts.microbatch == 12


def test_segments_of_paci_drain():
    local = toys.pipeline(toys.stages(4), accumulation=1)
    assert local.train(toys.batches(8)).drift[0] == {0: 1, 1: 1, 2: 1, 3: 5}
    assert local.train(toys.batches(4)).drift[0] == {0: 1, 1: 1, 2: 1, 3: 1}
    assert local.stages[0].versions.version == 12


def test_updates_are_reported_as_they_happen():
    updates = []
    local = toys.pipeline(toys.stages(2), accumulation=2, cost=Cost(1, 2))
    run = local.train(toys.batches(8), updates.append)
    assert [u.number for u in updates] == [1, 2, 3, 4]
    assert [u.learning_rate for u in updates] == pytest.approx([0.05 / 3, 0.1 / 3, 0.05, 0.05])
    expected = [sum(run.losses[k : k + 2]) / 2 for k in (0, 2, 4, 6)]
    assert [u.loss for u in updates] == pytest.approx(expected)
    ends = [s.end for s in run.timeline.rows if s.stage == 0 and s.kind == "B"]
    assert [u.seconds for u in updates] == ends[1::2]

    local.train(toys.batches(2), updates.append)
    assert updates[-1].number == 5
    assert updates[-1].seconds == local.seconds > run.seconds


@pytest.mark.parametrize("schedule", ["interleaved-1f1b", "zb-h1", "zb-2p", "zbv", "dualpipev"])
def test_an_update_is_reported_when_every_stage_has_made_it(schedule):
    updates, rate = [], [lambda version, stage=stage: 1 / (2 + stage) for stage in range(4)]
    local = toys.pipeline(toys.stages(4), schedule, 4, cost=Cost(1, [2, 3, 4, 5]), lr_lambda=rate)
    run = local.train(toys.batches(12), updates.append)
    assert [u.number for u in updates] == [1, 2, 3]
    expected = [sum(run.losses[k : k + 4]) / 4 for k in (0, 4, 8)]
    assert [u.loss for u in updates] == pytest.approx(expected)
    rows = run.timeline.rows
    ends = [max(row.end for row in rows if row.microbatch == m) for m in (3, 7, 11)]
    assert [u.seconds for u in updates] == ends
    assert [u.learning_rate for u in updates] == pytest.approx([0.05 / 2] * 3)


def test_movement_is_that_of_the_weights_between_forward_and_backward():
    """Two stages, a = 1: at the first, one update lies between forward and backward, but for 0."""
    modules = toys.stages(2)
    local = toys.pipeline(modules, accumulation=1, measure_every=2)

    def flat():
        return torch.cat([p.flatten() for p in toys.weights(modules)[0]])

    history = [flat()]
    run = local.train(toys.batches(6), lambda update: history.append(flat()))
    first, last = (stage.movements for stage in run.stages)
    assert [(m.update, m.microbatch, m.drift) for m in first] == [(0, 0, 0), (2, 2, 1), (4, 4, 1)]
    for m in first:
        now, then = history[m.update], history[m.update - m.drift]
        assert m.relative == pytest.approx((now - then).norm() / then.norm())
    assert first[1].relative > 0.01
    assert [m.relative for m in last] == [0, 0, 0]


def test_autocast_around_training_sees_the_new_weights():
    def train(modules):
        local = toys.pipeline(
            modules, loss_fn=lambda output, target: toys.loss_fn(output.float(), target)
        )
        return local.train(toys.batches(16)).losses

    inside = train([toys.Autocast(*stage) for stage in toys.stages(3)])
    with torch.autocast("cpu", torch.bfloat16):
        assert train(toys.stages(3)) == inside


def test_training_leaves_the_outer_generator_alone():
    state = torch.get_rng_state()
    local = toys.pipeline(toys.stages(2, dropout=0.5))
    local.train(toys.batches(4))
    local.evaluate(toys.batches(2))
    assert torch.equal(torch.get_rng_state(), state)


def test_evaluation():
    modules, batches = toys.stages(3, dropout=0.5), toys.batches(4)
    local = toys.pipeline(modules)
    model = nn.Sequential(*modules).eval()
    with torch.no_grad():
        expected = sum(toys.loss_fn(model(x), y).item() for x, y in batches) / 4
    before = toys.weights(modules)
    assert local.evaluate(batches) == pytest.approx(expected)
    assert toys.same(toys.weights(modules), before)


def test_nothing_to_evaluate_is_refused():
    with pytest.raises(ValueError, match=r"micro-batches to evaluate must be .* at least 1, not 0"):
        toys.pipeline(toys.stages(2)).evaluate([])


@pytest.mark.parametrize("index", [0, 1])
def test_a_stage_that_changes_its_input_is_refused_and_does_not(index):
    modules, batches = toys.stages(2), toys.batches(4)
    modules[index] = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(toys.WIDTH, toys.WIDTH))
    given, local = [[x.clone(), y.clone()] for x, y in batches], toys.pipeline(modules)
    with pytest.raises(ValueError, match=f"stage {index} changes its input in place"):
        local.train(batches)
    local.evaluate(batches)
    assert toys.same([list(batch) for batch in batches], given)


def test_frozen_weights():
    modules = toys.stages(3)
    modules[1].requires_grad_(False)
    before, local = toys.weights(modules), toys.pipeline(modules)
    local.train(toys.batches(4))
    assert [toys.same(*pair) for pair in zip(before, toys.weights(modules), strict=True)] == [
        *(False, True, False),
    ]
    modules[0].requires_grad_(False)
    with pytest.raises(ValueError, match=r"stage 0 has no .* to train: .* must not all be frozen"):
        toys.pipeline(modules)


def test_an_iterator_of_batches_will_do():
    local = toys.pipeline(toys.stages(2))
    assert len(local.train(iter(toys.batches(8))).losses) == 8


def wide(rows, width):
    return [(torch.ones(rows, width), torch.ones(rows, toys.WIDTH))] * 4


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "whole windows of 4, not 0"),
        (toys.batches(6), "whole windows of 4, not 6"),
        (wide(3, 7), r"stage 0 cannot take its input of shape \(3, 7\) \(target: \(3, 4\)\)"),
        ([(torch.ones(3, 4), torch.ones(2, 5))] * 4, r"stage 1 cannot .* \(target: \(2, 5\)\)"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_work(batches, message):
    modules = toys.stages(2)
    before, local = toys.weights(modules), toys.pipeline(modules)
    with pytest.raises(ValueError, match=message):
        local.train(batches)
    assert toys.same(toys.weights(modules), before)
    assert len(local.train(toys.batches(4)).losses) == 4


def test_a_later_microbatch_that_does_not_fit_is_refused_before_any_work():
    modules, batches = toys.stages(2), toys.batches(8)
    before, local = toys.weights(modules), toys.pipeline(modules)
    batches[6] = (torch.ones(3, 7), batches[6][1])
    with pytest.raises(ValueError, match=r"stage 0 cannot take its input of shape \(3, 7\)"):
        local.train(batches)
    assert toys.same(toys.weights(modules), before)


def test_stages_that_do_not_fit_together():
    local = toys.pipeline([toys.layer(), nn.Linear(5, 4)])
    with pytest.raises(ValueError, match=r"stage 1 cannot take its input of shape \(3, 4\)"):
        local.train(toys.batches(4))


def test_a_loss_is_one_number():
    local = toys.pipeline(toys.stages(2), loss_fn=lambda output, target: output - target)
    with pytest.raises(
        ValueError, match=r"loss_fn must give one number, as a tensor, not a shape of \(3, 4\)"
    ):
        local.train(toys.batches(4))


def test_cost_tables_and_weights_are_checked_at_once():
    with pytest.raises(ValueError, match=r"cost.forward must be .* the 2 stages, not 3"):
        toys.pipeline(toys.stages(2), cost=Cost(forward=[1, 2, 3]))
    with pytest.raises(ValueError, match="unknown weights 'stale'"):
        toys.pipeline(toys.stages(2), weights="stale")
    with pytest.raises(ValueError, match="measure_every must be a whole number of at least 0"):
        toys.pipeline(toys.stages(2), measure_every=-1)
    with pytest.raises(ValueError, match="stages must be a whole number of at least 1, not 0"):
        toys.pipeline([])


def test_stages_that_share_a_parameter_are_refused():
    shared = torch.nn.Linear(4, 4)
    with pytest.raises(ValueError, match="stages 0 and 2 share a parameter"):
        toys.pipeline([shared, torch.nn.Linear(4, 4), torch.nn.Sequential(shared)])


def test_a_refused_micro_batch_leaves_training_on():
    modules = toys.stages(2)
    local = toys.pipeline(modules)
    with pytest.raises(ValueError, match="cannot take its input"):
        local.train([(torch.ones(2, 99), torch.ones(2, 4))] * 4)
    assert all(module.training for module in modules)


@pytest.mark.parametrize("weights", ["live", "stashed", "double-buffered", "predicted"])
def test_a_segment_that_was_cut_short_leaves_nothing_but_weights(tmp_path, weights):
    """A new pipeline on the same modules goes on from the checkpoint as the undisturbed run."""

    def give_up(update):
        modules[1].eval()  # a callback that evaluates on its own, and is interrupted
        raise KeyboardInterrupt

    def make(modules):
        return toys.pipeline(modules, weights=weights, optimizer=toys.sgd)

    batches = toys.batches(24)
    modules, undisturbed = (toys.cut(toys.stages(3, 0.3), 3) for _ in range(2))
    local = make(modules)
    local.train(batches[:8])
    local.save(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        local.train(batches[8:], on_update=give_up)
    for action in (
        lambda: local.train(batches[:4]),
        lambda: local.evaluate(batches[:4]),
        lambda: local.save(tmp_path),
        lambda: local.load(tmp_path),
    ):
        with pytest.raises(RuntimeError, match="an earlier segment was cut short"):
            action()
    assert [path.name for path in tmp_path.iterdir()] == ["000000008"]

    other = make(undisturbed)
    other.train(batches[:8])
    losses = other.train(batches[8:]).losses
    resumed = make(modules)
    assert resumed.load(tmp_path)
    assert resumed.train(batches[8:]).losses == losses
    assert toys.same(toys.weights(modules), toys.weights(undisturbed))


def test_no_checkpoint_is_taken_inside_a_segment(tmp_path):
    local = toys.pipeline(toys.stages(2))
    with pytest.raises(RuntimeError, match="cannot save inside a segment"):
        local.train(toys.batches(8), on_update=lambda update: local.save(tmp_path))
    assert not any(tmp_path.iterdir())


def test_gradients_from_outside_do_not_enter():
    modules, others = toys.stages(2), toys.stages(2)
    for p in modules[0].parameters():
        p.grad = torch.ones_like(p)
    losses = toys.pipeline(modules).train(toys.batches(8)).losses
    assert losses == toys.pipeline(others).train(toys.batches(8)).losses


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b-flush", "zb-h1"])
def test_uneven_micro_batches_are_trained_on_as_the_whole_batch(schedule):
    modules, (whole,) = toys.stages(3), [nn.Sequential(*toys.stages(3))]
    batches = toys.uneven_batches([3, 3, 2, 2], windows=3)
    updates, local = [], toys.pipeline(modules, schedule, 4, batch=10, optimizer=toys.sgd)
    local.train(batches, updates.append)

    optimizer = toys.sgd(whole.parameters())
    for window in range(3):
        inputs, targets = zip(*batches[4 * window : 4 * window + 4], strict=True)
        loss = toys.loss_fn(whole(torch.cat(inputs)), torch.cat(targets))
        optimizer.param_groups[0]["lr"] = 0.1 * toys.warm_up(window)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        assert updates[window].loss == pytest.approx(loss.item(), rel=1e-5)
    expected = [list(module.parameters()) for module in whole]
    torch.testing.assert_close(toys.weights(modules), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("weights", ["live", "stashed"])
def test_uneven_micro_batches_under_paci_equal_the_twin_to_the_last_bit(weights):
    N, a, sizes = 4, 3, [3, 2, 2]
    modules, batches = toys.stages(N), toys.uneven_batches(sizes, windows=8)
    before = toys.weights(modules)
    run = toys.pipeline(modules, accumulation=a, batch=7, weights=weights).train(batches)
    d = Durations(Cost(), N, len(batches))
    rows = twin.clock(
        N, a, 0, len(batches), lambda kind, i, m: d.of[kind][i][m], d.update,
        [times[0] for times in d.transfer],
    )  # fmt: skip
    losses, after = twin.train(
        rows, before, batches, a, toys.adamw, toys.warm_up,
        lambda stage, m: 1.0, weights, [size / 7 for size in sizes],
    )  # fmt: skip
    assert toys.same([run.losses, toys.weights(modules)], [losses, after])
    assert max(run.stages[0].staleness) == 1


def test_even_micro_batches_weigh_the_same_with_and_without_a_batch():
    batches, one, other = toys.batches(16), toys.stages(3), toys.stages(3)
    losses = toys.pipeline(one, batch=4 * toys.ROWS).train(batches).losses
    assert losses == toys.pipeline(other).train(batches).losses
    assert toys.same(toys.weights(one), toys.weights(other))


def test_micro_batches_of_other_sizes_are_refused():
    local = toys.pipeline(toys.stages(2), batch=10)
    with pytest.raises(ValueError, match=r"micro-batch 2 must have 2 sequences.* not 3"):
        local.train(toys.uneven_batches([3, 3, 3, 1], 1))


@pytest.mark.parametrize("seed", [2**63, -1, 1.5])
def test_impossible_seeds(seed):
    with pytest.raises(ValueError, match="seed must be a whole number from 0 to 2\\^63 - 1"):
        toys.pipeline(toys.stages(2), seed=seed)


def test_what_stages_and_losses_may_not_give():
    class Pair(nn.Linear):
        def forward(self, x):
            return super().forward(x), x

    first, second = toys.stages(2)
    with pytest.raises(ValueError, match="stage 0 must give one tensor, not a value of type tuple"):
        toys.pipeline([Pair(4, 4), second]).train(toys.batches(4))
    for loss_fn, message in (
        (lambda output, target: None, "one number, as a tensor, not None"),
        (lambda output, target: 3, "one number, as a tensor, not a value of type int"),
        (lambda output, target: (output > 0).sum(), "floating-point numbers, not torch.int64"),
        (lambda output, target: target.mean(), "depends on no parameter"),
    ):
        with pytest.raises(ValueError, match=message):
            toys.pipeline([first, second], loss_fn=loss_fn).train(toys.batches(4))


def test_an_optimizer_that_needs_a_closure_is_refused():
    with pytest.raises(ValueError, match="LBFGS computes the loss again"):
        toys.pipeline(toys.stages(2), optimizer=torch.optim.LBFGS)


def test_a_scheduler_on_the_optimizer_of_a_stage_is_refused():
    local = toys.pipeline(toys.stages(2))
    torch.optim.lr_scheduler.StepLR(local.stages[1].optimizer, 1)
    with pytest.raises(ValueError, match="learning rate of stage 1 is set by somebody else"):
        local.train(toys.batches(4))


def test_batches_made_in_inference_mode():
    with torch.inference_mode():
        batches = [(x.clone(), y.clone()) for x, y in toys.batches(4)]
    losses = toys.pipeline(toys.stages(2)).train(batches).losses
    assert losses == toys.pipeline(toys.stages(2)).train(toys.batches(4)).losses
    with torch.no_grad(), pytest.raises(ValueError, match=r"outside of torch.no_grad\(\)"):
        toys.pipeline(toys.stages(2)).train(batches)


def test_models_in_double_precision():
    """A third is another number in float32."""
    modules, whole = [m.double() for m in toys.stages(2)], nn.Sequential(*toys.stages(2)).double()
    batches = [(x.double(), y.double()) for x, y in toys.batches(3)]
    toys.pipeline(modules, "gpipe", 3, optimizer=toys.sgd, lr_lambda=None).train(batches)
    for x, y in batches:
        (toys.loss_fn(whole(x), y) / 3).backward()
    toys.sgd(whole.parameters()).step()
    assert toys.same(toys.weights(modules), [list(module.parameters()) for module in whole])


@pytest.mark.parametrize("weights", ["live", "stashed", "predicted"])
def test_sparse_embeddings(weights):
    def stages(sparse):
        torch.manual_seed(0)
        return [nn.Embedding(5, toys.WIDTH, sparse=sparse), *toys.stages(1)]

    def losses(sparse):
        batches = [(torch.tensor([m % 5, 1, 1]), torch.ones(3, toys.WIDTH)) for m in range(16)]
        local = toys.pipeline(
            stages(sparse), weights=weights, optimizer=lambda p: torch.optim.SGD(p, lr=0.1)
        )
        return local.train(batches).losses

    assert losses(sparse=True) == pytest.approx(losses(sparse=False))


def test_a_segment_prints_as_a_line():
    local = toys.pipeline(toys.stages(2), "paci", 1, cost=Cost(1.0, 2.0))
    segment = local.train(toys.batches(2))
    mean = sum(segment.losses) / 2
    assert (
        repr(segment)
        == f"<Segment of 2 micro-batches: mean loss {mean:.4g}, 9 units of simulated time>"
    )
