import os
from datetime import datetime

import pytest
from omegaconf import OmegaConf

import runlog
from experiments.run import starts
from experiments.run.folder import RunFolder


@pytest.fixture
def clock(monkeypatch):
    """Seconds since 1970, in a list."""
    now = [1000.0]

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(now[0], tz)

    monkeypatch.setattr(starts, "datetime", Clock)
    monkeypatch.setattr(starts, "describe_environment", lambda: dict.fromkeys(DESCRIBED))
    return now


DESCRIBED = ("platform", "processor", "cores", "python", "packages", "commit")


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path, OmegaConf.create({"method": {"accumulation": 4}}))


def wall(folder):
    status = folder.status()
    return status.get("wall_seconds"), status.get("started"), status.get("ended")


def text(seconds):
    return f"1970-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}.000+00:00"


def test_a_status_has_the_wall_time_of_all_starts(folder, clock):
    folder.starts.begin(0)
    clock[0] += 10
    folder.report("running", 3, 10)
    assert wall(folder) == (10, text(1000), None)
    clock[0] += 5
    folder.report("preempted", 4, 10, "interrupted")
    folder.starts.end()
    assert wall(folder) == (15, text(1000), text(1015))
    clock[0] += 1000  # in a queue
    folder.starts.begin(4)
    clock[0] += 7
    folder.report("completed", 10, 10)
    folder.starts.end()
    assert wall(folder) == (22, text(1000), text(2022))
    assert [start["wall_seconds"] for start in folder.starts.read()] == [15, 7]


def test_a_killed_start_counts_until_its_last_report(folder, clock):
    folder.starts.begin(0)
    clock[0] += 10
    folder.report("running", 3, 10)
    os.utime(folder.path / runlog.STATUS, (1010, 1010))
    clock[0] += 500
    folder.starts.begin(2)
    clock[0] += 1
    folder.report("completed", 10, 10)
    assert wall(folder) == (11, text(1000), text(1511))


def test_a_killed_start_that_never_reported_counts_nothing(folder, clock):
    folder.starts.begin(0)
    clock[0] += 500
    folder.starts.begin(0)
    folder.report("running", 0, 10)
    assert wall(folder) == (0, text(1000), None)


def test_a_folder_of_an_older_version_has_no_wall_time(folder):
    folder.report("running", 3, 10)
    assert wall(folder) == (None, None, None)
    runlog.write_json(folder.path / runlog.ENVIRONMENT, [{"from_update": 0}])
    folder.report("running", 3, 10)
    assert wall(folder) == (0, None, None)
