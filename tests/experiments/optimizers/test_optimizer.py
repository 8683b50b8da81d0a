import pytest
import torch
from torch import nn

from experiments.config import compose
from experiments.models import build_stage
from experiments.optimizers.optimizer import make_optimizer
from experiments.optimizers.rates import cosine
from paci.stage.stage import Stage


@pytest.mark.parametrize(("batch", "peak"), [(256, 3e-4), (128, 3e-4 / 2**0.5), (1024, 6e-4)])
def test_the_peak_scales_with_the_square_root_of_the_batch(batch, peak):
    make = make_optimizer(compose(["scale=paper", f"batch={batch}"]))
    optimizer = make(nn.Linear(2, 2).parameters())
    assert isinstance(optimizer, torch.optim.AdamW)
    for group in optimizer.param_groups:
        assert group["lr"] == pytest.approx(peak)
        assert (tuple(group["betas"]), group["eps"]) == ((0.9, 0.95), 1e-8)


def test_only_tensors_of_two_dimensions_decay():
    module = nn.Sequential(nn.Embedding(3, 4), nn.LayerNorm(4), nn.Linear(4, 4))
    optimizer = make_optimizer(compose([]))(module.parameters())
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    shrink = 1 - optimizer.param_groups[0]["lr"] * 0.1
    for name, parameter in module.named_parameters():
        expected = before[name] * (shrink if parameter.dim() == 2 else 1.0)
        torch.testing.assert_close(parameter.detach(), expected)


@pytest.mark.parametrize(
    ("decay", "decaying"), [("matrices", ["wpe", "wte"]), ("matrices-but-embeddings", [])]
)
def test_embeddings_decay_in_the_papers_code_and_not_in_its_text(decay, decaying):
    config = compose(["scale=smoke", f"optimizer.decay={decay}"])
    stage = build_stage(config.model, 257, 4, 0, seed=0)
    optimizer = make_optimizer(config)(stage.parameters())
    names = {parameter: name for name, parameter in stage.named_parameters()}
    groups = [[names[p] for p in group["params"]] for group in optimizer.param_groups]
    assert sum(map(len, groups)) == len(names)
    decayed = [name for name in groups[0] if ".w" in name and name.count(".") == 2]
    assert sorted(name.split(".")[1] for name in decayed) == decaying
    assert all(names[p].endswith("weight") for p in optimizer.param_groups[0]["params"])


def test_a_part_without_matrices_is_fine():
    optimizer = make_optimizer(compose([]))(nn.LayerNorm(4).parameters())
    assert len(optimizer.param_groups) == 1


def test_the_rate_follows_the_version_of_its_own_stage():
    make, factor = make_optimizer(compose([])), cosine(10, rising=2, final=0.1)
    stages = [Stage(i, 2, nn.Linear(2, 2), 1, make, factor) for i in range(2)]
    stages[0].forward(0, torch.ones(1, 2))
    stages[0].backward(0, torch.ones(1, 2))  # one update, here only
    assert stages[0].learning_rate == pytest.approx(1e-3 * factor(1))
    assert stages[1].learning_rate == pytest.approx(1e-3 * factor(0))
