"""Questions of hand-written run folders."""

import pytest

from tests.analysis import run_folders

DRIFT = {8: [{"0": 1, "1": 7}] * 7 + [{"0": 8}], 1: [{str(7 - stage): 8} for stage in range(8)]}


def write_q1(root):
    """Q1 at one batch size: flush, paci a=8 and async-1f1b over two seeds."""
    for seed in range(2):
        noise = 0.01 * seed
        for method, a, lag in (("1f1b-flush", 8, 0.0), ("paci", 8, 0.2), ("async-1f1b", 1, 0.5)):
            run_folders.write_run(
                root,
                f"{method}-s{seed}",
                method=method,
                accumulation=a,
                seed=seed,
                losses=[4 - 0.02 * k + lag + noise for k in range(100)],
                perplexities=[30 - k / 10 + lag for k in range(100)],
                drift=DRIFT[a] if method != "1f1b-flush" else None,
            )
    return root


@pytest.fixture
def q1(tmp_path):
    return write_q1(tmp_path)


@pytest.fixture(scope="module")
def q1_once(tmp_path_factory):
    """The same, for tests that only read it."""
    return write_q1(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def q2(tmp_path):
    """A folder with Q2 at one batch size, on measured costs, over two seeds: flush at two
    micro-batch counts, and paci a=8, which is twice as fast and stops short of flush's last
    perplexity."""
    for seed in range(2):
        for method, m, pace, last in (
            ("1f1b-flush", 4, 12, 8),
            ("1f1b-flush", 8, 10, 8),
            ("paci", 8, 5, 9),
        ):
            perplexities = [300, 20, 16, 13, 11, last]
            run_folders.write_run(
                tmp_path / "q2",
                f"{method}-{m}-s{seed}",
                experiment="q2",
                method=method,
                accumulation=m,
                seed=seed,
                losses=[4 - k / 10 + seed / 100 for k in range(5)],
                evaluations=[(k, pace * k * (1 + seed / 9), p) for k, p in enumerate(perplexities)],
                clock="simulated, measured costs",
                drift=DRIFT[8] if method == "paci" else None,
            )
    return tmp_path


@pytest.fixture
def study(q1, q2):
    """Q1 with its control, and Q2."""
    for seed in range(2):
        run_folders.write_run(
            q1,
            f"control-s{seed}",
            method="paci",
            accumulation=8,
            weights="stashed",
            seed=seed,
            losses=[4 - 0.02 * k + 0.15 + 0.01 * seed for k in range(100)],
            perplexities=[30 - k / 10 + 0.15 for k in range(100)],
        )
    return q1
