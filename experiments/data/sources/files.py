"""The user's own text: .txt, .jsonl with a field `text`, .parquet with a column `text`."""

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.data.sources.readers import read

if TYPE_CHECKING:  # a second to import
    import datasets


def identity(config: Any) -> list[str]:
    """Return the paths and patterns in `config.files`, absolute."""
    return [os.path.abspath(pattern) for pattern in _patterns(config)]


def files(config: Any) -> dict[str, Path]:
    """Return the files that the paths and globs in `config.files` name (`**`: any depth), sorted.

    A name is a file first and a pattern second: `a[1].txt` is that file if there is one. A file
    with two names, one of them a link to the other, is taken once, by the first of its names.

    Raises:
        ValueError: there is no pattern, or no file for one of them.
    """
    patterns = _patterns(config)
    if not patterns:
        raise ValueError("source 'files' has no files; give paths or globs, data.files=[my/*.txt]")
    names: set[str] = set()
    for pattern in patterns:
        matched = _matches(pattern)
        if not matched:
            raise ValueError(f"no file matches {pattern!r}; accepted are paths and globs")
        names.update(matched)
    # A link is judged by its own name: the hub's caches link x.parquet to a blob without suffix.
    once = {os.path.realpath(name): name for name in sorted(names, reverse=True)}
    return {name: Path(name) for name in sorted(once.values())}


def documents(config: Any, scratch: Path) -> "datasets.Dataset":
    """Return the documents of `config.files`.

    A document is what a blank line ends in a .txt file, a line in a .jsonl, a row in a .parquet.
    Raises ValueError as `files` and `readers.read` do.
    """
    return read(files(config).values(), scratch)


def _patterns(config: Any) -> list[str]:
    given = [config.files] if isinstance(config.files, str) else config.files or []
    return [os.path.expanduser(pattern) for pattern in map(str, given)]


def _matches(pattern: str) -> list[str]:
    if os.path.lexists(pattern):
        return [pattern]
    return [name for name in glob.glob(pattern, recursive=True) if not os.path.isdir(name)]
