"""Runs as jobs of a SLURM cluster, which go on when we are gone.

Runs of one shape are one job array. A job has a task for every rank of its run. Shortly before its
time is over, or when it is preempted, SLURM sends every task a signal: the run ends in order, with
a checkpoint, and the first task puts the job back into the queue, where it will go on from there.

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
from typing import NamedTuple, NoReturn

import submitit
from omegaconf import DictConfig, OmegaConf
from submitit.core.utils import FailedJobError
from submitit.helpers import DelayedSubmission, clean_env

from experiments.config.derived import ranks
from experiments.terminal.command_line import interruptible

PATIENCE = 900.0
"""Seconds for SLURM to end a job that it has told to: at least a preemption's time of grace."""

CPUS_BESIDE_A_GPU = 4
"""Cores of a rank that drives a GPU: for its main thread, autograd's, and those that wait for
messages, for NCCL and for the device."""


class Shape(NamedTuple):
    """What a job asks for."""

    nodes: int
    tasks_per_node: int
    gpus_per_node: int | None
    cpus_per_task: int

    @classmethod
    def of(cls, config: DictConfig) -> "Shape":
        """A task and, if it computes on one, a GPU per rank; on as many nodes as that takes.
        Raises ValueError if the ranks cannot be spread evenly."""
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
    """`function(argument)`, as submitit calls it in every process of a job. It returns a run's
    status, or raises KeyboardInterrupt if the run was interrupted and can go on."""

    def __init__(self, function: Callable[[object], dict], argument: object):
        self.function = function
        self.argument = argument
        self.warned = False

    def __call__(self) -> NoReturn:
        from paci.distributed.launch import end_process  # not above: who submits needs no torch

        requeue = signal.signal(signal.SIGUSR2, self._warn)  # submitit's, in the first task
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
        # What became of the run is in its folder: submitit need not write a result, and a rank
        # whose threads wait for the dead could not end in Python's way.
        end_process(0 if state == "completed" else 1)

    def checkpoint(self) -> DelayedSubmission:
        """What the requeued job does: the same, and the run goes on from its checkpoint."""
        return DelayedSubmission(type(self)(self.function, self.argument))

    def _warn(self, number: int, frame) -> None:
        self.warned = True
        signal.raise_signal(signal.SIGTERM)  # which ends a run in order, however it is done

    def _wait_for_slurm(self) -> None:
        """SIGTERM alone: SLURM cancels the job, or preempts it and will requeue it unless it has
        ended by itself."""
        until = time.monotonic() + PATIENCE
        while not self.warned and time.monotonic() < until:
            time.sleep(0.2)


def submit(
    function: Callable[[object], dict],
    configs: Sequence[DictConfig],
    shape: Shape,
    logs: Path,
    code: Path,
) -> list[submitit.Job]:
    """Submit a job of `shape` for each of `configs`, all with one cluster: one array. They import
    the project from the folder `code`.

    Raises ValueError with SLURM's own words, in one line, if it refuses; nothing is left then.
    """
    executor = _executor(configs[0].cluster, shape, logs, code)
    before = set(logs.glob("*")) if logs.is_dir() else set()
    tasks = [Task(function, OmegaConf.to_container(config)) for config in configs]
    try:
        # Without the traces of a job in which we may be, and submitit's own say in a refusal.
        with clean_env(), redirect_stderr(StringIO()):
            return executor.submit_array(tasks)
    except FailedJobError as error:
        for file in set(logs.glob("*")) - before:
            file.unlink()
        words = [line.removeprefix("sbatch: error: ") for line in str(error).splitlines()]
        raise ValueError(f"SLURM refuses: {'; '.join(filter(None, words))}") from None


def script(count: int, cluster: DictConfig, shape: Shape, logs: Path, code: Path) -> str:
    """The sbatch file of a job array of `count` runs: by submitit's private names, for it writes
    the file only as it submits."""
    executor = _executor(cluster, shape, logs, code)
    if count > 1:
        executor.parameters["map_count"] = count
    return executor._make_submission_file_text(executor._submitit_command_str, "")


def _executor(cluster: DictConfig, shape: Shape, logs: Path, code: Path):
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
        # The ranks end by themselves when one has failed, and say which; at the latest, so.
        srun_args=["--kill-on-bad-exit=0", "--wait=60", f"--cpus-per-task={shape.cpus_per_task}"],
        setup=[
            *cluster.setup,
            f"export PYTHONPATH={shlex.quote(str(code.resolve()))}${{PYTHONPATH:+:$PYTHONPATH}}",
            "export PYTHONSAFEPATH=1  # not the checkout, where the job happens to begin",
        ],
        additional_parameters={"requeue": True} | dict(map(_option, cluster.sbatch)),
        **{key: value for key, value in asked.items() if value is not None},
    )
    executor.python = shlex.quote(sys.executable)
    return executor


def _option(text: str) -> tuple[str, str | bool]:
    """An option of sbatch as submitit takes it: "--exclude=node7", or "--hold", which has no
    value."""
    name, given, value = text.lstrip("-").partition("=")
    return name, value if given else True
