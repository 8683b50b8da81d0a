"""Our own claims on what an update of PACI is worth, judged on the runs at hand."""

from collections.abc import Sequence

import pandas as pd

from analysis.cells import Cell, by_setting
from analysis.claims.rows import COLUMNS, NOT_THE_PAPERS, Row, at, row, unless_smoke
from analysis.claims.verdicts import UNTESTED, Verdict, above
from analysis.efficiency import at_share, flush_of, from_losses
from analysis.statistics import contrast

RISES = f"an update is worth more as training goes on {NOT_THE_PAPERS}"
FALLS = f"an update is worth less with more drift {NOT_THE_PAPERS}"
EARLY, LATE = 0.4, 1.0
"""The shares of training between which efficiency is said to rise."""


def efficiency_claims(made: Sequence[Cell]) -> pd.DataFrame:
    """Return one row per setting and PACI variant; columns as in `analysis.claims.COLUMNS`."""
    rows: list[Row] = []
    for setting, group in by_setting(made).items():
        place = at(*setting)
        worth = {
            cell.variant: from_losses(cell, flush)
            for cell in group
            if cell.variant.is_paci and (flush := flush_of(cell, group)) is not None
        }
        refused = unless_smoke(setting.scale)
        for variant, efficiency in worth.items():
            rows.append(row(RISES, variant.label, refused or rises(efficiency)) | place)
        late = [(it.label, it.max_drift, at_share(e, LATE)) for it, e in worth.items()]
        rows.append(row(FALLS, "paci", refused or falls(late)) | place)
    return pd.DataFrame(rows, columns=COLUMNS)


def rises(efficiency: pd.DataFrame) -> Verdict:
    """Judge whether E over the last tenth of training is above E around 40 % of it, seed by
    seed."""
    early, late = (at_share(efficiency, share) for share in (EARLY, LATE))
    judged = above(contrast((1, late), (-1, early)))
    return judged._replace(ours=f"{early.mean():.2f} to {late.mean():.2f}: {judged.ours}")


def falls(by_drift: Sequence[tuple[str, int, pd.Series]]) -> Verdict:
    """Judge whether E is lower for the largest Δmax than for the smallest, seed by seed."""
    ordered = sorted(by_drift, key=lambda it: it[1])
    if len({drift for _, drift, _ in ordered}) < 2:
        return Verdict("–", UNTESTED, "needs variants of different Δmax, and flush")
    least, most = ordered[0][2], ordered[-1][2]
    judged = above(contrast((1, least), (-1, most)))
    means = ", ".join(f"{label} {values.mean():.2f}" for label, _, values in ordered)
    return judged._replace(ours=f"{means}: {judged.ours}")
