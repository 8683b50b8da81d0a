"""Submit runs as jobs of a SLURM cluster.

Runs that ask for equal resources are one job array. A job has a task for every rank of its run.
Shortly before its time is over, or when it is preempted, SLURM sends every task a signal: the run
saves a checkpoint and ends, and the first task requeues the job, which goes on from there.

    SLURM ──USR2──▶ Task ──TERM──▶ the run ends its window ──▶ Task ──▶ submitit: requeue
"""

import math
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn, cast

import submitit
from omegaconf import DictConfig, OmegaConf
from submitit.core.utils import FailedJobError
from submitit.helpers import DelayedSubmission, clean_env

from experiments.config.derived import ranks
from experiments.terminal.command_line import interruptible

Handler = Callable[[int, FrameType | None], object]

PATIENCE = 900.0
"""Seconds to wait for SLURM to end a job after a signal: at least its grace time of preemption."""

CPUS_BESIDE_A_GPU = 4
"""Cores of a rank that drives a GPU: for its main thread, autograd's, and those that wait for
messages, for NCCL and for the device."""


class Shape(NamedTuple):
    """The resources that a job asks for."""

    nodes: int
    tasks_per_node: int
    gpus_per_node: int | None
    cpus_per_task: int

    @classmethod
    def of(cls, config: DictConfig) -> "Shape":
        """Return the resources of the run of `config`: a task, and on CUDA a GPU, for each rank.

        Raises ValueError if the ranks cannot be spread evenly over the nodes.
        """
        cluster, needed = config.cluster, ranks(config)
        nodes = cluster.nodes or math.ceil(needed / (cluster.gpus_per_node or needed))
        if needed % nodes:
            raise ValueError(
                f"a run of {needed} ranks cannot be spread evenly over {nodes} nodes: "
                "set cluster.nodes to a divisor"
            )
        tasks = needed // nodes
        on_gpus = config.executor.device == "cuda"
        cpus = max(config.executor.threads, CPUS_BESIDE_A_GPU if on_gpus else 1)
        return cls(nodes, tasks, tasks if on_gpus else None, cluster.cpus_per_task or cpus)


class Task:
    """A call `function(argument)` that submitit makes in every process of a job.

    `function` returns a run's status, or raises KeyboardInterrupt if the run was interrupted and
    can go on.
    """

    def __init__(self, function: Callable[[Any], dict], argument: object):
        self.function = function
        self.argument = argument
        self.warned = False

    def __call__(self) -> NoReturn:
        from paci.distributed.launch import end_process  # here, because submitting needs no torch

        requeue = cast(
            Handler, signal.signal(signal.SIGUSR2, self._warn)
        )  # submitit's handler, in the first task
        state, interrupted = None, False
        try:
            with interruptible():
                state = self.function(self.argument).get("state")
        except KeyboardInterrupt:
            interrupted = True
        if interrupted and not self.warned:
            self._wait_for_slurm()
        if self.warned and state != "completed":
            try:
                requeue(signal.SIGUSR2, None)
            except submitit.core.utils.UncompletedJobError as error:
                print(f"error: {error}", flush=True)
            except SystemExit:
                pass
        # The run's status is in its folder, so submitit need not write a result; and Python would
        # wait for threads that wait for a dead rank.
        end_process(0 if state == "completed" else 1)

    def checkpoint(self) -> DelayedSubmission:
        """Return the call of the requeued job: the same one, which goes on from the checkpoint."""
        return DelayedSubmission(type(self)(self.function, self.argument))

    def _warn(self, number: int, frame) -> None:
        self.warned = True
        signal.raise_signal(signal.SIGTERM)  # ends a run in order on every executor

    def _wait_for_slurm(self) -> None:
        """Wait for SLURM to end the job after a SIGTERM alone.

        SLURM then cancels the job, or preempts it and requeues it unless it has ended by itself.
        """
        until = time.monotonic() + PATIENCE
        while not self.warned and time.monotonic() < until:
            time.sleep(0.2)


def submit(
    function: Callable[[Any], dict],
    configs: Sequence[DictConfig],
    shape: Shape,
    logs: Path,
    code: Path,
) -> list[submitit.Job]:
    """Submit an array with a job of `shape` for each of `configs`, which have equal clusters.

    The jobs import the project from the folder `code`. Raises ValueError with SLURM's own words, in
    one line, if it refuses, and leaves no files then.
    """
    executor = _executor(configs[0].cluster, shape, logs, code)
    before = set(logs.glob("*")) if logs.is_dir() else set()
    tasks = [Task(function, OmegaConf.to_container(config)) for config in configs]
    try:
        # Hide the variables of a job that this process may be in, and submitit's own messages.
        with clean_env(), redirect_stderr(StringIO()):
            return executor.submit_array(tasks)
    except FailedJobError as error:
        for file in set(logs.glob("*")) - before:
            file.unlink()
        words = [line.removeprefix("sbatch: error: ") for line in str(error).splitlines()]
        raise ValueError(f"SLURM refuses: {'; '.join(filter(None, words))}") from None


def script(count: int, cluster: DictConfig, shape: Shape, logs: Path, code: Path) -> str:
    """Return the sbatch file of a job array of `count` runs.

    submitit writes the file only as it submits, so this uses its private names.
    """
    executor = _executor(cluster, shape, logs, code)
    if count > 1:
        executor.parameters["map_count"] = count
    return executor._make_submission_file_text(executor._submitit_command_str, "")


def _executor(cluster: DictConfig, shape: Shape, logs: Path, code: Path) -> submitit.SlurmExecutor:
    """Return submitit's executor for jobs of `shape`. Raises ValueError if there is no SLURM."""
    if set(str(logs.absolute())) & set("%\\\n"):
        raise ValueError(
            f"SLURM cannot write a log in {str(logs.absolute())!r}: choose a folder whose path has "
            "no %, backslash or line break, with runs=..."
        )
    try:
        executor = submitit.SlurmExecutor(logs, max_num_timeout=cluster.requeues)
    except RuntimeError:
        raise ValueError(
            "cluster=slurm, but there is no SLURM on this machine: srun is not found"
        ) from None
    asked = {
        "partition": cluster.partition,
        "account": cluster.account,
        "qos": cluster.qos,
        "constraint": cluster.constraint,
        "mem": cluster.memory,
        "array_parallelism": cluster.parallel,
        "gpus_per_node": shape.gpus_per_node,
    }
    executor.update_parameters(
        job_name="paci",
        time=cluster.time,
        nodes=shape.nodes,
        ntasks_per_node=shape.tasks_per_node,
        cpus_per_task=shape.cpus_per_task,
        signal_delay_s=cluster.warning,
        stderr_to_stdout=True,
        # When one rank fails, the others end by themselves; srun waits this long for them.
        srun_args=["--kill-on-bad-exit=0", "--wait=60", f"--cpus-per-task={shape.cpus_per_task}"],
        setup=[
            *cluster.setup,
            f"export PYTHONPATH={shlex.quote(str(code.resolve()))}${{PYTHONPATH:+:$PYTHONPATH}}",
            "export PYTHONSAFEPATH=1  # do not import the checkout, where the job starts",
        ],
        additional_parameters={"requeue": True} | dict(map(_option, cluster.sbatch)),
        **{key: value for key, value in asked.items() if value is not None},
    )
    executor.python = shlex.quote(sys.executable)
    return executor


def _option(text: str) -> tuple[str, str | bool]:
    """Return an option of sbatch, like --exclude=node7 or --hold, as submitit takes it."""
    name, given, value = text.lstrip("-").partition("=")
    return name, value if given else True
