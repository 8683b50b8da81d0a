"""Shared behaviour of the commands: arguments and --help, errors and interruptions.

A user's mistake ends a command with one sentence, exit status 2 and no traceback.
"""

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runlog.terminal import tolerant_output


@contextmanager
def command() -> Iterator[None]:
    """Decorate a command's `main`: print through `tolerant_output`, and report a full disk.

    A full disk ends the command with one sentence and exit status 1.
    """
    try:
        with tolerant_output():
            yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(f"error: {_sentence(error)}; what was computed before is kept", file=sys.stderr)
        if error.filename is None:  # It may be stdout's, which is flushed again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None


@contextmanager
def user_errors(kind: type[ValueError] = ValueError) -> Iterator[None]:
    """Print an error of this `kind`, or of a path that cannot be read or written, in one sentence.

    The block holds checks that run before any work. Raises SystemExit(2) after the sentence.
    """
    try:
        yield
    except kind as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:
        raise  # The reader of stdout went away: no mistake.
    except OSError as error:
        print(f"error: {_sentence(error)}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("interrupted before any work", file=sys.stderr)
        raise SystemExit(130) from None


def _sentence(error: OSError) -> str:
    if not error.filename:
        return error.strerror or str(error)
    return f"{error.filename}: {error.strerror}"


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGTERM or Ctrl-C, and ignore those that follow.

    A terminal and a scheduler may both send signals; the second one must not break into the
    orderly end that the first one began.
    """

    def interrupt(signum, frame):
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def arguments(documentation: str) -> list[str]:
    """Return the command line's arguments; for --help, print the module's documentation."""
    given = sys.argv[1:]
    if {"-h", "--help"} & set(given):
        with command():
            print(documentation.strip())
        raise SystemExit(0)
    return given


def run_folder(documentation: str) -> Path:
    """Return the only argument, a run's folder. Raises ValueError for none or several."""
    given = arguments(documentation)
    if len(given) != 1:
        raise ValueError(f"name one run folder, not {len(given)} of them")
    return Path(given[0])
