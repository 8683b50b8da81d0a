"""The studies of computation, from hand-written run folders."""

import pandas as pd
import pytest

from analysis import read_runs
from analysis.studies import largest_rise
from paper_figures import clipping, precision, recompute
from paper_figures.command import main, scripts
from tests.analysis import run_folders


@pytest.fixture
def write(tmp_path):
    def run(experiment, name, seed, offset=0.0, executor=None, **config):
        run_folders.write_run(
            tmp_path / experiment, f"{name}-s{seed}", experiment=experiment, method="paci",
            seed=seed, losses=[4 - 0.02 * k + offset + 0.01 * seed for k in range(40)],
            drift=[{"0": 1, "2": 7}] * 8, executor={"name": "local"} | (executor or {}), **config,
        )  # fmt: skip

    run.root = tmp_path
    return run


def read(root, name):
    return pd.read_csv(root / "figures" / f"{name}.csv")


def test_precisions_are_compared_with_float32_seed_by_seed(write):
    for seed in (0, 1):
        for weights, more in (("live", 0.5), ("stashed", 0.0)):
            for name, offset in (("float32", 0.0), ("bfloat16", 0.25)):
                write(
                    "precision", f"{weights}-{name}", seed, offset + more, {"precision": name},
                    weights=weights, version_bytes=2**20,
                )  # fmt: skip
    assert main(["precision"], [str(write.root)]) == 0
    made = read(write.root, "precision").set_index(["method", "precision"])
    live = made.loc["paci a=4"]
    assert live.loc["bfloat16", "over float32's"] == pytest.approx(0.25)
    assert live.loc["float32", "over float32's"] == 0
    assert live.loc["float32", "backwards see"] == "the newest"
    assert live.loc["float32", "drift (versions)"] == 2
    assert live.loc["float32", "copies (MiB)"] == 1
    assert made.loc["paci a=4 stashed"].loc["float32", "backwards see"] == "those of the forward"
    gaps = precision.draw(read_runs(write.root)).axes[0].lines[0].get_ydata()
    assert list(gaps) == pytest.approx([0.5, 0.5])


def test_copied_weights_are_stashed_in_effect(write):
    for name, share in (("float32", 0.0), ("bfloat16-autocast", 0.9)):
        write("precision", name, 0, executor={"precision": name})
        log = write.root / "precision" / f"{name}-s0" / "stages.jsonl"
        log.write_text(log.read_text().replace("}\n", f', "copied": {share}}}\n'))
    table = precision.table(read_runs(write.root)).set_index("precision")
    assert table.loc["bfloat16-autocast", "backwards see"] == "those of the forward, in effect"
    assert table.loc["bfloat16-autocast", "weights copied (%)"] == pytest.approx(90)
    assert table.loc["float32", "backwards see"] == "the newest"


def test_recomputation_is_compared_with_none_even_if_that_was_run_for_another_study(write):
    """Runs of two experiments that are the same count once, as those of the first."""
    for seed in (0, 1):
        write("precision", "none", seed, executor={"recompute": "none"}, activation_bytes=2**22)
        write("recompute", "none", seed, executor={"recompute": "none"}, activation_bytes=2**22)
        write(
            "recompute", "stage", seed, 0.125, executor={"recompute": "stage"},
            activation_bytes=2**20,
        )  # fmt: skip
    assert main(["recompute"], [str(write.root)]) == 0
    made = read(write.root, "recompute").set_index("recompute")
    assert made.loc["stage", "over none's"] == pytest.approx(0.125)
    assert made.loc["stage", "activations (MiB)"] == 1
    assert made.loc["none", "activations (MiB)"] == 4
    assert recompute.draw(read_runs(write.root)).axes[0].lines[1].get_ydata() == [0.125]


def test_the_largest_rise_is_from_the_lowest_of_the_ten_updates_before():
    flat = [2.0] * 12
    losses = pd.DataFrame({0: [*flat, 3.5, *flat], 1: [*flat, float("nan"), *flat]})
    rise = largest_rise(losses)
    assert rise[0] == 1.5
    assert pd.isna(rise[1])


def test_kinds_of_clipping_have_a_row_and_a_line_for_each_seed(write):
    for seed in (0, 1):
        for clip, offset in (("none", 0.5), ("stage", 0.0)):
            optimizer = {"name": "adamw", "lr": 0.03, "clip": clip}
            write("clipping", clip, seed, offset, optimizer=optimizer)
    assert main(["clipping"], [str(write.root)]) == 0
    made = read(write.root, "clipping").set_index("clip")
    assert made.loc["none", "final loss"] - made.loc["stage", "final loss"] == pytest.approx(0.5)
    assert made["diverged"].tolist() == [0, 0]
    assert len(clipping.draw(read_runs(write.root)).axes[0].lines) == 4


@pytest.mark.parametrize("name", ["precision", "recompute", "clipping"])
def test_without_runs_of_its_own_a_study_says_so(name, write, capsys):
    assert name in scripts()
    write("mine", "run", 0)
    assert main([name], [str(write.root)]) == 1
    assert f"no run of experiment={name} is completed" in capsys.readouterr().out
