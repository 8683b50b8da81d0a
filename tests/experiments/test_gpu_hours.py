"""The paper's own times, as far as it gives them: its GPU-hours follow from one of them."""

import pytest

from experiments.config import compose
from experiments.config.derived import method_of
from experiments.gpu_hours import flops_per_token, main, paper_rate, run_hours

PAPER = ["scale=paper", "executor=distributed", "executor.device=cuda"]


def test_flops_of_gpt2_medium():
    """Six for each weight of a matrix, twelve per layer, position and feature for attention."""
    weights = 24 * 12 * 1024**2 + 1024 * 50257
    assert flops_per_token(compose(PAPER)) == pytest.approx(
        6 * weights + 12 * 24 * 1024 * 1024, rel=1e-4
    )


@pytest.mark.parametrize(
    ("batch", "accumulation", "published"), [(256, 16, 124.27), (128, 8, 162.33)]
)
def test_the_flush_takes_as_long_as_in_the_paper(batch, accumulation, published):
    flush = ["method=1f1b-flush", f"method.accumulation={accumulation}", f"batch={batch}"]
    assert run_hours(compose([*PAPER, *flush]), paper_rate()) == pytest.approx(published, rel=0.05)


def test_one_gpu_does_the_work_of_all():
    one = compose(["scale=paper", "executor=local", "executor.device=cuda"])
    assert run_hours(one, paper_rate()) == pytest.approx(8 * 87.89)


@pytest.mark.parametrize(
    ("overrides", "called"),
    [
        (["method=1f1b-flush", "method.accumulation=8"], "1f1b-flush m=8"),
        (["method=paci", "method.weights=stashed"], "paci a=4 stashed"),
        (["method=async-1f1b"], "async-1f1b"),
    ],
)
def test_methods_are_called_what_figures_call_them(overrides, called):
    assert method_of(compose(overrides)).label == called


def test_the_papers_trainings_took_16_100_gpu_hours(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["gpu_hours", "experiment=trainings", *PAPER])
    main()
    said = capsys.readouterr().out
    rows = [line.split("  ") for line in said.splitlines() if "paci" in line or "flush" in line]
    assert len(rows) == 6
    assert not any(row[-1].strip() == "–" for row in rows)
    assert said.endswith("The paper needed 16,133 GPU-hours for the runs that it trained, too\n")
