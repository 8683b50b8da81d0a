"""A corpus prepared once, and opened by every rank of every run after that."""

import hashlib
import json
import re
import shlex
import shutil
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

import runlog
from experiments import CONF
from experiments.data import sources, tokenisers
from experiments.data.fingerprint import (
    describe_files,
    describe_split,
    describe_tokeniser,
    difference,
)
from experiments.data.tokenfile import VERSION, TokenFile
from experiments.data.tokenisers import Tokeniser

if TYPE_CHECKING:  # a second to import
    import datasets

FINGERPRINT = "fingerprint.json"


@dataclass(frozen=True)
class Corpus:
    """A training and a validation split by one tokeniser, and their `fingerprint`."""

    train: TokenFile
    validation: TokenFile
    fingerprint: dict

    @property
    def vocabulary(self) -> int:
        """The number of tokens of the tokeniser."""
        return self.train.header.vocabulary


def prepare(config: Any) -> Corpus:
    """Write the token files of a data configuration, unless those there are up to date.

    Args:
        config: anything with the attributes of conf/data/*.yaml: `source`, `tokeniser`,
            `validation` (a fraction of the documents), `shortest`, `shuffle_seed`, `folder`, and
            those of its source and tokeniser.
    Returns:
        The Corpus, as `load` returns it.
    Raises:
        ValueError: the configuration or its source is not acceptable; no token file is written.
    """
    folder = folder_of(config)
    sources.named(config.source).files(config)  # refuses before anything is written
    folder.parent.mkdir(parents=True, exist_ok=True)
    # A second process waits here, and then finds the work done.
    with FileLock(folder.with_suffix(".lock")):
        recorded = _recorded(folder)
        current = _current(folder, config, recorded) if recorded else None
        if current is None or difference(recorded, current):
            _write(folder, config)
        elif current != recorded:  # the same text, touched or copied: read it once, not in each run
            _record(folder, current)
    return load(config)


def load(config: Any, verify: bool = True) -> Corpus:
    """Open the token files of a data configuration.

    Args:
        config: as for `prepare`.
        verify: compare their checksums, which reads them once; without, only their sizes.
    Raises:
        ValueError: they are missing, truncated or damaged, or the text or the tokeniser has
            changed since they were written.
    """
    folder = folder_of(config)
    recorded = _recorded(folder)
    if not recorded:
        raise ValueError(f"there is no prepared corpus in {folder}; run `{_command(config)}` first")
    if changes := difference(recorded, _current(folder, config, recorded)):
        raise ValueError(
            f"the text or tokeniser has changed since {folder} was prepared ({changes}); "
            f"run `{_command(config)}` to prepare it again"
        )
    train, validation = (TokenFile.open(path, verify) for path in _paths(folder))
    for file in recorded["files"]:
        del file["modified"]  # differs between copies of the same text
    return Corpus(train, validation, recorded)


def folder_of(config: Any) -> Path:
    """Return the folder of a data configuration, such as `kjv-bytes-1a2b3c4d`.

    Its name depends on everything in the configuration that determines the tokens.
    """
    tokenisers.named(config.tokeniser)
    if not isinstance(config.validation, float) or not 0 < config.validation < 1:
        raise ValueError(f"validation is {config.validation!r}; accepted are fractions, like 0.02")
    if config.shortest not in sources.LONG_ENOUGH:
        accepted = " or ".join(sources.LONG_ENOUGH)
        raise ValueError(f"shortest is {config.shortest!r}; accepted are {accepted}")
    if not isinstance(config.shuffle_seed, int) or config.shuffle_seed < 0:
        raise ValueError(f"shuffle_seed is {config.shuffle_seed!r}; accepted are integers from 0")
    text = sources.named(config.source).identity(config)
    settings = [float(config.validation), config.shortest, config.shuffle_seed]
    identity = json.dumps([text, *settings, VERSION])
    digest = hashlib.sha256(identity.encode()).hexdigest()
    return Path(config.folder) / f"{config.source}-{config.tokeniser}-{digest[:8]}"


def _recorded(folder: Path) -> dict:
    """Return the fingerprint from when the corpus was prepared; {} if it is not complete."""
    files = (*_paths(folder), folder / FINGERPRINT)
    return json.loads(files[-1].read_text()) if all(file.exists() for file in files) else {}


def _current(folder: Path, config: Any, recorded: dict) -> dict:
    """Return the fingerprint that the corpus would have if it were prepared now."""
    headers = {path.stem: TokenFile.open(path, verify=False).header for path in _paths(folder)}
    files = sources.named(config.source).files(config)
    return {
        "source": config.source,
        "files": describe_files(files, recorded["files"]),
        "tokeniser": describe_tokeniser(tokenisers.named(config.tokeniser)),
        **{name: describe_split(header) for name, header in headers.items()},
    }


def _record(folder: Path, fingerprint: dict) -> None:
    runlog.write_json(folder / FINGERPRINT, fingerprint)


def _paths(folder: Path) -> tuple[Path, Path]:
    return folder / "train.tokens", folder / "validation.tokens"


def _command(config: Any) -> str:
    """Return the command that prepares the corpus, to be typed into a shell."""
    words = [f"data={config.source}"]
    defaults = OmegaConf.load(CONF / "data" / f"{config.source}.yaml")
    for key, usual in {str(key): value for key, value in defaults.items()}.items():
        value = getattr(config, key, usual)
        if value != usual:
            words.append(f"data.{key}={_override(value)}")
    return shlex.join(["python", "-m", "experiments.prepare", *words])


def _override(value: Any) -> str:
    """Return `value` as Hydra reads it: like JSON, but for the keys of mappings."""
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{_override(each)}' for key, each in value.items())}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{','.join(map(_override, value))}]"
    if isinstance(value, str) and re.fullmatch(r"[\w.-]*/[\w./-]*", value):
        return value  # a path, which needs no quotes
    return json.dumps(value, ensure_ascii=False)


def _write(folder: Path, config: Any) -> None:
    tokeniser = tokenisers.build(config)
    if not sys.stderr.isatty():
        from datasets import disable_progress_bars  # which would be drawn into log files

        disable_progress_bars()
    files = describe_files(sources.named(config.source).files(config))  # as they are before reading
    folder.mkdir(exist_ok=True)
    for draft in runlog.drafts(folder):  # of a process that was killed, since we hold the lock
        draft.unlink()
    scratch = folder / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        splits = sources.split(config, scratch)
        for path, split in zip(_paths(folder), splits, strict=True):
            TokenFile.write(path, _encoded(split, tokeniser, path.stem), config.source, tokeniser)
    finally:
        shutil.rmtree(scratch)
    # The last file to be written: without it, the corpus is not complete.
    _record(folder, _current(folder, config, {"files": files}) | {"files": files})


def _encoded(split: "datasets.Dataset", tokeniser: Tokeniser, name: str) -> Iterator[np.ndarray]:
    """Yield the tokens of each document in order."""
    with (
        ThreadPoolExecutor() as pool,  # tiktoken releases the interpreter's lock
        tqdm(total=len(split), desc=name, unit=" documents", disable=None) as progress,
    ):
        for batch in split.iter(batch_size=1000):
            yield from pool.map(tokeniser.encode, batch["text"])
            progress.update(len(batch["text"]))
