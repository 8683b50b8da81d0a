import os

import pytest

from experiments.slurm import jobs


@pytest.fixture
def squeue(tmp_path, monkeypatch):
    """squeue(script): what the command of that name does, and the only command there is."""

    def squeue(script):
        file = tmp_path / "squeue"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return squeue


def test_the_queue_by_job(squeue):
    squeue("echo '12_0|RUNNING|None|59:10'; echo '12_1|PENDING|Resources|1:00:00'")
    assert jobs.queue(["12_0", "12_1", "12_2"]) == {
        "12_0": ("RUNNING", "None", "59:10"),
        "12_1": ("PENDING", "Resources", "1:00:00"),
    }


def test_a_forgotten_job_is_not_in_the_queue(squeue):
    squeue("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert jobs.queue(["12"]) == {}


def test_a_silent_slurm_is_not_an_empty_queue(squeue):
    squeue("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(ValueError, match="Unable to contact slurm controller"):
        jobs.queue(["12"])


def test_without_slurm_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert jobs.queue(["12"]) is None


def test_the_newest_job_of_a_run_is_its_job(tmp_path):
    with jobs.submitting(tmp_path):
        jobs.record(tmp_path, [jobs.Job("a", "1_0", "log", 1.0), jobs.Job("b", "1_1", "log", 1.0)])
        jobs.record(tmp_path, [jobs.Job("a", "2", "log", 2.0)])
    with (tmp_path / ".jobs" / "submitted.jsonl").open("a") as file:
        file.write('{"run": "b", "id"')  # killed while it wrote
    assert {run: job.id for run, job in jobs.newest_jobs(tmp_path).items()} == {
        "a": "2",
        "b": "1_1",
    }
    assert os.listdir(tmp_path) == [".jobs"]


def test_what_slurm_does_not_cancel_is_said(tmp_path, monkeypatch):
    (tmp_path / "scancel").write_text("#!/bin/sh\necho 'error: permission denied' >&2; exit 210\n")
    (tmp_path / "scancel").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="SLURM does not cancel: error: permission denied"):
        jobs.cancel(["12"])
