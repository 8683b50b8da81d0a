"""The figure of simulations beyond the paper, from a folder that holds nothing else."""

import json

import pytest

from analysis import CannotAnswer, read_runs
from analysis.extrapolation.simulations import broadest, simulations
from paper_figures import utilisation
from paper_figures.command import main

LINE = {
    **{"schedule": "paci", "stages": 16, "accumulation": 8, "slack": 0, "transfer": 0.0},
    **{"jitter": 0.0, "microbatches": 64, "seed": 0, "utilization": 1.0, "max_drift": 2},
    **{"drift_bound": 2, "peak_in_flight": 16, "clock": "simulated"},
}


@pytest.fixture
def folder(tmp_path):
    """Two methods along each axis, a line twice, and half a line at the end."""
    flush = {"schedule": "1f1b-flush", "accumulation": 64, "max_drift": 0, "drift_bound": 0}
    lines = [
        LINE | method | at | {"utilization": 0.9}
        for method in ({}, {"slack": 4, "max_drift": 3, "drift_bound": 3}, flush)
        for at in (
            *({"jitter": jitter} for jitter in (0.0, 0.1, 0.3)),
            *({"transfer": transfer} for transfer in (0.1, 0.5)),
            {"transfer": 0.1, "jitter": 0.1},
        )
    ]
    deeper = [LINE | {"stages": N, "accumulation": N // 2, "transfer": 0.1, "jitter": 0.1}
              for N in (32, 64)]  # fmt: skip
    lines += [*deeper, lines[0] | {"utilization": 0.8}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "extrapolation").mkdir()
    (tmp_path / "extrapolation" / "simulations.jsonl").write_text(text + text[:30])
    return tmp_path


def test_a_repeated_point_counts_once_and_the_last_time(folder):
    points = simulations(read_runs(folder))
    assert len(points) == 20
    first = points[(points["schedule"] == "paci") & (points["slack"] == 0)].query(
        "jitter == 0 and transfer == 0"
    )
    assert list(first["utilization"]) == [0.8]
    assert set(points["slack_share"]) == {0, 0.25}
    assert set(broadest(points, ["jitter", "transfer"])["stages"]) == {16}


def test_each_panel_varies_one_thing(folder):
    jitter, transfer, stages = utilisation.draw(read_runs(folder)).axes
    assert [len(ax.lines) for ax in (jitter, transfer, stages)] == [3, 3, 3]
    assert list(jitter.lines[0].get_xdata()) == [0, 0.1, 0.3]
    assert list(transfer.lines[0].get_xdata()) == [0, 0.1, 0.5]
    assert list(stages.lines[0].get_xdata()) == [16, 32, 64]
    assert "16 stages" in jitter.get_title()
    assert "jitter 0.1, messages 0.1" in stages.get_title()


def test_table_and_figure_are_made_without_a_run(folder):
    assert main(["utilisation"], [str(folder)]) == 0
    made = folder / "figures"
    assert {path.suffix for path in made.glob("utilisation.*")} == {
        *(".csv", ".md", ".tex", ".png", ".pdf")
    }
    assert "| 1f1b-flush" in (made / "utilisation.md").read_text()


def test_no_simulation_is_a_sentence(q1):
    with pytest.raises(CannotAnswer, match=r"nothing is simulated: python -m experiments\.extra"):
        utilisation.draw(read_runs(q1))
    (q1 / "simulations.jsonl").write_text('{"schedule": "paci"}\n')
    with pytest.raises(CannotAnswer, match=r"have no stages"):
        utilisation.draw(read_runs(q1))
