"""Output to terminals and pipes that cannot take all of it."""

import codecs
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

PLAIN = {
    "–": "-",
    "—": "-",
    "±": "+/-",
    "×": "x",
    "÷": "/",
    "·": "-",
    "…": "...",
    "≤": "<=",
    "≥": ">=",
    "⌈": "ceil(",
    "⌉": ")",
    "Δ": "D",
}
"""ASCII for the signs that the project prints, where an encoding lacks them."""

CLOSED_PIPE = 128 + 13
"""The exit status that a shell reports for a command whose reader went away (SIGPIPE)."""


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(PLAIN.get(sign, "?") for sign in text), error.end


codecs.register_error("plain", _plain)


@contextmanager
def tolerant_output() -> Iterator[None]:
    """Print what the encoding of stdout and stderr lacks in ASCII, and end quietly if their reader
    goes away, as `head` does. Also a decorator of a command's `main`.

    Raises SystemExit(CLOSED_PIPE) in place of BrokenPipeError.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes both streams once more at exit: let it write to nowhere.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        raise SystemExit(CLOSED_PIPE) from None
