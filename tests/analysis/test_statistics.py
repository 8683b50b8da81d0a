"""Statistics with answers worked out by hand."""

from math import gamma, isnan, pi, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import cells, read_runs
from analysis.statistics import (
    STUDENTS_T,
    final_losses,
    mean_and_interval,
    mean_and_std,
    paired_gap,
    rms_of_std,
    smoothed,
)

NAN = float("nan")


def test_rms_of_the_standard_deviations():
    # Updates with standard deviations (ddof=1) of 1, 0 and 2: the RMS is sqrt(5/3).
    losses = pd.DataFrame({0: [1.0, 5.0, 0.0], 1: [2.0, 5.0, 2.0], 2: [3.0, 5.0, 4.0]})
    assert rms_of_std(losses) == pytest.approx(sqrt(5 / 3))


@given(st.lists(st.floats(0, 10), min_size=2, max_size=20), st.floats(0.01, 3))
def test_seeds_a_constant_apart_have_that_spread(curve, apart):
    losses = pd.DataFrame({0: curve, 1: np.array(curve) + apart})
    assert rms_of_std(losses) == pytest.approx(apart / sqrt(2))


def test_one_seed_has_no_spread():
    losses = pd.DataFrame({0: [2.0, 1.0]})
    mean, std = mean_and_std(final_losses(losses))
    assert mean == 1
    assert isnan(std)
    assert isnan(rms_of_std(losses))


def test_final_loss_is_the_mean_of_the_last_twentieth():
    assert final_losses(pd.DataFrame({0: range(40)})).tolist() == [38.5]


def test_a_diverged_seed_is_not_averaged_away():
    losses = pd.DataFrame({0: [2.0, 1.0], 1: [2.0, NAN]})
    assert final_losses(losses).isna().tolist() == [False, True]
    assert all(map(isnan, mean_and_std(final_losses(losses))))
    assert isnan(rms_of_std(losses))


def test_a_passing_undefined_loss_leaves_its_update_out():
    losses = pd.DataFrame({0: [NAN, 1.0], 1: [2.0, 3.0]})
    assert rms_of_std(losses) == pytest.approx(sqrt(2))


def test_quantiles_are_those_of_students_t():
    """Its density, integrated numerically from -t to t, is 95 %."""
    for n, quantile in enumerate(STUDENTS_T, start=1):
        t = np.linspace(-quantile, quantile, 20_001)
        scale = gamma((n + 1) / 2) / gamma(n / 2) / sqrt(n * pi)
        density = scale * (1 + t**2 / n) ** (-(n + 1) / 2)
        assert np.trapezoid(density, t) == pytest.approx(0.95, abs=1e-4)


def test_the_interval_of_a_mean_narrows_with_the_values():
    assert mean_and_interval(pd.Series([1.0, 3.0])) == pytest.approx((2, 12.706))
    assert mean_and_interval(pd.Series([1.0, 3.0] * 50))[1] == pytest.approx(2.042 / sqrt(99))
    assert isnan(mean_and_interval(pd.Series([1.0]))[1])
    assert isnan(mean_and_interval(pd.Series([1.0, NAN]))[1])


def test_the_gap_is_paired_by_seed():
    ours = pd.Series({0: 1.1, 1: 5.3, 2: 9.0})
    theirs = pd.Series({1: 5.0, 0: 1.0})
    assert paired_gap(ours, theirs) == pytest.approx((0.2, 12.706 * 0.1))


def test_the_gap_of_one_common_seed_has_no_interval():
    gap, doubt = paired_gap(pd.Series({0: 2.0}), pd.Series({0: 1.0, 1: 1.0}))
    assert gap == 1
    assert isnan(doubt)


def test_the_band_of_a_curve_is_the_rms_over_its_window():
    losses = pd.DataFrame({0: [0.0, 0.0, 0.0], 1: [0.0, sqrt(2), 0.0]})
    band = smoothed(losses, 3)["std"].tolist()
    assert band == pytest.approx([sqrt(1 / 2), sqrt(1 / 3), sqrt(1 / 2)])


def test_seeds_of_unequal_length_meet_where_both_are(write_run):
    for seed, length in enumerate((5, 4)):
        log = write_run(f"s{seed}", losses=[9, 8, 7, 6, 5], seed=seed) / "metrics.jsonl"
        log.write_text("".join(log.read_text().splitlines(keepends=True)[:length]))
    (cell,) = cells(read_runs(write_run.root), "q1")
    assert cell.losses.index.tolist() == [1, 2, 3, 4]
    assert final_losses(cell.losses).tolist() == [6, 6]


def test_a_completed_run_that_stops_short_is_not_used(write_run):
    log = write_run(losses=[9, 8, 7, 6, 5]) / "metrics.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:3]))
    assert "says completed but there are only 3 of 5" in read_runs(write_run.root).notes[0]
