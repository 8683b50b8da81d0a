"""Train one run: python -m experiments.train [method=paci] [method.accumulation=8] [seed=3] ...

The run has a folder of its own below `runs`. A completed run is not repeated, an interrupted one
goes on. With dry_run=true the command only says what it would do.

With executor=distributed every rank is a process. The command starts them on this machine, or
torchrun or SLURM's srun does:
    torchrun --nproc-per-node 8 -m experiments.train executor=distributed
    srun --ntasks 8 python -m experiments.train executor=distributed
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.config import compose
from experiments.config.naming import run_name
from experiments.run.folder import InUse, RunFolder
from experiments.run.launcher import check_started, is_first, started_by
from experiments.terminal.command_line import command, user_errors
from experiments.terminal.options import overrides
from experiments.terminal.summary import end


@command()
def main() -> None:
    with user_errors() if is_first() else silently_refused():
        given = overrides(__doc__)
        if any(override.startswith("grid=") for override in given):
            raise ValueError("one run has no grid: give it to experiments.sweep")
        config = compose(given)
        folder = RunFolder(Path(config.runs) / run_name(config), config)
        folder.check_config()
        if folder.completed or config.dry_run:
            return print(preview(folder)) if is_first() else None
        if started_by():
            check_started(config)
        # Here, because it loads torch, which takes seconds that a completed run need not wait for.
        from experiments.run import execution

        run = execution.prepare(config)
    with execution.joined(config):
        with user_errors(InUse):
            status = execution.train(run)
        if is_first():
            print(f"{run.folder.path}: {end(run.folder, status)}")
        raise SystemExit(status["state"] != "completed")


def preview(folder: RunFolder) -> str:
    """Return the line for a run that is completed, or that a dry run leaves as it is."""
    status = folder.status()
    if folder.completed:
        return f"{folder.path}: {end(folder, status)}  (from before)"
    if shorter := folder.shorter():
        return f"{folder.path}: {status['state']} with tokens={shorter.tokens}: would be run"
    return f"{folder.path}: {end(folder, status)}: would be run"


@contextmanager
def silently_refused() -> Iterator[None]:
    """Give rank 0 time to print the error that it has, too; the launcher then stops the others."""
    try:
        yield
    except ValueError:
        time.sleep(60)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
