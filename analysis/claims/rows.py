"""What a row of the table of claims says."""

import pandas as pd

from analysis.verdicts import UNTESTED, Verdict

COLUMNS = ["claim", "batch", "variant", "paper", "ours", "scale", "clock", "verdict", "why"]

NOT_THE_PAPERS = "(ours, not the paper's)"
"""Ends the name of a claim that the paper does not make."""


def row(claim: str, variant: str, paper: str, verdict: Verdict, **place: str) -> dict:
    """One claim at one place; `place` gives batch, scale and clock."""
    return {"claim": claim, "variant": variant, "paper": paper} | verdict._asdict() | place


def untested(claims: pd.DataFrame, why: str) -> list[dict]:
    """Rows for claims (columns claim and paper) that no run at hand speaks to."""
    nowhere = dict.fromkeys(("batch", "scale", "clock"), "–")
    verdict = Verdict("–", UNTESTED, why)
    return [row(it.claim, "–", it.paper, verdict, **nowhere) for it in claims.itertuples()]
