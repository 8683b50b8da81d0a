"""Reading run folders that crashes, resumes and hands have been at."""

import json

import pytest

from analysis import CannotAnswer, NoRuns, by_setting, cells, read_runs


def losses(frames, name="run"):
    return frames.updates.loc[name, "loss"].tolist()


def test_a_run_is_read_whole(write_run):
    write_run(losses=[3, 2], perplexities=[9, 8], seed=7)
    frames = read_runs(write_run.root)
    assert losses(frames) == [3, 2]
    assert frames.evaluations.loc["run", "perplexity"].tolist() == [9, 8]
    assert frames.runs.loc["run", ["seed", "clock", "state"]].tolist() == [
        7,
        "simulated",
        "completed",
    ]
    assert frames.stages.loc["run", "drift"].tolist() == [{0: 8}] * 8
    assert frames.movement.loc["run", "relative"].tolist() == [0.01] * 8
    assert (frames.notes, frames.partial) == ([], "")


def test_runs_lie_at_any_depth_and_other_folders_are_ignored(write_run):
    write_run("deep/er/run")
    write_run("top/checkpoints/not-a-run").parents[1].joinpath("config.yaml").write_text("{}")
    (write_run.root / "figures").mkdir()
    assert list(read_runs(write_run.root).runs.index) == ["deep/er/run", "top"]


def test_the_root_may_itself_be_a_run(write_run):
    assert list(read_runs(write_run("run")).runs.index) == ["run"]


@pytest.mark.parametrize("name", ["", "no/such/folder"])
def test_no_runs(write_run, name):
    with pytest.raises(NoRuns):
        read_runs(write_run.root / name)


def test_a_resumed_run_writes_lines_twice_and_the_last_wins(write_run):
    log = write_run(losses=[4, 3, 2]) / "metrics.jsonl"
    again = {"update": 2, "tokens": 2048, "loss": 2.5, "seconds": 1, "clock": "simulated"}
    log.write_text(log.read_text() + json.dumps(again) + "\n")
    assert losses(read_runs(write_run.root)) == [4, 2.5, 2]


def test_a_truncated_last_line_loses_only_itself(write_run):
    log = write_run(losses=[4, 3, 2]) / "metrics.jsonl"
    log.write_text(log.read_text()[:-20])
    frames = read_runs(write_run.root)
    assert losses(frames) == [4, 3]
    assert frames.runs.loc["run", "state"] == "completed"


def test_a_line_truncated_by_a_crash_and_written_again_after_the_resume(write_run):
    log = write_run(losses=[4, 3, 2]) / "metrics.jsonl"
    first, *rest = log.read_text().splitlines(keepends=True)
    log.write_text(first + rest[0][:15] + "\n" + "".join(rest))
    frames = read_runs(write_run.root)
    assert losses(frames) == [4, 3, 2]
    assert frames.notes == ["run: metrics.jsonl has unreadable lines: line 2."]


@pytest.mark.parametrize(
    ("lost", "kept", "said"),
    [
        ([2], [], "lacks the losses of update 2."),
        ([2, 3], [], "lacks the losses of 2 updates (2, 3)."),
        ([1], [], "lacks the losses of update 1."),
        ([2], ["\0\0\0\n"], "lacks the losses of update 2."),
    ],
)
def test_a_run_with_a_hole_in_its_losses_is_named_and_not_used(write_run, lost, kept, said):
    log = write_run(losses=[5, 4, 3, 2, 1]) / "metrics.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*kept, *(x for k, x in enumerate(lines, 1) if k not in lost)]))
    frames = read_runs(write_run.root)
    assert frames.runs.loc["run", "state"] == "unreadable"
    assert frames.notes[-1] == f"run: not used: metrics.jsonl {said}"
    assert frames.of("training").partial == "0 of 1 runs"


@pytest.mark.parametrize("every", [1, 10])
def test_a_log_of_every_tenth_update_has_no_hole(write_run, every):
    log = write_run(losses=range(30, 0, -1)) / "metrics.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[every - 1 :: every]))
    assert read_runs(write_run.root).runs.loc["run", "state"] == "completed"


def test_what_is_true_of_many_runs_is_said_once_and_only_to_whom_it_concerns(write_run):
    for name in "abc":
        write_run(name, task="throughput", state="failed", why="disk")
    frames = read_runs(write_run.root)
    (note,) = frames.notes
    assert note.startswith("3 runs (a, b, c): not used: failed")
    assert frames.of("training").notes == []


def test_runs_of_no_experiment_are_like_others(write_run):
    write_run("a")
    write_run("b", experiment=None, seed=1)
    frames = read_runs(write_run.root)
    assert frames.notes == []
    (cell,) = cells(frames)
    assert cell.runs == {"a": 0, "b": 1}


def test_undefined_losses_are_counted(write_run):
    write_run(losses=[4, float("nan"), float("inf"), 1])
    frames = read_runs(write_run.root)
    assert frames.updates["loss"].isna().tolist() == [False, True, True, False]
    assert frames.notes == ["run: 2 of 4 training losses are not finite."]


OF_ANOTHER_VERSION = (
    "{experiment: q1, scale: laptop, batch: 4, seed: 0, stages: 8, "
    "method: {name: wave, schedule: wave, accumulation: 4}}"
)


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("config.yaml", None, "config.yaml is missing"),
        ("config.yaml", "a: [", "config.yaml is not readable YAML"),
        ("config.yaml", "seed: 1", "config.yaml has no method"),
        ("config.yaml", "- 1", "config.yaml has a value of the wrong kind"),
        ("config.yaml", OF_ANOTHER_VERSION, "config.yaml has an unknown schedule, wave"),
        ("status.json", "{", "status.json is not readable JSON"),
        ("status.json", "{}", "status.json has no state"),
        ("status.json", None, "status.json is missing"),
        ("metrics.jsonl", '{"update": "x", "loss": 1}\n', "a value of the wrong kind"),
        ("status.json", '{"state": "running", "updates": "x"}', "a number of updates"),
        ("metrics.jsonl", None, "only 0 of 4 updates"),
        ("stages.jsonl", '{"update": 1, "stage": 0, "drift": 3}\n', "a value of the wrong kind"),
    ],
)
def test_a_damaged_run_is_one_sentence_with_its_name(write_run, file, content, sentence):
    write_run("good")
    path = write_run("bad") / file
    path.unlink() if content is None else path.write_text(content)
    frames = read_runs(write_run.root)
    assert len(frames.notes) == 1
    assert frames.notes[0].startswith("bad: not used: ")
    assert sentence in frames.notes[0]
    assert frames.of("training").partial == "1 of 2 runs"
    assert [cell.runs for cell in cells(frames)] == [{"good": 0}]


@pytest.mark.parametrize("state", ["running", "failed", "out-of-memory", "preempted"])
def test_unfinished_runs_are_named_and_not_used(write_run, state):
    write_run("bad", state=state, why="so it was")
    frames = read_runs(write_run.root)
    assert frames.notes == [f"bad: not used: {state}, 4 of 4 updates in metrics.jsonl, so it was."]
    with pytest.raises(CannotAnswer, match="no training run is completed"):
        cells(frames)


def test_a_planned_run_that_never_started_is_known(write_run):
    write_run("done")
    planned = write_run("planned", seed=1)
    for name in ("status.json", "metrics.jsonl", "stages.jsonl"):
        (planned / name).unlink()
    frames = read_runs(write_run.root)
    assert frames.notes == ["planned: not used: never started."]
    assert frames.runs.loc["planned", ["state", "seed"]].tolist() == ["never started", 1]
    assert frames.of("training").partial == "1 of 2 runs"


def test_missing_stage_logs_are_no_obstacle(write_run):
    (write_run() / "stages.jsonl").unlink()
    frames = read_runs(write_run.root)
    assert frames.stages.empty
    assert frames.runs.loc["run", "state"] == "completed"


def test_two_clocks_in_one_run(write_run):
    log = write_run() / "metrics.jsonl"
    log.write_text(log.read_text().replace("simulated", "wall", 1))
    assert "mixes clocks (simulated; wall)" in read_runs(write_run.root).notes[0]


def test_a_repeated_seed_is_counted_once(write_run):
    write_run("a")
    write_run("b")
    frames = read_runs(write_run.root)
    assert cells(frames)[0].runs == {"a": 0}
    assert frames.notes == ["b: not used: repeats the seed and configuration of another."]


def test_a_training_does_not_repeat_a_measurement_of_throughput(write_run, write_throughput):
    write_throughput("a", experiment="q1", executor="local", clock="simulated")
    write_run("b", method="1f1b-flush", stages=2, accumulation=4, executor={"name": "local"})
    frames = read_runs(write_run.root)
    settings = ["experiment", "scale", "clock", "batch", "variant", "seed", "recipe"]
    assert frames.runs[settings].nunique().tolist() == [1] * len(settings)
    assert set(frames.runs["state"]) == {"completed"}
    assert frames.notes == []


def test_different_recipes_are_never_averaged(write_run):
    write_run("a", seed=0)
    write_run("b", seed=1, optimizer={"name": "adamw", "lr": 0.1})
    write_run("c", seed=1, optimizer={"name": "adamw", "lr": 0.1}, method="paci")
    made = cells(read_runs(write_run.root))
    assert [(cell.setting.other, [*cell.runs]) for cell in made] == [
        ("lr 0.001", ["a"]), ("lr 0.1", ["b"]), ("lr 0.1", ["c"]),
    ]  # fmt: skip
    assert made[0].setting.columns["other"] == "lr 0.001"
    assert [*by_setting(made)] == [made[0].setting, made[1].setting]


def test_experiments_scales_and_batches_stay_apart(write_run):
    write_run("a", batch=16)
    write_run("b", batch=32)
    write_run("c", scale="smoke")
    write_run("d", experiment="q2")
    frames = read_runs(write_run.root)
    settings = [cell.setting for cell in cells(frames)]
    assert settings == [
        ("laptop", "simulated", 16, ""),
        ("laptop", "simulated", 32, ""),
        ("smoke", "simulated", 16, ""),
    ]


@pytest.mark.parametrize(
    ("file", "there", "written", "said"),
    [
        ("metrics.jsonl", '"lr"', '"rate"', ["without lr", "an unknown key, rate"]),
        ("metrics.jsonl", '"loss"', '"los"', ["with neither loss nor validation_loss"]),
        (
            "stages.jsonl",
            '"activation_bytes"',
            '"activations"',
            ["without activation_bytes", "an unknown key, activations"],
        ),
    ],
)
def test_a_key_that_was_renamed_is_named(write_run, file, there, written, said):
    log = write_run() / file
    log.write_text(log.read_text().replace(there, written))
    notes = read_runs(write_run.root).notes
    for sentence in said:
        assert any(f"{file} has" in note and sentence in note for note in notes), notes


@pytest.mark.parametrize("state", ["diverged", "failed"])  # what older versions wrote
def test_a_diverged_run_is_a_result(write_run, state):
    write_run("s0", seed=0, tokens=4096, losses=[4, 3, 2, 1])
    write_run("s1", seed=1, tokens=4096, losses=[4, float("nan")], state=state, why="NaN")
    frames = read_runs(write_run.root)
    assert frames.notes == ["s1: diverged, 2 of 2 updates in metrics.jsonl, NaN."]
    (cell,) = cells(frames)
    assert cell.losses[0].tolist() == [4, 3, 2, 1]
    assert cell.losses[1].isna().tolist() == [False, True, True, True]
    assert frames.partial == ""


def test_only_diverged_runs(write_run):
    write_run(losses=[4, float("nan")], state="diverged")
    (cell,) = cells(read_runs(write_run.root))
    assert cell.losses[0].isna().tolist() == [False, True]


def test_precision_is_part_of_the_recipe(write_run):
    write_run("a", seed=0)
    write_run("b", seed=1, executor={"precision": "bfloat16-autocast"})
    made = cells(read_runs(write_run.root))
    assert [cell.setting.other for cell in made] == [
        "", "precision bfloat16-autocast",
    ]  # fmt: skip


def test_what_a_recipe_lacks_is_not_named(write_run):
    write_run("a", data={"source": "kjv"})
    write_run("b", data={"source": "files", "files": ["mine.txt"], "shuffle": True})
    made = cells(read_runs(write_run.root))
    assert {cell.setting.other for cell in made} == {
        "source kjv", 'source files, files ["mine.txt"], shuffle true',
    }  # fmt: skip


def test_what_varies_at_one_scale_is_not_named_at_another(write_run):
    write_run("a", scale="smoke")
    write_run("b", scale="smoke", optimizer={"name": "adamw", "lr": 0.1})
    write_run("c", scale="laptop")
    made = cells(read_runs(write_run.root))
    assert {(cell.scale, cell.setting.other) for cell in made} == {
        ("smoke", "lr 0.001"), ("smoke", "lr 0.1"), ("laptop", ""),
    }  # fmt: skip


def test_settings_that_end_alike_have_their_whole_names(write_run):
    write_run("a", model={"name": "x", "width": 64}, data={"name": "u"})
    write_run("b", model={"name": "y", "width": 64}, data={"name": "v"}, seed=1)
    first, second = (cell.setting for cell in cells(read_runs(write_run.root)))
    assert (first.other, second.other) == (
        "data.name u, model.name x", "data.name v, model.name y",
    )  # fmt: skip
    write_run("c", model={"name": "y", "width": 64}, data={"name": "v"})
    assert "other" not in cells(read_runs(write_run.root / "c"))[0].setting.columns
