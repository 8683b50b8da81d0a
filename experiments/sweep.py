"""Run an experiment's grid: python -m experiments.sweep experiment=trainings [scale=laptop] ...

Each run is a folder of its own. Finished ones are skipped, interrupted ones go on; those that
failed, diverged or ran out of memory are tried again with retry=true. Whatever else is set holds
for every run of the grid. With dry_run=true the command says what it would do, and does nothing.

On this machine (cluster=local, inline) it waits for the runs; with cluster=slurm it submits them
and ends: `python -m experiments.status RUNS` tells what becomes of them.
"""

import shlex
import sys
import traceback
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from submitit import Job
from submitit.core.utils import UncompletedJobError
from tqdm import tqdm

from experiments import data
from experiments.config.derived import is_measured, ranks, run_name, updates
from experiments.grid.dispatch import dispatch
from experiments.grid.runs import grid
from experiments.run.cache import check_cached, read
from experiments.run.folder import InUse, RunFolder
from experiments.slurm import submission
from experiments.terminal.command_line import command, interruptible, overrides, user_errors
from experiments.terminal.progress import Progress
from experiments.terminal.summary import line, summary

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
        if configs[0].dry_run:
            return preview(folders)
        for corpus in corpora(folders):
            data.prepare(corpus)
        for folder in folders:
            folder.plan()
    try:
        with interruptible():
            sweep(folders)
    except KeyboardInterrupt:
        print("interrupted: what was computed is kept; the same command goes on from there")
        raise SystemExit(130) from None
    raise SystemExit(0 if all(has_result(folder) for folder in folders) else 1)


def submit(folders: list[RunFolder]) -> None:
    """Leave to SLURM what is to be done, with a line for each run and what to do next. Raises
    ValueError for what its jobs would stumble over: they wait for hours, and we cannot mend it."""
    config = folders[0].config
    for corpus in corpora(folders):
        try:
            data.load(corpus, verify=False)
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
        f"    python -m experiments.status {runs}            what becomes of them\n"
        f"    python -m experiments.status {runs} --cancel   ends them\n"
        f"    python -m paper_figures {runs}                 their tables and figures\n"
        "The same command again submits what has been lost, and nothing twice."
    )


def preview(folders: list[RunFolder]) -> None:
    """Print a line for each run: what has become of it, and whether it would be run."""
    for folder in folders:
        state = folder.status().get("state", "not started")
        print(line(folder, state if folder.finished else f"{state}: would be run"))


def corpora(folders: list[RunFolder]) -> list[DictConfig]:
    """The data configurations of the runs, each once."""
    all_of_them = (folder.config.data for folder in folders)
    return list({OmegaConf.to_yaml(corpus): corpus for corpus in all_of_them}.values())


def sweep(folders: list[RunFolder]) -> None:
    """Do what is to be done, with a bar over all updates, or runs that time themselves, and a line
    for each run as it ends."""
    config = folders[0].config
    todo = {str(folder.path): folder for folder in folders if not folder.finished}
    measure_costs([folder.config for folder in todo.values()])
    unit = "run" if is_timed(folders[0]) else "update"
    with Progress(desc="all runs", total=in_all(folders), unit=unit) as bar:
        for folder in folders:
            if str(folder.path) not in todo:
                tqdm.write(f"{summary(folder, folder.status())}  (from before)")
        jobs = [OmegaConf.to_container(folder.config) for folder in todo.values()]
        logs, device = Path(config.runs) / ".jobs", config.executor.device
        most = max((ranks(folder.config) for folder in todo.values()), default=1)
        for ended in dispatch(run, jobs, config.cluster, logs, device, most):
            bar.at(sum(done(folder) for folder in folders), in_all(folders))
            if ended is not None:
                job_config, job = ended
                folder = todo[str(Path(job_config["runs"]) / run_name(DictConfig(job_config)))]
                told = outcome(job)
                known = told if told.get("state") in NOT_STARTED else folder.status() or told
                tqdm.write(summary(folder, known, job.paths.stdout))


def measure_costs(configs: list[DictConfig]) -> None:
    """Measure what the clocks of these runs need, before any of them disturbs it."""
    configs = [config for config in configs if is_measured(config)]
    if not configs:
        return
    alone = OmegaConf.merge(configs[0].cluster, {"parallel": 1})
    file, logs = Path(configs[0].runs) / "costs.json", Path(configs[0].runs) / ".jobs"
    argument = [OmegaConf.to_container(config) for config in configs]
    with Progress(desc="measuring costs", unit="table") as bar:
        for _ in dispatch(measure, [argument], alone, logs, configs[0].executor.device):
            bar.at(len(read(file)))


def measure(configs: list[dict]) -> None:
    """`measure_all`, in a process of its own."""
    from experiments.run.costs import measure_all  # not above: it loads torch

    measure_all(configs)


def is_timed(folder: RunFolder) -> bool:
    """How many repetitions a throughput run needs, it alone can say: it counts as one, once done.
    All runs of a sweep have the same task."""
    return folder.config.task == "throughput"


def done(folder: RunFolder) -> int:
    """Updates, or runs."""
    return int(folder.finished) if is_timed(folder) else folder.status().get("update", 0)


def in_all(folders: list[RunFolder]) -> int:
    """Updates, or runs, that there will be."""
    return sum(
        1 if is_timed(folder) else folder.status().get("updates") or updates(folder.config)
        for folder in folders
    )


def run(config: dict) -> dict:
    """One run of the grid, in its own process, or one rank of it: its status. Whatever goes wrong
    is in there."""
    # Not above: they load transformers, which the sweep itself never needs.
    from experiments.run.rank import join, started_by
    from experiments.run.run import Run
    from experiments.train import train

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
        raise KeyboardInterrupt  # which is the sweep's too, if this is its process
    return status


def outcome(job: Job) -> dict:
    """What `run` returned where it left no status; {} if its process ended before it could."""
    try:
        return job.result()
    except UncompletedJobError:
        return {}


def has_result(folder: RunFolder) -> bool:
    """Whether the run ended in something the paper's questions count: also out of memory, also a
    loss that diverged."""
    return folder.status().get("state") in ("completed", "diverged", "out-of-memory")


if __name__ == "__main__":
    main()
