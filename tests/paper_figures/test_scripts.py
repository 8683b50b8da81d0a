"""Every figure and table: made from runs alone, reproducible, honest about gaps."""

import os
import subprocess
import sys
from errno import ENOSPC
from importlib import import_module

import pandas as pd
import pytest
from matplotlib.testing.compare import compare_images
from PIL import Image

from analysis import read_runs
from analysis.manifest import read_manifest
from paper_figures import command, drift, style
from paper_figures import figure_5_training_loss as training_loss
from paper_figures import figure_6_validation_perplexity as validation_perplexity
from paper_figures import table_3_stability as stability
from paper_figures.command import main, scripts
from paper_figures.make import needs_of

STUDIES = ("clipping", "horizon", "optimizers", "precision", "rates", "recompute")
OF_RUNS = [
    name
    for name in scripts()
    if "training" in needs_of(import_module(f"paper_figures.{name}")) and name not in STUDIES
]


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def names_in(folder):
    """The names of the files in `folder`, without their endings."""
    return {path.stem for path in folder.iterdir() if path.is_file()}


@pytest.mark.stress
def test_everything_is_made_twice_the_same(study, tmp_path, capsys):
    """Byte for byte, PNGs too, in another process with another order of its sets and another
    matplotlibrc."""
    assert main(OF_RUNS, [str(study), "--out", str(tmp_path / "a")]) == 0
    (tmp_path / "matplotlibrc").write_text(
        "text.usetex: True\nlines.marker: x\nsavefig.bbox: tight\nsavefig.transparent: True\n"
    )
    again = f"main({OF_RUNS}, [{str(study)!r}, '--out', {str(tmp_path / 'b')!r}])"
    subprocess.run(
        [sys.executable, "-c", f"from paper_figures.command import main; {again}"],
        env=os.environ | {"PYTHONHASHSEED": "7", "MATPLOTLIBRC": str(tmp_path)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    first = contents(tmp_path / "a")
    assert first == contents(tmp_path / "b")
    assert {name.partition(".")[0] for name in first if "/" not in name} == {
        *OF_RUNS,
        "captions",
        "manifest",
    }
    said = capsys.readouterr().out
    assert "does not hold" in said
    assert "Not made" not in said


@pytest.mark.parametrize("name", ["table_3_stability", "figure_5_training_loss"])
def test_one_script_alone(name, q1):
    assert name in scripts()
    assert main([name], [str(q1)]) == 0
    assert names_in(q1 / "figures") == {name, "captions", "manifest"}


def test_a_figure_is_drawn_again_only_if_its_inputs_or_options_change(q1, monkeypatch, capsys):
    drawn = []
    draw = training_loss.draw
    monkeypatch.setattr(training_loss, "draw", lambda frames: drawn.append(1) or draw(frames))
    name, out = "figure_5_training_loss", q1 / "figures"
    assert main([name], [str(q1)]) == 0
    first = contents(out)
    assert main([name], [str(q1)]) == 0
    assert len(drawn) == 1
    assert contents(out) == first
    assert capsys.readouterr().out.endswith(", 1 figure as before\n")

    (out / f"{name}.pdf").unlink()
    assert main([name], [str(q1)]) == 0
    assert len(drawn) == 2
    assert contents(out) == first

    assert main([name], [str(q1), "--serif"]) == 0
    assert len(drawn) == 3
    log = q1 / "paci-s1" / "metrics.jsonl"
    log.write_text(log.read_text().replace('"loss": 2', '"loss": 3'))
    assert main([name], [str(q1)]) == 0
    assert len(drawn) == 4


def test_a_caption_stands_in_the_image_only_where_asked(q1):
    name = "figure_5_training_loss"
    heights = {}
    for option in ([], ["--caption"]):
        main([name], [str(q1), *option])
        with Image.open(q1 / "figures" / f"{name}.png") as image:
            heights[bool(option)] = image.height
        assert "Mean and ± 1 std over seeds" in (q1 / "figures" / "captions.md").read_text()
        assert style.BREAK in read_manifest(q1 / "figures")[name].caption
    assert heights[False] == heights[True]  # the caption takes its room from the panels


@pytest.mark.parametrize(
    ("width", "inches"), [("column", 3.3), ("full", 6.6), ("5", 5.0), (None, 6.6)]
)
def test_an_image_is_as_wide_as_asked_at_300_dots_per_inch(width, inches, q1, q2):
    """Two panels, one for each folder of runs."""
    options = ["--width", width] if width else []
    assert main(["drift"], [str(q1), *options]) == 0
    with Image.open(q1 / "figures" / "drift.png") as image:
        assert image.width == pytest.approx(300 * inches, abs=1)
        assert image.info["dpi"] == pytest.approx((300, 300), abs=0.1)


@pytest.mark.parametrize("width", ["wide", "1", "-3", "nan"])
def test_an_unusable_width_is_refused(width, q1, capsys):
    with pytest.raises(SystemExit):
        main(["drift"], [str(q1), f"--width={width}"])
    assert "write column, full, or 2 to 20 inches" in capsys.readouterr().err


def test_the_claims_of_one_question(q1, capsys):
    assert main(["claims"], [str(q1)]) == 0
    said = capsys.readouterr().out
    assert "question: q1" in said
    assert "28.3" not in said  # which these runs say nothing of
    assert main(["claims"], [str(q1), "--question", "q2"]) == 0
    assert "question: q1" not in capsys.readouterr().out
    assert "q1" in (q1 / "figures" / "claims.csv").read_text()  # where all are


def test_made_figures_are_not_read_as_runs(q1, capsys):
    main(["claims"], [str(q1)])
    main(["claims"], [str(q1)])
    assert capsys.readouterr().out.count("read 6 runs") == 2


def test_no_runs_is_one_sentence_and_status_2(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "paper_figures.claims", tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "No run folder" in done.stderr


def test_where_nothing_can_be_written_one_sentence_says_so(q1, capsys):
    file = q1 / "figures"
    file.write_text("")
    assert main(["drift"], [str(q1)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "choose another with --out" in said
    assert main(["drift"], [str(q1), "--out", str(q1 / "elsewhere")]) == 0


def test_a_disk_that_fills_up_while_drawing_is_one_sentence(q1, monkeypatch, capsys):
    def full(*_):
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    assert main(["table_3_stability", "drift"], [str(q1)]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "cannot be written to (No space left on device)" in said.err
    assert not list((q1 / "figures").iterdir())


def test_only_failed_runs_are_named_with_status_1(q1, capsys):
    for status in q1.glob("*/status.json"):
        status.write_text('{"state": "failed", "why": "loss is NaN", "update": 4, "updates": 100}')
    assert main(OF_RUNS, [str(q1)]) == 1
    said = capsys.readouterr().out
    assert "6 runs (1f1b-flush-s0, 1f1b-flush-s1, " in said
    assert ": not used: failed, 100 of 100 updates in metrics.jsonl, loss is NaN." in said
    assert "figure_5_training_loss: no training run is completed." in said


def test_a_script_that_breaks_is_named_and_stops_no_other(q1, monkeypatch, capsys):
    names = ["drift", "table_3_stability", "figure_5_training_loss"]
    assert main(names, [str(q1)]) == 0
    assert (q1 / "figures" / "drift.png").exists()

    def unfinished(frames):
        fig, axes = style.panels(1)
        axes[0].set_title("$ is no mathematics")  # which only saving will find
        axes[0].set_xlabel(r"$\\nonsense$")
        return fig

    monkeypatch.setattr(drift, "draw", unfinished)
    monkeypatch.setattr(stability, "table", lambda frames: {}["key"])
    assert main(names, [str(q1), "--serif"]) == 1  # to be drawn again
    said = capsys.readouterr()
    assert "Broken, which is a bug:\n  drift: " in said.out
    assert "\n  table_3_stability: KeyError: 'key'." in said.out
    assert "Traceback" in said.err
    assert names_in(q1 / "figures") == {"figure_5_training_loss", "captions", "manifest"}
    assert read_manifest(q1 / "figures")["drift"].state == "broken"


def test_what_the_runs_no_longer_give_is_removed(q1, capsys):
    main(["table_3_stability"], [str(q1)])
    (q1 / "figures" / "table_3_stability.mine.csv").write_text("kept")
    for folder in q1.glob("*-s*"):
        (folder / "status.json").unlink()
    assert main(["table_3_stability"], [str(q1)]) == 1
    left = {path.name for path in (q1 / "figures").iterdir() if path.is_file()}
    assert left == {"table_3_stability.mine.csv", "manifest.json"}


def test_without_runs_what_needs_none_is_made(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "scripts", lambda: ["table_3_stability", "figure_2_schedule"])
    assert main(argv=[str(tmp_path)]) == 2
    made = read_manifest(tmp_path / "figures")
    assert [made[name].state for name in ("table_3_stability", "figure_2_schedule")] == [
        "refused",
        "made",
    ]
    assert "No run folder" in made["table_3_stability"].why
    assert main(argv=[str(tmp_path / "typed wrong")]) == 2
    assert not (tmp_path / "typed wrong").exists()


def test_partial_data_is_said_in_figures_and_tables(q1):
    status = q1 / "paci-s1" / "status.json"
    status.write_text('{"state": "out-of-memory", "why": "stage 0", "update": 9, "updates": 100}')
    assert main(["claims"], [str(q1)]) == 0
    note = "drawn from 5 of 6 runs"
    assert note in (q1 / "figures" / "claims.md").read_text()
    fig = training_loss.draw(read_runs(q1))
    assert note in fig.get_supxlabel()
    assert "1–2 seeds" in fig.axes[0].get_title()


def test_a_diverged_method_breaks_no_figure_and_is_not_averaged(q1):
    for folder in q1.glob("async-1f1b-*"):
        log = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)[:50]
        log.append('{"update": 51, "tokens": 52224, "loss": NaN, "clock": "simulated"}\n')
        (folder / "metrics.jsonl").write_text("".join(log))
        (folder / "status.json").write_text('{"state": "failed", "why": "diverged"}')
    assert main(OF_RUNS, [str(q1)]) == 0
    made = pd.read_csv(q1 / "figures" / "final_loss.csv")
    final = made.set_index("variant").loc["async-1f1b"]
    assert final["diverged"] == 2
    assert pd.isna(final["final loss"])


def test_the_picture_depends_on_the_runs(q1, tmp_path):
    main(["table_3_stability"], [str(q1), "--out", str(tmp_path / "a")])
    log = q1 / "paci-s1" / "metrics.jsonl"
    log.write_text(log.read_text().replace('"loss": 2', '"loss": 3'))
    main(["table_3_stability"], [str(q1), "--out", str(tmp_path / "b")])
    assert compare_images(
        tmp_path / "a/table_3_stability.png", tmp_path / "b/table_3_stability.png", 0
    )


@pytest.mark.parametrize(("tokeniser", "unit"), [("bytes", "byte"), ("gpt2", "token")])
def test_losses_are_per_whatever_the_text_is_cut_into(q1, tokeniser, unit):
    for config in q1.glob("*/config.yaml"):
        config.write_text(config.read_text().replace("tokeniser: bytes", f"tokeniser: {tokeniser}"))
    frames = read_runs(q1)
    (ax, *_) = training_loss.draw(frames).axes
    assert ax.get_ylabel() == f"training loss (nats per {unit})"
    assert ax.get_xlabel() == f"training {unit}s (thousands)"
    assert set(stability.table(frames)["unit"]) == {f"nats per {unit}"}
    assert ("per byte" in validation_perplexity.draw(frames).get_supxlabel()) == (unit == "byte")
