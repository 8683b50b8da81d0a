"""Show the progress of a long command: a bar on a terminal, a line every 30 s in a log."""

import sys
from collections.abc import MutableMapping
from typing import Any

from tqdm import tqdm

EVERY = 30  # seconds between two lines
LINE = "{desc}: {n_fmt}/{total_fmt} {unit}s [{elapsed}<{remaining}{postfix}]"
WITHOUT_TOTAL = "{desc}: {n_fmt} {unit}s [{elapsed}{postfix}]"


class Progress(tqdm):
    """A progress bar with the options of tqdm."""

    def __init__(self, **options):
        self.on_terminal = sys.stderr.isatty()
        if not self.on_terminal:
            lines = {"file": _Lines(), "mininterval": EVERY, "miniters": 0, "bar_format": LINE}
            options = lines | options
        super().__init__(**options)

    @property
    def format_dict(self) -> MutableMapping[str, Any]:
        known = super().format_dict
        if not self.on_terminal and not known["total"]:
            known["bar_format"] = WITHOUT_TOTAL
        return known

    def moveto(self, n: int) -> None:
        """Move to the line of another bar, which only a terminal has."""
        if self.on_terminal:
            super().moveto(n)

    def at(self, done: int, total: int | None = None) -> None:
        """Show that `done` units are done, of `total`; also refresh a terminal's clock."""
        self.total = total
        self.update(done - self.n)
        if self.on_terminal:
            self.refresh()


class _Lines:
    """A file that prints each state of a bar on a line of its own."""

    def write(self, text: str) -> None:
        if text.strip():
            print(text.strip(), file=sys.stderr)

    def flush(self) -> None:
        sys.stderr.flush()
