"""A corpus prepared once, and opened by every rank of every run after that."""

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock
from omegaconf import OmegaConf
from tqdm import tqdm

from experiments import CONF
from experiments.data import sources, tokenisers
from experiments.data.tokenfile import VERSION, TokenFile
from experiments.data.tokenisers import Tokeniser

if TYPE_CHECKING:  # a second to import
    import datasets


@dataclass(frozen=True)
class Corpus:
    """A training and a validation split by the same tokeniser, of `vocabulary` tokens."""

    train: TokenFile
    validation: TokenFile
    vocabulary: int


def prepare(config: Any) -> Corpus:
    """Write the token files of a data configuration, unless they are there already.

    Args:
        config: anything with the attributes of conf/data/*.yaml: `source`, `tokeniser`,
            `validation` (a fraction of the documents), `shuffle_seed`, `folder`, and those of
            its source and tokeniser.
    Returns:
        The Corpus, as `load` gives it.
    Raises:
        ValueError: the configuration or its source is not acceptable; no token file exists then.
    """
    folder = folder_of(config)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Who comes second waits, then finds the work done.
    with FileLock(folder.with_suffix(".lock")):
        if not _complete(folder):
            _write(folder, config)
    return load(config)


def load(config: Any, verify: bool = True) -> Corpus:
    """Open the token files of a data configuration.

    Args:
        config: as for `prepare`.
        verify: compare their checksums, which reads them once; without, only their sizes.
    Raises:
        ValueError: they are not there, truncated or damaged.
    """
    folder = folder_of(config)
    if not _complete(folder):
        raise ValueError(f"there is no prepared corpus in {folder}; run `{_command(config)}` first")
    train, validation = (TokenFile.open(path, verify) for path in _paths(folder))
    return Corpus(train, validation, train.header.vocabulary)


def folder_of(config: Any) -> Path:
    """The folder of a data configuration, `kjv-bytes-1a2b3c4d`: whatever changes the tokens
    changes its name, so a corpus is never taken for another."""
    tokenisers.named(config.tokeniser)
    if not isinstance(config.validation, float) or not 0 < config.validation < 1:
        raise ValueError(f"validation is {config.validation!r}; accepted are fractions, like 0.02")
    if not isinstance(config.shuffle_seed, int) or config.shuffle_seed < 0:
        raise ValueError(f"shuffle_seed is {config.shuffle_seed!r}; accepted are integers from 0")
    documents = sources.named(config.source).fingerprint(config)
    identity = [documents, float(config.validation), config.shuffle_seed, VERSION]
    digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    return Path(config.folder) / f"{config.source}-{config.tokeniser}-{digest[:8]}"


def _paths(folder: Path) -> tuple[Path, Path]:
    return folder / "train.tokens", folder / "validation.tokens"


def _command(config: Any) -> str:
    """What prepares the corpus, to be typed into a shell."""
    words = [f"data={config.source}"]
    for key, usual in OmegaConf.load(CONF / "data" / f"{config.source}.yaml").items():
        value = getattr(config, key, usual)
        if value != usual:
            words.append(f"data.{key}={_override(value)}")
    return shlex.join(["python", "-m", "experiments.prepare", *words])


def _override(value: Any) -> str:
    """As Hydra reads it: much like JSON, but for the keys of mappings."""
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{_override(each)}' for key, each in value.items())}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{','.join(map(_override, value))}]"
    if isinstance(value, str) and re.fullmatch(r"[\w.-]*/[\w./-]*", value):
        return value  # a path, which needs no quotes
    return json.dumps(value, ensure_ascii=False)


def _complete(folder: Path) -> bool:
    return all(path.exists() for path in _paths(folder))


def _write(folder: Path, config: Any) -> None:
    tokeniser = tokenisers.build(config)
    if not sys.stderr.isatty():
        from datasets import disable_progress_bars  # which would be drawn into log files

        disable_progress_bars()
    splits = sources.split(config)
    folder.mkdir(exist_ok=True)
    for partial in folder.glob("*.partial"):  # of a process that was killed: we hold the lock
        partial.unlink()
    for path, split in zip(_paths(folder), splits, strict=True):
        TokenFile.write(path, _encoded(split, tokeniser, path.stem), config.source, tokeniser)


def _encoded(split: "datasets.Dataset", tokeniser: Tokeniser, name: str) -> Iterator[np.ndarray]:
    """The tokens of each document in order. tiktoken leaves Python's lock, so threads help."""
    with (
        ThreadPoolExecutor() as pool,
        tqdm(total=len(split), desc=name, unit=" documents", disable=None) as progress,
    ):
        for batch in split.iter(batch_size=1000):
            yield from pool.map(tokeniser.encode, batch["text"])
            progress.update(len(batch["text"]))
