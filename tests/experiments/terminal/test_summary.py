import pytest

from experiments.terminal.summary import duration, rate


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.000042, "0.042 ms"), (0.019, "19 ms"), (0.31, "0.31 s"), (1.94, "1.9 s"),
        (9.96, "10 s"), (119, "119 s"), (121, "2 min"), (7100, "118 min"), (7200, "2 h"),
    ],
)  # fmt: skip
def test_a_time_has_a_unit_in_which_it_can_be_read(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("per_second", "text"), [(0.123, "0.123"), (12.345, "12.3"), (12345.6, "12,346")]
)
def test_a_rate_is_never_in_powers_of_ten(per_second, text):
    assert rate(per_second) == text
