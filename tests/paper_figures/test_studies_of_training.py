"""Tables and figures of the studies of length, rates and optimizers, on made-up runs."""

import numpy as np
import pytest

from analysis import CannotAnswer, read_runs
from paper_figures import horizon, optimizers, rates
from tests.analysis.run_folders import write_run


def write(root, experiment, method, lr, end, updates=100, optimizer="adamw", seeds=(0, 1)):
    for seed in seeds:
        write_run(
            root, f"{experiment}-{method}-{lr}-{updates}-{optimizer}-s{seed}",
            experiment=experiment, method=method, seed=seed,
            optimizer={"name": optimizer, "lr": lr},
            losses=np.linspace(5, end, updates).tolist(),
            state="diverged" if end != end else "completed",
        )  # fmt: skip


def test_the_horizon_finds_the_law_of_its_runs(tmp_path):
    """The gap halves with every doubling of the length: p = 1."""
    for updates in (100, 200, 400):
        write(tmp_path, "horizon", "1f1b-flush", 1e-3, 2.0, updates)
        write(tmp_path, "horizon", "paci", 1e-3, 2.0 + 40 / updates, updates)
    frames = read_runs(tmp_path)
    rows = horizon.table(frames)
    assert set(rows["rates"]) == {"best against best", "equal against equal"}
    (law,) = rows[
        rows["updates"].str.contains("fitted") & (rows["rates"] == "best against best")
    ].itertuples(index=False)
    of = dict(zip(rows.columns, law, strict=True))
    assert of["p of gap"] == pytest.approx(1, abs=0.05)
    assert of["gap"] == pytest.approx(40 / 190_000, rel=0.4)
    horizon.draw(frames)


def test_the_map_of_rates_shows_losses_and_divergence(tmp_path):
    write(tmp_path, "rates", "1f1b-flush", 1e-3, 2.0)
    write(tmp_path, "rates", "paci", 1e-3, 2.5)
    write(tmp_path, "rates", "paci", 1e-1, float("nan"))
    frames = read_runs(tmp_path)
    rows = rates.table(frames).set_index(["variant", "lr"])
    assert rows.loc[("paci a=4", 1e-1), "diverged"] == 2
    assert np.isnan(rows.loc[("paci a=4", 1e-1), "final loss"])
    assert rows.loc[("paci a=4", 1e-3), "final loss"] == pytest.approx(2.5, abs=0.1)
    written = {text.get_text() for text in rates.draw(frames).axes[0].texts}
    assert "diverged" in written


def test_optimizers_are_compared_with_their_own_flush(tmp_path):
    for optimizer, ends in {"adamw": (2.0, 2.5), "muon": (1.5, 1.6)}.items():
        for method, end in zip(("1f1b-flush", "paci"), ends, strict=True):
            write(tmp_path, "optimizers", method, 1e-3, end, optimizer=optimizer)
            write(tmp_path, "optimizers", method, 2e-3, end + 1, optimizer=optimizer)
    frames = read_runs(tmp_path)
    rows = optimizers.table(frames).set_index(["optimizer", "variant"])
    assert (rows["lr"] == 1e-3).all()
    assert rows.loc[("adamw", "paci a=4"), "gap"] == pytest.approx(0.5, abs=0.05)
    assert rows.loc[("muon", "paci a=4"), "gap"] == pytest.approx(0.1, abs=0.02)
    assert rows.loc[("muon", "paci a=4"), "E"] > rows.loc[("adamw", "paci a=4"), "E"]
    optimizers.draw(frames)


@pytest.mark.parametrize("script", [horizon, rates, optimizers])
def test_without_runs_of_the_study_the_command_is_named(tmp_path, script):
    write(tmp_path, "trainings", "paci", 1e-3, 2.0)
    name = script.__name__.rpartition(".")[2]
    with pytest.raises(CannotAnswer, match=f"experiment={name}"):
        script.table(read_runs(tmp_path))
