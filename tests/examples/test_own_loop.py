"""The example of a training loop, run as its first line says."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_loop.py"


def test_it_trains_saves_and_goes_on(tmp_path):
    def run():
        command = [sys.executable, EXAMPLE, tmp_path / "saved"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    first, again = run(), run()
    losses = [float(line.rsplit(" ", 1)[1]) for line in first if line.startswith("loss of")]
    assert len(losses) == 2
    assert max(losses) < 0.02  # the mean square of the waves is 0.5
    assert [line for line in again if line.startswith("loss of")] == [first[5], first[11]]
    assert len(again) == 4  # both schedules go on from the end


def test_it_fits_on_one_screen():
    assert len(EXAMPLE.read_text().splitlines()) <= 60
