"""The page as text: its parts in one file."""

import json
from pathlib import Path

from paci.explore.recorded import MICROBATCHES, RANKS, WINDOWS, recorded

_PARTS = Path(__file__).resolve().parent


def page() -> str:
    """Return the HTML, with its style, its scripts and the recorded orders inside."""
    data = {
        "ranks": RANKS,
        "windows": WINDOWS,
        "microbatches": MICROBATCHES,
        "schedules": recorded(),
    }
    parts = {
        "STYLE": _part("page.css"),
        "DATA": f"const DATA = {json.dumps(data, separators=(',', ':'))};",
        "SIMULATION": _part("simulation.js"),
        "SCRIPT": _part("page.js"),
    }
    text = _part("page.html")
    for name, part in parts.items():
        text = text.replace(f"/* {name} */", part)
    return text


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")
