"""How far a long command is: a bar on a terminal; elsewhere, as in a log, a line now and then."""

import sys

from tqdm import tqdm

EVERY = 30  # seconds between two lines
LINE = "{desc}: {n_fmt}/{total_fmt} {unit}s [{elapsed}<{remaining}{postfix}]"
WITHOUT_TOTAL = "{desc}: {n_fmt} {unit}s [{elapsed}{postfix}]"


class Progress(tqdm):
    """tqdm's bar, of the same options."""

    def __init__(self, **options):
        self.on_terminal = sys.stderr.isatty()
        if not self.on_terminal:
            lines = {"file": _Lines(), "mininterval": EVERY, "miniters": 0, "bar_format": LINE}
            options = lines | options
        super().__init__(**options)

    @property
    def format_dict(self) -> dict:
        known = super().format_dict
        if not self.on_terminal and not known["total"]:
            known["bar_format"] = WITHOUT_TOTAL
        return known

    def moveto(self, n: int) -> None:
        """To the line of another bar, which only a terminal has."""
        if self.on_terminal:
            super().moveto(n)

    def at(self, done: int, total: int | None = None) -> None:
        """`done` is done, however much was before; a bar's clock goes on, too."""
        self.total = total
        self.update(done - self.n)
        if self.on_terminal:
            self.refresh()


class _Lines:
    """What a bar writes over itself, line by line."""

    def write(self, text: str) -> None:
        if text.strip():
            print(text.strip(), file=sys.stderr)

    def flush(self) -> None:
        sys.stderr.flush()
