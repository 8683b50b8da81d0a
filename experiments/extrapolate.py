"""Simulate beyond the paper: python -m experiments.extrapolate [scale=laptop] [runs=DIR] ...

The grid of conf/extrapolation/ has deeper pipelines, uneven times, late messages and more slack.
Each point becomes a line of simulations.jsonl in the folder `runs`; points that are there already
are skipped.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from filelock import FileLock, Timeout
from omegaconf import DictConfig, OmegaConf

import runlog
from experiments import CONF
from experiments.config import select
from experiments.config.accepted import check_folder
from experiments.grid.points import BACKWARD_TIME, FORWARD_TIME, Point, points
from experiments.terminal.command_line import command, interruptible, user_errors
from experiments.terminal.options import overrides
from experiments.terminal.progress import Progress
from paci import Simulation
from paci.actions import ENDS_BACKWARD
from paci.checks import not_negative, positive
from paci.cost import Durations
from paci.schedules import theory
from paci.simulation.event_loop import run_schedule


@command()
def main() -> None:
    with user_errors():
        conf = CONF / "extrapolation"
        config = select(overrides(__doc__, conf), conf)
        folder, processes = check(config)
        wanted = points(config)
        folder.mkdir(parents=True, exist_ok=True)
    file = folder / "simulations.jsonl"
    try:
        with FileLock(folder / ".lock", timeout=0), interruptible():
            known = done(file)
            todo = [point for point in wanted if point not in known]
            extrapolate(todo, file, processes)
    except Timeout:
        print(f"error: {folder} is held by another process that simulates", file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenProcessPool:
        why = "a process was killed, perhaps for lack of memory: try processes=1"
        print(f"error: {why}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        print("interrupted: what was simulated is kept; the same command goes on from there")
        raise SystemExit(130) from None
    print(f"{len(wanted)} points in {file}, {len(wanted) - len(todo)} of them from before")


def check(config: DictConfig) -> tuple[Path, int]:
    """Return the results' folder and the number of processes, or raise ValueError."""
    try:
        OmegaConf.resolve(config)
    except Exception as error:
        raise ValueError(str(error).splitlines()[0]) from error
    check_folder("runs", config.runs)
    not_negative("seed", config.seed)
    processes = (os.cpu_count() or 1) if config.processes is None else config.processes
    return Path(config.runs), positive("processes", processes)


def done(file: Path) -> set[Point]:
    """Return the points in `file`; cut off half a line that a killed process has left."""
    if not file.exists():
        return set()
    content = file.read_bytes()
    os.truncate(file, content.rfind(b"\n") + 1)
    rows, _ = runlog.read_lines(file)
    known = set()
    for row in rows:
        try:
            known.add(Point(*(row[name] for name in Point._fields)))
        except (KeyError, TypeError):
            continue
    return known


def extrapolate(todo: Sequence[Point], file: Path, processes: int) -> None:
    """Simulate the points, the longest first, and append a line to `file` as each ends."""
    todo = sorted(todo, key=lambda point: -point.actions)
    total = sum(point.actions for point in todo)
    bar = Progress(desc="simulations", total=total, unit="action", unit_scale=True)
    with ProcessPoolExecutor(processes, initializer=_leave_signals_to_the_parent) as pool, bar:
        ends = {pool.submit(simulated, point): point for point in todo}
        try:
            for end in as_completed(ends):
                runlog.append(file, [ends[end]._asdict() | end.result()])
                bar.update(ends[end].actions)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def simulated(point: Point) -> dict:
    """Simulate one point and return its results.

    utilization     busy share of the last stage's time in the second half of the micro-batches,
                    when the pipeline is full; busy times are those without jitter
    max_drift       largest drift at any stage
    drift_bound     ⌈(N-1+slack)/a⌉; 0 if the schedule flushes
    peak_in_flight  most micro-batches in flight at any stage
    """
    rule, last, finished = point.rule, point.stages - 1, []
    durations = Durations(point.cost, point.stages, point.microbatches, point.seed)

    def watched() -> Iterator[tuple]:
        for step in run_schedule(rule, point.microbatches, durations):
            _, stage, kind, _, _, end, _ = step
            if stage == last and kind in ENDS_BACKWARD:
                finished.append(end)
            yield step

    run = Simulation(rule, watched())
    half = point.microbatches // 2
    took = finished[-1] - finished[half - 1]
    bound = theory.drift_bound(point.stages, 0, point.accumulation, point.slack)
    return {
        "utilization": (point.microbatches - half) * (FORWARD_TIME + BACKWARD_TIME) / took,
        "max_drift": max(run.max_drift),
        "drift_bound": 0 if rule.flushes else bound,
        "peak_in_flight": max(run.peak_in_flight),
        "clock": "simulated",
    }


def _leave_signals_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


if __name__ == "__main__":
    main()
