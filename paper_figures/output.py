"""Writing figures and tables: whole files or none, and the same bytes every time."""

import io
import textwrap
from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size
from tempfile import TemporaryFile

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from tabulate import tabulate

import runlog
from analysis.claims import RULE
from analysis.claims.verdicts import UNTESTABLE, UNTESTED
from analysis.manifest import FILE, MADE, Item, as_json, read_manifest

WIDTH = 100
"""Characters of a line where the output is no terminal."""
GAP = "  "
"""The space that `tabulate` puts between two columns."""
NARROWEST = 4
KINDS = ("png", "pdf", "csv", "md", "tex")
LATEX = {
    "±": r"$\pm$",
    "Δ": r"$\Delta$",
    "⌈": r"$\lceil$",
    "⌉": r"$\rceil$",
    "≤": r"$\le$",
    "×": r"$\times$",
    "–": "--",
    "…": r"\dots{}",
}


METADATA = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}
"""No dates or versions, by kind of image."""


def save_figure(
    fig: Figure, folder: Path, name: str, kinds: Sequence[str] = tuple(METADATA)
) -> list[Path]:
    """Write name.png and name.pdf, or only those `kinds`, and close the figure."""
    written = []
    for kind in kinds:
        buffer = io.BytesIO()
        fig.savefig(buffer, format=kind, metadata=METADATA[kind])
        written.append(write(folder / f"{name}.{kind}", buffer.getvalue()))
        fig.set_layout_engine("none")  # the places found for the first hold for the second
    plt.close(fig)
    return written


def save_table(table: pd.DataFrame, folder: Path, name: str, note: str = "") -> list[Path]:
    """Write name.csv with every digit, and name.md and name.tex (booktabs) for reading."""
    shown = readable(table)
    markdown = tabulate(shown, headers="keys", tablefmt="github", **_PLAIN)
    latex = tabulate(shown, headers="keys", tablefmt="latex_booktabs", **_PLAIN)
    for symbol, command in LATEX.items():
        latex = latex.replace(symbol, command)
    texts = {
        "csv": table.to_csv(index=False, lineterminator="\n"),
        "md": markdown + "\n" + (f"\n{note}\n" if note else ""),
        "tex": "".join(f"% {line}\n" for line in note.splitlines()) + latex + "\n",
    }
    return [write(folder / f"{name}.{kind}", text.encode()) for kind, text in texts.items()]


def save_manifest(items: dict[str, Item], folder: Path) -> Path:
    """Write what became of these items into the folder's record; other items stay in it."""
    return write(folder / FILE, as_json(read_manifest(folder) | items).encode())


def remove(folder: Path, name: str) -> None:
    """Remove the files that `save_figure` and `save_table` wrote under this name."""
    for file in (*(f"{name}.{kind}" for kind in KINDS), narrow_file(name)):
        (folder / file).unlink(missing_ok=True)


def narrow_file(name: str) -> str:
    """Return where the image of a figure in one column is, below the folder of the others."""
    return f"narrow/{name}.png"


def save_captions(items: dict[str, Item], folder: Path) -> None:
    """Write captions.md: what stands below each figure in a paper, and not in its image."""
    texts = [
        f"**{item.name}.** {item.title} {item.caption}".strip()
        for item in items.values()
        if item.state == MADE and item.caption
    ]
    if texts:
        write(folder / "captions.md", ("\n\n".join(texts) + "\n").encode())
    else:
        (folder / "captions.md").unlink(missing_ok=True)


def on_screen(table: pd.DataFrame, file: Path) -> str:
    """Return the table as text that fits the terminal: one for each question, if there are several.

    Columns that are the same in all rows are said once, above. Claims without a verdict are
    counted; `file` has them, and the answers of the rules to the paper's own numbers.
    """
    shown = readable(table).drop(columns=RULE, errors="ignore")
    parts = [shown]
    if "verdict" in shown:
        tested = shown[is_judged(shown)]
        parts = [part for _, part in tested.groupby("question", sort=False)]
    width = get_terminal_size((WIDTH, 24)).columns
    texts = [_fitted(part, width) for part in parts]
    if left_out := len(shown) - sum(map(len, parts)):
        left = f"Left out, as not tested or not testable: {left_out} of {len(shown)}."
        texts.append(textwrap.fill(f"{left} All are in {file}.", width))
    return "\n\n".join(texts)


def is_judged(claims: pd.DataFrame) -> pd.Series:
    """Return whether there were runs to judge each of the claims by."""
    return ~claims["verdict"].isin([UNTESTED, UNTESTABLE])


def _fitted(shown: pd.DataFrame, width: int) -> str:
    """Return a table of text, its longest columns wrapped until it is at most `width` characters
    wide."""
    same = [name for name in shown if len(shown) > 1 and shown[name].nunique() == 1]
    values = {name: shown[name].iloc[0] for name in same}
    above = " · ".join(f"{name}: {value}" for name, value in values.items() if value != "–")
    shown = shown.drop(columns=same)
    columns = [[name, *shown[name]] for name in shown]
    widths = [max(map(len, texts)) for texts in columns]
    words = [max(len(word) for text in texts for word in text.split()) for texts in columns]
    while sum(widths) + len(GAP) * (len(widths) - 1) > width and max(widths) > NARROWEST:
        # The widest of those that need not break a word, if there is one.
        widest = max(range(len(widths)), key=lambda k: (widths[k] > words[k], widths[k]))
        widths[widest] -= 1
    lines = [
        [textwrap.fill(text, room) for text, room in zip(row, widths, strict=True)]
        for row in zip(*columns, strict=True)
    ]
    header, *rows = lines
    if any("\n" in cell for row in rows for cell in row):  # a blank line between two
        rows = [line for row in rows for line in (row, [""] * len(row))][:-1]
    return "\n\n".join(
        filter(None, [textwrap.fill(above, width), tabulate(rows, headers=header, **_PLAIN)])
    )


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """Return the cells as text: four digits at most, "–" where undefined, and a column named `x ±`
    (the spread of column `x`) joined to its numbers, where there is one."""
    shown = table.map(_text).astype(object)
    for spread in [name for name in shown if name.endswith(" ±")]:
        shown[spread] = table[spread].map(lambda cell: _text(cell, digits=2))
        value = spread.removesuffix(" ±")
        spreads = table[[value, spread]].notna().all(axis=1)
        shown[value] = shown[value].where(~spreads, shown[value] + " ± " + shown[spread])
        shown = shown.drop(columns=spread)
    return shown


_PLAIN = {"showindex": False, "disable_numparse": True}


def _text(cell: object, digits: int = 4) -> str:
    if cell is None or (isinstance(cell, float) and pd.isna(cell)):
        return "–"
    return f"{cell:.{digits}g}" if isinstance(cell, float) else str(cell)


class NotWritable(Exception):
    """A folder that nothing can be written to; the message says why, and what to do."""

    def __init__(self, folder: Path, error: OSError):
        super().__init__(
            f"error: {folder} cannot be written to ({error.strerror}): choose another with --out"
        )


def check_writable(folder: Path) -> None:
    """Raise NotWritable, before any work, for a folder that `write` could not write to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise NotWritable(folder, error) from None


def write(path: Path, content: bytes) -> Path:
    """Write a file as `runlog.write` does. Raise NotWritable if the disk is full, say."""
    try:
        runlog.write(path, content)
    except OSError as error:
        raise NotWritable(path.parent, error) from None
    return path
