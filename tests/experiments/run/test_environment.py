import json
import os
import subprocess

import torch

from experiments.run import environment
from tests.experiments.smoke import ROOT


def test_the_record_names_machine_and_code():
    record = json.loads(json.dumps(environment.describe_environment()))
    assert record["cores"] == os.cpu_count()
    assert record["packages"]["torch"] == torch.__version__
    assert record["packages"].keys() == set(environment.PACKAGES)
    assert all(record[key] for key in ("platform", "processor", "python"))


def test_the_commit_is_gits():
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    commit = environment.describe_environment()["commit"]
    if head.returncode:
        assert commit is None
    else:
        assert head.stdout.strip() in commit


def test_changed_files_mark_the_commit(tmp_path, monkeypatch):
    def git(*arguments):
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *author, *arguments], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(environment, "ROOT", tmp_path)
    (tmp_path / "file").write_text("one")
    git("init")
    git("add", "file")
    git("commit", "-m", "one", "--no-verify")
    clean = environment.describe_environment()["commit"]
    assert len(clean) == 40
    (tmp_path / "file").write_text("two")
    assert environment.describe_environment()["commit"] == f"{clean}-dirty"


def test_without_git_there_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    assert environment.describe_environment()["commit"] is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.describe_environment()["commit"] is None
