"""The rules on the paper's own numbers: they say yes, or how many seeds it would take."""

import re

import pytest

from analysis.claims import learning
from analysis.claims.papers_own import papers_own
from analysis.claims.q3 import THEORY
from analysis.claims.verdicts import FAILS, HOLDS, UNDECIDED
from paper_figures.published import published

JUDGED = papers_own(published)


@pytest.mark.parametrize("key", JUDGED, ids=lambda key: " ".join(map(str, key)))
def test_no_rule_denies_the_paper(key):
    judged = JUDGED[key]
    assert judged.verdict != FAILS
    if judged.verdict == UNDECIDED:
        assert re.search(r"would take \d+ seeds$", judged.why)


@pytest.mark.parametrize(
    ("claim", "batch", "method"),
    [
        (learning.TRACKS, 256, "paci a=16"),
        (learning.VARIES_LESS, 128, "paci a=8"),
        (learning.SHORTER_THAN_BEST, 128, "paci a=8"),
        (learning.FINAL_PERPLEXITY, 256, "paci a=16"),
        (learning.SOONER, 128, "paci a=4"),
        (learning.GROWS, 256, "paci a=8"),
        (learning.BEST_IS_LEVEL, 256, "paci a=8"),
        (THEORY, 32, "paci"),
    ],
)
def test_a_rule_can_say_yes(claim, batch, method):
    assert JUDGED[claim, batch, method].verdict == HOLDS


def test_every_claim_on_loss_and_time_is_judged():
    listed = published("claims")
    asked = set(listed.loc[listed["question"].isin(["q1", "q2"]), "claim"])
    of_runs = {"drift within its bound", "one copy of the weights", "activation peak of flush"}
    assert {claim for claim, _, _ in JUDGED} == asked - of_runs | {THEORY}


def worse(name):
    """The paper's tables with PACI as slow as flush was, and half a nat above it."""
    table = published(name)
    paci = table["method"].str.startswith("paci") if "method" in table else None
    for column, factor in (("hours", 3.0), ("loss", 1.2), ("perplexity", 1.1)):
        if paci is not None and column in table and (name, column) != ("table_6", "perplexity"):
            table.loc[paci, column] = table.loc[paci, column] * factor
    return table


def test_the_same_rules_deny_a_worse_paper():
    judged = papers_own(worse)
    for claim in (learning.TRACKS, learning.SHORTER_THAN_BEST, learning.SOONER):
        assert {it.verdict for key, it in judged.items() if key[0] == claim} == {FAILS}


def test_many_seeds_of_the_papers_spread_decide():
    """An undecided rule holds with the seeds that it asks for, at the same means and spreads."""

    def many(name):
        table = published(name)
        return table.assign(seeds=300) if "seeds" in table else table

    undecided = [key for key, it in JUDGED.items() if it.verdict == UNDECIDED]
    assert undecided
    assert {papers_own(many)[key].verdict for key in undecided} == {HOLDS}
