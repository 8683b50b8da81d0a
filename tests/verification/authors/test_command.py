"""The command's answers to mistakes."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def run(*arguments):
    program = [sys.executable, "-m", "verification.authors", *arguments]
    return subprocess.run(program, cwd=ROOT, capture_output=True, text=True)


def test_without_a_checkout_it_says_where_to_get_one():
    made = run()
    assert made.returncode == 2
    assert made.stderr.startswith("error: name a checkout of the authors' repository, as in `make")
    assert made.stderr.count("\n") == 1


def test_an_unknown_case_is_refused_with_those_there_are(tmp_path):
    (tmp_path / "DistPACI").mkdir()
    (tmp_path / "DistPACI" / "PACIModel.py").write_text("")
    made = run(str(tmp_path), "no such case")
    assert made.returncode == 2
    assert "there is no case 'no such case': choose from paci N=4 a=4" in made.stderr
