"""The jobs of runs: a record of those submitted, and SLURM's queue. No accounting is needed.

RUNS/.jobs/submitted.jsonl    a line per job: its run, its id, its log, when it was submitted
"""

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from runlog import JOBS, append, read_lines

SUBMITTED = "submitted.jsonl"


class Job(NamedTuple):
    """A job that was submitted for a run, which is given by the name of its folder. `id` is written
    as squeue writes it: 12, or 12_3 in an array; `submitted` is in seconds since 1970."""

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
    """Return the folder in which the jobs of a folder of runs keep their files."""
    return runs / JOBS


@contextmanager
def submitting(runs: Path) -> Iterator[None]:
    """Keep everybody else from submitting runs of this folder inside the block, so that reading the
    queue and submitting what is not in it is one step. Raises ValueError if somebody else takes too
    long over it."""
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
    append(folder_of(runs) / SUBMITTED, (job._asdict() for job in jobs))


def newest_jobs(runs: Path) -> dict[str, Job]:
    """Return {run: the job that was submitted last for it}. Lines that hold no job are skipped."""
    rows, _ = read_lines(folder_of(runs) / SUBMITTED)
    jobs = (Job(**row) for row in rows if row.keys() == {*Job._fields})
    return {job.run: job for job in jobs}


def queue(ids: Iterable[str]) -> dict[str, Queued] | None:
    """Return those of the jobs `ids` that are in SLURM's queue, waiting or at work; None if there
    is no SLURM on this machine. Raises ValueError if SLURM does not answer."""
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
    """Cancel the jobs. Raises ValueError, in SLURM's words, if it does not end all of them, because
    one is somebody else's, say."""
    asked = subprocess.run(["scancel", *ids], capture_output=True, text=True)
    if asked.returncode:
        said = asked.stderr.strip().splitlines() or ["scancel failed"]
        raise ValueError(f"SLURM does not cancel: {said[-1]}")
