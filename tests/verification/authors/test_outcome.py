"""Any difference in any quantity is seen."""

from collections import Counter
from dataclasses import fields, replace

import pytest
import torch

from verification.authors.outcome import Outcome, compare

SMALLEST = 2.0**-52  # beside 1


def outcome(**other):
    made = Outcome(
        losses=[1.0, 2.0],
        weights={"0/w": torch.ones(2)},
        adam={"0/0/exp_avg": torch.ones(2)},
        drift=[Counter({0: 1, 1: 1})],
        in_flight=[2],
        rates=[[0.1]],
        evaluations=[[1.0]],
    )
    return replace(made, **other)


def test_equal_outcomes_are_equal_in_every_quantity():
    checks = compare(outcome(), outcome())
    assert list(checks) == [field.name for field in fields(Outcome)]
    assert all(check.equal for check in checks.values())


@pytest.mark.parametrize(
    "other",
    [
        {"losses": [1.0 + SMALLEST, 2.0]},
        {"losses": [1.0]},
        {"weights": {"0/w": torch.tensor([1.0, 1.0 + 2.0**-23])}},
        {"weights": {"0/v": torch.ones(2)}},
        {"adam": {"0/0/exp_avg": torch.zeros(2)}},
        {"drift": [Counter({0: 2})]},
        {"in_flight": [1]},
        {"rates": [[0.2]]},
        {"evaluations": []},
    ],
)
def test_the_smallest_difference_is_seen_where_it_is(other):
    checks = compare(outcome(), outcome(**other))
    assert [name for name, check in checks.items() if not check.equal] == list(other)


def test_a_difference_is_measured():
    checks = compare(outcome(), outcome(losses=[1.0, 2.5]))
    assert str(checks["losses"]) == "≠ by up to 0.5"
