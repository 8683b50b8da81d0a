import copy
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml
from transformers import GPT2LMHeadModel

from experiments.models import build_stage, build_stages, config, loss, unit_names
from experiments.models.flops import count_flops
from paci.partition import partition

VOCABULARY = 61
CONF = Path(__file__).parents[3] / "conf" / "model"


@pytest.fixture
def model():
    return SimpleNamespace(**yaml.safe_load((CONF / "smoke.yaml").read_text()))


@pytest.fixture
def tokens(model):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(VOCABULARY, (2, model.context), generator=generator)


def reference(model, stages):
    """transformers' own model with the stages' weights."""
    whole = GPT2LMHeadModel(config(model, VOCABULARY))
    whole.load_state_dict(weights(stages))
    return whole


def weights(stages):
    return {name: weight for stage in stages for name, weight in stage.state_dict().items()}


def run(stages, tokens):
    hidden = tokens
    for stage in stages:
        hidden = stage(hidden)
    return hidden


@pytest.mark.parametrize("count", [1, 2, 4, 8, 10])
def test_logits_and_gradients_are_those_of_transformers(model, tokens, count):
    stages = build_stages(model, VOCABULARY, count, seed=3)
    whole = reference(model, stages)
    for module in (whole, *stages):
        module.eval()

    logits, expected = run(stages, tokens), whole(tokens).logits
    assert logits.shape == (2, model.context, VOCABULARY)
    assert torch.equal(logits, expected)

    targets = tokens.roll(-1, dims=1)
    targets[:, -1] = -100
    loss(logits, targets).backward()
    loss(expected, targets).backward()
    gradients = {name: p.grad for stage in stages for name, p in stage.named_parameters()}
    assert gradients.keys() == dict(whole.named_parameters()).keys()
    for name, parameter in whole.named_parameters():
        assert torch.equal(gradients[name], parameter.grad), name


def test_dropout_draws_as_transformers_does(model, tokens):
    stages = build_stages(model, VOCABULARY, 4, seed=3)
    whole = reference(model, stages).train()
    torch.manual_seed(5)
    logits = run(stages, tokens)
    torch.manual_seed(5)
    assert torch.equal(logits, whole(tokens).logits)


def test_parameters_carry_transformers_names(model):
    stages = build_stages(model, VOCABULARY, 5, seed=0)
    names = [name for stage in stages for name in stage.state_dict()]
    assert names == list(GPT2LMHeadModel(config(model, VOCABULARY)).state_dict())


@pytest.mark.parametrize("count", [2, 7, 10])
def test_initial_weights_do_not_depend_on_the_number_of_stages(model, count):
    whole = weights(build_stages(model, VOCABULARY, 1, seed=3))
    parts = weights(build_stages(model, VOCABULARY, count, seed=3))
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_building_leaves_the_global_random_state_alone(model):
    before = torch.get_rng_state()
    build_stages(model, VOCABULARY, 2, seed=3)
    assert torch.equal(torch.get_rng_state(), before)


def test_initial_weights_follow_gpt2(model):
    model.width, model.initialisation = 256, 0.02
    model.residual_initialisation = None
    state = weights(build_stages(model, VOCABULARY, 2, seed=3))
    for name, weight in state.items():
        if name.endswith(".bias"):
            assert not weight.any()
        elif ".ln_" in name:
            assert (weight == 1).all()
        else:
            std = 0.02 / 8**0.5 if name.endswith("c_proj.weight") else 0.02
            assert weight.std().item() == pytest.approx(std, rel=0.03), name
            assert abs(weight.mean().item()) < 5 * std / weight.numel() ** 0.5, name
    first, second = (state[f"transformer.h.{layer}.attn.c_attn.weight"] for layer in (0, 1))
    assert not torch.equal(first, second)


def test_the_residual_initialisation_can_be_given(model):
    model.residual_initialisation = 0.5
    state = weights(build_stages(model, VOCABULARY, 2, seed=3))
    weight = state["transformer.h.2.mlp.c_proj.weight"]
    assert weight.std().item() == pytest.approx(0.5, rel=0.05)


def test_seeds_differ(model):
    one, two = (build_stage(model, VOCABULARY, 1, 0, seed) for seed in (1, 2))
    assert not torch.equal(one.lm_head.weight, two.lm_head.weight)


def test_a_stage_is_real_and_copies_independently(model, tokens):
    stage = build_stage(model, VOCABULARY, 4, 0, seed=0).eval()
    assert not any(tensor.is_meta for tensor in (*stage.parameters(), *stage.buffers()))
    twin = copy.deepcopy(stage)
    expected = stage(tokens)
    with torch.no_grad():
        for parameter in stage.parameters():
            parameter.zero_()
    assert torch.equal(twin(tokens), expected)


def test_units(model):
    model.layers = 2
    expected = ["embedding", "h.0.attn", "h.0.mlp", "h.1.attn", "h.1.mlp", "head"]
    assert unit_names(config(model, VOCABULARY)) == expected
    assert len(count_flops(config(model, VOCABULARY))) == len(expected)


def test_a_cut_may_split_a_block(model, tokens):
    whole = build_stage(model, VOCABULARY, 1, 0, seed=0).eval()
    cut = [range(0, 2), range(2, 3), range(3, 10)]  # embedding h.0.attn | h.0.mlp | the rest
    stages = build_stages(model, VOCABULARY, 3, seed=0, cut=cut)
    assert set(stages[1].transformer.h["0"]._modules) == {"ln_2", "mlp"}
    assert torch.equal(run([stage.eval() for stage in stages], tokens), whole(tokens))


def test_the_laptop_model_has_a_block_per_stage():
    model = SimpleNamespace(**yaml.safe_load((CONF / "laptop.yaml").read_text()))
    cut = partition(count_flops(config(model, 256)), 8)
    assert [len(run) for run in cut] == [3, 2, 2, 2, 2, 2, 2, 3]


def test_the_head_of_gpt2_medium_is_a_stage_of_its_own():
    model = SimpleNamespace(**yaml.safe_load((CONF / "gpt2-medium.yaml").read_text()))
    cut = partition(count_flops(config(model, 50257)), 8)
    assert cut[-1] == range(49, 50)
    assert [len(run) for run in cut] == [7] * 7 + [1]


def test_loss_ignores_what_has_no_target():
    logits = torch.randn(2, 3, 5)
    targets = torch.tensor([[1, 2, -100], [3, 4, -100]])
    expected = -logits.log_softmax(-1)[:, :2].gather(-1, targets[:, :2, None]).mean()
    torch.testing.assert_close(loss(logits, targets), expected)


def test_loss_is_computed_in_float32():
    assert loss(torch.randn(1, 2, 5).bfloat16(), torch.tensor([[1, 2]])).dtype == torch.float32


def test_gpt2_medium_is_the_papers():
    model = SimpleNamespace(**yaml.safe_load((CONF / "gpt2-medium.yaml").read_text()))
    gpt2 = config(model, 50257)
    assert (gpt2.n_layer, gpt2.n_embd, gpt2.n_head, gpt2.n_positions) == (24, 1024, 16, 1024)
    assert (gpt2.embd_pdrop, gpt2.attn_pdrop, gpt2.resid_pdrop) == (0.1, 0.1, 0.1)
    assert (gpt2.layer_norm_epsilon, gpt2.initializer_range) == (1e-5, 0.02)
    assert gpt2._attn_implementation == "sdpa"
    assert not gpt2.tie_word_embeddings


def test_width_must_be_a_multiple_of_heads(model):
    model.heads = 3
    with pytest.raises(ValueError, match="width 32 is not a multiple of 3 heads"):
        config(model, VOCABULARY)


def test_more_stages_than_units(model):
    with pytest.raises(ValueError, match="cannot cut 10 units into 11 non-empty stages"):
        build_stages(model, VOCABULARY, 11, seed=0)


def test_no_such_stage(model):
    with pytest.raises(ValueError, match="no stage 2 among 2 stages"):
        build_stage(model, VOCABULARY, 2, 2, seed=0)


@pytest.mark.parametrize(
    "cut",
    [
        [range(0, 5), range(5, 9)],  # the head is missing
        [range(0, 5), range(6, 10)],  # a gap
        [range(0, 6), range(5, 10)],  # an overlap
        [range(0, 10), range(10, 10)],  # an empty stage
        [range(0, 10)],  # one stage too few
    ],
)
def test_a_cut_must_cover_the_model(model, cut):
    with pytest.raises(ValueError, match="a cut of 10 units into 2 stages"):
        build_stages(model, VOCABULARY, 2, seed=0, cut=cut)


def test_a_sequence_must_fit_the_context(model, tokens):
    stage = build_stage(model, VOCABULARY, 1, 0, seed=0)
    assert stage(tokens[:, :7]).shape == (2, 7, VOCABULARY)
    with pytest.raises(ValueError, match="33 tokens exceeds the context of 32"):
        stage(torch.zeros(1, 33, dtype=torch.long))
