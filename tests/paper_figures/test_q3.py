"""Figures and tables of Q3, from hand-made runs."""

import pytest

from analysis import CannotAnswer, read_runs
from paper_figures import figure_3_throughput_ratio as figure_3
from paper_figures import figure_7_peak_memory as figure_7
from paper_figures import figure_8_fixed_batch as figure_8
from paper_figures import figure_9_throughput as figure_9
from paper_figures import memory_parts
from paper_figures.command import main
from tests.analysis import run_folders

SOURCES = {
    "q3": ("local", "simulated, measured costs"),
    "q3-emulated": ("emulated", "emulated"),
    "q3-real": ("distributed", "wall"),
}


@pytest.fixture
def q3(tmp_path):
    """Flush and PACI at two counts, from every source, as theory has them; gpipe once."""
    for experiment, (executor, clock) in SOURCES.items():
        where = {"experiment": experiment, "executor": executor, "clock": clock}
        for m in (4, 8):
            for method, seconds in (("paci", 2), ("1f1b-flush", 2 * (m + 1) / m)):
                run_folders.write_throughput(
                    tmp_path / experiment, f"{method}-{m}", method=method, accumulation=m,
                    seconds=[seconds] * 3, **where,
                )  # fmt: skip
    return tmp_path


def test_every_panel_names_its_clock_and_sources_have_their_own(q3):
    for module in (figure_3, figure_9):
        fig = module.draw(read_runs(q3))
        assert {ax.get_title() for ax in fig.axes} == {
            "emulated, laptop scale, 2 ranks",
            "real (wall clock), laptop scale, 2 ranks",
            "simulated (measured costs), laptop scale, 2 ranks",
        }
    assert "12 runs" in figure_9.draw(read_runs(q3)).get_supxlabel()


def test_theory_lines_go_through_what_is_exact(q3):
    """Flush over PACI is m/(m+N-1), as the dashed line says; so is flush's throughput."""
    ax = figure_3.draw(read_runs(q3)).axes[0]
    measured = next(line for line in ax.lines if list(line.get_xdata()) == [4, 8])
    assert list(measured.get_ydata()) == pytest.approx([4 / 5, 8 / 9])
    (theory,) = [line for line in ax.lines if len(line.get_xdata()) == 50]
    assert theory.get_ydata()[[0, -1]] == pytest.approx([4 / 5, 8 / 9])
    ax = figure_9.draw(read_runs(q3)).axes[0]
    (theory,) = [line for line in ax.lines if len(line.get_xdata()) == 50]
    assert theory.get_ydata()[[0, -1]] == pytest.approx([1024 * 4 / 5, 1024 * 8 / 9])


def test_out_of_memory_is_marked(q3):
    folder = q3 / "q3-real"
    run_folders.write_throughput(
        folder, "full", method="paci", accumulation=16, seconds=[], state="out-of-memory"
    )
    ax = figure_9.draw(read_runs(q3)).axes[1]
    marks = [line for line in ax.lines if line.get_marker() == "x" and len(line.get_xdata())]
    assert [(*line.get_xdata(), *line.get_ydata()) for line in marks] == [(16, 0)]
    table = figure_9.table(read_runs(q3))
    assert table["state"].tolist().count("out-of-memory") == 1


def test_tables_have_a_row_for_each_point(q3):
    frames = read_runs(q3)
    assert len(figure_9.table(frames)) == 12
    checked = figure_3.table(frames)
    assert len(checked) == 6
    deviations = checked["PACI from flush over m/(m+N-1) (%)"]
    assert deviations.tolist() == pytest.approx([0] * 6, abs=1e-9)
    held = memory_parts.table(frames)
    assert len(held) == 8  # not of emulated runs
    assert set(held["over flush's at the same m"]) == {1.0}
    peaks = figure_7.table(frames)
    assert len(peaks) == 4
    assert set(peaks["PACI / flush"]) == {1.0}


def test_memory_has_a_line_for_each_size_and_method(q3):
    for m in (4, 8):
        run_folders.write_throughput(
            q3 / "q3-real", f"large-{m}", method="paci", accumulation=m, microbatch=8,
            held={"activation": 200},
        )  # fmt: skip
    real, simulated = figure_7.draw(read_runs(q3)).axes
    assert sorted(max(line.get_ydata()) for line in real.lines) == [140, 140, 240]
    assert len(simulated.lines) == 2


def test_a_batch_split_in_three_ways_has_a_panel(q3):
    with pytest.raises(CannotAnswer, match="three ways"):
        figure_8.draw(read_runs(q3))
    for m in (2, 3, 4):
        for method in ("paci", "1f1b-flush"):
            run_folders.write_throughput(
                q3 / "fixed", f"{method}-{m}", method=method, accumulation=m, batch=16,
                seconds=[2, 2],
            )  # fmt: skip
    (ax,) = figure_8.draw(read_runs(q3)).axes
    assert ax.get_title() == "batch 16\nreal (wall clock), laptop scale, 2 ranks"
    made = figure_8.table(read_runs(q3))
    assert made["m"].tolist() == [2, 3, 4] * 2
    assert made["micro-batch"].tolist() == ["8", "6, 5", "4"] * 2


def test_bars_are_as_high_as_the_bytes(q3):
    left, right = memory_parts.draw(read_runs(q3)).axes[:2]
    assert max(bar.get_y() + bar.get_height() for bar in left.patches) == 140
    assert max(bar.get_x() + bar.get_width() for bar in right.patches) == 140


def test_made_by_the_command_and_refused_without_runs(q3, tmp_path):
    names = ["figure_3_throughput_ratio", "figure_7_peak_memory", "figure_9_throughput"]
    assert main(names, [str(q3)]) == 0
    made = {path.name for path in (q3 / "figures").iterdir()}
    assert {"figure_9_throughput.png", "figure_7_peak_memory.csv"} < made
    run_folders.write_run(tmp_path / "other")
    for module in (figure_3, figure_7, figure_8, figure_9, memory_parts):
        with pytest.raises(CannotAnswer):
            module.table(read_runs(tmp_path / "other"))
