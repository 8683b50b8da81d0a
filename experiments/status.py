"""Show the states of the runs of a folder: python -m experiments.status RUNS [--watch] [--cancel]

Prints a table of all run folders below RUNS: their states, their last losses, and the tokens per
second of wall time, or of the run's clock where that is what was measured. States come from the run
folders, from SLURM's queue if there is one, and, for a run whose process died, from the log of its
job.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from omegaconf import DictConfig
from tabulate import tabulate

import runlog
from experiments.run.folder import RESULTS, RunFolder, run_folders
from experiments.slurm import jobs
from experiments.slurm.log import last_words
from experiments.terminal.command_line import command, user_errors
from experiments.terminal.summary import duration, last_values, wall_rate

WATCH = 10.0  # seconds between two queries of the queue, which all users share
HEADERS = {"rate": "tokens/s"}
"""Titles of columns that no name can have."""
ALIVE = ("pending", "starting", "running")


class Row(NamedTuple):
    """A line of the table, as text; "" where there is nothing to say."""

    run: str
    state: str
    updates: str
    left: str
    loss: str
    rate: str
    job: str
    why: str
    log: str


@command()
def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.status", description=__doc__.partition("\n")[0].split(":")[0]
    )
    parser.add_argument("runs", type=Path, help="a folder with run folders at any depth")
    parser.add_argument("--watch", action="store_true", help="repeat until all runs have ended")
    parser.add_argument("--cancel", action="store_true", help="cancel the SLURM jobs of these runs")
    given = parser.parse_intermixed_args()
    with user_errors():
        if not given.runs.is_dir():
            raise ValueError(f"there is no folder {given.runs}")
        if given.cancel:
            return cancel(given.runs)
        rows = look(given.runs)
        print(table(rows))
    try:
        while given.watch and any(row.state in ALIVE for row in rows):
            time.sleep(WATCH)
            with user_errors():
                rows = look(given.runs)
            clear = "\x1b[H\x1b[2J" if sys.stdout.isatty() else "\n"
            print(clear + table(rows), flush=True)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def cancel(runs: Path) -> None:
    """Cancel the jobs in SLURM's queue of the runs below `runs`."""
    queued = [id for folder in _groups(runs) for id in _queued(folder) or {}]
    if queued:
        jobs.cancel(queued)
    print(f"{len(queued)} jobs cancelled; what was computed is kept")


def look(runs: Path) -> list[Row]:
    """Return a row per run folder below `runs`. Raises ValueError if SLURM does not answer."""
    rows = []
    for group, folders in _groups(runs).items():
        known, queued = jobs.newest_jobs(group), _queued(group)
        for folder in folders:
            job = known.get(folder.path.name)
            rows.append(_row(folder, folder.path.relative_to(runs).as_posix(), job, queued))
    return rows


def table(rows: list[Row]) -> str:
    """Return the count of runs in each state, and a table without its empty columns."""
    counts = Counter(row.state for row in rows)
    states = ", ".join(f"{n} {state}" for state, n in counts.most_common())
    head = f"{len(rows)} run{'s' * (len(rows) != 1)}: {states}"
    used = [i for i in range(len(Row._fields)) if any(row[i] for row in rows)]
    cells = [[row[i] for i in used] for row in rows]
    headers = [HEADERS.get(Row._fields[i], Row._fields[i]) for i in used]
    return f"{head}\n\n{tabulate(cells, headers, disable_numparse=True)}"


def _row(folder: RunFolder, name: str, job: jobs.Job | None, queued: dict | None) -> Row:
    status = folder.status()
    state, why = _state(folder, status, job, queued)
    updates = f"{status['update']}/{status['updates']}" if "updates" in status else ""
    left = _left(folder, status) if state == "running" else ""
    values = last_values(folder)
    rate = values.get("tokens/s") or wall_rate(folder, status)
    log = job.log if job and state not in ("completed", "pending") else ""
    results = values.get("loss", ""), rate
    return Row(name, state, updates, left, *results, job.id if job else "", why, log)


def _state(
    folder: RunFolder, status: dict, job: jobs.Job | None, queued: dict[str, jobs.Queued] | None
) -> tuple[str, str]:
    """Return a run's state, and why."""
    state, why = status.get("state", "not started"), status.get("why") or ""
    if state == "completed":
        return state, why
    if job and queued is None:
        return state, f"{why or 'submitted'}; there is no SLURM here to ask"
    if job and queued is not None and job.id in queued:
        return _in_queue(status, queued[job.id], folder.held)
    if state in RESULTS:
        return _of_result(state, why, job)
    if folder.held:
        return "running", ""
    if job:
        word, cause = last_words(Path(job.log))
        return (state, why) if (state, word) == ("preempted", "died") else (word, cause)
    return ("died", "its process is gone") if state == "running" else (state, why)


def _in_queue(status: dict, place: jobs.Queued, held: bool) -> tuple[str, str]:
    """Return the state of a run whose job is in SLURM's queue, and why.

    A run that was saved waits until a process holds its folder again. SLURM may say RUNNING before
    that: of the job that is about to leave its node, or of the one that has just come to it.
    """
    before = "" if "state" not in status else f"goes on from update {status.get('update', 0)}"
    if place.state == "PENDING":
        return "pending", "; ".join(filter(None, [place.reason.replace("None", ""), before]))
    if status.get("state") == "preempted" and not held:
        return "pending", f"between two starts of its job, {before}"
    if place.state == "RUNNING" and status.get("state") != "running":
        return "starting", before
    return place.state.lower(), ""


def _of_result(state: str, why: str, job: jobs.Job | None) -> tuple[str, str]:
    """Return the state of a run that has ended, and why; SLURM's log knows how processes died."""
    word, cause = last_words(Path(job.log)) if job and state == "failed" else ("", "")
    if word == "out-of-memory":
        state = word
    return state, "; ".join(filter(None, (why, cause if word in ("killed", state) else "")))


def _left(folder: RunFolder, status: dict) -> str:
    """Return the time that the run will still take, at the pace of its last start."""
    try:
        environment = folder.path / runlog.ENVIRONMENT
        first = runlog.read_json(environment, list)[-1]["from_update"]
        now = (folder.path / runlog.STATUS).stat().st_mtime
        pace = (now - environment.stat().st_mtime) / (status["update"] - first)
    except (OSError, ValueError, TypeError, KeyError, IndexError, ZeroDivisionError):
        return ""
    return duration(pace * (status["updates"] - status["update"]))


def _queued(folder: Path) -> dict[str, jobs.Queued] | None:
    return jobs.queue(job.id for job in jobs.newest_jobs(folder).values())


def _groups(runs: Path) -> dict[Path, list[RunFolder]]:
    """Return {folder: the run folders in it} for all folders below `runs`."""
    groups: dict[Path, list[RunFolder]] = {}
    for path in run_folders(runs):
        groups.setdefault(path.parent, []).append(RunFolder(path, DictConfig({})))
    return groups


if __name__ == "__main__":
    main()
