"""Commands whose output goes where it cannot all go."""

import os
import subprocess
import sys

PROGRAM = """
import sys
from runlog.terminal import tolerant_output

@tolerant_output()
def main(lines):
    for line in range(lines):
        print("gap +0.010 ± 0.002, Δ ≤ ⌈7/4⌉, 1.69× – ☃")
    return 3

sys.exit(main(int(sys.argv[1])))
"""


def run(lines, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(lines)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
    )


def test_a_sign_that_the_encoding_lacks_is_replaced():
    done = run(1, PYTHONIOENCODING="ascii")
    out, err = done.communicate()
    assert out.decode("ascii") == "gap +0.010 +/- 0.002, D <= ceil(7/4), 1.69x - ?\n"
    assert (done.returncode, err) == (3, b"")


def test_a_sign_that_the_encoding_has_is_kept():
    out, _ = run(1, PYTHONIOENCODING="utf-8").communicate()
    assert out.decode() == "gap +0.010 ± 0.002, Δ ≤ ⌈7/4⌉, 1.69× – ☃\n"


def test_a_reader_that_goes_away_ends_the_command_quietly():
    command = run(100_000)
    command.stdout.readline()
    command.stdout.close()
    assert command.stderr.read() == b""
    assert command.wait() == 141


def test_what_is_still_buffered_when_the_reader_goes_is_no_error_either():
    command = run(1)
    command.stdout.close()
    assert command.stderr.read() == b""
    assert command.wait() == 141
