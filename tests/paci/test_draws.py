"""Draws against numpy's, with numpy and as if it were not installed."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paci import Cost, draws, simulate

KEYS = st.lists(st.integers(0, 2**70), min_size=1, max_size=7)


@given(key=KEYS)
def test_the_numbers_are_those_of_numpy(key):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draws, "WITH_NUMPY", False)
        without = draws.uniform(key, 20)
    assert without == draws.uniform(key, 20)
    assert without == numpy.random.default_rng(key).uniform(-1, 1, 20).tolist()


def test_jitter_is_the_same_without_numpy(monkeypatch):
    def actions():
        return simulate("paci", 3, 16, 4, cost=Cost(jitter=0.3), seed=5).actions

    expected = actions()
    monkeypatch.setattr(draws, "WITH_NUMPY", False)
    assert actions() == expected
