"""Verdicts on times whose verdict is plain."""

import pytest

from analysis import cells, read_runs
from analysis.claims.learning import (
    FINAL_PERPLEXITY,
    GROWS,
    SHORTER_THAN_BEST,
    SHORTER_THAN_EQUAL,
    SHRINKS,
    SOONER,
)
from analysis.claims.q2 import q2_claims
from analysis.claims.verdicts import FAILS, HOLDS, UNDECIDED, UNTESTABLE, UNTESTED
from analysis.q2.thresholds import Thresholds
from paper_figures.published import published

LOG = [(0, 0, 300), (1, 10, 16), (2, 20, 11), (4, 40, 9)]


def claims(write_run, thresholds=None, paces=(1.5, 1.52), lowest=8.1, **options):
    options = {"clock": "wall"} | options
    for seed, pace in enumerate(paces):
        for name, method, a, speed, last in (
            ("f4", "1f1b-flush", 4, 1, 8),
            ("f8", "1f1b-flush", 8, 0.5, 8),
            ("p8", "paci", 8, pace, lowest),
        ):
            points = [(0, 0, 300), (1, 10, 16), (2, 20, 11), (4, 40, last)]
            write_run(
                f"{name}-{seed}",
                seed=seed,
                method=method,
                accumulation=a,
                evaluations=[(k, t / speed, p) for k, t, p in points],
                **options,
            )
    frames = read_runs(write_run.root)
    table = q2_claims(cells(frames), frames, published, Thresholds(thresholds))
    return table.set_index("claim")


def test_the_claims_of_a_small_q2(write_run):
    """PACI is 1.5 times as fast as the best flush, per update, and three times as flush at m=8."""
    table = claims(write_run, lowest=8.1)
    assert table["verdict"].to_dict() == {
        SHORTER_THAN_BEST: HOLDS,
        SHORTER_THAN_EQUAL: HOLDS,
        FINAL_PERPLEXITY: HOLDS,
        SOONER: HOLDS,
        GROWS: FAILS,  # its last perplexity is above flush's
        SHRINKS: FAILS,
    }
    assert table.loc[SHORTER_THAN_BEST, "ours"].startswith("1.51×")
    assert table.loc[SHORTER_THAN_BEST, "ours"].endswith("over 1f1b-flush m=4")
    assert table.loc[SHORTER_THAN_EQUAL, "ours"].endswith("over 1f1b-flush m=8")
    assert table.loc[SHORTER_THAN_BEST, "paper"] == "1.69×"
    assert "≤17: 1.74×" in table.loc[SOONER, "paper"]
    assert table.loc[SOONER, "rule on the paper's numbers"] == HOLDS
    assert set(table["clock"]) == {"wall"}


@pytest.mark.parametrize(
    ("options", "claim", "verdict"),
    [
        ({"paces": (0.5, 0.52)}, SHORTER_THAN_BEST, FAILS),
        ({"paces": (0.5, 1.6)}, SHORTER_THAN_BEST, UNDECIDED),
        ({"paces": (1.5,)}, SHORTER_THAN_BEST, UNDECIDED),
        ({"lowest": 9}, FINAL_PERPLEXITY, FAILS),
        ({"paces": (0.2, 0.21)}, SOONER, FAILS),
        ({"thresholds": (12.0, 8.5), "lowest": 9}, SOONER, FAILS),  # only flush gets to 8.5
        ({"thresholds": (12.0, 5.0)}, SOONER, UNDECIDED),  # neither does
        ({"clock": "simulated"}, SOONER, UNTESTABLE),
        ({"scale": "smoke"}, SOONER, UNTESTABLE),
    ],
)
def test_claims_that_do_not_hold(write_run, options, claim, verdict):
    assert claims(write_run, **options).loc[claim, "verdict"] == verdict


@pytest.mark.parametrize(("late", "verdict"), [(0, HOLDS), (6, FAILS)])
def test_the_gap_closes_or_widens(write_run, late, verdict):
    """PACI is three updates behind flush at 16, and at 10 none, or nine."""
    for seed in range(3):
        wobble = seed / 1000
        for method, lag in (("1f1b-flush", 0), ("paci", 1)):
            middle, end = 10 + 3 * lag, 20 + (late + 3) * lag * (late > 0)
            points = [(0, 0, 300), (middle, middle + wobble, 16), (end, end + wobble, 10)]
            write_run(
                f"{method}-{seed}",
                method=method,
                accumulation=8,
                seed=seed,
                losses=[1.0] * 40,
                evaluations=[*points, (40, 40, 9.9)],
                clock="wall",
            )
    frames = read_runs(write_run.root)
    table = q2_claims(cells(frames), frames, published, Thresholds((16.0, 10.0)))
    judged = table.set_index("claim")["verdict"]
    assert judged[SHRINKS] == verdict
    assert judged[GROWS] == verdict


def test_a_drift_that_the_paper_does_not_speak_of_is_no_test(write_run):
    write_run("p", method="paci", accumulation=1, clock="wall", evaluations=LOG)
    frames = read_runs(write_run.root)
    table = q2_claims(cells(frames), frames, published)
    assert set(table["verdict"]) == {UNTESTED}
    assert set(table["why"]) == {"no completed paci run with Δmax 1 or 2"}
