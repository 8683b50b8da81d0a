"""Every number of the papers says where it is from, and derived ones follow from the raw ones."""

import pytest

from analysis.extrapolation.zero_bubble import extrapolated
from paper_figures.published import REFERENCE, published

PAPER = r"arXiv 2606\.07881"
SOURCES = {
    **dict.fromkeys(("claims", "table_1", "table_2", "table_3", "table_4", "table_6"), PAPER),
    **dict.fromkeys(("zero_bubble", "zero_bubble_times"), r"Qi et al\..*: .*Table \d"),
    "methods": r"\d{4}|arXiv \d{4}\.\d{5}",
}
MAY_BE_EMPTY = {"table_1": ["ours"], "table_6": ["best"], "methods": ["drift"]}


def test_every_file_is_looked_at():
    assert {file.stem for file in REFERENCE.iterdir()} == set(SOURCES)


@pytest.mark.parametrize("name", SOURCES)
def test_every_published_number_has_a_source(name):
    found = published(name)
    assert found["source"].str.contains(SOURCES[name]).all()
    assert found.drop(columns=MAY_BE_EMPTY.get(name, [])).notna().all(axis=None)


def flush_beside(table, row):
    return table[
        (table["batch"] == row.batch)
        & table["method"].str.startswith("1f1b-flush")
        & (table["perplexity"].eq(row.perplexity) | ("perplexity_std" in table))
    ]


@pytest.mark.parametrize("name", ["table_4", "table_6"])
def test_speed_ups_follow_from_the_hours(name):
    """Match: flush of as many micro-batches over PACI; best: the fastest flush over PACI."""
    table = published(name)
    paci = table[table["method"].str.startswith("paci")]
    assert len(paci) == (4 if name == "table_4" else 12)
    for row in paci.itertuples():
        flush = flush_beside(table, row).set_index("method")["hours"]
        match = flush[row.method.replace("paci a", "1f1b-flush m")] / row.hours
        assert match == pytest.approx(row.match, abs=0.0101)
        assert flush.min() / row.hours == pytest.approx(row.best, abs=0.0101)


def test_the_best_of_flush_itself_follows_from_the_hours():
    for _, rows in published("table_4").groupby("batch"):
        flush = rows[rows["method"].str.startswith("1f1b-flush")]
        assert (flush["hours"].min() / flush["hours"] - flush["best"]).abs().max() < 0.0101


def test_hours_of_flush_at_a_perplexity_keep_the_ratio_of_the_total_hours():
    """Flush is trained once a batch and mapped: all its times stand in the same ratio."""
    total = published("table_4").set_index(["batch", "method"])["hours"]
    steps = published("table_6")
    flush = steps[steps["method"].str.startswith("1f1b-flush")]
    for (batch, _), rows in flush.groupby(["batch", "perplexity"]):
        share = rows["hours"].to_numpy() / total[batch][rows["method"]].to_numpy()
        assert share.max() / share.min() == pytest.approx(1, abs=2e-3)


def test_the_extrapolation_follows_from_the_zero_bubble_table():
    """PACI is 1F1B over m/(m+N-1); the paper rounds, and one of its numbers is 0.01 off."""
    ours = extrapolated(published("zero_bubble"))
    ours = ours[ours["variant"] == "PACI"].set_index(["model", "microbatches"])
    theirs = published("table_2").set_index(["model", "microbatches"])
    difference = (
        ours["samples_per_gpu_per_second"] - theirs["samples_per_gpu_per_second"]
    ).dropna()
    assert len(difference) == 12
    assert difference.abs().max() < 0.012


def test_spreads_and_losses_of_table_3_are_of_three_seeds():
    table = published("table_3")
    assert len(table) == 6
    assert (table["seeds"] == 3).all()
    assert (table["rms_std"] < table["loss"] / 100).all()
