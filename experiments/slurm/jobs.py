"""Which runs are whose jobs, and what SLURM's queue says of them; no accounting is needed.

RUNS/.jobs/submitted.jsonl    a line per job: its run, its id, its log, when it was submitted
"""

import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout


class Job(NamedTuple):
    """A job that was submitted for a run, by the name of the run's folder; `id` as squeue has it:
    12, or 12_3 in an array; `submitted` in seconds since 1970."""

    run: str
    id: str
    log: str
    submitted: float


class Queued(NamedTuple):
    """A job in the queue: SLURM's state and reason, and the time that it has left, as text."""

    state: str
    reason: str
    left: str


def folder_of(runs: Path) -> Path:
    """Where the jobs of a folder of runs keep their files."""
    return runs / ".jobs"


@contextmanager
def submitting(runs: Path) -> Iterator[None]:
    """Inside, nobody else submits runs of this folder: to look what is in the queue and to submit
    what is not is one step. Raises ValueError if somebody else takes too long over it."""
    folder_of(runs).mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder_of(runs) / "submitting.lock", timeout=120):
            yield
    except Timeout:
        raise ValueError(
            f"another command is submitting runs of {runs}, and has been for minutes"
        ) from None


def record(runs: Path, jobs: Iterable[Job]) -> None:
    """Append a line for each of `jobs`, whose runs are in the folder `runs`."""
    with (folder_of(runs) / "submitted.jsonl").open("a") as file:
        file.write("".join(json.dumps(job._asdict()) + "\n" for job in jobs))


def newest_jobs(runs: Path) -> dict[str, Job]:
    """{run: the job that was submitted last for it}."""
    jobs = {}
    file = folder_of(runs) / "submitted.jsonl"
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            job = Job(**json.loads(line))
        except (ValueError, TypeError):  # half a line, of a command that was killed
            continue
        jobs[job.run] = job
    return jobs


def queue(ids: Iterable[str]) -> dict[str, Queued] | None:
    """Those of the jobs `ids` that are in SLURM's queue, waiting or at work; None if there is no
    SLURM on this machine. Raises ValueError if it does not answer."""
    ids = {id.partition("_")[0] for id in ids}
    if shutil.which("squeue") is None:
        return None
    if not ids:
        return {}
    found = {}
    asked = subprocess.run(
        ["squeue", "--noheader", "--array", "--format=%i|%T|%r|%L", f"--jobs={','.join(ids)}"],
        capture_output=True,
        text=True,
    )
    if asked.returncode and "Invalid job id" not in asked.stderr:  # that is: forgotten
        said = asked.stderr.strip().splitlines() or ["nothing"]
        raise ValueError(f"SLURM's queue cannot be read: {said[-1]}")
    for line in asked.stdout.splitlines():
        id, state, reason, left = line.split("|")
        found[id] = Queued(state, reason, left)
    return found


def cancel(ids: Iterable[str]) -> None:
    """Raises ValueError, in SLURM's words, if it does not end them all: somebody else's, say."""
    asked = subprocess.run(["scancel", *ids], capture_output=True, text=True)
    if asked.returncode:
        said = asked.stderr.strip().splitlines() or ["scancel failed"]
        raise ValueError(f"SLURM does not cancel: {said[-1]}")
