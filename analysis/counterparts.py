"""Which of the paper's figures stands beside ours."""

import pandas as pd

from analysis.cells import Cell


def published_batch(
    batch: int, made: list[Cell], scale: str, published: pd.DataFrame
) -> int | None:
    """The paper's batch size that ours stands for: the same one, or the same rank by size.

    Below the paper's scale the smaller batch is compared with the paper's smaller, and so on.
    """
    theirs = sorted({int(b) for b in published["batch"].dropna()})
    mine = sorted({cell.batch for cell in made if cell.scale == scale})
    if scale == "paper" or set(mine) & set(theirs):
        return batch if batch in theirs else None
    return dict(zip(mine, theirs, strict=False)).get(batch)


def published_loss(cell: Cell, batch: int | None, published: pd.DataFrame) -> str:
    """The paper's final training loss for a variant ("2.79 ± 0.00167"), or "–"."""
    name = cell.variant.label if cell.variant.asynchronous else cell.variant.name
    found = published[
        (published["claim"] == "final training loss")
        & (published["batch"] == batch)
        & (published["variant"] == name)
    ]
    if found.empty:
        return "–"
    value, spread = found.iloc[0][["value", "spread"]]
    return f"{value:.2f}" + ("" if pd.isna(spread) else f" ± {spread:g}")
