"""The methods table: the numbers of the command, from configuration alone, beside the paper's."""

import pytest

from experiments.methods import compare
from paper_figures import table_1_methods as methods
from paper_figures.published import published


def test_the_table_is_that_of_the_command():
    made = methods.table().drop_duplicates("ours").set_index("ours")
    made = made.drop(index="not implemented")
    rows, _ = compare([f"stages={methods.RANKS}", f"batch={methods.WINDOW}"])
    assert set(made.index) == {row.name for row in rows}
    assert set(made.index) < set(published("methods")["method"])
    for row in rows:
        line = made.loc[row.name]
        assert line["a or m"] == row.accumulation
        assert line["bubble"] == pytest.approx(row.traits.bubble)
        assert line["activations"] == row.traits.activations
        assert (line["drift"], line["staleness"], line["copies"]) == (
            row.traits.drift,
            row.traits.staleness,
            row.traits.copies,
        )
    assert made.loc["paci", "drift (stated)"] == "⌈(N-1)/a⌉"
    assert "- zb-h1, zb-1p, zb-h2, zb-2p, zbv: Qi et al." in methods.note(made)


def test_the_papers_methods_come_first_in_its_words():
    made = methods.table()
    theirs = published("table_1")
    assert list(made["method"])[: len(theirs)] == list(theirs["method"])
    paci = made[made["method"] == "PACI"].iloc[0]
    assert paci[[f"{it} (paper)" for it in methods.RANKED]].tolist() == [
        "0",
        "0",
        "low and bounded",
    ]
    assert paci["bubble"] == 0
    assert made.loc[made["method"] == "Chimera", "bubble"].isna().all()
