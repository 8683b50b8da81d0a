"""Recordings of trainings by the authors' code: the events of every stage, and the results."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from paci.actions import BACKWARD, FORWARD, Action
from verification.authors.cases import CASES
from verification.authors.outcome import Outcome, named_adam, named_weights

PORT = "VERIFICATION_RPC_PORT"  # the variable that names the port of the authors' processes
ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 900.0  # seconds


class AuthorsFailed(Exception):
    """A training by the authors' code did not end well; says where its output is."""


class Event(NamedTuple):
    """One event of a stage; see `recorder.py`."""

    kind: str
    number: int
    version: int
    in_flight: int
    rate: float | None


@dataclass(frozen=True)
class Recording:
    """A training: the events of every stage, and `results`, a dictionary of losses, evaluations,
    weights and optimizers."""

    events: list[list[Event]]
    results: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> "Recording":
        """Read what `train.py` wrote."""
        stages = sorted(folder.glob("stage*.json"))
        events = [[Event(*event) for event in json.loads(path.read_text())] for path in stages]
        return cls(events, torch.load(folder / "result.pt", weights_only=False))

    def then(self, later: "Recording") -> "Recording":
        """Return the training that this one and `later`, which went on from it, are together."""
        events = [own + more for own, more in zip(self.events, later.events, strict=True)]
        results = dict(later.results)
        for name in ("losses", "evaluations"):
            results[name] = self.results[name] + later.results[name]
        return Recording(events, results)

    def orders(self) -> list[list[Action]]:
        """Return the order of every stage's actions, for paci to replay.

        In paci a backward ends with the sending of its gradient and, at the end of a window, with
        the update. Raises ValueError if a stage did either at another time.
        """
        return [_order(stage, events) for stage, events in enumerate(self.events)]

    def outcome(self) -> Outcome:
        """Return the outcome of the training."""
        return Outcome(
            losses=self.results["losses"],
            weights=named_weights(self.results["weights"]),
            adam=named_adam(self.results["optimizers"]),
            drift=[_drift(events) for events in self.events],
            in_flight=[_most_in_flight(events) for events in self.events],
            rates=[[e.rate for e in events if e.rate is not None] for events in self.events],
            evaluations=self.results["evaluations"],
        )


def record(checkout: Path, name: str, folder: Path, first: int, last: int) -> Recording:
    """Train updates `first` to `last` (not included) of the case `name` with the authors' code.

    Writes to a folder in `folder`. Raises AuthorsFailed if the training fails or takes too long.
    """
    part = folder.resolve() / f"{first}-{last}"
    part.mkdir(parents=True, exist_ok=True)
    for old in part.iterdir():
        old.unlink()
    program = [sys.executable, "-m", "verification.authors.train"]
    arguments = [name, str(part), str(first), str(last)]
    log = part / "log.txt"
    with log.open("w") as output:
        process = subprocess.Popen(
            program + arguments, cwd=ROOT, env=_environment(checkout), start_new_session=True,
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            status = process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise AuthorsFailed(f"no end after {TIMEOUT:.0f} seconds: see {log}") from None
        finally:
            _end_all(process)
    if status or not (part / "result.pt").exists():
        raise AuthorsFailed(f"ended with status {status}: see {log}")
    recording = Recording.read(part)
    if len(recording.events) != CASES[name].stages:
        raise AuthorsFailed(f"left the events of {len(recording.events)} stages: see {log}")
    return recording


def _environment(checkout: Path) -> dict[str, str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    own = {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1", PORT: port}
    return os.environ | own


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """End the program and the stages that it started, all of one session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _order(stage: int, events: list[Event]) -> list[Action]:
    order, at_work = [], None
    for event in events:
        if event.kind in (FORWARD, BACKWARD):
            at_work = Action(stage, event.kind, event.number)
            order.append(at_work)
        elif event.kind == "refuse":
            at_work = None
        elif at_work is None or at_work.kind != BACKWARD:
            raise ValueError(f"stage {stage}: {event.kind} {event.number} is not of a backward")
        elif event.kind == "update":
            at_work = None  # nothing more belongs to this backward
    return order


def _drift(events: list[Event]) -> Counter[int]:
    seen = {event.number: event.version for event in events if event.kind == FORWARD}
    backwards = (event for event in events if event.kind == BACKWARD)
    return Counter(event.version - seen[event.number] for event in backwards)


def _most_in_flight(events: list[Event]) -> int:
    return 1 + max(event.in_flight for event in events if event.kind == FORWARD)
