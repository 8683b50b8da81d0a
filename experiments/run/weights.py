"""Initial weights from another run: those of its newest checkpoint, without the state of its
optimizer and its place in the text."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from safetensors import safe_open
from torch import nn

import runlog
from paci import checkpoint
from paci.stage.stage import Stage

SHAPE = ("model.layers", "model.width", "model.heads", "model.context", "data.tokeniser")
"""Settings that a run shares with the run whose weights it takes."""


def check_source(config: DictConfig) -> None:
    """Raise ValueError unless the run `weights_from`, if one is named, has weights for the model of
    `config`."""
    if config.weights_from is None:
        return
    _newest(config)
    try:
        theirs = OmegaConf.load(Path(config.weights_from) / runlog.CONFIG)
        pairs = {
            key: (OmegaConf.select(theirs, key), OmegaConf.select(config, key)) for key in SHAPE
        }
    except Exception as error:
        raise ValueError(
            f"weights_from={config.weights_from} cannot be used: its config.yaml cannot be read "
            f"({type(error).__name__})"
        ) from None
    for key, (their, own) in pairs.items():
        if their != own:
            raise ValueError(
                f"weights_from={config.weights_from} has a model of {key}={their}, which does not "
                f"fit {key}={own}"
            )


def source_of(config: DictConfig) -> dict[str, Any] | None:
    """Return what identifies the weights that a run begins with; None if it draws its own."""
    if config.weights_from is None:
        return None
    newest = _newest(config)
    manifest = (newest / checkpoint.MANIFEST).read_bytes()
    return {"checkpoint": str(newest), "sha256": hashlib.sha256(manifest).hexdigest()}


def load_weights(stages: Sequence[Stage], config: DictConfig) -> None:
    """Set the weights of `stages` to those of the run `weights_from`."""
    newest = _newest(config)
    for stage in stages:
        _load(stage.module, newest)


def _load(module: nn.Module, checkpoint: Path) -> None:
    found = {}
    for part in sorted(checkpoint.glob("*.safetensors")):
        with safe_open(part, "pt") as file:
            there = set(file.keys())
            for name in module.state_dict():
                if f"model/{name}" in there:
                    found[name] = file.get_tensor(f"model/{name}")
    module.load_state_dict(found)


def _newest(config: DictConfig) -> Path:
    """Return the newest checkpoint of the run `weights_from`. Raises ValueError if it has none."""
    newest = checkpoint.newest(Path(config.weights_from) / runlog.CHECKPOINTS)
    if newest is None:
        raise ValueError(
            f"weights_from={config.weights_from} has no checkpoint: name the folder of a run that "
            "has been evaluated at least once"
        )
    return newest
