"""Submit to SLURM the runs of a grid that have no result and are neither queued nor active.

A lock in the folder of runs makes looking and submitting one step, so that two people who submit
the same sweep at the same moment submit each run once.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from experiments.run.folder import RunFolder
from experiments.slurm import jobs, snapshot
from experiments.slurm.array import Shape, script, submit
from experiments.terminal.summary import line


def submit_missing(folders: Iterable[RunFolder], run: Callable[[Any], dict]) -> int:
    """Submit a job that calls `run` for each of `folders` that needs one; return their number.

    Jobs of one shape are one array. Prints a line for every run. Raises ValueError, in SLURM's
    words, if it refuses them.
    """
    count = 0
    for runs, group in _by_runs(folders).items():
        with jobs.submitting(runs):
            missing, others = _missing(runs, group)
            for folder, why in others:
                print(line(folder, why))
            if missing:
                code = snapshot.take(runs)
            for shape, some in _by_shape(missing).items():
                configs = [folder.config for folder in some]
                submitted = submit(run, configs, shape, jobs.folder_of(runs), code.path)
                jobs.record(
                    runs,
                    (
                        jobs.Job(folder.path.name, job.job_id, str(job.paths.stdout), time.time())
                        for folder, job in zip(some, submitted, strict=True)
                    ),
                )
                for folder, job in zip(some, submitted, strict=True):
                    folder.plan()
                    code.describe(folder.path)
                    print(line(folder, f"submitted as job {job.job_id}"))
            count += len(missing)
    return count


def preview(folders: Iterable[RunFolder]) -> None:
    """Print the sbatch files that `submit_missing` would submit, and their runs."""
    for runs, group in _by_runs(folders).items():
        missing, others = _missing(runs, group)
        for folder, why in others:
            print(line(folder, why))
        code = snapshot.look(runs)
        for shape, some in _by_shape(missing).items():
            cluster = some[0].config.cluster
            print(f"\n{script(len(some), cluster, shape, jobs.folder_of(runs), code.path)}")
            for number, folder in enumerate(some):
                print(line(folder, f"would be job {number} of that array"))


def _missing(
    runs: Path, folders: Iterable[RunFolder]
) -> tuple[list[RunFolder], list[tuple[RunFolder, str]]]:
    """Return the runs to submit, and the others, each with the reason why not."""
    known = jobs.newest_jobs(runs)
    queued = jobs.queue(job.id for job in known.values()) or {}
    missing, others = [], []
    for folder in folders:
        job = known.get(folder.path.name)
        if job and job.id in queued:
            others.append((folder, f"in the queue: job {job.id}, {queued[job.id].state.lower()}"))
        elif folder.finished:
            others.append((folder, f"{folder.status()['state']}  (from before)"))
        elif folder.held:
            others.append((folder, "held by another process that runs it"))
        else:
            missing.append(folder)
    return missing, others


def _by_runs(folders: Iterable[RunFolder]) -> dict[Path, list[RunFolder]]:
    groups = defaultdict(list)
    for folder in folders:
        groups[folder.path.parent].append(folder)
    return groups


def _by_shape(folders: Iterable[RunFolder]) -> dict[Shape, list[RunFolder]]:
    groups = defaultdict(list)
    for folder in folders:
        groups[Shape.of(folder.config)].append(folder)
    return groups
