"""`make reproduce` when not everything works, with a python that only records its arguments."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def make(folder: Path, goal: str, failing: str, status: int) -> tuple[int, str]:
    """The exit status of a goal, and all that it asked of python, which ends with `status` where
    `failing` is asked."""
    asked = folder / "asked"
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\necho "$*" >> {asked}\ncase "$*" in *"{failing}"*) exit {status};; esac\n'
    )
    python.chmod(0o755)
    made = subprocess.run(
        ["make", "-C", ROOT, goal, f"BIN={folder}", f"ENV={python}", "SCALE=smoke"],
        capture_output=True,
    )
    return made.returncode, asked.read_text()


@pytest.mark.parametrize(
    "failing", ["experiment=trainings", "-m paper_figures runs", "figures.report"]
)
def test_a_failure_keeps_nobody_from_the_rest(tmp_path, failing):
    status, asked = make(tmp_path, "reproduce", failing, 1)
    assert status
    assert "experiment=q3-real" in asked
    assert asked.splitlines()[-2:] == [
        "-m paper_figures runs/smoke",
        "-m paper_figures.report runs/smoke",
    ]


@pytest.mark.parametrize("status", [2, 130])
def test_a_mistake_or_an_interrupt_ends_it_at_once(tmp_path, status):
    failed, asked = make(tmp_path, "reproduce", "experiment=trainings", status)
    assert failed
    assert asked.count("\n") == 1


def test_without_a_failure_it_succeeds(tmp_path):
    status, asked = make(tmp_path, "reproduce", "nothing of the kind", 0)
    assert status == 0
    assert asked.count("\n") == 9


@pytest.mark.parametrize("question", ["q1", "q2", "q3"])
def test_a_question_is_answered_by_its_own_claims(tmp_path, question):
    status, asked = make(tmp_path, f"reproduce-{question}", "nothing of the kind", 0)
    assert status == 0
    assert asked.splitlines()[-1] == f"-m paper_figures runs/smoke --question {question}"


def test_what_make_runs_is_not_shown(tmp_path):
    said = subprocess.run(
        ["make", "-C", ROOT, "--no-print-directory", "figures", "PY=true", f"ENV={ROOT}"],
        capture_output=True,
        text=True,
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
