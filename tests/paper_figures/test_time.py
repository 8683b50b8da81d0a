"""Q2's tables and figures: their numbers, their clock, and what they refuse."""

from math import log

import pandas as pd
import pytest

from analysis import CannotAnswer, cells, read_runs
from paper_figures import perplexity_vs_time, speedup, time_to_threshold
from paper_figures.command import main


def test_times_to_thresholds(q2):
    both = time_to_threshold.table(read_runs(q2), thresholds=[11, 8])
    theirs = both["scale"] == "paper's own"
    assert set(both[theirs]["unit"]) == {"hours"}
    assert both[theirs]["time"].tolist() == [88, 161, 84, 124]
    made = both[~theirs].set_index(["variant", "perplexity"])
    assert made.loc[("1f1b-flush m=4", "≤11"), "time"] == pytest.approx(48 * (1 + 1 / 18))
    assert made.loc[("paci a=8", "≤8"), ["time", "seeds"]].tolist() == ["not reached", "0 of 2"]
    assert set(made["clock"]) == {"simulated, measured costs"}
    assert set(made["unit"]) == {"seconds"}


def test_thresholds_may_be_given_on_the_command_line(q2):
    assert main(["time_to_threshold"], [str(q2), "--thresholds", "15,14"]) == 0
    made = pd.read_csv(q2 / "figures" / "time_to_threshold.csv")
    assert made["perplexity"].unique().tolist()[-2:] == ["≤15", "≤14"]


@pytest.mark.parametrize("given", ["15,x", "", "0.5", "15,nan"])
def test_what_is_no_list_of_perplexities_is_refused_in_one_sentence(q2, given, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["time_to_threshold"], [str(q2), f"--thresholds={given}"])
    assert "perplexities above 1, like 18,17,16" in capsys.readouterr().err


def test_speed_ups_stand_beside_the_papers(q2):
    made = speedup.table(read_runs(q2), thresholds=[11])
    theirs = made[made["scale"] == "paper's own"]
    assert "1.69" in set(theirs["over the best flush"])
    ours = made[made["scale"] == "laptop"].set_index("perplexity")
    at_9 = (40 + 10 * log(11 / 9) / log(11 / 8)) / 25
    assert ours["over the best flush"].to_dict() == pytest.approx({"≤11": 2, "lowest, 9": at_9})
    assert ours["over flush, m = a"].to_list() == ours["over the best flush"].to_list()
    assert set(ours["which is"]) == {"1f1b-flush m=8"}


@pytest.mark.parametrize("module", [perplexity_vs_time, time_to_threshold, speedup])
def test_figures_name_their_clock_and_unit(q2, module):
    fig = module.draw(read_runs(q2))
    labels = " ".join(label for ax in fig.axes for label in (ax.get_xlabel(), ax.get_ylabel()))
    assert "simulated clock, measured costs" in labels
    assert "per byte" in fig.get_supxlabel()


@pytest.mark.parametrize("module", [perplexity_vs_time, time_to_threshold, speedup])
def test_given_costs_are_refused(q2, module):
    for file in q2.glob("q2/*/*.jsonl"):
        file.write_text(file.read_text().replace(", measured costs", ""))
    with pytest.raises(CannotAnswer, match="given and not measured"):
        module.draw(read_runs(q2))


def test_an_arrow_is_at_the_lowest_perplexity_that_both_reach(q2):
    (ax,) = perplexity_vs_time.draw(read_runs(q2)).axes
    assert [text.get_text() for text in ax.texts if text.get_text()] == ["1.85× at 9"]
    assert [cell.variant.label for cell in cells(read_runs(q2), "q2")][-1] == "paci a=8"
