"""The output of `python -m analysis.report`: runs, and the tables and figures made from them."""

from analysis import read_runs
from analysis.manifest import BROKEN, FILE, MADE, REFUSED, Item, as_json, read_manifest
from analysis.report import by_state, main, outdated


def test_runs_are_counted_by_experiment_and_state(write_run):
    write_run("a", seed=0)
    write_run("b", seed=0)  # a again
    write_run("c", seed=1, losses=[4, float("nan")], state="failed", why="diverged")
    write_run("d", seed=2, state="preempted")
    write_run("e", seed=3, state="out-of-memory")
    write_run("f", experiment="q2", batch=32)
    (write_run("g") / "config.yaml").write_text("[")
    table = by_state(read_runs(write_run.root).runs).set_index(["experiment", "scale"])
    assert list(table) == [
        "runs",
        "completed",
        "diverged",
        "out-of-memory",
        "unfinished",
        "repeated",
        "unreadable",
    ]
    assert table.loc["q1", "laptop"].tolist() == [5, 1, 1, 1, 1, 1, 0]
    assert table.loc["q2", "laptop"].tolist() == [1, 1, 0, 0, 0, 0, 0]
    assert table.loc["unknown", "unknown"].tolist() == [1, 0, 0, 0, 0, 0, 1]


def test_the_report_says_what_is_and_what_is_not(write_run, capsys):
    write_run("good")
    write_run("bad", seed=1, state="failed", why="the disk is full")
    assert main([str(write_run.root)]) == 0
    said = capsys.readouterr().out
    assert "the disk is full" in said
    assert "Nothing is made of them" in said

    items = [
        Item("loss", "Loss", ("training",), MADE, runs=("good",), known=2, seeds=1),
        Item("time", "Time", ("throughput",), REFUSED, "no throughput run is completed"),
        Item("drift", "Drift", ("training",), BROKEN, "KeyError: 'drift'"),
    ]
    (write_run.root / "figures").mkdir()
    record = as_json({item.name: item for item in items})
    (write_run.root / "figures" / FILE).write_text(record)
    assert read_manifest(write_run.root / "figures") == {item.name: item for item in items}
    main([str(write_run.root)])
    said = capsys.readouterr().out
    assert "loss  1 of 2 runs, 1 seed\n" in said
    assert "time  no throughput run is completed" in said
    assert "KeyError: 'drift'" in said
    assert "other runs" not in said

    write_run("new", seed=2)
    assert [it.name for it in outdated(items, read_runs(write_run.root))] == ["loss"]
    main([str(write_run.root)])
    assert "Made from other runs than are there now: loss; make" in capsys.readouterr().out


def test_why_a_run_is_not_used_is_said_once(write_run, capsys):
    """In the table; what else there is to know of runs, used or not, is listed."""
    write_run("good")
    write_run("bad", seed=1, state="failed")
    for name in ("good", "bad"):
        log = write_run.root / name / "stages.jsonl"
        log.write_text("?\n" + log.read_text())
    main([str(write_run.root)])
    table, others = capsys.readouterr().out.split("About the runs:\n")
    assert "bad" in table
    assert others.partition("\n\n")[0] == (
        "  2 runs (bad, good): stages.jsonl has unreadable lines: line 1."
    )


def test_a_manifest_of_an_older_version_is_read(tmp_path):
    item = Item("loss", "Loss", ("training",), MADE)
    (tmp_path / "made.json").write_text(as_json({"loss": item}))
    assert read_manifest(tmp_path) == {"loss": item}


def test_a_damaged_record_is_none(tmp_path):
    for text in ("{", "[]", '{"loss": {"name": "loss"}}', '{"loss": 3}'):
        (tmp_path / FILE).write_text(text)
        assert read_manifest(tmp_path) == {}


def test_no_runs_is_one_sentence_and_status_2(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
