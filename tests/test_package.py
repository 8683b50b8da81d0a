"""A wheel works without the checkout: it is installed into empty environments, and used there."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.stress

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
OFFLINE = ("--no-index", "--no-deps")
PACKAGES = ("paci", "runlog", "experiments", "analysis", "paper_figures")


def run(*command, folder):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # building leaves files behind
    for part in (*PACKAGES, "conf"):
        shutil.copytree(ROOT / part, source / part)
    for file in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(ROOT / file, source)
    build = ("wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", folder, source)
    run(*PIP, *build, folder=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel, folder, dependencies):
    """Return the Python of a new environment with the wheel and those packages installed here that
    lie in the folders `dependencies`, and its packages."""
    environment = venv.EnvBuilder(with_pip=False, symlinks=True)
    environment.create(folder)
    python = Path(environment.ensure_directories(folder).env_exe)
    (packages,) = folder.glob("lib/python*/site-packages")
    # A path in a .pth file is only searched: no .pth in it, such as a checkout's, takes effect.
    (packages / "dependencies.pth").write_text("\n".join(map(str, dependencies)))
    run(*PIP, "install", *OFFLINE, "--target", packages, wheel, folder=folder)
    return python, packages


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """With all packages that are installed here."""
    dependencies = [path for path in sys.path if Path(path).name == "site-packages"]
    return install(wheel, tmp_path_factory.mktemp("installed"), dependencies)


@pytest.fixture(scope="module")
def with_torch_alone(wheel, tmp_path_factory):
    """With what the wheel requires, and what that requires: links to the files installed here."""
    links = tmp_path_factory.mktemp("torch")
    for name in required(wheel_requires(wheel)):
        for file in distribution(name).files or ():
            top, link = file.parts[0], links / file.parts[0]
            if top not in ("..", "__pycache__") and not link.exists():
                link.symlink_to(distribution(name).locate_file(top))
    return install(wheel, tmp_path_factory.mktemp("alone"), [links])


def wheel_requires(wheel):
    with zipfile.ZipFile(wheel) as file:
        (metadata,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(file.read(metadata).decode()).get_all("Requires-Dist")


def required(requirements):
    """Return the names of all packages that `requirements` bring, extras left out."""
    found, waiting = set(), list(requirements)
    while waiting:
        requirement = Requirement(waiting.pop())
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        if requirement.name not in found:
            found.add(requirement.name)
            waiting += distribution(requirement.name).requires or ()
    return found


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


def test_paci_requires_torch_alone(wheel, with_torch_alone, tmp_path):
    """The example trains, saves and goes on; schedules are simulated, and drawn on a page."""
    assert [
        requirement for requirement in wheel_requires(wheel) if "extra ==" not in requirement
    ] == ["torch==2.13.*"]
    python, _ = with_torch_alone
    for missing in ("numpy", "safetensors", "yaml"):
        find = f"import importlib.util as i; print(i.find_spec({missing!r}))"
        assert run(python, "-c", find, folder=tmp_path) == "None\n"
    shutil.copy(ROOT / "examples" / "own_loop.py", tmp_path)
    first = run(python, "own_loop.py", "saved", folder=tmp_path)
    again = run(python, "own_loop.py", "saved", folder=tmp_path)
    assert "paci goes on from micro-batch 500" in again
    assert first.splitlines()[-1] == again.splitlines()[-1]
    jitter = "import paci; print(paci.simulate('paci', cost=paci.Cost(jitter=0.1)))"
    assert "largest drift 2" in run(python, "-c", jitter, folder=tmp_path)
    run(python, "-m", "paci.explore", "page.html", folder=tmp_path)
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_what_needs_more_says_how_to_install_it(with_torch_alone, tmp_path):
    python, _ = with_torch_alone
    for command in ("experiments.train", "analysis.report"):
        done = subprocess.run([python, "-m", command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1
        assert "pip install 'paci-harness[harness]'" in done.stderr
