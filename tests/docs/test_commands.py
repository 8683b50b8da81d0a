"""Every shell command in the README and in docs/ is run, at the scale smoke, page by page.

`make docs-check` runs them; the commands of a page run in order, in one copy of the project. What
is not run there is named below, with the reason.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, commands

NOT_RUN = {
    r"^make (test|lint|bench|install|docs-check)\b": "continuous integration, or minutes",
    r"python -m benchmarks": "make bench",
    r"make slurm-|make test-slurm|^sinfo|--watch|cluster=slurm|CLUSTER=slurm": "tests/slurm",
    r"scale=paper|SCALE=paper|runs/paper|\bdata=openwebtext": "the data are on a hub",
    r"AUTHORS=": "the authors' code is not part of the project",
    r"-gpu\b": "a GPU",
    r"--to (wandb|mlflow)": "extras that the environment need not have",
    r"^pip install": "a network; tests/test_package.py",
    r"--follow": "tests/experiments/dashboards",
}


def is_run(command: str) -> bool:
    return not any(re.search(pattern, command) for pattern in NOT_RUN)


def at_smoke_scale(command: str) -> str:
    """Return `command` with scale=smoke: given to a command that takes a scale, or as it says."""
    command = command.replace("laptop", "smoke")
    takes_scale = re.search(r"-m experiments\.(train|sweep|prepare|extrapolate|gpu_hours)", command)
    if takes_scale and "scale=" not in command:
        command += " scale=smoke"
    return command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_name_what_exists(page):
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in commands(page):
        words = shlex.split(command)
        if words[0] == "make":
            assert {word for word in words[1:] if re.fullmatch("[a-z0-9-]+", word)} <= targets, (
                command
            )
        if "-m" in words:
            module = words[words.index("-m") + 1]
            assert importlib.util.find_spec(module), command


OWN = ROOT / "docs" / "own-experiments.md"


@pytest.mark.docs
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_work(page, tmp_path):
    run_page(page, tmp_path)


@pytest.mark.stress
def test_a_session_of_ones_own(tmp_path):
    run_page(OWN, tmp_path)
    program = "".join(blocks(OWN, "python")) + "print(len(frames.runs), len(final), len(drift))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "8 8 64\n"


def run_page(page: Path, tmp_path: Path) -> None:
    """Run the commands of `page` in a copy of the project in `tmp_path`."""
    lines = [at_smoke_scale(command) for command in commands(page) if is_run(command)]
    if not lines:
        pytest.skip("the page has no command to run")
    copy_of_project(tmp_path)
    script = "set -e\n" + "".join(f"echo + {shlex.quote(line)}\n{line}\n" for line in lines)
    environment = os.environ | {
        "SCALE": "smoke",  # of make
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    run = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]


def copy_of_project(folder: Path) -> None:
    """Copy the project's files to `folder`, with this environment and a small corpus."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    (folder / ".venv").mkdir()
    for part in Path(sys.prefix).iterdir():
        (folder / ".venv" / part.name).symlink_to(part)
    (folder / ".venv" / ".installed").unlink(missing_ok=True)
    (folder / ".venv" / ".installed").touch()  # newer than the copied files, for make
    (folder / "corpus").mkdir()
    text = (ROOT / "LICENSE").read_text()
    (folder / "corpus" / "licences.txt").write_text(10 * text)  # enough for a validation split
