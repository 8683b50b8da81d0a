"""Reading files that a crash, a preemption, a full disk or another version may have written."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runlog.records import keys, required


class Damaged(ValueError):
    """A file that holds no JSON of the expected kind; the message names it."""


def read_lines(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the objects of a file of JSON lines, and the numbers (from 1) of unreadable lines.

    A missing file counts as an empty one. A last line that does not parse and has no newline is a
    write that never finished: it is left out and not counted as unreadable.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return [], []
    lines = text.split("\n")
    try:  # one call for the whole file is several times faster than one per line
        rows = json.loads("[" + ",".join(filter(str.strip, lines)) + "]")
        if all(type(row) is dict for row in rows):
            return rows, []
    except (ValueError, RecursionError):
        pass
    return _readable(lines)


def read_last_lines(path: Path, most: int = 1 << 16) -> list[dict[str, Any]]:
    """Return the readable objects of the last lines of a file of JSON lines, in `most` bytes.

    A log of a long run has megabytes, of which a summary needs the end.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    whole = text if size <= most else text.partition("\n")[2]
    return _readable(whole.split("\n"))[0]


def read_json(path: Path, kind: type = dict) -> Any:
    """Return the content of a JSON file, a `kind`; None if there is no such file. Raises Damaged
    if it holds anything else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        raise Damaged(f"{path.name} is not readable JSON") from None
    if not isinstance(content, kind):
        raise Damaged(f"{path.name} holds no JSON {'object' if kind is dict else 'list'}")
    return content


def _readable(lines: Sequence[str]) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the objects in `lines`, and the numbers of unreadable ones; the last, if it does not
    parse, was never finished."""
    rows, unreadable = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if type(row) is dict:
            rows.append(row)
        elif number < len(lines):
            unreadable.append(number)
    return rows, unreadable


def deviations(file: str, rows: Sequence[dict[str, Any]], record: type) -> list[str]:
    """Say, a sentence a key, where `rows` of `file` depart from `record`: keys that some lack, and
    keys that the record does not have."""
    if not rows:
        return []
    there = set().union(*rows)
    everywhere = set(rows[0]).intersection(*rows)
    known = keys(record)
    lacking = [key for key in known if key in required(record) and key not in everywhere]
    return [
        *(f"{file} has lines without {key}." for key in lacking),
        *(f"{file} has an unknown key, {key}." for key in sorted(there.difference(known))),
    ]
