"""Python without assertions and docstrings."""

import subprocess
import sys


def test_training_needs_no_assertion():
    """The losses are those of a Python that checks assertions."""
    program = (
        "from tests.paci import toys; "
        "print(toys.pipeline(toys.stages(2), 'paci', 2).train(toys.batches(4)).losses)"
    )

    def losses(*switches):
        command = [sys.executable, *switches, "-c", program]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert losses("-OO") == losses() != ""
