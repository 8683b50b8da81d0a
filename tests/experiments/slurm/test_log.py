"""Logs that SLURM 22.05 and submitit 1.5 wrote are read for the reason why a job ended."""

import pytest

from experiments.slurm.log import last_words

START = "submitit INFO (2026-11-30 00:59:04,817) - Starting with JobEnvironment(job_id=1_0)\n"
STEP = "slurmstepd-vm: error: *** STEP 1.0 ON vm CANCELLED AT 2026-11-30T00:44:55"
JOB = "slurmstepd-vm: error: *** JOB 1 ON vm CANCELLED AT 2026-11-30T00:44:55"


@pytest.mark.parametrize(
    ("text", "state", "why"),
    [
        (f"{STEP} DUE TO TIME LIMIT ***\n", "timed out", "its time was over"),
        (
            "error: Job not requeued because: timed-out too many times.\n",
            "timed out",
            "as often as cluster.requeues allows",
        ),
        (f"{JOB} DUE TO PREEMPTION ***\n", "preempted", ""),
        (f"{JOB} DUE TO NODE FAILURE, SEE SLURMCTLD LOG ***\n", "died", "its node failed"),
        (f"{JOB} ***\nsrun: forcing job termination\n", "cancelled", ""),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.\n", "out-of-memory", "node"),
        (
            "srun: error: vm: task 1: Exited with exit code 1\nsrun: error: vm: task 0: Killed\n",
            "killed",
            "task 0: Killed",
        ),
        ("srun: error: vm: task 1: Exited with exit code 1\n", "died", "task 1: Exited with exit"),
        ("error: there is no prepared corpus\n", "refused", "there is no prepared corpus"),
        ("", "died", "its job is gone"),
    ],
)
def test_why_a_job_ended(tmp_path, text, state, why):
    log = tmp_path / "log"
    log.write_text(START + text)
    assert last_words(log)[0] == state
    assert why in last_words(log)[1]


def test_how_an_earlier_start_ended_is_past(tmp_path):
    log = tmp_path / "log"
    log.write_text(f"{START}{JOB} DUE TO PREEMPTION ***\n{START}srun: error: vm: task 0: Killed\n")
    assert last_words(log) == ("killed", "task 0: Killed")


def test_a_job_without_a_log_has_not_started(tmp_path):
    assert last_words(tmp_path / "log")[0] == "not started"
