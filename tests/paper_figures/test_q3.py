"""Figures and tables of Q3, from hand-made runs."""

import pytest

from analysis import CannotAnswer, read_runs
from paper_figures import peak_memory, theory_check, throughput
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


def test_every_axis_names_its_clock_and_sources_have_their_own(q3):
    fig = throughput.draw(read_runs(q3))
    said = {ax.get_title(): ax.get_ylabel() for ax in fig.axes}
    assert said == {
        f"{source}, laptop scale\n2 ranks, micro-batch of 4": f"tokens/s/device\n{clock}"
        for source, clock in (
            ("emulated", "emulated clock"),
            ("real", "wall clock"),
            ("simulated", "simulated clock, measured costs"),
        )
    }
    assert "12 runs" in fig.get_supxlabel()


def test_theory_lines_go_through_what_is_exact(q3):
    """P is PACI's mean, per device; the flush's line is P m/(m+N-1)."""
    ax = throughput.draw(read_runs(q3)).axes[0]
    flat, theory = [line for line in ax.lines if len(line.get_xdata()) == 50]
    assert set(flat.get_ydata()) == {4096 / 2 / 2}
    ends = theory.get_ydata()[[0, -1]]
    assert ends == pytest.approx([1024 * 4 / 5, 1024 * 8 / 9])


def test_out_of_memory_is_marked(q3):
    folder = q3 / "q3-real"
    run_folders.write_throughput(
        folder, "full", method="paci", accumulation=16, seconds=[], state="out-of-memory"
    )
    ax = throughput.draw(read_runs(q3)).axes[1]
    assert [(*line.get_xdata(), *line.get_ydata()) for line in ax.lines if line.get_marker() == "x"]
    table = throughput.table(read_runs(q3))
    assert table["state"].tolist().count("out-of-memory") == 1


def test_tables_have_a_row_for_each_point(q3):
    frames = read_runs(q3)
    assert len(throughput.table(frames)) == 12
    checked = theory_check.table(frames)
    assert len(checked) == 6
    assert checked["deviation (%)"].tolist() == pytest.approx([0] * 6, abs=1e-9)
    held = peak_memory.table(frames)
    assert len(held) == 8  # not of emulated runs
    assert set(held["over flush's at the same m"]) == {1.0}


def test_bars_are_as_high_as_what_is_held(q3):
    left, right = peak_memory.draw(read_runs(q3)).axes[:2]
    assert max(bar.get_y() + bar.get_height() for bar in left.patches) == 140
    assert max(bar.get_x() + bar.get_width() for bar in right.patches) == 140


def test_made_by_the_command_and_refused_without_runs(q3, tmp_path, capsys):
    names = ["throughput", "theory_check", "peak_memory"]
    assert main(names, [str(q3)]) == 0
    made = {path.name for path in (q3 / "figures").iterdir()}
    assert {"throughput.png", "theory_check.tex", "peak_memory.pdf", "peak_memory.csv"} < made
    run_folders.write_run(tmp_path / "other")
    for module in (throughput, theory_check, peak_memory):
        with pytest.raises(CannotAnswer):
            module.table(read_runs(tmp_path / "other"))
