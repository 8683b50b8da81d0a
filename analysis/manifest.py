"""The manifest of a folder of figures and tables: which were drawn, from which runs, and why others
were not."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FILE = "manifest.json"
FORMER_FILE = "made.json"  # of folders that older versions wrote
MADE, REFUSED, BROKEN = "made", "refused", "broken"


@dataclass(frozen=True)
class Item:
    """A figure, a table or both of one script, or the reason why there is none."""

    name: str
    title: str
    needs: tuple[str, ...]  # tasks of the runs that it reads; none if it needs no runs
    state: str  # made; refused: the runs do not suffice; broken: the script failed
    why: str = ""
    files: tuple[str, ...] = ()  # beside the manifest
    narrow: str = ""  # the figure's image in one column, for a phone
    caption: str = ""  # below the figure's panels
    note: str = ""  # below the table
    runs: tuple[str, ...] = ()  # names of the runs behind it
    known: int = 0  # runs of these tasks, usable or not
    seeds: int = 0
    inputs: str = ""  # a fingerprint of what the figure was drawn from

    @property
    def basis(self) -> str:
        """Text like "5 of 6 runs, 2 seeds", "simulations" or "needs no runs"."""
        if not self.known:
            return "simulations" if self.needs else "needs no runs"
        used = len(self.runs)
        many = f"{used} of {self.known} runs" if used < self.known else counted(used, "run")
        return f"{many}, {counted(self.seeds, 'seed')}"


def read_manifest(folder: Path) -> dict[str, Item]:
    """Return the items of a folder by name; none if it has no manifest that can be read."""
    file = folder / FILE if (folder / FILE).exists() else folder / FORMER_FILE
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        return {name: Item(**_with_tuples(fields)) for name, fields in record.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def as_json(items: dict[str, Item]) -> str:
    """Return the manifest as text: the same items give the same bytes."""
    record = {name: asdict(items[name]) for name in sorted(items)}
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def counted(number: int, thing: str) -> str:
    """Return text like "1 run" or "2 runs"."""
    return f"{number} {thing}" + ("" if number == 1 else "s")


def _with_tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(it) if isinstance(it, list) else it for key, it in fields.items()}
