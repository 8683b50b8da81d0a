"""The format of the images: how wide they are, in which typeface, and with a caption or without."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import matplotlib

COLUMN = 3.3
"""The width of a column of the paper, inches."""

SERIF = {"font.family": "STIXGeneral", "mathtext.fontset": "stix"}
"""A serif typeface that comes with matplotlib, close to Times."""


@dataclass(frozen=True)
class Format:
    """The format of an image.

    width     inches of a whole figure: its panels stand side by side if two columns fit into them,
              else one below the other; None: a column for each panel, at most two to a row
    serif     set the text in a serif typeface
    caption   write the caption into the image; it stands in captions.md and on the page anyway
    """

    width: float | None = None
    serif: bool = False
    caption: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether there is room for one panel beside no other."""
        return self.width is not None and self.width < 1.5 * COLUMN

    @property
    def column(self) -> float:
        """The width of a panel, inches."""
        if self.width is None:
            return COLUMN
        return self.width if self.is_narrow else self.width / 2


_current = Format()


def current() -> Format:
    """Return the format of the figures that are drawn now."""
    return _current


@contextmanager
def formatted(format: Format) -> Iterator[None]:
    """Draw the figures inside the block in `format`."""
    global _current
    before, _current = _current, format
    try:
        with matplotlib.rc_context(SERIF if format.serif else {}):
            yield
    finally:
        _current = before


def narrow(format: Format) -> Format:
    """Return the same format in one column, for the screen of a phone."""
    return replace(format, width=COLUMN, caption=False)
