"""What a row of the table of claims says."""

import pandas as pd

from analysis.claims.verdicts import UNTESTABLE, UNTESTED, Verdict

COLUMNS = ["claim", "batch", "variant", "paper", "ours", "scale", "clock", "verdict", "why"]

NOT_THE_PAPERS = "(ours, not the paper's)"
"""Ends the name of a claim that the paper does not make."""


def row(claim: str, variant: str, verdict: Verdict, paper: str | None = None, **place: str) -> dict:
    """One claim at one place; `place` gives batch, scale and clock. `paper` is the paper's figure
    at that place, if it has its own there; else what the list of claims quotes stands for it."""
    return {"claim": claim, "variant": variant, "paper": paper} | verdict._asdict() | place


def untested(claims: pd.DataFrame, why: str) -> list[dict]:
    """Rows for claims that no run at hand speaks to."""
    nowhere = dict.fromkeys(("batch", "scale", "clock"), "–")
    verdict = Verdict("–", UNTESTED, why)
    return [row(it.claim, "–", verdict, **nowhere) for it in claims.itertuples()]


def unless_smoke(scale: str) -> Verdict | None:
    """The verdict on whatever has to do with learning, at the smoke scale."""
    why = "the smoke scale trains for too few updates"
    return Verdict("–", UNTESTABLE, why) if scale == "smoke" else None
