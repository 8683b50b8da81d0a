import json
import os
import re
import warnings
from multiprocessing import get_context

import pytest
from filelock import FileLock
from omegaconf import OmegaConf

from experiments.run.folder import RunFolder

CONFIG = OmegaConf.create({"runs": "runs", "seed": 0, "model": {"width": 32, "dropout": None}})


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path / "run", CONFIG)


def other(folder, **changes):
    return RunFolder(folder.path, OmegaConf.merge(CONFIG, changes))


def test_the_configuration_is_kept(folder):
    with folder.claimed():
        pass
    kept = OmegaConf.load(folder.path / "config.yaml")
    assert kept == {"seed": 0, "model": {"width": 32, "dropout": None}}  # not where it lies


def test_the_same_run_may_come_back_from_elsewhere(folder):
    with folder.claimed():
        pass
    with other(folder, runs="elsewhere").claimed():
        pass


def test_a_plan_may_be_changed_until_it_is_run(folder):
    folder.plan()
    other(folder, seed=1).plan()
    assert OmegaConf.load(folder.path / "config.yaml").seed == 1
    folder.report("running", 0, 10)
    folder.plan()
    assert OmegaConf.load(folder.path / "config.yaml").seed == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"seed": 1}, r"another configuration \(seed is 0 there, 1 here\)"),
        ({"model": {"width": 64}}, r"\(model.width is 32 there, 64 here\)"),
        ({"stages": 8}, r"\(stages is 'not set' there, 8 here\)"),
        ({"path": None}, r"\(path is 'not set' there, None here\)"),
        (
            {"model": {"name": "other", "width": 64}},
            r"\(model.name is 'not set' there, 'other' here, and 1 more\)",
        ),
    ],
)
def test_another_configuration_is_refused(folder, changes, sentence):
    with folder.claimed():
        folder.report("running", 0, 10)
    with pytest.raises(ValueError, match=sentence), other(folder, **changes).claimed():
        pass


@pytest.mark.parametrize("text", ["seed: [0", "- a list\n", "\0", "a: {b"])
def test_a_damaged_configuration_is_refused(folder, text):
    folder.path.mkdir()
    (folder.path / "config.yaml").write_text(text)
    folder.report("running", 0, 10)
    with pytest.raises(ValueError, match=r"config\.yaml cannot be read .* remove the folder"):
        folder.check_config()


def _hold(path, held, release):
    with FileLock(path / ".lock"):
        held.set()
        release.wait(60)


def test_one_process_at_a_time(folder):
    folder.path.mkdir()
    context = get_context("spawn")
    held, release = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(folder.path, held, release))
    process.start()
    assert held.wait(60)
    with pytest.raises(ValueError, match="is held by another process"), folder.claimed():
        pass
    process.kill()  # a lock does not outlive its process
    process.join()
    with folder.claimed():
        pass


def test_rewind_forgets_what_came_later_and_half_a_line(folder):
    folder.path.mkdir()
    for name in ("metrics.jsonl", "stages.jsonl"):
        folder.log(name, [{"update": k, "loss": 1.0} for k in (0, 1, 2, 2, 3)])
        with (folder.path / name).open("a") as file:
            file.write('{"update": 1, "lo')  # killed here
    folder.rewind(2)
    for name in ("metrics.jsonl", "stages.jsonl"):
        kept = (folder.path / name).read_text()
        assert [json.loads(line)["update"] for line in kept.splitlines()] == [0, 1, 2, 2]
        assert kept.endswith("\n")
    folder.rewind(-1)
    assert (folder.path / "metrics.jsonl").read_text() == ""


def test_rewind_forgets_what_later_segments_left(folder):
    for where, ending in ((folder.orders, "csv"), (folder.timeline, "parquet")):
        where.mkdir(parents=True)
        for update in (2, 3, 5):
            (where / f"{update:09d}.{ending}").touch()
    folder.log("metrics.jsonl", [{"update": k, "loss": 1.0} for k in (1, 2, 3, 4, 5)])
    folder.rewind(3)
    assert [file.name for file in sorted(folder.path.rglob("*[0-9].*"))] == [
        *("000000002.csv", "000000003.csv"),
        *("000000002.parquet", "000000003.parquet"),
    ]


@pytest.mark.parametrize(
    ("logged", "missing"),
    [
        ([1, 2, 3, 4], None),
        ([1, 2, 4], r"1 of the 4 updates done \(of update 3\)"),
        ([2, 3], r"2 of the 4 updates done \(of update 1 and later ones\)"),
        ([], r"4 of the 4 updates done"),
    ],
)
def test_a_hole_in_the_log_is_named(folder, logged, missing):
    folder.path.mkdir()
    evaluations = [{"update": k, "validation_loss": 1.0} for k in (0, 4)]
    folder.log("metrics.jsonl", [{"update": k, "loss": 1.0} for k in logged] + evaluations)
    with warnings.catch_warnings(record=True) as warned:
        folder.rewind(4)
    if missing is None:
        assert not warned
    else:
        assert re.search(f"metrics.jsonl has no line of {missing}", str(warned[0].message))


@pytest.mark.parametrize("file", ["run", "."])
def test_a_file_where_the_folder_should_be_is_refused(tmp_path, file):
    place = tmp_path / "there"
    place.touch()
    path = place if file == "run" else place / "run"
    with pytest.raises(ValueError, match=r"there is a file, where .* choose another folder"):
        RunFolder(path, CONFIG).check_config()


def test_the_next_line_never_continues_a_broken_one(folder):
    folder.path.mkdir()
    (folder.path / "stages.jsonl").write_text('{"update": 1}\n{"update": 2}')
    folder.rewind(2)
    assert (folder.path / "stages.jsonl").read_text() == '{"update": 1}\n{"update": 2}\n'
    (folder.path / "stages.jsonl").write_text('{"update": 0}\n{"update": 0, "sta')
    folder.rewind(0)
    assert (folder.path / "stages.jsonl").read_text() == '{"update": 0}\n'


def test_a_crash_leaves_the_old_file_whole(folder, monkeypatch):
    folder.path.mkdir()
    folder.report("running", 3, 10)

    def crash(*_):
        raise OSError("the power went")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="the power went"):
        folder.report("running", 4, 10)
    assert folder.status() == {"state": "running", "why": None, "update": 3, "updates": 10}


@pytest.mark.parametrize("text", [None, "", "{", "\0"])
def test_a_status_that_cannot_be_read_is_none(folder, text):
    folder.path.mkdir()
    if text is not None:
        (folder.path / "status.json").write_text(text)
    assert folder.status() == {}
