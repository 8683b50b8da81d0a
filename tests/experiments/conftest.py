"""The smallest runs there are: smoke scale, ten updates, all files below tmp_path."""

import os

import pytest
import torch

from experiments import data
from experiments.config import compose
from tests.experiments.smoke import train


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """The folder of the prepared King James Bible, one for all workers of this session."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "corpus"
    data.prepare(compose(["scale=smoke", f"data.folder={folder}"]).data)
    return folder


@pytest.fixture
def settings(tmp_path, corpus):
    """The overrides that every run of a test shares."""
    return ["scale=smoke", "tokens=2560", f"runs={tmp_path / 'runs'}", f"data.folder={corpus}"]


@pytest.fixture(scope="session")
def trained(tmp_path_factory, corpus):
    """The folder of a finished run, to look at and leave as it is."""
    runs = tmp_path_factory.mktemp("trained")
    return train(["scale=smoke", "tokens=2560", f"runs={runs}", f"data.folder={corpus}"]).path
