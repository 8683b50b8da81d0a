"""Muon for the blocks' matrices and AdamW for the rest, against twins written by hand."""

import math
from copy import deepcopy

import pytest
import torch

from experiments.config import compose
from experiments.models import build_stage
from experiments.optimizers.groups import is_hidden_matrix
from experiments.optimizers.optimizer import make_optimizer
from tests.experiments.smoke import assert_same_results, killed, train

SETTINGS = ["scale=smoke", "optimizer=muon"]
LR, DECAY, MOMENTUM = 1e-3, 0.1, 0.95


def gradients(parameters, step):
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(p.shape, generator=generator) for p in parameters]


@pytest.fixture
def stage():
    """The only stage of a model: embeddings, blocks and head."""
    return build_stage(compose(SETTINGS).model, 257, 1, 0, seed=0)


def orthogonalised(matrix):
    """Five steps of the quintic Newton-Schulz iteration of Jordan's post, in float64."""
    x = matrix.double()
    x = x / x.norm()
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


def test_hidden_matrices_are_those_of_the_blocks(stage):
    hidden = {name for name, p in stage.named_parameters() if is_hidden_matrix(p)}
    matrices = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
    layers = compose(SETTINGS).model.layers
    assert hidden == {f"transformer.h.{k}.{m}.weight" for k in range(layers) for m in matrices}


def test_three_steps_are_those_of_a_twin(stage):
    """Muon's iteration runs in bfloat16, to which the twin in float64 agrees."""
    config = compose(SETTINGS)
    optimizer = make_optimizer(config)(stage.parameters())
    named = dict(stage.named_parameters())
    hidden = {name for name, p in named.items() if is_hidden_matrix(p)}
    others = [name for name in named if name not in hidden]
    copies = {name: torch.nn.Parameter(named[name].detach().clone()) for name in others}
    adamw = torch.optim.AdamW(
        [
            {"params": [copies[n] for n in others if named[n].dim() > 1], "weight_decay": DECAY},
            {"params": [copies[n] for n in others if named[n].dim() == 1], "weight_decay": 0.0},
        ],
        lr=LR,
        betas=(0.9, 0.95),
        eps=1e-8,
        fused=True,
    )
    twins = {name: named[name].detach().double() for name in hidden}
    averages = {name: torch.zeros_like(twins[name]) for name in hidden}
    for step in range(3):
        for (name, p), g in zip(named.items(), gradients(named.values(), step), strict=True):
            p.grad = g.clone()
            if name in hidden:
                averages[name] = MOMENTUM * averages[name] + (1 - MOMENTUM) * g.double()
                ahead = MOMENTUM * averages[name] + (1 - MOMENTUM) * g.double()
                size = 0.2 * math.sqrt(max(g.shape)) * LR
                twins[name] = (1 - LR * DECAY) * twins[name] - size * orthogonalised(ahead)
            else:
                copies[name].grad = g.clone()
        optimizer.step()
        adamw.step()
    for name in others:
        assert torch.equal(named[name], copies[name]), name
    for name in hidden:
        moved = 3 * 0.2 * math.sqrt(max(named[name].shape)) * LR
        off = (named[name].double() - twins[name]).norm() / math.sqrt(min(named[name].shape))
        assert off < 0.03 * moved, name


def test_a_step_is_as_large_as_adamws(stage):
    """Root mean square 0.2 per unit of lr, whatever the shape and the gradient's size."""
    config = compose([*SETTINGS, "optimizer.weight_decay=0"])
    optimizer = make_optimizer(config)(stage.parameters())
    before = {p: p.detach().clone() for p in stage.parameters()}
    for p, g in zip(before, gradients(before, 0), strict=True):
        p.grad = 1000 * g
    optimizer.step()
    for p in filter(is_hidden_matrix, before):
        moved = (p.detach() - before[p]).pow(2).mean().sqrt().item()
        assert moved / LR == pytest.approx(0.2, rel=0.25)


def test_all_groups_follow_one_rate(stage):
    optimizer = make_optimizer(compose(SETTINGS))(stage.parameters())
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([LR] * 3)
    before = {name: p.detach().clone() for name, p in stage.named_parameters()}
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    for p, g in zip(stage.parameters(), gradients(stage.parameters(), 0), strict=True):
        p.grad = g
    optimizer.step()
    for name, p in stage.named_parameters():
        assert torch.equal(p, before[name]), name


def test_a_loaded_state_goes_on_as_the_saved_one(stage):
    make = make_optimizer(compose(SETTINGS))
    other = build_stage(compose(SETTINGS).model, 257, 1, 0, seed=1)

    def steps(module, optimizer, numbers):
        for step in numbers:
            for p, g in zip(module.parameters(), gradients(module.parameters(), step), strict=True):
                p.grad = g
            optimizer.step()

    first, second = make(stage.parameters()), make(other.parameters())
    steps(stage, first, [0, 1])
    steps(other, second, [7])
    other.load_state_dict(stage.state_dict())
    second.load_state_dict(deepcopy(first.state_dict()))
    steps(stage, first, [2, 3])
    steps(other, second, [2, 3])
    for p, q in zip(stage.parameters(), other.parameters(), strict=True):
        assert torch.equal(p, q)


def test_a_stage_without_hidden_matrices_is_fine():
    norm = torch.nn.LayerNorm(4)
    optimizer = make_optimizer(compose(SETTINGS))(norm.parameters())
    assert len(optimizer.param_groups) == 1


def test_a_closure_is_refused(stage):
    with pytest.raises(ValueError, match="give no closure"):
        make_optimizer(compose(SETTINGS))(stage.parameters()).step(lambda: 0.0)


def test_a_killed_run_ends_as_one_that_was_not(tmp_path, corpus):
    settings = [*SETTINGS, "tokens=2560", f"data.folder={corpus}"]
    whole = train([*settings, f"runs={tmp_path / 'whole'}"])
    killed([*settings, f"runs={tmp_path / 'cut'}"], update=7)
    cut = train([*settings, f"runs={tmp_path / 'cut'}"])
    assert_same_results(whole.path, cut.path)


def test_processes_train_as_one_process_does(tmp_path, corpus):
    settings = [*SETTINGS, "tokens=2560", "stages=2", f"data.folder={corpus}"]
    local = train([*settings, f"runs={tmp_path / 'local'}"])
    static = ["executor=distributed", "executor.order=static"]
    distributed = train([*settings, *static, f"runs={tmp_path / 'ranks'}"])
    assert_same_results(local.path, distributed.path)
