"""The tables and the figure of Q2: their numbers, their clock, and what they refuse."""

import pandas as pd
import pytest

from analysis import CannotAnswer, read_runs
from analysis.q2.thresholds import Thresholds
from paper_figures import figure_1_perplexity_vs_hours as figure_1
from paper_figures import table_4_runtime as table_4
from paper_figures import table_6_time_to_perplexity as table_6
from paper_figures.command import main


def test_times_and_speed_ups_at_thresholds(q2):
    made = table_6.table(read_runs(q2), Thresholds((11.0, 8.5)))
    made = made.set_index(["variant", "perplexity"])
    assert made.loc[("1f1b-flush m=4", "≤11"), "time"] == pytest.approx(48 * (1 + 1 / 18))
    paci = made.loc["paci a=8"]
    assert paci.loc["≤11", ["match", "best"]].tolist() == pytest.approx([2, 2])
    assert paci.loc["≤8.5", "time"] == "not reached by paci a=8 in 2 of 2 seeds"
    assert pd.isna(paci.loc["≤8.5", "match"])
    assert set(made["clock"]) == {"simulated, measured costs"}
    assert set(made["unit"]) == {"seconds"}
    assert set(made["time is"]) == {"measured"}


def test_the_perplexity_is_interpolated_linearly_or_its_logarithm(q2):
    linear, other = (
        table_6.table(read_runs(q2), Thresholds((12.0,), log_linear)).set_index("variant")["time"]
        for log_linear in (False, True)
    )
    assert linear["paci a=8"] == pytest.approx((15 + 5 / 2) * (1 + 1 / 18))
    assert other["paci a=8"] == pytest.approx(
        (15 + 5 * 0.0800427 / 0.1670541) * (1 + 1 / 18), rel=1e-5
    )


def test_the_papers_numbers_stand_beside_those_of_the_same_rank(q2):
    """The only batch here stands for the paper's smaller one, three thresholds for 18, 17, 16."""
    made = table_6.table(read_runs(q2))
    paci = made[made["variant"] == "paci a=8"]
    assert paci["paper's"].tolist() == ["≤18", "≤17", "≤16"]
    assert paci["paper's hours"].tolist() == [37.32, 52.86, 70.31]
    assert paci["paper's best"].tolist() == [1.55, 1.59, 1.64]


def test_total_time_and_final_perplexity(q2):
    made = table_4.table(read_runs(q2)).set_index("variant")
    assert made.loc["paci a=8", ["match", "best"]].tolist() == pytest.approx([2, 2])
    assert made.loc["1f1b-flush m=4", ["match", "best"]].tolist() == pytest.approx([1, 10 / 12])
    assert made.loc["paci a=8", "time"] == pytest.approx(25 * (1 + 1 / 18))
    assert made["perplexity"].to_dict() == {
        "1f1b-flush m=4": 8,
        "1f1b-flush m=8": 8,
        "paci a=8": 9,
    }
    assert made.loc["paci a=8", ["paper's match", "paper's best"]].tolist() == [1.84, 1.69]


def test_thresholds_may_be_given_on_the_command_line(q2):
    name = "table_6_time_to_perplexity"
    assert main([name], [str(q2), "--thresholds", "15,14", "--log-linear"]) == 0
    made = pd.read_csv(q2 / "figures" / f"{name}.csv")
    assert made["perplexity"].unique().tolist() == ["≤15", "≤14"]


@pytest.mark.parametrize("given", ["15,x", "", "0.5", "15,nan"])
def test_what_is_no_list_of_perplexities_is_refused_in_one_sentence(q2, given, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["table_6_time_to_perplexity"], [str(q2), f"--thresholds={given}"])
    assert "perplexities above 1, like 18,17,16" in capsys.readouterr().err


@pytest.mark.parametrize("module", [figure_1, table_6])
def test_figures_name_their_clock_and_unit(q2, module):
    fig = module.draw(read_runs(q2))
    labels = " ".join(label for ax in fig.axes for label in (ax.get_xlabel(), ax.get_ylabel()))
    assert "simulated clock, measured costs" in labels
    assert "per byte" in fig.get_supxlabel()


@pytest.mark.parametrize("module", [figure_1, table_6])
def test_given_costs_are_refused(q2, module):
    for file in q2.glob("q2/*/*.jsonl"):
        file.write_text(file.read_text().replace(", measured costs", ""))
    with pytest.raises(CannotAnswer, match="given and not measured"):
        module.draw(read_runs(q2))


def test_an_arrow_is_at_the_lowest_threshold(q2):
    (ax,) = figure_1.draw(read_runs(q2), Thresholds((13.0, 11.0))).axes
    assert [text.get_text() for text in ax.texts if text.get_text()] == ["2.00× at 11"]
