"""A GPT-2 that costs nothing."""

from types import SimpleNamespace

MODEL = SimpleNamespace(
    layers=2,
    width=16,
    heads=2,
    context=8,
    dropout=0.1,
    initialisation=0.1,
    residual_initialisation=None,
)
