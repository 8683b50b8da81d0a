"""Whole numbers that somebody gives: checked where they are given."""


def positive(what: str, value: int) -> int:
    """`value` if it is a whole number of at least 1; else ValueError."""
    return _at_least(1, what, value)


def not_negative(what: str, value: int) -> int:
    """`value` if it is a whole number of at least 0; else ValueError."""
    return _at_least(0, what, value)


def _at_least(least: int, what: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{what} must be a whole number of at least {least}, not {value!r}")
    return value
