import subprocess
import sys
import tempfile

import pytest

from paci.distributed.launch import ending_process, spawn  # noqa: F401 (by its name)

HANGING = 300  # seconds: no test takes as long unless something waits for ever
NO_LOOPBACK = ["unshare", "--map-root-user", "--net"]  # in a new network, lo is down


def answer() -> int:
    return 42


def in_a_process(*lines: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    code = "\n".join(["from tests.paci.distributed import test_launch as here", *lines])
    return subprocess.run(
        [*before, sys.executable, "-c", code], capture_output=True, text=True, timeout=HANGING
    )


def can_do_without_loopback() -> bool:
    try:
        return subprocess.run([*NO_LOOPBACK, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not can_do_without_loopback(), reason="unshare makes no network here")
def test_no_loopback_is_one_sentence():
    ended = in_a_process(
        "try: here.spawn(here.answer, 2)",
        "except ValueError as error: print(error)",
        before=NO_LOOPBACK,
    )
    (sentence,) = (ended.stdout + ended.stderr).splitlines()
    assert "no working loopback address 127.0.0.1" in sentence


def test_a_long_folder_for_temporary_files(monkeypatch, tmp_path):
    long = tmp_path / ("d" * 100) / ("e" * 100)
    long.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(long))
    ended = in_a_process("if __name__ == '__main__': print(here.spawn(here.answer, 2))")
    assert (ended.stdout, ended.stderr) == ("[42, 42]\n", "")


def test_the_folder_for_temporary_files_is_the_users_afterwards():
    before = tempfile.gettempdir()
    spawn(answer, 1)
    assert tempfile.gettempdir() == before


@pytest.mark.parametrize(
    ("what", "status", "said"),
    [
        ("pass", 0, ""),
        ("raise SystemExit(2)", 2, ""),
        ("raise SystemExit('no')", 1, "no\n"),
        ("raise ArithmeticError('boom')", 1, "ArithmeticError: boom\n"),
    ],
)
def test_a_rank_ends_at_once_however_it_ends(what, status, said):
    """Whatever threads are still there, and with no word after its own."""
    ended = in_a_process(
        "import threading",
        "threading.Thread(target=threading.Event().wait).start()",
        f"with here.ending_process(): {what}",
    )
    assert ended.returncode == status
    assert ended.stderr.endswith(said)
    assert bool(ended.stderr) == bool(said)
