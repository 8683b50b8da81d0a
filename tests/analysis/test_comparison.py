"""Comparisons of runs of one's own."""

import pytest

from analysis import CannotAnswer, read_runs
from analysis.comparison import METRICS, compare
from paper_figures import style
from paper_figures.compare import main


@pytest.fixture
def study(write_run):
    """Two learning rates, two slacks and two seeds, of no experiment."""
    for rate in (0.1, 0.001):
        for slack in (0, 2):
            for seed in (0, 1):
                write_run(
                    f"lr{rate}-slack{slack}-s{seed}", method="paci", experiment=None, seed=seed,
                    slack=slack, optimizer={"name": "adamw", "lr": rate},
                    losses=(4.0, 3.0 + rate + slack + seed / 10),
                    perplexities=(50.0, 20.0 + slack), drift=[{0: 1, 2: 3}, {0: 4}],
                )  # fmt: skip
    return write_run.root


def test_means_over_seeds_by_two_settings(study):
    table = compare(read_runs(study), study, ["method.slack", "optimizer.lr"], "loss")
    assert list(table.columns) == ["method.slack", "optimizer.lr", "loss", "loss ±", "runs"]
    assert table[["method.slack", "optimizer.lr"]].to_numpy().tolist() == [
        [0, 0.001], [0, 0.1], [2, 0.001], [2, 0.1],
    ]  # fmt: skip
    assert table["loss"].tolist() == pytest.approx([3.051, 3.15, 5.051, 5.15])
    assert table["loss ±"].tolist() == pytest.approx([0.0707] * 4, abs=1e-4)
    assert table["runs"].tolist() == [2] * 4


def test_other_metrics(study):
    frames = read_runs(study)
    perplexity = compare(frames, study, ["method.slack"], "perplexity")
    assert perplexity["perplexity"].tolist() == [20, 22]
    assert compare(frames, study, ["method.slack"], "drift")["drift"].tolist() == [2, 2]
    with pytest.raises(CannotAnswer, match="no throughput run is completed, which throughput"):
        compare(frames, study, ["method.slack"], "throughput")


@pytest.mark.parametrize(
    ("by", "metric", "sentence"),
    [
        (["batch"], "loss", "batch is 16 in all runs: choose from method.slack, optimizer.lr"),
        (["lr"], "loss", "lr is no setting: choose from method.slack, optimizer.lr"),
        (["batch"], "speed", f"unknown metric 'speed': choose from {', '.join(METRICS)}"),
    ],
)
def test_a_mistake_is_one_sentence(study, by, metric, sentence, capsys):
    with pytest.raises(CannotAnswer) as caught:
        compare(read_runs(study), study, by, metric)
    assert str(caught.value) == sentence
    assert main([str(study), "--by", ",".join(by), "--metric", metric]) == 2
    assert capsys.readouterr().err == f"{sentence}\n"


def test_the_command_writes_a_table_and_a_figure(study, capsys):
    assert main([str(study), "--by", "optimizer.lr,method.slack"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("final training loss (nats per token) by optimizer.lr and method.slack")
    assert said.endswith(f"{study / 'figures' / 'compare_loss.png'}\n")
    assert {file.name for file in (study / "figures").glob("compare_loss.*")} == {
        f"compare_loss.{kind}" for kind in ("png", "pdf", "csv", "md", "tex")
    }


def test_many_lines_differ():
    looks = [str(style.distinct(number)) for number in range(28)]
    assert len(set(looks)) == 28
