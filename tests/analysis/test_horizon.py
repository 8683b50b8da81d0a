"""Tuned comparisons and the power law, on made-up runs whose truth is known."""

import numpy as np
import pandas as pd
import pytest

from analysis import cells, read_runs
from analysis.horizon import by_length, gap, lost, power_law
from analysis.tuning import best, loss, pairs, rate

LENGTHS = np.array([100, 200, 400, 800])


def made_up(power, noise, seeds=8):
    random = np.random.default_rng(1)
    law = 3 * LENGTHS[:, None] ** -power
    return pd.DataFrame(law * np.exp(noise * random.standard_normal((4, seeds))), index=LENGTHS)


def test_a_law_without_noise_is_found_exactly():
    found = power_law(made_up(0.5, noise=0), at=10_000)
    assert found.power == pytest.approx(0.5)
    assert found.value == pytest.approx(0.03)
    assert found.powers == pytest.approx((0.5, 0.5))
    assert found.fitted == 1


def test_the_interval_holds_the_truth_and_grows_with_the_noise():
    calm, loud = (power_law(made_up(0.3, noise), at=190_000) for noise in (0.02, 0.2))
    truth = 3 * 190_000**-0.3
    for found in (calm, loud):
        assert found.values[0] < truth < found.values[1]
        assert found.powers[0] < 0.3 < found.powers[1]
    assert np.ptp(calm.values) < np.ptp(loud.values)


def test_nothing_is_fitted_to_two_lengths_or_to_a_gap_that_is_not_there():
    assert power_law(made_up(0.5, noise=0).iloc[:2]) is None
    assert power_law(made_up(0.5, noise=0) - 1) is None


@pytest.fixture
def tuned(write_run):
    """Flush is best at 1e-3, PACI at 2e-3, where flush diverged."""
    ends = {("1f1b-flush", 1e-3): 2.0, ("paci", 1e-3): 2.4, ("paci", 2e-3): 2.3}
    ends |= {("1f1b-flush", 2e-3): float("nan"), ("async-1f1b", 2e-3): 2.2}
    for (method, lr), end in ends.items():
        for seed in (0, 1):
            write_run(
                f"{method}-{lr}-{seed}", method=method, seed=seed, experiment="horizon",
                optimizer={"name": "adamw", "lr": lr},
                losses=[*np.linspace(5, end, 100 - 5), *[end + seed / 10] * 5],
                state="diverged" if end != end else "completed",
            )  # fmt: skip
    return cells(read_runs(write_run.root))


def test_each_method_is_taken_at_its_best_rate(tuned):
    (held,) = best(tuned).values()
    assert {v.name: (rate(c), round(loss(c), 3)) for v, c in held.items()} == {
        "1f1b-flush": (1e-3, 2.05), "paci": (2e-3, 2.35), "async-1f1b": (2e-3, 2.25),
    }  # fmt: skip


def test_pairs_at_the_best_and_at_equal_rates(tuned):
    both = {it.method.variant.name: gap(it).tolist() for it in pairs(tuned, equal=False)}
    assert both["paci"] == pytest.approx([0.3, 0.3])
    assert both["async-1f1b"] == pytest.approx([0.2, 0.2])
    (equal,) = pairs(tuned, equal=True)  # async-1f1b has no run at flush's best rate
    assert gap(equal).tolist() == pytest.approx([0.4, 0.4])


def test_a_table_of_lengths_and_seeds(tuned):
    (equal,) = pairs(tuned, equal=True)
    table = by_length([(200, gap(equal) / 2), (100, gap(equal))])
    assert table.index.tolist() == [100, 200]
    assert table.loc[200].tolist() == pytest.approx([0.2, 0.2])
    assert (lost(equal) > 0).all()
