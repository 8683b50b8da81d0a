"""The table of methods, against closed forms."""

import pytest

from experiments import CONF, methods
from experiments.config import compose
from experiments.methods import compare, configure, published, table
from paci.schedules import theory

N, M = 8, 32
ASYNCHRONOUS = (
    "async-1f1b",
    "paci",
    "pipedream",
    "pipedream-2bw",
    "pipemare",
    "weight-prediction",
    "nesterov-async",
)
DRAINED = (
    "gpipe",
    "1f1b-flush",
    "interleaved-1f1b",
    "zb-h1",
    "zb-1p",
    "zb-h2",
    "zb-2p",
    "zbv",
    "interleaved-zb-h1",
    "dualpipev",
)


@pytest.fixture(scope="module")
def made():
    made, refused = compare([f"stages={N}", f"batch={M}"])
    assert not refused
    return made


@pytest.fixture(scope="module")
def rows(made):
    return {row.name: row.traits for row in made}


def test_every_method_is_there_and_has_a_source(rows):
    names = {path.stem for path in (CONF / "method").glob("*.yaml")}
    assert set(rows) == names
    assert set(published()) - names == {"dualpipe", "chimera", "seq1f1b", "ashpipe", "amdp"}
    assert all(theirs["source"] for theirs in published().values())


def test_the_bubbles_are_the_published_ones(rows):
    for name in ("gpipe", "1f1b-flush"):
        assert rows[name].bubble == pytest.approx((N - 1) / M)
        assert rows[name].utilization == pytest.approx(M / (M + N - 1))
    assert rows["interleaved-1f1b"].bubble == pytest.approx((N - 1) / (2 * M))
    assert rows["dualpipev"].bubble == pytest.approx(theory.bubble_rate("dualpipev", N, M, 2))
    for name in ("zb-h1", "zb-1p"):
        assert rows[name].bubble == pytest.approx((N - 1) / M / 3)
    for name in ("zb-h2", "zb-2p", "zbv"):
        assert rows[name].bubble == pytest.approx(0)
    assert all(rows[name].bubble == pytest.approx(0) for name in ASYNCHRONOUS)


@pytest.fixture
def only(monkeypatch):
    """only(names): the table has these methods alone, which saves the time of the others."""

    def only(*names):
        some = {name: published()[name] for name in names}
        monkeypatch.setattr(methods, "published", lambda: some)

    return only


def test_the_bubble_is_that_of_the_configured_times(only):
    """(N-1)(F + B) of m (F + B), and ZB-H1's (N-1)(F + B - 2W) where B is the whole backward."""
    only("1f1b-flush", "zb-h1")
    costs = ["executor.cost.forward=2", "executor.cost.backward=3", "executor.cost.weight=1"]
    rows, _ = compare(["stages=4", "batch=8", *costs])
    bubble = {row.name: row.traits.bubble for row in rows}
    assert bubble["1f1b-flush"] == pytest.approx(3 / 8)
    assert bubble["zb-h1"] == pytest.approx(3 * (2 + 3 - 2) / (8 * 5))


def test_drift_staleness_and_copies(rows):
    assert (rows["paci"].drift, rows["paci"].staleness, rows["paci"].copies) == (2, 2, 0)
    assert (rows["async-1f1b"].drift, rows["async-1f1b"].copies) == (N - 1, 0)
    for name in ("pipedream", "nesterov-async"):
        assert (rows[name].drift, rows[name].staleness, rows[name].copies) == (0, N - 1, N - 1)
    two = rows["pipedream-2bw"]
    assert (two.drift, two.staleness, two.copies) == (0, 1, 1)
    for row in rows.values():
        assert (row.drift, row.staleness) == (row.drift_bound, row.staleness_bound)
    for name in DRAINED:
        assert rows[name].drift == rows[name].staleness == rows[name].copies == 0


def test_activations_are_the_published_ratios(rows):
    ratio = {name: row.activations for name, row in rows.items()}
    assert ratio["gpipe"] == M / N
    assert ratio["interleaved-1f1b"] == 1 + (N - 1) / (2 * N)
    assert ratio["zb-2p"] == 2
    assert ratio["zb-h2"] == (2 * N - 1) / N
    assert ratio["dualpipev"] == 1 + 1 / (2 * N)
    as_1f1b = ("1f1b-flush", "zb-h1", "zb-1p", "zbv", "interleaved-zb-h1", *ASYNCHRONOUS)
    assert {ratio[name] for name in as_1f1b} == {1}


def test_what_does_not_fit_is_named_and_the_rest_is_shown(only):
    only("1f1b-flush", "paci", "dualpipev")
    made, refused = compare(["stages=4", "batch=4"])
    assert list(refused) == ["dualpipev"]
    assert "accumulation must be at least 8, not 4" in refused["dualpipev"]
    assert [row.name for row in made] == ["1f1b-flush", "paci"]
    made, refused = compare(["stages=4", "batch=8", "method.slack=2"])
    assert {row.name: row for row in made}["paci"].traits.drift == -(-(4 - 1 + 2) // 4)
    assert "1f1b-flush has no option 'slack'" in refused["1f1b-flush"]


@pytest.mark.parametrize(("method", "a"), [("gpipe", 7), ("paci", 5), ("pipedream", 5)])
def test_the_batch_is_a_flush_methods_window(method, a):
    base = compose(["batch=7", "method.accumulation=7"])
    given = ["batch=7", "method.accumulation=5"]
    assert configure(method, base, given).method.accumulation == a


def test_what_the_papers_state_is_in_brackets(made):
    cells = {line["method"]: line for line in table(made)}
    assert cells["zb-h1"]["bubble"] == "0.073 (1/3 of 1F1B's)"
    assert cells["paci"]["drift"] == "2 of 2 (⌈(N-1)/a⌉)"
    assert cells["pipedream"]["synchronisation"] == "none"


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("stages=0", "stages must be a whole number of at least 1, not 0"),
        ("method=paci", "the table has every method: leave out method=paci"),
        ("executor=distributed", "executor distributed has no times given to simulate"),
        ("executor=measured", "executor local has no times given to simulate"),
    ],
)
def test_mistakes_are_one_sentence(override, sentence, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["...", override])
    with pytest.raises(SystemExit, match="2"):
        methods.main()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {sentence}")
    assert err.count("\n") == 1
