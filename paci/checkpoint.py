"""Checkpoints: one file per stage, written by the process that holds it; valid only together.

    checkpoints/
      000000120/               micro-batches done when it was taken, all stages drained
        stage-0.safetensors    model/<name>, optimizer/<name>/<key>, weights/<name>/<key>,
                               guard/<first name>/state
        stage-1.safetensors
        manifest.json          SHA-256 of every part; written last, by a rename of the folder

Names are the model's, not the stage's: a checkpoint written by N stages loads into N' stages.
"""

import hashlib
import json
import os
import shutil
import warnings
from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import torch

from paci.stage.stage import Stage
from paci.tensor_file import open_file, save_file

MANIFEST = "manifest.json"
State = dict[str, Any]
"""Values of the whole pipeline; "microbatch", the micro-batches done, names the checkpoint."""


def save(folder: Path, stages: Sequence[Stage], state: State, keep: int = 2) -> Path:
    """Write a checkpoint of all `stages` below `folder` and drop all but the newest `keep`.

    Raises ValueError, before it writes, if two stages name a weight alike.

    `state` goes into JSON. The checkpoint appears whole or not at all.
    """
    check_names(names_of(stages))
    return commit(folder, state, write_parts(folder, state, stages), keep)


def names_of(stages: Sequence[Stage]) -> list[str]:
    """Return the names of all tensors that a checkpoint of `stages` holds of their modules.

    Raises ValueError for state that is no tensor (from a module's `get_extra_state`).
    """
    names = []
    for stage in stages:
        for name, value in stage.module.state_dict().items():
            if not isinstance(value, torch.Tensor):
                raise ValueError(
                    f"a checkpoint holds tensors only, but {name} of stage {stage.index} is a "
                    f"{type(value).__name__}: let get_extra_state return a tensor"
                )
            names.append(name)
    return names


def check_names(names: Sequence[str]) -> None:
    """Raise ValueError if two stages name a weight alike."""
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise ValueError(
            f"{count} stages have a weight named {name}: to be saved together, stages must name "
            "their weights as those of one model"
        )


def write_parts(folder: Path, state: State, stages: Sequence[Stage]) -> dict[str, str]:
    """Do the first half of `save`, where several processes hold the stages: write those of this
    process and return {part: its SHA-256}."""
    draft = _draft(folder, state)
    draft.mkdir(parents=True, exist_ok=True)
    parts = {}
    for stage in stages:
        part = draft / f"stage-{stage.index}.safetensors"
        save_file(_tensors(stage), part)
        parts[part.name] = _sha256(part)
    return parts


def commit(folder: Path, state: State, parts: dict[str, str], keep: int = 2) -> Path:
    """Do the second half of `save`, in one process once every process has written: make the
    checkpoint of all `parts` valid."""
    draft, final = _draft(folder, state), folder / _name(state)
    for other in draft.iterdir():  # of a crash while writing, by other stages
        if other.name not in parts:
            other.unlink()
    (draft / MANIFEST).write_text(json.dumps({"state": state, "parts": parts}, indent=1))
    shutil.rmtree(final, ignore_errors=True)
    os.rename(draft, final)
    for old in _newest_first(folder)[keep:]:
        shutil.rmtree(old)
    return final


def newest(folder: Path) -> Path | None:
    """Return the newest checkpoint below `folder` whose parts are all there and whole; None if
    there is none. Damaged ones are passed over with a warning."""
    for checkpoint in _newest_first(folder):
        damage = _damage(checkpoint)
        if damage is None:
            return checkpoint
        warnings.warn(f"checkpoint {checkpoint} is damaged ({damage}): passed over", stacklevel=2)
    return None


def taken_at(folder: Path) -> int:
    """Return the micro-batches done at the newest checkpoint (by its name), 0 if there is none."""
    return int(next(iter(_newest_first(folder)), Path("0")).name)


def load(checkpoint: Path, stages: Sequence[Stage]) -> State:
    """Set model, optimizer and version of `stages`, however many wrote the checkpoint; return its
    `state`. Raises ValueError, before it sets anything, if a tensor is missing or does not fit."""
    state, tensors = read(checkpoint, stages)
    restore(stages, state, tensors)
    return state


def read(checkpoint: Path, stages: Sequence[Stage]) -> tuple[State, dict[str, torch.Tensor]]:
    """Do the first half of `load`, where several processes hold the stages: return the `state` and
    the tensors of `stages`. Raises ValueError if they do not fit."""
    manifest = json.loads((checkpoint / MANIFEST).read_text())
    tensors: dict[str, torch.Tensor] = {}
    for part in manifest["parts"]:
        tensors |= _read(checkpoint / part, stages, tensors)
    for stage in stages:
        _check(stage, tensors, checkpoint)
    return manifest["state"], tensors


def restore(stages: Sequence[Stage], state: State, tensors: dict[str, torch.Tensor]) -> None:
    """Do the second half of `load`, once the checkpoint is known to fit all stages."""
    for stage in stages:
        _restore(stage, tensors)
        stage.at_version(state["microbatch"] // stage.accumulation)


def _name(state: State) -> str:
    return f"{state['microbatch']:09d}"


def _draft(folder: Path, state: State) -> Path:
    return folder / f".{_name(state)}.draft"


def _read(part: Path, stages: Sequence[Stage], known: Container[str]) -> dict[str, torch.Tensor]:
    """Read the tensors of `stages` from the file, and no others; all may not fit in memory."""
    own = set(names_of(stages))
    tensors = {}
    with open_file(part) as file:
        for key in file.names():
            kind, _, rest = key.partition("/")
            if (rest if kind == "model" else rest.rpartition("/")[0]) in own:
                if key in known:
                    raise ValueError(
                        f"{part.parent} has {rest} twice: stages must not name their weights alike"
                    )
                tensors[key] = file.read(key)
    return tensors


def _tensors(stage: Stage) -> dict[str, torch.Tensor]:
    tensors = {f"model/{name}": t for name, t in stage.module.state_dict().items()}
    for name, parameter in stage.module.named_parameters():
        for key, value in stage.optimizer.state.get(parameter, {}).items():
            tensor = torch.as_tensor(value)
            tensors[f"optimizer/{name}/{key}"] = tensor.to_dense() if tensor.is_sparse else tensor
    names = [name for name, _ in stage.module.named_parameters()]
    for key, values in stage.weights.state().items():
        tensors |= {f"weights/{n}/{key}": value for n, value in zip(names, values, strict=True)}
    if any(guarded := stage.guard.state()):
        tensors[f"guard/{names[0]}/state"] = torch.tensor(guarded, dtype=torch.float64)
    return _each_its_own({name: t.detach().contiguous() for name, t in tensors.items()})


def _each_its_own(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Give every name a storage of its own. Tied weights are one tensor under two names; the file
    holds both, because a stage may load them that does not tie them."""
    seen: set[int] = set()
    for name, tensor in tensors.items():
        storage = tensor.untyped_storage().data_ptr()
        if storage in seen:
            tensors[name] = tensor.clone()
        seen.add(storage)
    return tensors


def _check(stage: Stage, tensors: dict[str, torch.Tensor], checkpoint: Path) -> None:
    for name, tensor in stage.module.state_dict().items():
        given = tensors.get(f"model/{name}")
        if given is None or given.shape != tensor.shape:
            found = "nothing" if given is None else f"a shape of {tuple(given.shape)}"
            raise ValueError(
                f"{checkpoint} does not fit the model: {name} wants {tuple(tensor.shape)}, "
                f"there is {found}"
            )


def _restore(stage: Stage, tensors: dict[str, torch.Tensor]) -> None:
    own = stage.module.state_dict()
    stage.module.load_state_dict({name: tensors[f"model/{name}"] for name in own})

    name_of = {parameter: name for name, parameter in stage.module.named_parameters()}
    held = stage.optimizer.state_dict()
    parameters = [p for group in stage.optimizer.param_groups for p in group["params"]]
    for number, parameter in enumerate(parameters):
        prefix = f"optimizer/{name_of[parameter]}/"
        held["state"][number] = {
            key.removeprefix(prefix): value
            for key, value in tensors.items()
            if key.startswith(prefix)
        }
    stage.optimizer.load_state_dict(held)

    names = [name for name, _ in stage.module.named_parameters()]
    prefix = f"weights/{names[0]}/"
    keys = [key.removeprefix(prefix) for key in tensors if key.startswith(prefix)]
    stage.weights.load({key: [tensors[f"weights/{n}/{key}"] for n in names] for key in keys})
    if (guarded := tensors.get(f"guard/{names[0]}/state")) is not None:
        stage.guard.load(guarded.tolist())


def _newest_first(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    whole = [path for path in folder.iterdir() if path.is_dir() and path.name.isdigit()]
    return sorted(whole, reverse=True)


def _damage(checkpoint: Path) -> str | None:
    try:
        manifest = json.loads((checkpoint / MANIFEST).read_text())
        parts, state = manifest["parts"], manifest["state"]
        if not isinstance(parts, dict) or not isinstance(state["microbatch"], int):
            return f"{MANIFEST} is not one"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{MANIFEST}: {error}"
    for part, digest in parts.items():
        path = checkpoint / part
        if not path.is_file():
            return f"{part} is missing"
        if _sha256(path) != digest:
            return f"{part} does not have its checksum"
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
