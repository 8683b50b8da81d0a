"""Every claim of the paper, judged by rules on the runs at hand: a file per question."""

import pandas as pd

from analysis.cells import CannotAnswer, planned
from analysis.claims.efficiency import efficiency_claims
from analysis.claims.extrapolation import extrapolation_claims
from analysis.claims.papers_own import papers_own
from analysis.claims.q1 import q1_claims
from analysis.claims.q2 import q2_claims
from analysis.claims.q3 import q3_claims
from analysis.claims.rows import COLUMNS, NOT_THE_PAPERS, RULE, brief, untested
from analysis.counterparts import Published
from analysis.frames import Frames
from analysis.q2.thresholds import PAPERS_WAY, Thresholds

__all__ = ["COLUMNS", "NOT_THE_PAPERS", "RULE", "all_claims"]


def all_claims(
    frames: Frames, published: Published, thresholds: Thresholds = PAPERS_WAY
) -> pd.DataFrame:
    """Return one row per claim and place where it can be looked at; columns: question, then
    COLUMNS.

    `published("claims")` lists the paper's claims (question, claim, paper), and
    `published("table_3")` and so on their numbers. A claim that no run speaks to has a row too,
    which says so. Rows are never pooled over scales or clocks.
    """
    answers = {
        "q1": lambda: q1_claims(planned(frames), published),
        "q2": lambda: q2_claims(planned(frames), frames, published, thresholds),
        "efficiency": lambda: efficiency_claims(planned(frames)),
        "q3": lambda: q3_claims(frames, published),
        "extrapolation": lambda: extrapolation_claims(
            published("zero_bubble"), published("zero_bubble_times")
        ),
    }
    listed = published("claims")
    parts = []
    for question, answer in answers.items():
        try:
            found, why = answer(), "the runs at hand do not speak to it"
        except CannotAnswer as error:
            found, why = pd.DataFrame(columns=COLUMNS), str(error)
        asked = listed[listed["question"] == question]
        missing = asked[~asked["claim"].isin(found["claim"])]
        rows = found.to_dict("records") + untested(missing, why)
        order = {claim: place for place, claim in enumerate(asked["claim"])}
        rows.sort(key=lambda row: order.get(row["claim"], len(order)))  # ours after the paper's
        parts.append(pd.DataFrame(rows, columns=COLUMNS).assign(question=question))
    table = pd.concat(parts, ignore_index=True)[["question", *COLUMNS]]
    quoted = table["claim"].map(listed.set_index("claim")["paper"])
    judged = table["claim"].map(_summaries(published))
    return table.assign(
        paper=table["paper"].where(table["paper"].notna(), quoted).fillna("–"),
        **{RULE: table[RULE].where(table[RULE].notna(), judged).fillna("–")},
    )


def _summaries(published: Published) -> dict[str, str]:
    """Say of each claim what its rule answers to the paper's numbers, wherever it has any."""
    answers: dict[str, list[str]] = {}
    for (claim, _, _), judged in papers_own(published).items():
        answers.setdefault(claim, []).append(brief(judged))
    return {
        claim: "; ".join(f"{each.count(it)} of {len(each)}: {it}" for it in dict.fromkeys(each))
        for claim, each in answers.items()
    }
