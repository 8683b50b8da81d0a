"""What every command does with a user's mistake: one sentence and exit status 2, no traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def user_errors() -> Iterator[None]:
    """Inside are checks, before any work: a ValueError there is the user's to mend."""
    try:
        yield
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def arguments(documentation: str) -> list[str]:
    """The command line's overrides; prints the module's documentation for --help."""
    given = sys.argv[1:]
    if {"-h", "--help"} & set(given):
        print(documentation.strip())
        raise SystemExit(0)
    return given
