"""Submissions are checked before SLURM is asked; tests/slurm runs them on a real one."""

import pytest

from experiments import sweep as command
from experiments.config import compose
from experiments.slurm.array import Shape
from tests.experiments.smoke import call

GPUS = ["scale=smoke", "cluster=slurm", "executor.device=cuda", "stages=8"]
RANKS = [*GPUS, "executor=distributed"]


@pytest.mark.parametrize(
    ("overrides", "shape"),
    [
        (["scale=smoke", "cluster=slurm"], (1, 1, None, 1)),
        (["scale=smoke", "cluster=slurm", "executor=distributed"], (1, 4, None, 1)),
        (GPUS, (1, 1, 1, 4)),
        (RANKS, (1, 8, 8, 4)),
        ([*RANKS, "cluster.gpus_per_node=4"], (2, 4, 4, 4)),
        ([*RANKS, "cluster.gpus_per_node=6", "cluster.nodes=4"], (4, 2, 2, 4)),
        ([*RANKS, "cluster.cpus_per_task=6"], (1, 8, 8, 6)),
    ],
)
def test_a_job_has_a_task_and_a_gpu_a_rank(overrides, shape):
    assert Shape.of(compose(overrides)) == shape


def test_ranks_are_spread_evenly_or_not_at_all():
    with pytest.raises(ValueError, match="8 ranks cannot be spread evenly over 3 nodes"):
        Shape.of(compose([*RANKS, "cluster.nodes=3"]))


@pytest.mark.parametrize(
    "override",
    [
        "cluster.time=soon",
        "cluster.warning=-1",
        "cluster.gpus_per_node=0",
        "cluster.setup=module",
        "cluster.sbatch=[1]",
    ],
)
def test_impossible_settings_of_a_cluster_are_refused(override):
    key, _, given = override.partition("=")
    with pytest.raises(ValueError, match=rf"{key} must be .*, not .*{given.strip('[]')}"):
        compose(["cluster=slurm", override])


@pytest.fixture
def sweep(settings, tmp_path, monkeypatch, capsys):
    """sweep(overrides, slurm=True): exit status, what was printed; with commands that answer."""

    def sweep(overrides, slurm=True):
        for name in ("srun", "squeue") if slurm else ():
            (tmp_path / name).write_text("#!/bin/sh\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        code = call(
            command, ["experiment=trainings", "batches=[8]", *settings, "cluster=slurm", *overrides]
        )
        said = capsys.readouterr()
        return code, said.out + said.err

    return sweep


def test_a_dry_run_shows_the_script_and_leaves_nothing(sweep, tmp_path):
    grid = "grid=[{method:[paci,1f1b-flush],batch:8},{method:paci,executor:distributed,batch:16}]"
    asked = ["cluster.partition=gpu", "cluster.parallel=1", "cluster.sbatch=['--exclude=node7']"]
    code, said = sweep([grid, "batches=[8,16]", "seeds=[0]", *asked, "dry_run=true"])
    assert code == 0, said
    assert said.count("#!/bin/bash") == 2  # of one task, of four
    for line in ("array=0-1%1", "partition=gpu", "exclude=node7", "signal=USR2@300", "requeue"):
        assert f"#SBATCH --{line}\n" in said
    assert said.count("would be job") == 3
    assert not (tmp_path / "runs").exists()


def test_without_slurm_or_data_nothing_is_submitted(sweep, tmp_path):
    code, said = sweep(["dry_run=true"], slurm=False)
    assert code == 2
    assert (
        said == "error: cluster=slurm, but there is no SLURM on this machine: srun is not found\n"
    )
    code, said = sweep([f"data.folder={tmp_path / 'none'}"])
    assert code == 2
    assert f"run `python -m experiments.prepare data=kjv data.folder={tmp_path / 'none'}`" in said
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_without_data_warns_and_goes_on(sweep, tmp_path):
    code, said = sweep([f"data.folder={tmp_path / 'none'}", "dry_run=true"])
    assert code == 0
    assert "warning: there is no prepared corpus" in said
    assert "#SBATCH" in said


@pytest.mark.parametrize("odd", ["100%", "back\\slash"])
def test_a_path_that_slurm_reads_in_its_own_way_is_refused(sweep, tmp_path, odd):
    code, said = sweep([f"runs='{tmp_path / odd}'", "dry_run=true"])
    assert code == 2
    assert "choose a folder whose path has no %" in said
