import math

import pytest

from paci.checks import at_least, is_number, is_whole, not_negative, positive


@pytest.mark.parametrize("value", [True, False, 2.0, "2", None, math.nan, 1])
def test_what_is_no_whole_number_of_at_least_two(value):
    assert not is_whole(value, 2)
    with pytest.raises(ValueError, match=f"n must be a whole number of at least 2, not {value!r}"):
        at_least(2, "n", value)


def test_whole_numbers():
    assert is_whole(2, 2)
    assert (at_least(2, "n", 2), positive("n", 1), not_negative("n", 0)) == (2, 1, 0)
    for check, value in ((positive, 0), (not_negative, -1)):
        with pytest.raises(ValueError, match=f"not {value}"):
            check("n", value)


@pytest.mark.parametrize("value", [0, -1.5, 10**400])
def test_numbers(value):
    assert is_number(value)


@pytest.mark.parametrize("value", [True, math.nan, math.inf, -math.inf, "1", None, [1]])
def test_what_is_no_finite_number(value):
    assert not is_number(value)
