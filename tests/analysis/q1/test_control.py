"""The split of PACI's distance from flush, on runs whose parts are known."""

import pandas as pd
import pytest

from analysis import cells, read_runs
from analysis.claims.verdicts import FAILS, HOLDS, UNDECIDED, mostly_delay
from analysis.q1.control import flush_of, splits


def found(write_run, stashed_seeds=(0, 1), **options):
    for seed in (0, 1):
        write_run(f"f{seed}", seed=seed, losses=[2.0 + seed])
        write_run(f"p{seed}", seed=seed, method="paci", losses=[2.5 + seed * 1.1])
    for seed in stashed_seeds:
        weights = {"method": "paci", "weights": "stashed"}
        write_run(f"s{seed}", seed=seed, losses=[2.3 + seed], **weights, **options)
    group = cells(read_runs(write_run.root))
    return list(splits(group, flush_of(group)))


def test_delay_and_inconsistency_add_up_seed_by_seed(write_run):
    (split,) = found(write_run)
    assert split.live.variant.label == "paci a=4"
    assert split.by_seed.to_dict("list") == {
        "delay": pytest.approx([0.3, 0.3]),
        "inconsistency": pytest.approx([0.2, 0.3]),
        "distance": pytest.approx([0.5, 0.6]),
    }
    assert split.part("inconsistency") == pytest.approx((0.25, 12.7062 * 0.05))
    assert split.movement == pytest.approx(0.01)


def test_only_seeds_that_all_three_have_count(write_run):
    (split,) = found(write_run, stashed_seeds=(1, 7))
    assert split.by_seed.index.tolist() == [1]


def test_the_control_differs_in_weights_only(write_run):
    assert found(write_run, slack=2) == []


@pytest.mark.parametrize(
    ("delay", "inconsistency", "verdict"),
    [
        ((0.30, 0.31), (0.01, 0.02), HOLDS),
        ((0.30, 0.31), (-0.10, -0.11), HOLDS),
        ((0.01, 0.02), (0.30, 0.31), FAILS),
        ((0.30, 0.36), (0.01, 0.02), UNDECIDED),  # 13 standard errors, with two seeds
        ((0.01, 0.40), (0.30, 0.10), UNDECIDED),
        ((0.20, -0.20), (0.0, 0.0), UNDECIDED),
        ((0.30,), (0.01,), UNDECIDED),
        ((0.30, float("nan")), (0.01, 0.01), UNDECIDED),
    ],
)
def test_verdict(delay, inconsistency, verdict):
    parts = pd.DataFrame({"delay": delay, "inconsistency": inconsistency})
    parts["distance"] = parts.sum(axis=1, skipna=False)
    assert mostly_delay(parts).verdict == verdict
