import pytest

from experiments.terminal import progress
from experiments.terminal.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    """Return the seconds that a bar's clock shows."""
    now = [0.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    return now


def test_a_log_gets_a_line_now_and_then(clock, capsys):
    with Progress(desc="a run", total=100, unit="update") as bar:
        for _ in range(99):
            clock[0] += 1
            bar.update()
        bar.set_postfix_str("loss 2.5", refresh=False)
        clock[0] += 1
        bar.update()
    out, err = capsys.readouterr()
    assert out == ""
    assert "\r" not in err
    starts = [line.partition("<")[0] for line in err.splitlines()]
    assert starts == [
        "a run: 0/100 updates [00:00",
        "a run: 30/100 updates [00:30",
        "a run: 60/100 updates [01:00",
        "a run: 90/100 updates [01:30",
        "a run: 100/100 updates [01:40",
    ]
    assert err.endswith("<00:00, loss 2.5]\n")


def test_what_no_total_is_known_of_has_no_time_left(clock, capsys):
    with Progress(desc="measuring costs", unit="table") as bar:
        clock[0] += progress.EVERY
        bar.at(3)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "measuring costs: 3 tables [00:30]"


def test_a_log_of_two_bars_has_no_moves_of_a_cursor(clock, capsys):
    with Progress(desc="all runs", total=2, unit="run") as outer:
        with Progress(desc="a run", total=9, unit="update") as inner:
            clock[0] += progress.EVERY
            inner.update()
        outer.update()
    assert "\x1b" not in capsys.readouterr().err


def test_who_waits_sees_that_time_passes(clock, capsys):
    with Progress(desc="all runs", total=10, unit="update") as bar:
        for done in (0, 4, 4, 2):  # a run began again
            clock[0] += progress.EVERY
            bar.at(done, total=20)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" updates")[0] for line in lines] == [
        "all runs: 0/10",
        "all runs: 0/20",
        "all runs: 4/20",
        "all runs: 4/20",
        "all runs: 2/20",
        "all runs: 2/20",
    ]
