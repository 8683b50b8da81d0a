import pytest

from experiments.config import compose
from experiments.run import launcher


@pytest.mark.parametrize(
    ("environment", "starter"),
    [
        ({}, None),
        ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, None),  # a shell in an allocation
        ({"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, None),
        ({"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "2"}, "SLURM"),
        # torchrun, in the task of each node
        ({"SLURM_STEP_NUM_TASKS": "4", "TORCHELASTIC_RUN_ID": "0", "RANK": "0"}, "torchrun"),
    ],
)
def test_who_started_this_rank(monkeypatch, environment, starter):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert launcher.started_by() == starter
    assert launcher.is_first() == (environment.get("SLURM_PROCID") != "2")


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["executor=distributed", "stages=3"], "SLURM must start 3 processes for this run, not 4"),
        ([], "SLURM starts ranks for executor=distributed, not for local"),
    ],
)
def test_the_wrong_ranks_are_refused(monkeypatch, overrides, sentence):
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    with pytest.raises(ValueError, match=sentence):
        launcher.check_started(compose(["scale=smoke", *overrides]))
