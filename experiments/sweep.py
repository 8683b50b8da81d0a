"""Run an experiment's grid: python -m experiments.sweep experiment=trainings [scale=laptop] ...

Each run has a folder of its own. Finished runs are skipped, interrupted ones go on; retry=true
repeats those that failed, diverged or ran out of memory. Other settings hold for every run of the
grid. With dry_run=true the command only says what it would do.

With cluster=local or inline the command runs on this machine and waits for the runs. With
cluster=slurm it submits them and ends; `python -m experiments.status RUNS` shows their states.
"""

import shlex
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import cast

from omegaconf import DictConfig, OmegaConf
from submitit import Job
from submitit.core.utils import UncompletedJobError
from tqdm import tqdm

import runlog
from experiments import data
from experiments.config.derived import is_measured, ranks, updates
from experiments.config.naming import run_name
from experiments.grid.dispatch import dispatch
from experiments.grid.runs import grid
from experiments.run.cache import check_cached, read
from experiments.run.folder import InUse, RunFolder
from experiments.run.text import check_size
from experiments.slurm import submission
from experiments.terminal.command_line import command, interruptible, user_errors
from experiments.terminal.options import overrides
from experiments.terminal.progress import Progress
from experiments.terminal.summary import place, preview, summary

NOT_STARTED = ("in use", "refused")
"""States that `run` returns of a run that it did not start; its folder keeps a state of its own."""


@command()
def main() -> None:
    with user_errors():
        configs = grid(overrides(__doc__))
        folders = [RunFolder(Path(c.runs) / run_name(c), c) for c in configs]
        for folder in folders:
            folder.check_config()
            check_cached(folder)
        if configs[0].cluster.name == "slurm":
            return submit(folders)
        if configs[0].dry_run or all(folder.finished for folder in folders):
            print(*map(preview, folders), place(folders), sep="\n")
            raise SystemExit(0 if configs[0].dry_run else exit_status(folders))
        check_texts(folders, data.prepare)
        for folder in folders:
            folder.plan()
    try:
        with interruptible():
            sweep(folders)
    except KeyboardInterrupt:
        print("interrupted: what was computed is kept; the same command goes on from there")
        raise SystemExit(130) from None
    print(place(folders))
    raise SystemExit(exit_status(folders))


def submit(folders: list[RunFolder]) -> None:
    """Submit the runs that need a job to SLURM; print a line for each run and what to do next.

    Raises ValueError if data is not prepared, or too small: jobs would find that out only after
    hours of waiting.
    """
    config = folders[0].config
    try:
        check_texts(folders, lambda corpus: data.load(corpus, verify=False))
    except ValueError as error:
        if not config.dry_run:
            raise
        print(f"warning: {error}", file=sys.stderr)
    if config.dry_run:
        return submission.preview(folders)
    runs = shlex.quote(config.runs)
    count = submission.submit_missing(folders, run)
    print(
        f"\n{count} jobs submitted, which need neither this command nor this terminal:\n"
        f"    python -m experiments.status {runs}            show their states\n"
        f"    python -m experiments.status {runs} --cancel   cancel them\n"
        f"    python -m paper_figures {runs}                 draw tables and figures\n"
        "The same command again submits what has been lost, and nothing twice."
    )


def check_texts(folders: list[RunFolder], opened: Callable[[DictConfig], data.Corpus]) -> None:
    """Open the corpus of each data configuration once, by `opened`. Raises ValueError if that does,
    or if a corpus is too small for a run that is not finished."""
    corpora: dict[str, data.Corpus] = {}
    for config in (folder.config for folder in folders if not folder.finished):
        described = OmegaConf.to_yaml(config.data)
        if described not in corpora:
            corpora[described] = opened(config.data)
        check_size(config, corpora[described])


def sweep(folders: list[RunFolder]) -> None:
    """Run what is not finished, with a progress bar, and print a line for each run as it ends."""
    config = folders[0].config
    todo = {str(folder.path): folder for folder in folders if not folder.finished}
    configs = [folder.config for folder in todo.values()]
    measure_costs(configs)
    unit = "run" if is_timed(folders[0]) else "update"
    with Progress(desc="all runs", total=in_all(folders), unit=unit) as bar:
        for folder in folders:
            if str(folder.path) not in todo:
                tqdm.write(f"{summary(folder, folder.status())}  (from before)")
        jobs = [OmegaConf.to_container(config) for config in configs]
        logs, device = Path(config.runs) / runlog.JOBS, device_of(configs)
        most = max(map(ranks, configs), default=1)
        for ended in dispatch(run, jobs, config.cluster, logs, device, most):
            bar.at(sum(done(folder) for folder in folders), in_all(folders))
            if ended is not None:
                job_config, job = ended
                ran = DictConfig(job_config)
                folder = todo[str(Path(ran.runs) / run_name(ran))]
                told = outcome(job)
                known = told if told.get("state") in NOT_STARTED else folder.status() or told
                tqdm.write(summary(folder, known, job.paths.stdout))


def measure_costs(configs: list[DictConfig]) -> None:
    """Measure the costs for the clocks of these runs, while none of them takes time away."""
    configs = [config for config in configs if is_measured(config)]
    if not configs:
        return
    alone = cast(DictConfig, OmegaConf.merge(configs[0].cluster, {"parallel": 1}))
    runs = Path(configs[0].runs)
    argument = [OmegaConf.to_container(config) for config in configs]
    with Progress(desc="measuring costs", unit="table") as bar:
        device = device_of(configs)
        for _ in dispatch(measure, [argument], alone, runs / runlog.JOBS, device):
            bar.at(len(read(runs / runlog.COSTS)))


def device_of(configs: list[DictConfig]) -> str:
    """Return the device that places are for: cuda, if any of the runs needs it."""
    return "cuda" if any(config.executor.device == "cuda" for config in configs) else "cpu"


def measure(configs: list[dict]) -> None:
    """Call `measure_all` in a process of its own."""
    from experiments.run.costs import measure_all  # here, because it loads torch

    measure_all(configs)


def is_timed(folder: RunFolder) -> bool:
    """Return whether the run decides itself how often it repeats, so that progress counts runs."""
    return folder.config.task == "throughput"


def done(folder: RunFolder) -> int:
    """Return the updates, or runs, that are done."""
    return int(folder.finished) if is_timed(folder) else folder.status().get("update", 0)


def in_all(folders: list[RunFolder]) -> int:
    """Return the updates, or runs, that there will be."""
    return sum(
        1 if is_timed(folder) else folder.status().get("updates") or updates(folder.config)
        for folder in folders
    )


def run(config: dict) -> dict:
    """Run one run of the grid, or one rank of it, and return its status, which holds any error."""
    # Imported here because they load transformers, which the sweep itself never needs.
    from experiments.run.execution import train
    from experiments.run.launcher import started_by
    from experiments.run.rank import join
    from experiments.run.run import Run

    try:
        described = Run(DictConfig(config))
        described.check()
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return {"state": "refused", "why": str(error)}
    try:
        if started_by():
            join(described.config)
        status = train(described)
    except InUse as error:
        print(f"error: {error}", file=sys.stderr)
        return {"state": "in use", "why": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"state": "failed", "why": str(error)}
    if status["state"] == "preempted":
        raise KeyboardInterrupt  # interrupts the sweep too, if this is its process
    return status


def outcome(job: Job) -> dict:
    """Return the status that `run` returned; {} if its process ended before it could."""
    try:
        return job.result()
    except UncompletedJobError:
        return {}


def exit_status(folders: list[RunFolder]) -> int:
    """Return 0 if every run has a result. Divergence and lack of memory are results, too."""
    states = {folder.status().get("state") for folder in folders}
    return int(not states <= {"completed", "diverged", "out-of-memory"})


if __name__ == "__main__":
    main()
