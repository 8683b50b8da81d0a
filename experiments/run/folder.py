"""The folder of one run: everything the analysis will ever know of it.

    config.yaml        the resolved configuration
    code.diff          of a submitted run: what its code has beyond a commit
    cost.json          the measured costs of its clock, if it has such
    environment.json   machine, versions, commit; a list, one of each start
    metrics.jsonl      a line per update and per evaluation
    throughput.jsonl   instead of metrics.jsonl, of task=throughput: a line per repetition
    stages.jsonl       a line per stage and segment: drift, memory, busy time
    status.json        running, completed, diverged, failed, out-of-memory or preempted, and why
    checkpoints/       to go on from
    orders/            what each rank did, a file a segment: what `experiments.replay` replays
    timeline.parquet/  and when, a file a segment; with timeline=true
    trace.json         the same for a trace viewer, once `experiments.timeline` was asked for it
    model/             the trained model, for transformers' `from_pretrained`
    .lock              held while a process is at the run

Whole files are replaced atomically; lines are appended whole. Beside the folders of runs lies what
they share, and the analysis reads none of it:

    cut.json           the cuts of models into stages that were measured
    costs.json         the costs that were measured
    .jobs/             logs of processes and of SLURM's jobs, and which job is whose
    .code/             the code as it was when runs were submitted
"""

import json
import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from omegaconf import DictConfig, OmegaConf

from experiments.config import flat
from experiments.run.environment import describe_environment

ELSEWHERE = (
    *("runs", "cluster", "retry", "dry_run", "timeline", "grid"),
    *("seeds", "batches", "accumulations", "counts", "sizes"),
    *("count", "size", "devices"),
)
"""Keys that say where and beside what a run happens and what it keeps, not what it computes."""
RESULTS = ("completed", "diverged", "failed", "out-of-memory")
"""States that are not gone on from; the others are."""
_NOT_SET = "not set"


class InUse(ValueError):
    """Another process holds the run."""


class RunFolder:
    """The run of `config` in `path`; one process at a time may hold it (`claimed`)."""

    def __init__(self, path: Path, config: DictConfig):
        self.path = path
        self.config = config
        self.checkpoints = path / "checkpoints"
        self.orders = path / "orders"
        self.timeline = path / "timeline.parquet"
        self.model = path / "model"

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the folder; make it if need be. Raises ValueError if it holds the run of another
        configuration, and `InUse` if another process is at it."""
        self.check_config()
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.path / ".lock", timeout=1):  # `held` looks for a moment
                self.plan()
                yield
        except Timeout:
            raise InUse(f"{self.path} is held by another process that runs it") from None

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do; with `retry`, only if the run is completed."""
        return self.status().get("state") in (RESULTS if not self.config.retry else ["completed"])

    @property
    def held(self) -> bool:
        """Whether a process is at the run, as far as locks tell here."""
        lock = self.path / ".lock"
        if not lock.exists():
            return False
        try:
            with FileLock(lock, timeout=0):
                return False
        except Timeout:
            return True

    def plan(self) -> None:
        """Say what is to be run here, unless a run has started: whoever reads the folder then
        knows of the run before it starts, and also if it never does."""
        if not self._holds_a_run():
            self.path.mkdir(parents=True, exist_ok=True)
            replace(self.path / "config.yaml", OmegaConf.to_yaml(_own(self.config)))

    def check_config(self) -> None:
        """Raise ValueError if the folder holds the run of another configuration, or cannot be
        made."""
        there = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
        if not there.is_dir():
            raise ValueError(
                f"{there} is a file, where the folder of a run should be: choose another folder "
                "with runs=..."
            )
        file = self.path / "config.yaml"
        if not self._holds_a_run():
            return
        try:
            held = OmegaConf.load(file)
            there, here = flat(held), flat(_own(self.config))
        except Exception as error:
            raise ValueError(
                f"{file} cannot be read ({type(error).__name__}): remove the folder "
                "or choose another with runs=..."
            ) from error
        differing = [
            key
            for key in {*there, *here} - {"data.folder"}  # data may be moved
            if there.get(key, _NOT_SET) != here.get(key, _NOT_SET)
        ]
        if differing:
            # A group's name, or what is in none, says more than what follows from it.
            key = min(differing, key=lambda key: ("." in key and not key.endswith(".name"), key))
            more = f", and {len(differing) - 1} more" if len(differing) > 1 else ""
            raise ValueError(
                f"{self.path} holds the run of another configuration ({key} is "
                f"{there.get(key, _NOT_SET)!r} there, {here.get(key, _NOT_SET)!r} here{more}): "
                "choose another folder with runs=..."
            )

    def _holds_a_run(self) -> bool:
        """Whether there is a configuration, and anything besides it: else it is but a plan."""
        files = {file.name for file in self.path.glob("[!.]*")}
        return "config.yaml" in files and len(files) > 1

    def describe(self) -> None:
        """Say on what machine and with what code the run is done, from the update it goes on."""
        file = self.path / "environment.json"
        try:
            starts = list(json.loads(file.read_text()))
        except (OSError, ValueError, TypeError):
            starts = []
        starts.append({"from_update": self.kept} | describe_environment())
        replace(file, json.dumps(starts, indent=1))

    def status(self) -> dict:
        """What `report` wrote last; {} if nothing, or nothing that can be read."""
        try:
            status = json.loads((self.path / "status.json").read_text())
        except (OSError, ValueError):
            return {}
        return status if isinstance(status, dict) else {}

    def report(self, state: str, update: int, updates: int, why: str | None = None) -> None:
        """Say where the run stands: `update` of `updates` are done."""
        status = {"state": state, "why": why, "update": update, "updates": updates}
        replace(self.path / "status.json", json.dumps(status))

    @property
    def kept(self) -> int:
        """The updates in the newest checkpoint."""
        from paci import checkpoint  # not above: it loads torch, which few who look here need

        return checkpoint.taken_at(self.checkpoints) // self.config.method.accumulation

    def interrupted(self) -> str:
        """Why a run was preempted, and what is not lost."""
        return f"interrupted: goes on from update {self.kept}"

    def log(self, file: str, lines: list[dict]) -> None:
        """Append `lines` to metrics.jsonl, throughput.jsonl or stages.jsonl."""
        with (self.path / file).open("a") as log:
            log.write("".join(json.dumps(line) + "\n" for line in lines))

    def lines(self, file: str) -> list[dict]:
        """Those that `log` has appended to `file` and that are whole."""
        log = self.path / file
        return [json.loads(line) for line in _whole_lines(log)] if log.exists() else []

    def rewind(self, update: int) -> None:
        """Forget what came after `update`: the run goes on from a checkpoint taken there; and every
        repetition, none of which is gone on with. Warns if updates before it are not in the log (a
        disk that was full, a file that was edited): they are in the weights all the same."""
        for name in ("metrics.jsonl", "stages.jsonl", "throughput.jsonl"):
            file = self.path / name
            if file.exists():
                kept = [line for line in _whole_lines(file) if _update_of(line) <= update]
                replace(file, "".join(kept))
        for file in (*self.orders.glob("*.csv"), *self.timeline.glob("*.parquet")):
            if int(file.stem) > update:
                file.unlink()
        self._warn_of_holes(update)

    def _warn_of_holes(self, update: int) -> None:
        file = self.path / "metrics.jsonl"
        lines = map(json.loads, _whole_lines(file)) if file.exists() else []
        logged = {line.get("update") for line in lines if "loss" in line}
        missing = [number for number in range(1, update + 1) if number not in logged]
        if missing:
            warnings.warn(
                f"{file} has no line of {len(missing)} of the {update} updates done (of update "
                f"{missing[0]}{' and later ones' if missing[1:] else ''}): the run goes on without",
                stacklevel=3,
            )


def replace(file: Path, text: str) -> None:
    """Write `text` to `file`, whole or not at all."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.write_text(text)
    os.replace(draft, file)


def _whole_lines(file: Path) -> Iterator[str]:
    """The lines that were written to their end: a killed run may leave half a line."""
    for line in file.read_text(errors="replace").splitlines(keepends=True):
        try:
            whole = line.endswith("\n") and isinstance(json.loads(line), dict)
        except ValueError:
            continue
        if whole:
            yield line


def _update_of(line: str) -> float:
    """The update that a line is of; no update ever gets to a line of a repetition."""
    return json.loads(line).get("update", math.inf)


def _own(config: DictConfig) -> DictConfig:
    return OmegaConf.create({key: value for key, value in config.items() if key not in ELSEWHERE})
