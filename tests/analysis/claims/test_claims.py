"""The table of all claims."""

import pytest

from analysis import read_runs
from analysis.claims import COLUMNS, NOT_THE_PAPERS, all_claims
from analysis.claims.verdicts import FAILS, HOLDS, UNDECIDED, UNTESTABLE, UNTESTED
from paper_figures.published import published


@pytest.fixture(name="table")
def _table(write_run):
    write_run("flush")
    write_run("paci", method="paci", accumulation=8)
    return all_claims(read_runs(write_run.root), published)


def test_every_claim_of_the_paper_has_a_row(table):
    assert list(table) == ["question", *COLUMNS]
    assert set(published("claims")["claim"]) <= set(table["claim"])
    assert set(table["verdict"]) <= {HOLDS, FAILS, UNDECIDED, UNTESTABLE, UNTESTED}


def test_every_row_is_a_claim_of_the_paper_or_says_that_it_is_ours(table):
    ours = table["claim"].str.endswith(NOT_THE_PAPERS)
    assert set(table["claim"][~ours]) <= set(published("claims")["claim"])


def test_without_a_run_the_extrapolation_is_judged_all_the_same(write_run):
    write_run("dead", state="failed")
    verdicts = all_claims(read_runs(write_run.root), published).groupby("question")["verdict"]
    assert {question: set(of) for question, of in verdicts} == {
        "q1": {UNTESTED},
        "q2": {UNTESTED},
        "q3": {UNTESTED},
        "extrapolation": {HOLDS},
    }


def test_a_claim_that_the_runs_do_not_speak_to_is_listed_as_not_tested(table):
    q2 = table[table["question"] == "q2"]
    assert set(q2["verdict"]) == {UNTESTED, UNTESTABLE}
    assert set(q2["why"]) == {
        "its clock counts given costs, not measured times",
        "the runs at hand do not speak to it",
    }
    assert "1.69× (a=8, batch 128)" in q2["paper"].iloc[0]
