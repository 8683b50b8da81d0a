"""The notebook's cells run in order, without a kernel: they are plain Python."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "schedules.ipynb"


@pytest.fixture
def no_window():
    plt.close("all")
    backend = plt.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(backend)


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_it_draws_and_trains(no_window, capsys):
    names = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert len(plt.get_fignums()) == 4
    assert all(plt.figure(number).axes[0].has_data() for number in plt.get_fignums())
    assert "rank 0  0  1  2" in capsys.readouterr().out
    assert set(names["final"]) == {"1f1b-flush", "paci"}
    assert max(names["final"].values()) < 0.05  # of 0.69 at the start
