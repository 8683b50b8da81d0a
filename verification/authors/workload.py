"""The workload of both sides: the authors' GPT-2, tiny, on sequences with something to learn.

The model is the authors', imported from the checkout. Loss, optimizer and rates are written here
anew for the replay; the authors' code brings its own (`train.py`), which have to come to the same.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from paci.microbatches import sizes
from verification.authors.cases import Case

VOCABULARY, CONTEXT = 61, 16
LAYERS = 3  # each is two of the model's units, beside embedding, last layer norm and head
CUTS = {
    3: [[0, 1, 2], [3, 4, 5], [6, 7, 8]],
    4: [[0, 1], [2, 3], [4, 5, 6], [7, 8]],
    8: [[0], [1], [2], [3], [4], [5], [6], [7, 8]],
}
IGNORED = -100  # the target that has no loss
ADAMW: dict[str, Any] = {"lr": 3e-3, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
WARMUP, FINAL = 3, 0.1  # updates, and fraction of the peak rate

Batch = tuple[torch.Tensor, torch.Tensor]


def make_model() -> Any:
    """Return the authors' GPT-2, whose `layers` are its units; equal weights at every call."""
    from Models.GPT2 import GPT2SequentialModel, GPTConfig

    torch.manual_seed(123)
    config = GPTConfig(
        context_length=CONTEXT, vocab_size=VOCABULARY, num_layers=LAYERS, embd_size=32,
        num_heads=2, embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0,
    )  # fmt: skip
    return GPT2SequentialModel(config=config)


def make_stages(case: Case) -> list[nn.Module]:
    """Return the model cut into the stages of `case`."""
    units = list(make_model().layers)
    return [nn.Sequential(*(units[n] for n in own)) for own in CUTS[case.stages]]


def training_batches(case: Case) -> list[Batch]:
    """Return the batch of each update: tokens and targets, (batch, context)."""
    return _batches(case, case.updates, seed=7)


def evaluation_batches(case: Case) -> list[Batch]:
    """Return the two batches of an evaluation."""
    return _batches(case, 2, seed=99)


def microbatches(case: Case, batches: Iterable[Batch]) -> list[Batch]:
    """Cut every batch into `accumulation` micro-batches."""
    parts = sizes(case.batch, case.accumulation)
    return [
        microbatch
        for tokens, targets in batches
        for microbatch in zip(
            tokens.split_with_sizes(parts), targets.split_with_sizes(parts), strict=True
        )
    ]


def loss_fn(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of a micro-batch over its targets."""
    return F.cross_entropy(output.flatten(0, -2), target.flatten(), ignore_index=IGNORED)


def make_optimizer(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Return AdamW that decays tensors of two and more dimensions."""
    parameters = list(parameters)
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.dim() >= 2]},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, **ADAMW)


def learning_rate(updates: int) -> Callable[[int], float]:
    """Return the factor on the peak rate at a stage's version: a warm-up whose first rate is 0,
    then a cosine to `FINAL`."""

    def factor(version: int) -> float:
        if version < WARMUP:
            return version / WARMUP
        progress = (version - WARMUP) / (updates - WARMUP)
        return FINAL + (1 - FINAL) * (1 + math.cos(math.pi * progress)) / 2

    return factor


def _batches(case: Case, count: int, seed: int) -> list[Batch]:
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for _ in range(count):
        drawn = torch.randint(VOCABULARY, (case.batch, CONTEXT), generator=generator)
        tokens = drawn.cumsum(1) // 3 % VOCABULARY
        last = torch.full((case.batch, 1), IGNORED)
        batches.append((tokens, torch.cat([tokens[:, 1:], last], 1)))
    return batches
