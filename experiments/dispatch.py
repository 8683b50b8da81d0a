"""Where runs happen: one interface over submitit's executors.

cluster=inline   one after the other, in this process (submitit's debug executor)
cluster=local    as many at a time as fit, each in a process of its own
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import submitit
from omegaconf import DictConfig

SUBMITIT = {"inline": "debug", "local": "local"}
A_YEAR = 365 * 24 * 60  # minutes: submitit's local executor ends jobs after five if not told


def dispatch(
    function: Callable, arguments: Iterable, cluster: DictConfig, logs: Path, wait: float = 0.2
) -> Iterator[tuple[object, submitit.Job] | None]:
    """Call `function` with each of `arguments` on `cluster`.

    Yields (argument, job) as jobs end, and None every `wait` seconds in between, so that the
    caller can show progress. If the caller is interrupted, so are the jobs, and they are waited
    for: each ends its run in order.
    """
    executor = submitit.AutoExecutor(logs, cluster=SUBMITIT[cluster.name])
    executor.update_parameters(timeout_min=A_YEAR, stderr_to_stdout=True)
    waiting, running = list(arguments), []
    try:
        while waiting or running:
            while waiting and len(running) < places(cluster):
                argument = waiting.pop(0)
                running.append((argument, executor.submit(function, argument)))
            for argument, job in running:
                if job.done():
                    running.remove((argument, job))
                    yield argument, job
                    break
            else:
                yield None
                time.sleep(wait)
    except (KeyboardInterrupt, GeneratorExit):
        for _, job in running:
            job.cancel()
        while not all(job.done() for _, job in running):
            time.sleep(wait)
        raise


def places(cluster: DictConfig) -> int:
    """How many runs at a time."""
    return cluster.parallel or os.cpu_count() or 1
