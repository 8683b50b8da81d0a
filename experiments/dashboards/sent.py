"""What a dashboard already has of a run, so that a repeated export sends only what is new."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import runlog
from experiments.dashboards.steps import Step


@dataclass(frozen=True)
class Sent:
    """The steps of a run that were sent, counted, with their digest.

    `generation` counts the times that the run was sent anew, because it no longer begins with what
    was sent: a run that was removed and done again, or one that went back behind the fall of its
    rate to be made longer.
    """

    generation: int = 0
    steps: int = 0
    digest: str = hashlib.sha256().hexdigest()
    state: str = ""

    @classmethod
    def read(cls, file: Path) -> "Sent":
        """Return what `write` wrote; nothing sent if there is no such file."""
        content = runlog.read_json(file)
        return cls() if content is None else cls(**content)

    def write(self, file: Path) -> None:
        runlog.write_json(file, asdict(self))

    def fits(self, steps: Sequence[Step]) -> bool:
        """Return whether `steps` begin with those that were sent."""
        return len(steps) >= self.steps and digest(steps[: self.steps]) == self.digest


def digest(steps: Sequence[Step]) -> str:
    """Return the SHA-256 of the numbers of `steps`."""
    hashed = hashlib.sha256()
    for step in steps:
        hashed.update(repr((step.number, sorted(step.values.items()))).encode())
    return hashed.hexdigest()
