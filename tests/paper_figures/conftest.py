"""Shares the hand-written run folders of the analysis tests."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

_spec = spec_from_file_location(
    "run_folders", Path(__file__).parents[1] / "analysis" / "conftest.py"
)
run_folders = module_from_spec(_spec)
_spec.loader.exec_module(run_folders)

DRIFT = {8: [{"0": 1, "1": 7}] * 7 + [{"0": 8}], 1: [{str(7 - stage): 8} for stage in range(8)]}


@pytest.fixture
def q1(tmp_path):
    """A folder with Q1 at one batch size: flush, paci a=8 and async-1f1b over two seeds."""
    for seed in range(2):
        noise = 0.01 * seed
        for method, a, lag in (("1f1b-flush", 8, 0.0), ("paci", 8, 0.2), ("async-1f1b", 1, 0.5)):
            run_folders.write_run(
                tmp_path,
                f"{method}-s{seed}",
                method=method,
                accumulation=a,
                seed=seed,
                losses=[4 - 0.02 * k + lag + noise for k in range(100)],
                perplexities=[30 - k / 10 + lag for k in range(100)],
                drift=DRIFT[a] if method != "1f1b-flush" else None,
            )
    return tmp_path
