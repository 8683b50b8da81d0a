import subprocess
import sys

import pytest

from experiments.run import environment, identity
from experiments.slurm import snapshot


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of one file, committed."""
    root = tmp_path / "project"
    (root / "paci").mkdir(parents=True)
    (root / "paci" / "a.py").write_text("one = 1\n")
    for command in (["init"], ["add", "."], ["commit", "-m", "first"]):
        identity = ["-c", "user.name=A", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *command], cwd=root, check=True, capture_output=True)
    monkeypatch.setattr(snapshot, "ROOT", root)
    monkeypatch.setattr(environment, "ROOT", root)
    return root


def test_equal_code_is_kept_once_and_other_code_beside_it(project, tmp_path):
    first = snapshot.take(tmp_path)
    assert snapshot.take(tmp_path) == first
    assert first.changes == ""

    (project / "paci" / "a.py").write_text("one = 2\n")
    (project / "paci" / "new.py").touch()
    second = snapshot.take(tmp_path)
    assert second.commit == f"{first.commit}-dirty"
    assert "+one = 2" in second.changes
    assert (first.path / "paci" / "a.py").read_text() == "one = 1\n"
    assert (second.path / "paci" / "new.py").exists()
    assert len(list((tmp_path / ".code").iterdir())) == 2

    second.describe(tmp_path)
    assert second.changes in (tmp_path / "code.diff").read_text()


def test_to_look_leaves_nothing(project, tmp_path):
    looked = snapshot.look(tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    assert looked == snapshot.take(tmp_path / "runs")


def test_a_requeued_job_goes_on_with_the_code_that_it_began_with(project, tmp_path, monkeypatch):
    """Its identity is that of the snapshot, whatever has become of the checkout."""
    monkeypatch.setattr(identity, "ROOT", project)
    submitted = identity.code()
    taken = snapshot.take(tmp_path)
    (project / "paci" / "a.py").write_text("one = 2\n")
    assert identity.code() != submitted
    monkeypatch.setattr(identity, "ROOT", taken.path)  # which is a job's ROOT: see below
    assert identity.code() == submitted


def test_a_snapshot_is_imported_in_place_of_the_checkout_and_knows_its_commit(tmp_path):
    """In another repository, whose commit it must not take for its own."""
    subprocess.run(["git", "init"], cwd=tmp_path, check=True, capture_output=True)
    taken = snapshot.take(tmp_path / "runs")
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "from experiments.run import environment as e; print(e.ROOT, e.commit())",
        ],
        cwd=snapshot.ROOT,
        env={"PYTHONPATH": str(taken.path), "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
    )
    assert said.stdout == f"{taken.path} {environment.commit()}\n", said.stderr
