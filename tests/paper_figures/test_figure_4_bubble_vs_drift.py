"""Bubble against drift: closed forms and simulation agree, and PACI alone has no bubble."""

import pytest

from paper_figures import figure_4_bubble_vs_drift as figure_4


def test_the_simulation_agrees_with_the_closed_form():
    made = figure_4.table()
    assert made["simulated"].tolist() == pytest.approx(made["bubble"].tolist(), abs=1e-6)


def test_flushes_trade_nothing_and_paci_drift_for_bubble():
    made = figure_4.table().set_index(["method", "m or a"])
    assert made.loc[("1f1b-flush", 8), "bubble"] == pytest.approx(7 / 15)
    assert made.loc[("interleaved-1f1b, V = 2", 8), "bubble"] == pytest.approx(7 / 23)
    paci = made.loc["paci"]
    assert (paci["bubble"] == 0).all()
    assert paci["drift bound"].to_dict() == {1: 7, 2: 4, 4: 2, 8: 1, 16: 1, 24: 1, 32: 1, 64: 1}
    assert (made.drop("paci")["drift bound"] == 0).all()


def test_every_point_is_drawn():
    (ax,) = figure_4.draw().axes
    marks = [line for line in ax.lines if line.get_marker() not in ("None", "none", None)]
    assert sum(len(line.get_xdata()) for line in marks) == len(figure_4.table())
