"""Run folders below a test's own folder."""

from functools import partial

import pytest

from tests.analysis import run_folders


@pytest.fixture(name="write_run")
def _write_run(tmp_path):
    """`write_run(name, ...)` below the test's own folder, `write_run.root`."""
    write = partial(run_folders.write_run, tmp_path)
    write.root = tmp_path
    return write


@pytest.fixture(name="write_throughput")
def _write_throughput(tmp_path):
    """`write_throughput(name, ...)` below the test's own folder, `write_throughput.root`."""
    write = partial(run_folders.write_throughput, tmp_path)
    write.root = tmp_path
    return write
