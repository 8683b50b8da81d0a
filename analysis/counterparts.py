"""The paper's numbers that stand beside ours."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from analysis.cells import Cell

Published = Callable[[str], pd.DataFrame]
"""Returns a published table by its name: "table_3", "claims", ..."""


def papers_batch(cell: Cell, made: Sequence[Cell], published: pd.DataFrame) -> int | None:
    """Return the paper's batch size that a cell's stands for: the same one, or the same rank by
    size.

    Below the paper's scale the smaller batch is compared with the paper's smaller, and so on; a
    batch at which only other methods than the paper's were trained is not.
    """
    theirs = sorted({int(batch) for batch in published["batch"]})
    alike = [it for it in made if it.scale == cell.scale and it.variant.in_paper]
    mine = sorted({it.batch for it in alike})
    if cell.scale == "paper" or set(mine) & set(theirs):
        return cell.batch if cell.batch in theirs else None
    return dict(zip(mine, theirs, strict=False)).get(cell.batch)


def papers_row(published: pd.DataFrame, **where: object) -> dict[str, Any]:
    """Return the row of a published table that has these values, or an empty dictionary."""
    mine = published
    for column, value in where.items():
        mine = mine[mine[column] == value]
    return mine.iloc[0].to_dict() if len(mine) else {}
