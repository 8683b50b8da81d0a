"""The methods table: the same figures as the command's, from configuration alone."""

import pytest

from experiments.methods import compare
from paper_figures import methods
from paper_figures.published import published


def test_the_table_is_that_of_the_command():
    made = methods.table().set_index("method")
    rows, _ = compare([f"stages={methods.RANKS}", f"batch={methods.WINDOW}"])
    assert list(made.index) == list(published("methods")["method"]) == [row.name for row in rows]
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
