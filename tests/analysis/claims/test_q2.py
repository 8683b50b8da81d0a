"""Verdicts on times whose verdict is plain."""

import pandas as pd
import pytest

from analysis import cells, read_runs
from analysis.claims.q2 import AT_EVERY_THRESHOLD, SOONER, SOONER_THAN_EQUAL, q2_claims
from analysis.claims.verdicts import FAILS, HOLDS, UNDECIDED, UNTESTABLE, UNTESTED, sooner
from paper_figures.published import published


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((1.44, 1.46), HOLDS),
        ((0.74, 0.76), FAILS),
        ((1.4, 1.5), UNDECIDED),  # 9 standard errors above one, but of two seeds
        ((1.4, 1.5, 1.45), HOLDS),
        ((1.4,), UNDECIDED),
    ],
)
def test_sooner(ratios, verdict):
    assert sooner(pd.Series(ratios)).verdict == verdict


LOG = [(0, 0, 300), (1, 10, 16), (2, 20, 11), (4, 40, 9)]


def claims(write_run, thresholds=None, paces=(1.5, 1.52), lowest=9, **options):
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
                experiment="q2",
                seed=seed,
                method=method,
                accumulation=a,
                evaluations=[(k, t / speed, p) for k, t, p in points],
                **options,
            )
    table = q2_claims(cells(read_runs(write_run.root), "q2"), published("q2"), thresholds)
    return table.set_index("claim")


def test_the_claims_of_a_small_q2(write_run):
    table = claims(write_run)
    assert table["verdict"].to_dict() == {
        SOONER: HOLDS,
        SOONER_THAN_EQUAL: HOLDS,
        AT_EVERY_THRESHOLD: HOLDS,
    }
    assert table.loc[SOONER, "ours"].endswith("at 9, over 1f1b-flush m=4")
    assert table.loc[SOONER_THAN_EQUAL, "ours"].endswith("at 9, over 1f1b-flush m=8")
    assert table.loc[SOONER, "paper"] == "1.69× (batch 128)"
    assert "≤17: 1.59×" in table.loc[AT_EVERY_THRESHOLD, "paper"]
    assert set(table["clock"]) == {"wall"}


@pytest.mark.parametrize(
    ("options", "claim", "verdict"),
    [
        ({"paces": (0.5, 0.52)}, SOONER, FAILS),
        ({"paces": (0.5, 1.6)}, SOONER, UNDECIDED),
        ({"paces": (1.5,)}, SOONER, UNDECIDED),
        ({"thresholds": [12, 8.5]}, AT_EVERY_THRESHOLD, FAILS),  # only flush gets to 8.5
        ({"thresholds": [12, 5]}, AT_EVERY_THRESHOLD, UNDECIDED),  # neither does
        ({"clock": "simulated"}, SOONER, UNTESTABLE),
        ({"scale": "smoke"}, SOONER, UNTESTABLE),
    ],
)
def test_claims_that_do_not_hold(write_run, options, claim, verdict):
    assert claims(write_run, **options).loc[claim, "verdict"] == verdict


def test_a_drift_that_the_paper_does_not_speak_of_is_no_test(write_run):
    write_run("p", experiment="q2", method="paci", accumulation=1, clock="wall", evaluations=LOG)
    table = q2_claims(cells(read_runs(write_run.root), "q2"), published("q2"))
    assert set(table["verdict"]) == {UNTESTED}
    assert set(table["why"]) == {"no completed paci run with Δmax 1 or 2"}
