"""Rules on made-up measurements whose verdict is plain."""

import pandas as pd
import pytest

from analysis.claims.learning import tracks
from analysis.claims.verdicts import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Verdict,
    everywhere,
    faster,
    grows_with_drift,
    varies_less,
)
from analysis.statistics import contrast, logarithm

FLUSH = (2.00, 2.01, 2.02)
NAN = float("nan")


@pytest.mark.parametrize(
    ("paci", "verdict"),
    [
        ((2.00, 2.01, 2.02), HOLDS),
        ((2.01, 2.02, 2.03), HOLDS),  # the paper's own 2.79 against 2.80
        ((2.10, 2.11, 2.12), FAILS),
        ((1.90, 1.91, 1.92), FAILS),  # tracking is not being better
        ((2.00, 2.01, NAN), FAILS),
        ((2.10, 2.01, 1.90), UNDECIDED),  # noise is no proof of tracking
        ((2.00,), UNDECIDED),
    ],
)
def test_tracking(paci, verdict):
    assert tracks(pd.Series(paci), pd.Series(FLUSH)).verdict == verdict


def test_nothing_tracks_a_diverged_flush():
    assert tracks(pd.Series(FLUSH), pd.Series([2.0, NAN])).verdict == UNDECIDED


def test_an_undecided_gap_says_how_many_seeds_would_decide():
    judged = tracks(pd.Series([2.03, 2.01, 1.99]), pd.Series(FLUSH))
    assert judged.verdict == UNDECIDED
    assert judged.why.endswith("seeds")


@pytest.mark.parametrize(
    ("ours", "flush", "seeds", "verdict"),
    [
        (1.0, 5.0, 3, HOLDS),  # a ratio of 25 in variance, of which chance exceeds 19 in 5 %
        (1.0, 4.0, 3, UNDECIDED),
        (1.0, 4.0, 4, HOLDS),
        (5.0, 1.0, 3, FAILS),
        (1.0, 9.0, 1, UNDECIDED),
        (NAN, 9.0, 3, UNDECIDED),
    ],
)
def test_variability(ours, flush, seeds, verdict):
    assert varies_less(ours, flush, seeds).verdict == verdict


def test_an_undecided_spread_says_how_many_seeds_would_decide():
    assert varies_less(1.0, 4.0, 3).why.endswith("would take 4 seeds")


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((1.44, 1.46), HOLDS),
        ((0.74, 0.76), FAILS),
        ((1.4, 1.6), UNDECIDED),  # of two seeds
        ((1.4, 1.5, 1.45), HOLDS),
        ((1.4,), UNDECIDED),
    ],
)
def test_faster(ratios, verdict):
    judged = faster(contrast((1, logarithm(pd.Series(ratios)))))
    assert judged.verdict == verdict
    assert judged.ours.startswith(f"{pd.Series(ratios).mean():.2f}×")


@pytest.mark.parametrize(
    ("mild", "strong", "verdict"),
    [
        ((2.1, 2.1), (2.5, 2.5), HOLDS),
        ((2.5, 2.5), (2.1, 2.1), FAILS),
        ((2.1, 2.1), (2.0, 2.3), UNDECIDED),
        ((2.1, 2.1), (NAN, 2.5), HOLDS),
        ((2.1, NAN), (2.5, 2.5), FAILS),
    ],
)
def test_growth_with_drift(mild, strong, verdict):
    ordered = [("paci a=8", 1, pd.Series(mild)), ("paci a=4", 2, pd.Series(strong))]
    assert grows_with_drift(ordered).verdict == verdict


def test_the_worst_place_decides():
    judged = {it: Verdict(f"{it} ± 1", it, f"because {it}") for it in (HOLDS, UNDECIDED, FAILS)}
    for names, verdict, why in (
        ((HOLDS, HOLDS), HOLDS, "because holds, at each"),
        ((HOLDS, UNDECIDED), UNDECIDED, "b: because undecided"),
        ((FAILS, UNDECIDED), FAILS, "a: because does not hold"),
    ):
        made = everywhere(list(zip("ab", (judged[it] for it in names), strict=True)), "at each")
        assert (made.verdict, made.why) == (verdict, why)
        assert made.ours == f"a: {names[0]}, b: {names[1]}"
