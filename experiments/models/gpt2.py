"""GPT-2 (Radford et al. 2019) as a chain of stages, cut between half blocks.

The model is a list of units, and a stage runs consecutive ones:

    embedding | h.0.attn | h.0.mlp | h.1.attn | h.1.mlp | ... | head

The modules that hold the parameters are transformers' own. A stage's parameters have the names of
`GPT2LMHeadModel`, so weights written by any number of stages load into any other number of stages,
and into transformers. What a block computes is written out here: the same operations in the same
order, bit by bit, without the choices and changes of shape in between, which take as long as the
mathematics where a micro-batch has a few hundred tokens.

The argument `model` is a node of the `model` configuration group: layers, width, heads, context,
dropout, initialisation (standard deviation) and residual_initialisation (null: initialisation
over the square root of twice the layers).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2MLP, GPT2Attention

from experiments.models.flops import count_flops
from experiments.models.initialise import initialise
from paci.partition import partition


def config(model: Any, vocabulary: int) -> GPT2Config:
    """Return transformers' configuration of `model`: untied head without bias, fused attention.

    Raises ValueError if the width is not a multiple of the heads.
    """
    if model.width % model.heads:
        raise ValueError(f"width {model.width} is not a multiple of {model.heads} heads")
    return GPT2Config(
        vocab_size=vocabulary,
        n_positions=model.context,
        n_embd=model.width,
        n_layer=model.layers,
        n_head=model.heads,
        activation_function="gelu_pytorch_tanh",
        layer_norm_epsilon=1e-5,
        embd_pdrop=model.dropout,
        attn_pdrop=model.dropout,
        resid_pdrop=model.dropout,
        initializer_range=model.initialisation,
        tie_word_embeddings=False,
        # The data decides which token ends a text; the defaults fit one vocabulary only.
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation="sdpa",  # type: ignore[call-arg]
        architectures=["GPT2LMHeadModel"],
    )


def unit_names(config: GPT2Config) -> list[str]:
    """Return the names of the model's 2·layers + 2 units in order; it is cut between units."""
    halves = [f"h.{layer}.{half}" for layer in range(config.n_layer) for half in ("attn", "mlp")]
    return ["embedding", *halves, "head"]


class HalfBlocks(nn.Module):
    """A transformer block, or the half of it that a stage owns.

    It maps hidden states (batch, context, width) to hidden states of the same shape.
    """

    def __init__(self, config: GPT2Config, layer: int, attention: bool, mlp: bool):
        super().__init__()
        width, epsilon = config.n_embd, config.layer_norm_epsilon
        if attention:
            self.ln_1 = nn.LayerNorm(width, eps=epsilon)
            self.attn = GPT2Attention(config, layer_idx=layer)
        if mlp:
            self.ln_2 = nn.LayerNorm(width, eps=epsilon)
            self.mlp = GPT2MLP(4 * width, config)
        self.attention_half, self.mlp_half = attention, mlp

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        tokens = hidden.reshape(-1, hidden.shape[-1])
        if self.attention_half:
            tokens = tokens + self.attention(_normalised(self.ln_1, tokens), len(hidden))
        if self.mlp_half:
            tokens = tokens + self.perceptron(_normalised(self.ln_2, tokens))
        return tokens.view(hidden.shape)

    def attention(self, tokens: torch.Tensor, batch: int) -> torch.Tensor:
        """Return the output of the causal attention, (batch x context, width) like its input."""
        attn: Any = self.attn
        heads, width = attn.num_heads, tokens.shape[-1]
        joint = _projected(attn.c_attn, tokens).view(batch, -1, 3 * heads, attn.head_dim)
        query, key, value = (part.transpose(1, 2) for part in joint.split(heads, dim=2))
        mixed = F.scaled_dot_product_attention(
            query, key, value, dropout_p=attn.attn_dropout.p if self.training else 0.0,
            scale=attn.scaling, is_causal=True,
        )  # fmt: skip
        mixed = mixed.transpose(1, 2).reshape(-1, width)
        return self.dropped(attn.resid_dropout, _projected(attn.c_proj, mixed))

    def perceptron(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the output of the MLP, (batch x context, width) like its input."""
        mlp: Any = self.mlp
        inner = F.gelu(_projected(mlp.c_fc, tokens), approximate="tanh")
        return self.dropped(mlp.dropout, _projected(mlp.c_proj, inner))

    def dropped(self, dropout: nn.Dropout, tokens: torch.Tensor) -> torch.Tensor:
        return F.dropout(tokens, dropout.p) if dropout.p and self.training else tokens


def _projected(layer: Any, tokens: torch.Tensor) -> torch.Tensor:
    return torch.addmm(layer.bias, tokens, layer.weight)


def _normalised(norm: nn.LayerNorm, tokens: torch.Tensor) -> torch.Tensor:
    return torch.layer_norm(tokens, norm.normalized_shape, norm.weight, norm.bias, norm.eps)


class GPT2Stage(nn.Module):
    """A stage of a GPT-2: the consecutive `units` (indices into `unit_names`).

    The first stage takes token ids, int64 (batch, context), every other stage hidden states
    (batch, context, width). The last stage returns logits (batch, context, vocabulary), every
    other stage hidden states. Raises ValueError for a sequence longer than the model's context.
    """

    def __init__(self, config: GPT2Config, units: range):
        super().__init__()
        names = unit_names(config)[units.start : units.stop]
        width, epsilon = config.n_embd, config.layer_norm_epsilon
        self.context = config.n_positions
        self.first, self.last = "embedding" in names, "head" in names

        self.transformer: Any = nn.Module()  # only a level of the parameters' names
        if self.first:
            self.transformer.wte = nn.Embedding(config.vocab_size, width)
            self.transformer.wpe = nn.Embedding(config.n_positions, width)
            self.transformer.drop = nn.Dropout(config.embd_pdrop)
        self.transformer.h = nn.ModuleDict()
        for layer in range(config.n_layer):
            attention, mlp = f"h.{layer}.attn" in names, f"h.{layer}.mlp" in names
            if attention or mlp:
                self.transformer.h[str(layer)] = HalfBlocks(config, layer, attention, mlp)
        if self.last:
            self.transformer.ln_f = nn.LayerNorm(width, eps=epsilon)
            self.lm_head = nn.Linear(width, config.vocab_size, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        if self.first:
            hidden = self.embed(hidden)
        for block in self.transformer.h.values():
            hidden = block(hidden)
        if self.last:
            hidden = self.lm_head(self.transformer.ln_f(hidden))
        return hidden

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[-1]
        if length > self.context:
            raise ValueError(f"a sequence of {length} tokens exceeds the context of {self.context}")
        positions = torch.arange(length, device=tokens.device)
        return self.transformer.drop(self.transformer.wte(tokens) + self.transformer.wpe(positions))


def build_stage(
    model: Any,
    vocabulary: int,
    stages: int,
    index: int,
    seed: int,
    cut: Sequence[range] | None = None,
) -> GPT2Stage:
    """Build stage `index` of `stages` on the CPU in float32, and no other stage's weights.

    The weights depend on the seed alone, not on the cut. Embeddings carry the attribute
    `is_embedding` and the head `is_head`, which tells an optimizer that gets bare parameters.

    Args:
        cut: the units of each stage, as `partition` returns them; by default the cut that
            balances counted FLOPs, the same on every machine.
    Raises:
        ValueError: there are more stages than units, no such `index`, or `cut` is not `stages`
            non-empty ranges that cover all units in order.
    """
    gpt2 = config(model, vocabulary)
    if cut is None:
        cut = partition(count_flops(gpt2), stages)
    _check_cut(cut, stages, units=len(unit_names(gpt2)))
    if not 0 <= index < stages:
        raise ValueError(f"no stage {index} among {stages} stages, which count from 0")

    with torch.device("meta"):
        stage = GPT2Stage(gpt2, cut[index])
    residual = model.residual_initialisation
    if residual is None:
        residual = model.initialisation / (2 * model.layers) ** 0.5
    initialise(stage, seed, model.initialisation, residual)
    for module in stage.modules():
        if isinstance(module, nn.Embedding):
            module.weight.is_embedding = True  # type: ignore[attr-defined]
    if stage.last:
        stage.lm_head.weight.is_head = True  # type: ignore[attr-defined]
    return stage


def build_stages(
    model: Any, vocabulary: int, stages: int, seed: int, cut: Sequence[range] | None = None
) -> list[GPT2Stage]:
    """Build all stages of one model, in order; see `build_stage`."""
    return [build_stage(model, vocabulary, stages, index, seed, cut) for index in range(stages)]


def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy in nats per token, over the targets that are not -100.

    Args:
        logits: (batch, context, vocabulary), in any precision; the loss is computed in float32.
        targets: int64 (batch, context), already shifted; -100 at the last position of a block,
            whose next token is in another block.
    """
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-100)


def _check_cut(cut: Sequence[range], stages: int, units: int) -> None:
    covered = [unit for run in cut for unit in run]
    if len(cut) != stages or not all(cut) or covered != list(range(units)):
        raise ValueError(
            f"a cut of {units} units into {stages} stages is {stages} non-empty ranges that cover "
            f"0 to {units - 1} in order, not {list(cut)}"
        )
