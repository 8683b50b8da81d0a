"""A wheel works without the checkout: it is installed into an empty environment, and used there."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.stress

PACKAGES = ("paci", "runlog", "experiments", "analysis", "paper_figures")


def run(*command, folder):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The Python of an environment with the wheel and the dependencies installed here."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"  # building leaves files behind
    for part in (*PACKAGES, "conf"):
        shutil.copytree(ROOT / part, source / part)
    for file in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(ROOT / file, source)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    offline = ("--no-index", "--no-deps")
    build = ("wheel", *offline, "--no-build-isolation", "--wheel-dir", folder, source)
    run(*pip, *build, folder=folder)

    environment = venv.EnvBuilder(with_pip=False, symlinks=True)
    environment.create(folder / "env")
    python = Path(environment.ensure_directories(folder / "env").env_exe)
    (packages,) = (folder / "env").glob("lib/python*/site-packages")
    # A path in a .pth file is only searched: no .pth in it, such as a checkout's, takes effect.
    dependencies = [path for path in sys.path if Path(path).name == "site-packages"]
    (packages / "dependencies.pth").write_text("\n".join(dependencies))
    (wheel,) = folder.glob("*.whl")
    run(*pip, "install", *offline, "--target", packages, wheel, folder=folder)
    return python, packages


def test_it_holds_whatever_the_packages_read(installed):
    _, packages = installed
    for part in PACKAGES:
        for file in (ROOT / part).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert (packages / file.relative_to(ROOT)).is_file(), file
    for file in (ROOT / "conf").rglob("*.yaml"):
        assert (packages / "experiments" / file.relative_to(ROOT)).is_file(), file


def test_runs_and_figures_need_no_checkout(installed, tmp_path):
    python, packages = installed
    program = f"import {', '.join(PACKAGES)}; print({', '.join(f'{p}.__file__' for p in PACKAGES)})"
    for path in run(python, "-c", program, folder=tmp_path).split():
        assert Path(path).is_relative_to(packages)
    smoke = ["scale=smoke", "tokens=2560", "seeds=[0]", "cluster=inline"]
    sweep = ["experiment=trainings", "grid=[{method:paci}]", *smoke]
    run(python, "-m", "experiments.sweep", *sweep, folder=tmp_path)
    run(python, "-m", "paper_figures", "runs", folder=tmp_path)
    run(python, "-m", "paper_figures.report", "runs", folder=tmp_path)
    assert (tmp_path / "runs/figures/report.html").is_file()
    assert (tmp_path / "runs/figures/figure_5_training_loss.png").stat().st_size > 1000
