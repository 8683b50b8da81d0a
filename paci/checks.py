"""Numbers that somebody gives: checked where they are given."""

from math import inf


def is_whole(value: object, least: int) -> bool:
    """Whether `value` is a whole number of at least `least`; True and False, which Python takes for
    1 and 0, are none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_number(value: object) -> bool:
    """Whether `value` is a finite number; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -inf < value < inf


def at_least(least: int, what: str, value: int) -> int:
    """`value` if it is a whole number of at least `least`; else ValueError about `what`."""
    if not is_whole(value, least):
        raise ValueError(f"{what} must be a whole number of at least {least}, not {value!r}")
    return value


def positive(what: str, value: int) -> int:
    """`value` if it is a whole number of at least 1; else ValueError."""
    return at_least(1, what, value)


def not_negative(what: str, value: int) -> int:
    """`value` if it is a whole number of at least 0; else ValueError."""
    return at_least(0, what, value)
