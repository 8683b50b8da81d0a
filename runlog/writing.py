"""Writing into run folders: whole files replace the old ones at once, lines are appended whole."""

import json
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runlog.records import as_json

DRAFT = ".draft-"
"""The first characters of a draft's name."""


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """Give a draft beside `path` to be written inside the block; it takes the place of `path` when
    the block ends, and is removed if the block raises.

    The draft keeps the suffix of `path`, by which some libraries choose a format. No two drafts
    have the same name, not even those of processes on different machines.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{DRAFT}{uuid.uuid4().hex[:12]}.{path.name}")
    try:
        yield draft
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def drafts(folder: Path) -> list[Path]:
    """Return the drafts in a folder: of processes at work, and of processes that were killed."""
    return list(folder.glob(f"{DRAFT}*"))


def write(path: Path, content: str | bytes) -> None:
    """Write a file, and its folder if need be: whole or not at all. Text is UTF-8."""
    with drafted(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, content: Any, indent: int | None = 1) -> None:
    """Write JSON as `write` does."""
    write(path, json.dumps(content, indent=indent))


def append(path: Path, records: Iterable[Any]) -> None:
    """Append a line of JSON for each record, a dataclass or a dict, in one write."""
    lines = [record if isinstance(record, dict) else as_json(record) for record in records]
    with path.open("a", encoding="utf-8") as log:
        log.write("".join(json.dumps(line) + "\n" for line in lines))
