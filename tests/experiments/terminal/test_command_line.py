import os
import signal
import subprocess
import sys

import pytest

from experiments import prepare, sweep, train
from experiments.terminal.command_line import arguments, interruptible, user_errors
from tests.experiments.smoke import ROOT, start

MISTAKES = {
    "stages=99": "error: stages must be at most 10",
    "method=nope": "error: there is no method 'nope'",
}


def test_a_users_mistake_is_one_line_and_status_2(capsys):
    with pytest.raises(SystemExit, match="2"), user_errors():
        raise ValueError("this is not that")
    assert capsys.readouterr() == ("", "error: this is not that\n")


def test_our_own_mistakes_stay_visible():
    with pytest.raises(KeyError), user_errors():
        raise KeyError("stage")


def test_commands_that_compute_no_model_load_no_torch():
    commands = ("train", "sweep", "status", "prepare", "methods", "extrapolate")
    imports = ", ".join(f"experiments.{command}" for command in commands)
    code = f"import sys, {imports}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_arguments_are_the_overrides(monkeypatch):
    monkeypatch.setattr("sys.argv", ["...", "method=paci", "seed=3"])
    assert arguments("") == ["method=paci", "seed=3"]


@pytest.mark.parametrize("command", [train, sweep, prepare])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_command_refuses_before_it_writes(command, mistake, tmp_path, monkeypatch, capsys):
    overrides = [
        "scale=smoke",
        "experiment=trainings",
        f"runs={tmp_path}/a",
        f"data.folder={tmp_path}/b",
    ]
    monkeypatch.setattr("sys.argv", ["...", *overrides, mistake])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(MISTAKES[mistake])
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_shell_sees_the_same(tmp_path):
    overrides = [f"runs={tmp_path}/a", f"data.folder={tmp_path}/b"]
    commands = {
        "error: method.accumulation must be a whole number of at least 1, not 0\n": start(
            "train", ["method.accumulation=0", *overrides]
        ),
        "error: there is no data 'nope': choose from files, kjv, openwebtext\n": start(
            "prepare", ["data=nope", *overrides]
        ),
    }
    for sentence, command in commands.items():
        assert command.communicate() == ("", sentence)
        assert command.returncode == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", ["sweep", "methods", "train"])
def test_help_into_a_reader_that_goes_away_ends_quietly(module):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", f"experiments.{module}", "--help"]
    ended = subprocess.run(command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, "")


def test_a_full_disk_is_said_in_a_sentence():
    command = [sys.executable, "-m", "experiments.prepare", "--help"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: No space left on device")
    assert ended.stderr.count("\n") == 1


def test_a_locale_without_a_sign_gets_its_replacement():
    ended = subprocess.run(
        [sys.executable, "-m", "experiments.prepare", "data=Δ"],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 2
    assert "'data=D' cannot be read" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_only_the_first_signal_interrupts(number):
    before = signal.getsignal(number)
    with interruptible():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(number) == before
