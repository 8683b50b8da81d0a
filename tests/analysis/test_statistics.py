"""Statistics with answers worked out by hand."""

from math import isnan, log, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import cells, read_runs
from analysis.statistics import (
    Estimate,
    Sample,
    binned,
    contrast,
    final_losses,
    logarithm,
    mean_and_interval,
    mean_and_std,
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


def test_bins_hold_equal_tokens_whatever_the_batch():
    """Eight updates of 10 tokens, and four of 20, in two bins of 40."""
    small = pd.DataFrame({0: range(1, 9)}, index=range(1, 9))
    large = pd.DataFrame({0: range(1, 5)}, index=range(1, 5))
    tokens = {10: pd.Series(range(10, 90, 10), index=range(1, 9))}
    tokens[20] = pd.Series(range(20, 100, 20), index=range(1, 5))
    for losses, batch, means in ((small, 10, [2.5, 6.5]), (large, 20, [1.5, 3.5])):
        made = binned(losses, tokens[batch], bins=2)
        assert made[0].tolist() == means
        assert made.index.tolist() == [40, 80]


def test_fewer_updates_than_bins_have_a_bin_each():
    losses = pd.DataFrame({0: [4.0, 3.0, 2.0]}, index=[1, 2, 3])
    assert binned(losses, pd.Series([8, 16, 24], index=[1, 2, 3]))[0].tolist() == [4, 3, 2]


def test_a_spread_within_bins_does_not_count():
    """Two seeds whose losses differ within a bin, and not in its mean."""
    losses = pd.DataFrame({0: [1.0, 3.0], 1: [3.0, 1.0]}, index=[1, 2])
    tokens = pd.Series([1, 2], index=[1, 2])
    assert rms_of_std(losses) > 1
    assert rms_of_std(binned(losses, tokens, bins=1)) == 0


def test_the_interval_of_a_mean_narrows_with_the_values():
    assert mean_and_interval(pd.Series([1.0, 3.0])) == pytest.approx((2, 12.706), rel=1e-4)
    assert mean_and_interval(pd.Series([1.0, 3.0] * 50))[1] == pytest.approx(
        1.984 / sqrt(99), rel=1e-3
    )
    assert isnan(mean_and_interval(pd.Series([1.0]))[1])
    assert isnan(mean_and_interval(pd.Series([1.0, NAN]))[1])


def test_a_contrast_of_series_is_paired_by_seed():
    ours, theirs = pd.Series({0: 1.1, 1: 5.3, 2: 9.0}), pd.Series({1: 5.0, 0: 1.0})
    gap = contrast((1, ours), (-1, theirs))
    assert (gap.mean, gap.error, gap.freedom) == pytest.approx((0.2, 0.1, 1))
    assert gap.half_width() == pytest.approx(12.706 * 0.1, rel=1e-4)


def test_a_contrast_of_printed_means_is_welchs():
    gap = contrast((1, Sample(2.80, 0.03, 3)), (-1, Sample(2.79, 0.04, 3)))
    assert gap.mean == pytest.approx(0.01)
    assert gap.error == pytest.approx(0.05 / sqrt(3))
    assert gap.freedom == pytest.approx(2 * 25**2 / (9**2 + 16**2))


def test_one_common_seed_has_no_interval():
    gap = contrast((1, pd.Series({0: 2.0})), (-1, pd.Series({0: 1.0, 1: 1.0})))
    assert gap.mean == 1
    assert isnan(gap.half_width())
    assert gap.seeds_for(1.0) is None


def test_the_logarithm_of_a_printed_mean_has_its_relative_spread():
    assert logarithm(Sample(10.0, 0.5, 3)) == pytest.approx((log(10), 0.05, 3))


def test_the_seeds_it_takes_give_the_power_they_promise():
    """Simulated: with so many seeds, four of five studies have an interval within the room."""
    estimate = Estimate(mean=0.0, error=1 / sqrt(3), freedom=2, seeds=3)  # a spread of 1
    seeds = estimate.seeds_for(room=1.0)
    draws = np.random.default_rng(0).normal(0, 1, (4000, seeds))
    found = [
        abs(it.mean) + it.half_width() <= 1.0
        for it in (
            Estimate(row.mean(), row.std(ddof=1) / sqrt(seeds), seeds - 1, seeds) for row in draws
        )
    ]
    assert np.mean(found) == pytest.approx(0.8, abs=0.08)
    assert estimate.seeds_for(room=10.0) < seeds < estimate.seeds_for(room=0.3)


def test_the_band_of_a_curve_is_the_rms_over_its_window():
    losses = pd.DataFrame({0: [0.0, 0.0, 0.0], 1: [0.0, sqrt(2), 0.0]})
    band = smoothed(losses, 3)["std"].tolist()
    assert band == pytest.approx([sqrt(1 / 2), sqrt(1 / 3), sqrt(1 / 2)])


def test_seeds_of_unequal_length_meet_where_both_are(write_run):
    for seed, length in enumerate((5, 4)):
        log = write_run(f"s{seed}", losses=[9, 8, 7, 6, 5], seed=seed) / "metrics.jsonl"
        log.write_text("".join(log.read_text().splitlines(keepends=True)[:length]))
    (cell,) = cells(read_runs(write_run.root))
    assert cell.losses.index.tolist() == [1, 2, 3, 4]
    assert final_losses(cell.losses).tolist() == [6, 6]


def test_a_completed_run_that_stops_short_is_not_used(write_run):
    log = write_run(losses=[9, 8, 7, 6, 5]) / "metrics.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:3]))
    assert "says completed but there are only 3 of 5" in read_runs(write_run.root).notes[0]
