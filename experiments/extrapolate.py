"""Simulate beyond the paper: python -m experiments.extrapolate [scale=laptop] [runs=DIR] ...

Deeper pipelines, uneven times, late messages, more slack: the grid of conf/extrapolation/, a line
a point in simulations.jsonl of the folder `runs`. Points that are there already are skipped.
"""

import json
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

from experiments import CONF
from experiments.config import select
from experiments.config.accepted import check_folder
from experiments.grid.points import BACKWARD_TIME, FORWARD_TIME, Point, points
from experiments.terminal.command_line import arguments, command, interruptible, user_errors
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
        config = select(arguments(__doc__), CONF / "extrapolation")
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
        why = "a simulation's process was killed, for its memory perhaps: try processes=1"
        print(f"error: {why}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        print("interrupted: what was simulated is kept; the same command goes on from there")
        raise SystemExit(130) from None
    print(f"{len(wanted)} points in {file}, {len(wanted) - len(todo)} of them from before")


def check(config: DictConfig) -> tuple[Path, int]:
    """The folder of the results, and how many processes; ValueError for impossible values."""
    try:
        OmegaConf.resolve(config)
    except Exception as error:
        raise ValueError(str(error).splitlines()[0]) from error
    check_folder("runs", config.runs)
    not_negative("seed", config.seed)
    processes = os.cpu_count() if config.processes is None else config.processes
    return Path(config.runs), positive("processes", processes)


def done(file: Path) -> set[Point]:
    """The points of the whole lines of `file`; half a line, of a killed process, is cut off."""
    if not file.exists():
        return set()
    lines = file.read_bytes().splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        half = lines.pop()
        os.truncate(file, file.stat().st_size - len(half))
    known = set()
    for line in lines:
        try:
            read = json.loads(line)
            known.add(Point(*(read[name] for name in Point._fields)))
        except (ValueError, KeyError, TypeError):
            continue
    return known


def extrapolate(todo: Sequence[Point], file: Path, processes: int) -> None:
    """Simulate the points, the longest first, and append a line as each ends."""
    todo = sorted(todo, key=lambda point: -point.actions)
    total = sum(point.actions for point in todo)
    bar = Progress(desc="simulations", total=total, unit="action", unit_scale=True)
    with ProcessPoolExecutor(processes, initializer=_leave_signals_to_the_parent) as pool, bar:
        ends = {pool.submit(simulated, point): point for point in todo}
        try:
            for end in as_completed(ends):
                _append(file, ends[end]._asdict() | end.result())
                bar.update(ends[end].actions)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def simulated(point: Point) -> dict:
    """Of one point:

    utilization     what a rank works of all its time once the pipeline is full: at the last stage,
                    over the second half of the micro-batches, at the times that jitter varies
    max_drift       the most updates between forward and backward at any stage
    drift_bound     ⌈(N-1+slack)/a⌉, if the schedule does not flush
    peak_in_flight  the most micro-batches in flight at any stage
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


def _append(file: Path, line: dict) -> None:
    """A line in one piece: whoever reads meanwhile sees all of it or nothing."""
    with file.open("a") as lines:
        lines.write(json.dumps(line) + "\n")


def _leave_signals_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


if __name__ == "__main__":
    main()
