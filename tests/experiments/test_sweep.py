import json
import os
import signal

import pytest

from experiments import sweep as command
from experiments.run.folder import RunFolder
from tests.experiments.smoke import (
    assert_same_run,
    at_update,
    call,
    stamps,
    start,
    wait_for_a_checkpoint,
)

TWO = "grid=[{method:[paci,1f1b-flush]}]"
ONE = "grid=[{method:paci}]"
NAMES = ["paci-a4-b8-s0", "1f1b-flush-a4-b8-s0"]
RUN = command.run


@pytest.fixture
def settings(settings):
    return ["experiment=trainings", "batches=[8]", *settings, "seeds=[0]", "cluster=inline"]


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def sweep(capsys):
    """sweep(overrides): exit status and what was printed."""

    def sweep(overrides):
        return call(command, overrides), capsys.readouterr().out

    return sweep


def state(folder):
    return RunFolder(folder, None).status().get("state")


def first_is_killed(config):
    """A run of a sweep; that of the first name is killed between its two checkpoints."""
    if config["method"]["name"] == "paci":
        at_update(pytest.MonkeyPatch(), 8, lambda: os.kill(os.getpid(), signal.SIGKILL))
    return RUN(config)


def test_wherever_runs_happen_and_end_they_are_the_same(
    settings, runs, sweep, tmp_path, monkeypatch
):
    settings = [*settings, TWO]
    with monkeypatch.context() as patch:
        patch.setattr(command, "run", first_is_killed)
        status, said = sweep([*settings, "cluster=local", "cluster.parallel=2"])
    assert status == 1
    *of_runs, place = said.splitlines()
    killed, completed = sorted(of_runs, key=lambda line: NAMES.index(line.split()[0]))
    assert "running when its process ended, at update" in killed
    assert "(log: " in killed
    assert completed.split()[1:3] == ["completed", "loss"]
    assert " perplexity " in completed
    assert place == f"2 runs in {runs}"

    status, said = sweep(settings)
    assert status == 0
    assert [line.endswith("(from before)") for line in said.splitlines()] == [True, False, False]

    inline = tmp_path / "inline"
    assert sweep([*settings, f"runs={inline}"])[0] == 0
    for name in NAMES:
        assert_same_run(runs / name, inline / name)

    written = stamps(inline)
    status, said = sweep([*settings, f"runs={inline}"])
    assert status == 0
    assert [line.split()[0] for line in said.splitlines()[:-1]] == NAMES
    assert said.count("(from before)") == 2
    assert stamps(inline) == written


def test_too_small_a_text_is_refused_before_any_run(settings, runs, capsys, tmp_path):
    text = tmp_path / "small.txt"
    text.write_text("\n\n".join(f"Paragraph {n} of the text that is small." for n in range(300)))
    small = ["data=files", f"data.files=[{text}]", f"data.folder={tmp_path}"]
    assert call(command, [*settings, *small, TWO]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "error: validation split: the corpus has 2" in said.err
    assert "needs 1024 (data.validation=0.02, validation_microbatch=32" in said.err
    assert not runs.exists()

    assert call(command, [*settings, ONE, "validation_sequences=33"]) == 2
    said = capsys.readouterr().err
    assert "validation split: 33 sequences to evaluate on; accepted are multiples" in said
    assert not runs.exists()


def test_finished_runs_are_made_longer(settings, runs, sweep):
    settings = [*settings, TWO, "optimizer.schedule=constant", "optimizer.warmup=0"]
    assert sweep(settings)[0] == 0
    longer = [*settings, "tokens=5120", "evaluations=4"]
    status, said = sweep([*longer, "dry_run=true"])
    assert said.count("completed with tokens=2560: would be run from update 10") == 2
    status, said = sweep(longer)
    assert status == 0
    assert said.count("completed  loss ") == 2
    for name in NAMES:
        assert RunFolder(runs / name, None).status()["update"] == 20
    assert sweep(longer)[1].count("(from before)") == 2


def test_a_failed_run_waits_for_retry(settings, runs, sweep):
    settings = [*settings, TWO]
    runs.joinpath(NAMES[0]).mkdir(parents=True)
    obstacle = runs / NAMES[0] / "checkpoints"
    obstacle.touch()  # where a folder should be

    status, said = sweep(settings)
    assert status == 1
    failed, completed, _ = said.splitlines()
    assert f"{NAMES[0]:<28} failed: FileExistsError" in failed.replace(
        "NotADirectory", "FileExists"
    )
    assert completed.split()[:2] == [NAMES[1], "completed"]

    obstacle.unlink()
    status, said = sweep(settings)
    assert status == 1
    assert said.count("(from before)") == 2

    status, said = sweep([*settings, "retry=true"])
    assert status == 0
    assert said.count("completed") == 2
    assert said.count("(from before)") == 1


def test_a_diverged_run_is_a_result(settings, sweep):
    status, said = sweep([*settings, ONE, "optimizer.lr=1e30"])
    assert status == 0
    assert " diverged: stage 3, update 2: the loss of micro-batch 4 is not finite" in said


def test_a_run_that_cannot_go_on_says_why(settings, runs, sweep, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        at_update(patch, 8, interrupt)  # after the first of two checkpoints
        sweep([*settings, ONE])
    monkeypatch.setattr("experiments.run.identity.packages", lambda: {"torch": "1.0"})
    status, said = sweep([*settings, ONE])
    assert status == 1
    assert "refused: " in said
    assert "cannot go on, as it began with something else (the packages: " in said


def test_an_inline_sweep_ends_at_an_interrupt(settings, runs, sweep, monkeypatch):
    def interrupt(folder, file, lines):
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "log", interrupt)
        status, said = sweep([*settings, TWO])
    assert status == 130
    assert said == "interrupted: what was computed is kept; the same command goes on from there\n"
    assert [state(runs / name) for name in NAMES] == ["preempted", None]
    assert sweep([*settings, TWO])[0] == 0


def test_ctrl_c_reaches_the_processes_of_the_runs(settings, runs, sweep):
    settings = [*settings, TWO, "tokens=256000", "evaluations=200"]
    process = start("sweep", [*settings, "cluster=local", "cluster.parallel=1"])
    wait_for_a_checkpoint(runs / NAMES[0])
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: all of them at once
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == "interrupted: what was computed is kept; the same command goes on from there\n"
    assert "Traceback" not in err
    assert state(runs / NAMES[0]) in ("preempted", "running")  # submitit grants it a second
    assert state(runs / NAMES[1]) is None


def test_costs_are_measured_before_any_run(settings, runs, sweep, monkeypatch):
    monkeypatch.setattr("experiments.run.costs.ENOUGH", 0.0)
    status, _ = sweep([*settings, TWO, "executor=measured"])
    assert status == 0
    (table,) = json.loads((runs / "costs.json").read_text()).values()
    for name in NAMES:
        assert json.loads((runs / name / "cost.json").read_text()) == table | {"transfer": 0.0}
        assert (runs / "costs.json").stat().st_mtime <= (
            runs / name / "config.yaml"
        ).stat().st_mtime


def test_all_data_are_prepared(settings, runs, sweep, monkeypatch):
    prepared, prepare = [], command.data.prepare
    monkeypatch.setattr(
        command.data, "prepare", lambda data: prepared.append(data.shuffle_seed) or prepare(data)
    )
    monkeypatch.setattr(command, "sweep", lambda folders: None)
    entries = ",".join(
        f"{{method:[paci,gpipe],data.shuffle_seed:{seed},runs:{runs}/{seed}}}" for seed in (1, 2)
    )
    shared = [setting for setting in settings if not setting.startswith("runs=")]
    sweep([*shared, f"grid=[{entries}]"])
    assert prepared == [1, 2]
