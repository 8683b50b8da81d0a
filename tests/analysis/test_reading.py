"""Many long runs are read in proportion to their length: counted, not timed."""

import sys
import tracemalloc

import pytest

from analysis import read_runs

NUMBERS_OF_AN_UPDATE = 6  # 8 bytes each: its number, tokens, loss, lr, seconds, and the index


@pytest.fixture
def folder(write_run):
    """`folder(runs, updates)`: run folders of so many seeds, each of so many updates."""

    def folder(runs: int, updates: int):
        for seed in range(runs):
            losses = [4.0 - k / updates for k in range(updates)]
            write_run(f"{runs}x{updates}/s{seed}", seed=seed, losses=losses)
        return write_run.root / f"{runs}x{updates}"

    return folder


def calls(root) -> int:
    """Count the calls of Python and C functions that reading the runs below a folder makes."""
    count = 0

    def called(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        read_runs(root)
    finally:
        sys.setprofile(None)
    return count


def test_work_grows_no_faster_than_the_logs(folder):
    read_runs(folder(1, 500))  # whatever is only done once
    small, longer, more = calls(folder(2, 500)), calls(folder(2, 2000)), calls(folder(8, 500))
    assert longer < 4.4 * small
    assert more < 4.4 * small


def test_logs_are_not_held_as_text_or_objects(folder):
    """At the most, memory is that of the numbers, twice where frames are joined, and of one run's
    lines as they are parsed."""
    runs, updates = 20, 2000
    root = folder(runs, updates)
    log = root / "s0" / "metrics.jsonl"
    read_runs(root / "s0")
    tracemalloc.start()
    frames = read_runs(root)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(frames.updates) == runs * updates
    numbers = 8 * NUMBERS_OF_AN_UPDATE * runs * updates
    assert peak < 2.5 * numbers + 10 * log.stat().st_size
