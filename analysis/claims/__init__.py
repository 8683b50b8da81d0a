"""Every claim of the paper, judged by rules on the runs at hand: a file per question."""

from collections.abc import Callable, Sequence

import pandas as pd

from analysis.cells import CannotAnswer, cells
from analysis.claims.extrapolation import extrapolation_claims
from analysis.claims.q1 import q1_claims
from analysis.claims.q2 import q2_claims
from analysis.claims.q3 import q3_claims
from analysis.claims.rows import COLUMNS, NOT_THE_PAPERS, untested
from analysis.frames import Frames

__all__ = ["COLUMNS", "NOT_THE_PAPERS", "all_claims"]


def all_claims(
    frames: Frames,
    published: Callable[[str], pd.DataFrame],
    thresholds: Sequence[float] | None = None,
) -> pd.DataFrame:
    """One row per claim and place where it can be looked at; columns: question, then COLUMNS.

    `published("claims")` lists the paper's claims (question, claim, paper), and `published("q1")`
    and so on their figures. A claim that no run speaks to has a row too, which says so. Rows are
    never pooled over scales or clocks. `thresholds` are those of Q2, perplexities.
    """
    answers = {
        "q1": lambda: q1_claims(cells(frames, "q1"), published("q1")),
        "q2": lambda: q2_claims(cells(frames, "q2"), published("q2"), thresholds),
        "q3": lambda: q3_claims(frames),
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
    return table.assign(paper=table["paper"].where(table["paper"].notna(), quoted).fillna("–"))
