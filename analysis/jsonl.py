"""Reading JSON lines that a crash, a preemption or a full disk may have damaged."""

import json
from pathlib import Path


def read_jsonl(path: Path) -> tuple[list[dict], list[int]]:
    """The objects of a JSON-lines file, and the numbers (from 1) of its unreadable lines.

    A missing file is an empty one. A last line without its newline that does not parse is a write
    that never finished: it is left out and not counted as unreadable.
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
