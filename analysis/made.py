"""What was made of a folder's runs: `made.json`, which lies beside the figures and tables."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "made.json"
MADE, REFUSED, BROKEN = "made", "refused", "broken"


@dataclass(frozen=True)
class Item:
    """A figure, a table or both of one script, or the reason why there is none."""

    name: str
    title: str
    experiments: tuple[str, ...]  # that it is about; none if it needs no runs
    state: str  # made; refused: the runs do not suffice; broken: the script failed
    why: str = ""
    files: tuple[str, ...] = ()  # beside made.json
    caption: str = ""  # what the figure says below its panels
    note: str = ""  # what the table says below itself
    runs: tuple[str, ...] = ()  # names of those it was made from
    known: int = 0  # runs of these experiments, usable or not
    seeds: int = 0

    @property
    def basis(self) -> str:
        """ "5 of 6 runs, 2 seeds", or that it needs none, or only simulations."""
        if not self.known:
            return "simulations" if self.experiments else "needs no runs"
        used = len(self.runs)
        many = f"{used} of {self.known} runs" if used < self.known else counted(used, "run")
        return f"{many}, {counted(self.seeds, 'seed')}"


def read_made(folder: Path) -> dict[str, Item]:
    """The items of a folder by name; none if it has no record that can be read."""
    try:
        record = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return {
            name: Item(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})
            for name, fields in record.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def as_json(items: dict[str, Item]) -> str:
    """The record as text: the same items, the same bytes."""
    record = {name: asdict(items[name]) for name in sorted(items)}
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def counted(number: int, thing: str) -> str:
    """ "1 run", "2 runs"."""
    return f"{number} {thing}" + ("" if number == 1 else "s")
