"""A SLURM of this machine (`make slurm-up`), and the smallest runs there are."""

import shutil
import subprocess

import pytest
import torch

from experiments import data
from experiments.config import compose


@pytest.fixture(autouse=True, scope="session")
def slurm():
    """Fails, rather than skips: who asks for these tests wants them run."""
    torch.set_num_threads(1)
    if shutil.which("sinfo") is None:
        pytest.exit("there is no SLURM on this machine: start one with make slurm-up", 1)
    asked = subprocess.run(["sinfo", "-h"], capture_output=True, text=True, timeout=60)
    if asked.returncode:
        pytest.exit(f"SLURM does not answer; start one with make slurm-up\n{asked.stderr}", 1)


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """The overrides that all runs share."""
    folder = tmp_path_factory.mktemp("corpus")
    data.prepare(compose(["scale=smoke", f"data.folder={folder}"]).data)
    return ["experiment=trainings", "batches=[8]", "scale=smoke", f"data.folder={folder}"]
