"""Checks of numbers that a user gives."""

from math import inf


def is_whole(value: object, least: int) -> bool:
    """Return whether `value` is a whole number of at least `least` (True and False are not)."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_number(value: object) -> bool:
    """Return whether `value` is a finite number (True and False are not)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -inf < value < inf


def at_least(least: int, what: str, value: int) -> int:
    """Return `value`; raise ValueError about `what` unless it is a whole number >= `least`."""
    if not is_whole(value, least):
        raise ValueError(f"{what} must be a whole number of at least {least}, not {value!r}")
    return value


def positive(what: str, value: int) -> int:
    """Return `value`; raise ValueError about `what` unless it is a whole number of at least 1."""
    return at_least(1, what, value)


def not_negative(what: str, value: int) -> int:
    """Return `value`; raise ValueError about `what` unless it is a whole number of at least 0."""
    return at_least(0, what, value)
