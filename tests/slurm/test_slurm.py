"""Sweeps on a real SLURM. All are submitted at once and up front, for ranks are slow to start."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
import submitit

from experiments import status
from experiments import sweep as command
from experiments.run.folder import RunFolder
from experiments.slurm import jobs
from tests.experiments.smoke import ROOT, assert_same_results, call, train

pytestmark = pytest.mark.slurm

RANKS = ["executor=distributed", "executor.order=static", "cluster=slurm"]
GRID = "grid=[{method:[paci,1f1b-flush,async-1f1b]}]"
NAMES = [
    f"{m}-b8-s{seed}" for m, seed in product(("paci-a4", "1f1b-flush-a4", "async-1f1b-a1"), (0, 1))
]
LONG = ["tokens=25600", "evaluations=10", "stages=2"]  # 100 updates: time to do something to them
ONE = "grid=[{method:paci}]"
REQUEUED, WARNED, KILLED, LATE = (f"paci-a4-b8-s{seed}" for seed in (10, 11, 12, 13))
PATIENCE = 300.0  # seconds, for what takes a few on a machine that has nothing else to do


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the project, to submit from and to break."""
    folder = tmp_path_factory.mktemp("checkout")
    for part in ("conf", "experiments", "paci", "runlog"):
        shutil.copytree(ROOT / part, folder / part)
    return folder


@pytest.fixture(scope="module")
def submitted(base, checkout, tmp_path_factory):
    """{"grid", "disturbed", "late"}: folders of runs, whose sweeps have been submitted."""
    runs = {name: tmp_path_factory.mktemp(name) for name in ("grid", "disturbed", "late")}
    settings = {
        "grid": [GRID, "seeds=[0,1]", "tokens=2560", "cluster.parallel=2"],
        "disturbed": [ONE, "seeds=[10,11,12]", *LONG, "cluster.sbatch=[--hold]"],
        "late": [ONE, "seeds=[13]", *LONG, "cluster.time=2", "cluster.warning=60"],
    }
    started = [
        (name, sweep(checkout, [*base, *RANKS, *settings[name], f"runs={runs[name]}"]))
        for name in ("late", "grid", "grid", "disturbed")  # the grid twice, in the same moment
    ]
    for name, process in started:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        (runs[name] / "said").open("a").write(out)
    # From here on nobody can run the checkout; the jobs do not notice.
    (checkout / "experiments" / "__init__.py").write_text("raise SystemExit('broken')")
    late = threading.Thread(target=stop_until_warned, args=(runs["late"] / LATE,), daemon=True)
    late.start()
    yield runs
    for folder in runs.values():
        subprocess.run(["scancel", *(job.id for job in jobs.newest_jobs(folder).values())])


@pytest.fixture(scope="module")
def undisturbed(base, tmp_path_factory):
    """The folder of the same run, done in this process and left alone."""

    def alone(*overrides):
        runs = tmp_path_factory.mktemp("undisturbed")
        return train([*base, f"runs={runs}", *overrides]).path

    return alone


def sweep(checkout: Path, overrides: list[str]) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "experiments.sweep", *overrides],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition, what: str):
    """Wait until `condition()` is true, and return what it returned."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {PATIENCE} s: {what}")


def job_of(run: Path) -> jobs.Job:
    return jobs.newest_jobs(run.parent)[run.name]


def log_of(run: Path) -> str:
    log = Path(job_of(run).log)
    return log.read_text() if log.exists() else ""


def processes(run: Path) -> list[int]:
    """Return the logs of the run's job, in order of ranks."""
    raw = subprocess.run(
        ["squeue", "-h", "-o", "%A", "-j", job_of(run).id], capture_output=True, text=True
    ).stdout.strip()
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        env = dict(word.partition("=")[::2] for word in words)
        if env.get("SLURM_JOB_ID") == raw and "SLURM_STEP_ID" in env:
            rank, pid = int(env["SLURM_PROCID"]), int(entry.name)
            found[rank] = min(pid, found.get(rank, pid))  # rank 0 has a child
    return [found[rank] for rank in sorted(found)]


def release(run: Path) -> None:
    """Let the job of `run` start, and wait until it has something to go on from."""
    subprocess.run(["scontrol", "release", job_of(run).id], check=True)
    wait_for_a_checkpoint(run)


def wait_for_a_checkpoint(run: Path) -> None:
    wait_until(lambda: list(run.glob("checkpoints/[0-9]*")), f"a checkpoint of {run.name}")


def wait_for_the_end(run: Path) -> dict:
    job = job_of(run)
    wait_until(lambda: job.id not in jobs.queue([job.id]), f"the end of {run.name}")
    return RunFolder(run, None).status()


def stop_until_warned(run: Path) -> None:
    """Have a rank stand still until SLURM has sent the signal that its time is nearly over."""
    wait_for_a_checkpoint(run)
    pid = processes(run)[1]
    os.kill(pid, signal.SIGSTOP)

    def warned():
        try:
            about = Path(f"/proc/{pid}/status").read_text()
        except FileNotFoundError:
            return True  # it had been warned before
        return int(re.search(r"ShdPnd:\s*(\w+)", about)[1], 16) >> (signal.SIGUSR2 - 1) & 1

    wait_until(warned, "a warning")
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


# Ends that are not the end


def test_a_job_that_is_queued_again_goes_on(submitted, undisturbed):
    run = submitted["disturbed"] / REQUEUED
    release(run)
    subprocess.run(["scontrol", "requeue", job_of(run).id], check=True)
    assert wait_for_the_end(run)["state"] == "completed"
    assert "DUE TO JOB REQUEUE" in log_of(run)
    assert_same_results(run, undisturbed(*LONG, "seed=10"))


def test_a_warned_job_ends_in_order_and_queues_itself_again(submitted, undisturbed):
    run = submitted["disturbed"] / WARNED
    release(run)
    job = submitit.SlurmJob(run.parent / ".jobs", job_of(run).id)
    job._interrupt()  # submitit's own rehearsal of a preemption
    assert wait_for_the_end(run)["state"] == "completed"
    assert log_of(run).count("Requeued job") == 1
    assert_same_results(run, undisturbed(*LONG, "seed=11"))


def test_a_killed_rank_ends_its_job_and_is_named(submitted, base, undisturbed, say):
    run = submitted["disturbed"] / KILLED
    release(run)
    os.kill(processes(run)[0], signal.SIGKILL)  # the one whom the others could ask
    killed = time.monotonic()
    ended = wait_for_the_end(run)
    assert time.monotonic() - killed < 60
    assert ended["state"] == "failed"
    assert "the process is gone" in ended["why"]
    (row,) = [row for row in status.look(run.parent) if row.run == KILLED]
    assert row.state == "failed"
    assert "the process is gone" in row.why
    assert row.why.endswith("; task 0: Killed")
    assert row.log == job_of(run).log

    again = [*base, *RANKS, ONE, "seeds=[12]", *LONG, f"runs={run.parent}"]
    code, said = say(again)
    assert (code, "failed  (from before)" in said) == (0, True)
    code, said = say([*again, "retry=true"])
    assert (code, "submitted as job" in said) == (0, True)
    assert wait_for_the_end(run)["state"] == "completed"
    assert_same_results(run, undisturbed(*LONG, "seed=12"))


def test_a_job_whose_time_is_over_goes_on_in_the_next(submitted, undisturbed):
    run = submitted["late"] / LATE
    assert wait_for_the_end(run)["state"] == "completed"
    assert "this job is timed-out" in log_of(run)
    assert "Requeued job" in log_of(run)
    assert_same_results(run, undisturbed(*LONG, "seed=13"))


# The whole grid


def test_the_grid_equals_that_of_this_process(submitted, undisturbed):
    for name in NAMES:
        run = submitted["grid"] / name
        assert wait_for_the_end(run)["state"] == "completed"
        method, seed = name.partition("-a")[0], name[-1]
        assert_same_results(run, undisturbed(f"method={method}", "tokens=2560", f"seed={seed}"))


def test_submitted_twice_at_once_each_run_is_one_job_of_one_array(submitted):
    said = (submitted["grid"] / "said").read_text()
    ids = re.findall(r"submitted as job (\d+)_(\d+)", said)
    assert sorted(index for _, index in ids) == [*"012345"]
    assert len({array for array, _ in ids}) == 1
    assert said.count("in the queue: job") == 6


def started_and_ended(run: Path) -> tuple[str, str]:
    """Return when the only start of a run began and ended, which is recorded after its status."""
    (start,) = json.loads((run / "environment.json").read_text())
    deadline = time.monotonic() + PATIENCE
    while "ended" not in start and time.monotonic() < deadline:
        time.sleep(0.1)
        (start,) = json.loads((run / "environment.json").read_text())
    return start["started"], start["ended"]


def test_never_more_run_than_may(submitted):
    times = []
    for name in NAMES:
        run = submitted["grid"] / name
        wait_for_the_end(run)
        times.append(started_and_ended(run))
    at_once = [sum(begin <= now <= end for begin, end in times) for now, _ in times]
    assert max(at_once) == 2


def test_the_table_says_so(submitted, capsys):
    for name in NAMES:
        wait_for_the_end(submitted["grid"] / name)
    assert call(status, [str(submitted["grid"])]) == 0
    said = capsys.readouterr().out
    assert said.startswith("6 runs: 6 completed\n")
    assert said.count("10/10") == 6


# What SLURM refuses, and what nobody asks it


@pytest.fixture
def say(capsys):
    """say(overrides): exit status of the sweep, and what it printed."""

    def say(overrides):
        code = call(command, overrides)
        said = capsys.readouterr()
        return code, said.out + said.err

    return say


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("cluster.partition=nope", "invalid partition specified: nope"),
        ("cluster.cpus_per_task=8", "More processors requested than permitted"),
        ("cluster.time=0", "Requested time limit is invalid"),
    ],
)
def test_what_slurm_refuses_it_says_itself(base, say, tmp_path, override, words):
    code, said = say([*base, *RANKS, GRID, f"runs={tmp_path / 'runs'}", override])
    assert code == 2
    assert re.fullmatch(rf"error: SLURM refuses: .*{words}.*\n", said)
    assert [path.name for path in (tmp_path / "runs").rglob("*") if path.name in NAMES] == []
    assert jobs.newest_jobs(tmp_path / "runs") == {}


def test_a_dry_run_leaves_nothing(base, say, tmp_path):
    code, said = say([*base, *RANKS, GRID, f"runs={tmp_path / 'runs'}", "dry_run=true"])
    assert code == 0
    assert "#SBATCH --ntasks-per-node=4" in said
    assert said.count("would be job") == 6
    assert not (tmp_path / "runs").exists()


def test_cancelled_jobs_are_gone_and_said_to_be(base, say, tmp_path, capsys):
    hold = "cluster.sbatch=[--hold]"
    assert say([*base, *RANKS, GRID, f"runs={tmp_path}", hold])[0] == 0
    assert {(row.state, row.why) for row in status.look(tmp_path)} == {("pending", "JobHeldUser")}
    assert call(status, [str(tmp_path), "--cancel"]) == 0
    assert capsys.readouterr().out == "6 jobs cancelled; what was computed is kept\n"
    wait_until(
        lambda: {row.state for row in status.look(tmp_path)} == {"not started"}, "no job is left"
    )


def test_a_job_that_lacks_its_data_says_so_at_once(base, say, tmp_path):
    """Prepared where it is submitted, and not where it runs."""
    (prepared,) = (o.partition("=")[2] for o in base if o.startswith("data.folder="))
    folder = shutil.copytree(prepared, tmp_path / "data")
    runs = tmp_path / "runs"
    settings = [
        "experiment=trainings",
        "batches=[8]",
        "scale=smoke",
        f"data.folder={folder}",
        ONE,
        "seeds=[0]",
    ]
    hold = "cluster.sbatch=[--hold]"
    assert say([*settings, "cluster=slurm", f"runs={runs}", hold])[0] == 0
    shutil.rmtree(folder)
    run = runs / "paci-a4-b8-s0"
    subprocess.run(["scontrol", "release", job_of(run).id], check=True)
    wait_for_the_end(run)
    (row,) = status.look(runs)
    assert row.state == "refused"
    assert row.why.startswith(f"there is no prepared corpus in {folder}")
    assert "python -m experiments.prepare" in row.why


def test_another_checkout_does_not_end_this_slurm(tmp_path):
    script = tmp_path / "tests" / "slurm" / "down.sh"
    script.parent.mkdir(parents=True)
    shutil.copyfile(Path(__file__).with_name("down.sh"), script)
    said = subprocess.run(["bash", script], capture_output=True, text=True, check=True).stdout
    assert said.startswith("SLURM stays up") or said == "SLURM is down already\n"
    subprocess.run(["sinfo", "-h"], check=True, capture_output=True)
