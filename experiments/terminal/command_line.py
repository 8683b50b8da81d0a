"""What all commands have in common: arguments and --help, one sentence and exit status 2 (and no
traceback) for a user's mistake, an orderly end for Ctrl-C."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap

from experiments import CONF


@contextmanager
def user_errors(kind: type[ValueError] = ValueError) -> Iterator[None]:
    """Inside are checks, before any work: an error of this `kind` is the user's to mend, and so
    is a path that cannot be read or written."""
    try:
        yield
    except kind as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else error
        print(f"error: {what}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("interrupted before any work", file=sys.stderr)
        raise SystemExit(130) from None


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, SIGTERM and Ctrl-C raise KeyboardInterrupt, once: who is interrupted ends in order,
    and a second signal (a terminal and a scheduler both send them) does not break into that."""

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
    """The command line's arguments; prints the module's documentation for --help."""
    given = sys.argv[1:]
    if {"-h", "--help"} & set(given):
        print(documentation.strip())
        raise SystemExit(0)
    return given


def run_folder(documentation: str) -> Path:
    """The one of `arguments`, a run's folder. Raises ValueError for none, or several."""
    given = arguments(documentation)
    if len(given) != 1:
        raise ValueError(f"name one run folder, not {len(given)} of them")
    return Path(given[0])


def overrides(documentation: str) -> list[str]:
    """`arguments` that set what conf/ holds: --help lists its groups and their options, too."""
    return arguments(f"{documentation.strip()}\n\n{_groups()}")


def _groups() -> str:
    lines = ["Groups, set as GROUP=OPTION; keys of conf/config.yaml and of options, as KEY=VALUE:"]
    folders = (path for path in CONF.iterdir() if path.is_dir())
    for group in sorted(path for path in folders if not (path / "config.yaml").exists()):
        options = ", ".join(sorted(path.stem for path in group.glob("*.yaml")))
        lines += wrap(options, 98, initial_indent=f"  {group.name:<12}", subsequent_indent=" " * 14)
    return "\n".join(lines)
