"""Records, and the files that hold them."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass

import pytest

import runlog


@dataclass(frozen=True)
class Line:
    number: int
    note: str | None = None


def test_an_optional_field_that_is_none_is_left_out():
    assert runlog.as_json(Line(1)) == {"number": 1}
    assert runlog.as_json(Line(1, "x")) == {"number": 1, "note": "x"}
    status = runlog.Status("completed", None, 3, 3)
    assert runlog.as_json(status)["why"] is None  # not optional: a reader may count on it


def test_histograms_and_records_within_records_are_plain():
    sample = runlog.MovementSample(1, 0, 1, 0.5)
    line = dict.fromkeys(runlog.required(runlog.StageLine), 0)
    line |= {"drift": Counter({2: 3}), "movement": [sample]}
    there = runlog.as_json(runlog.StageLine(**line))
    assert there["drift"] == {2: 3}
    assert there["movement"] == [runlog.as_json(sample)]
    assert "allocated_bytes" not in there


def test_records_and_dicts_are_appended_as_lines(tmp_path):
    runlog.append(tmp_path / "log", [Line(1)])
    runlog.append(tmp_path / "log", [{"number": 2}])
    assert (tmp_path / "log").read_text() == '{"number": 1}\n{"number": 2}\n'
    assert runlog.read_lines(tmp_path / "log") == ([{"number": 1}, {"number": 2}], [])


@pytest.mark.parametrize(
    ("text", "rows", "unreadable"),
    [
        ("", [], []),
        ('{"a": 1}\n3\n\n{"a": 2}\n[', [{"a": 1}, {"a": 2}], [2]),
        ('{"a": 1}\n{"a', [{"a": 1}], []),
        ('{"a": 1}\n{"a": 2}', [{"a": 1}, {"a": 2}], []),
        ('\0\0\n{"a": 1}\n', [{"a": 1}], [1]),
    ],
)
def test_lines_that_cannot_be_read_are_numbered(tmp_path, text, rows, unreadable):
    (tmp_path / "log").write_text(text)
    assert runlog.read_lines(tmp_path / "log") == (rows, unreadable)
    assert runlog.read_lines(tmp_path / "none") == ([], [])


def test_the_last_lines_are_read_without_the_others(tmp_path):
    log = tmp_path / "log"
    runlog.append(log, [{"number": number} for number in range(100)])
    assert runlog.read_last_lines(log) == runlog.read_lines(log)[0]
    last = runlog.read_last_lines(log, most=40)  # two whole lines, and a part of the one before
    assert last == [{"number": 98}, {"number": 99}]
    assert runlog.read_last_lines(tmp_path / "none") == []


def test_a_key_that_is_missing_or_unknown_is_named():
    assert runlog.deviations("log", [], Line) == []
    assert runlog.deviations("log", [{"number": 1}, {"number": 2, "note": ""}], Line) == []
    assert runlog.deviations("log", [{"number": 1}, {"nubmer": 2}], Line) == [
        "log has lines without number.",
        "log has an unknown key, nubmer.",
    ]


@pytest.mark.parametrize("content", ["text", b"\x00\xff"])
def test_a_file_is_written_whole_or_not_at_all(tmp_path, content):
    file = tmp_path / "folder" / "file"
    for _ in range(2):
        runlog.write(file, content)
    with pytest.raises(OSError, match="full"), runlog.drafted(file):
        raise OSError("the disk is full")
    assert file.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert list(file.parent.iterdir()) == [file]  # no drafts


@pytest.mark.parametrize("text", ["", "{", "\0", "[1]"])
def test_damaged_json_is_named(tmp_path, text):
    assert runlog.read_json(tmp_path / "none.json") is None
    (tmp_path / "status.json").write_text(text)
    with pytest.raises(runlog.Damaged, match=r"status\.json"):
        runlog.read_json(tmp_path / "status.json")


def test_json_comes_back(tmp_path):
    runlog.write_json(tmp_path / "file", [{"ü": 1.5}])
    assert json.loads((tmp_path / "file").read_text()) == [{"ü": 1.5}]
    assert runlog.read_json(tmp_path / "file", list) == [{"ü": 1.5}]


def test_the_contract_needs_no_torch():
    program = "import sys, runlog; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
