"""The rows of the table of claims."""

import pandas as pd

from analysis.claims.verdicts import UNDECIDED, UNTESTABLE, UNTESTED, Verdict

RULE = "rule on the paper's numbers"
COLUMNS = ["claim", "batch", "variant", "paper", RULE, "ours", "scale", "clock", "verdict", "why"]

NOT_THE_PAPERS = "(ours, not the paper's)"
"""Ends the name of a claim that the paper does not make."""


Row = dict[str, str | None]


def row(
    claim: str,
    variant: str,
    verdict: Verdict,
    paper: str | None = None,
    judged: Verdict | None = None,
    **place: str,
) -> Row:
    """Return the row of one claim at one place; `place` gives batch, scale and clock.

    `paper` is the paper's number at that place, if it has its own there; else what the list of
    claims quotes stands for it. `judged` is the answer of the same rule to the paper's numbers.
    """
    made: Row = {"claim": claim, "variant": variant, "paper": paper}
    made[RULE] = brief(judged) if judged else None
    return made | verdict._asdict() | place


def brief(judged: Verdict) -> str:
    """Return the verdict, and what would decide it if it is undecided."""
    takes = judged.why.rpartition("; ")[2]
    return f"{UNDECIDED}, {takes}" if judged.verdict == UNDECIDED else judged.verdict


def untested(claims: pd.DataFrame, why: str) -> list[Row]:
    """Return rows for claims that no run at hand speaks to."""
    verdict = Verdict("–", UNTESTED, why)
    return [
        row(it.claim, "–", verdict, batch="–", scale="–", clock="–") for it in claims.itertuples()
    ]


def at(scale: str, clock: str, batch: int, other: str = "") -> Row:
    """Return the place of a setting, as rows have it."""
    return {"batch": f"{batch}, {other}" if other else f"{batch}", "scale": scale, "clock": clock}


def unless_smoke(scale: str) -> Verdict | None:
    """Return the verdict on whatever has to do with learning, if this is the smoke scale."""
    why = "the smoke scale trains for too few updates"
    return Verdict("–", UNTESTABLE, why) if scale == "smoke" else None
