"""The interface of a dashboard."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments.dashboards.steps import Step


class ExportedRun(NamedTuple):
    """A run as a dashboard names it: `name` is its path below the folder of runs, and `config` its
    settings, nested."""

    name: str
    generation: int
    config: dict[str, Any]

    @property
    def label(self) -> str:
        """The name, with the number of a run that was sent anew."""
        return self.name + (f"-{self.generation + 1}" if self.generation else "")

    def settings(self) -> dict[str, Any]:
        """Return the settings by their dotted keys, as the command line has them."""
        flat: dict[str, Any] = {}

        def visit(prefix: str, value: Any) -> None:
            if isinstance(value, dict):
                for key, inner in value.items():
                    visit(f"{prefix}{key}.", inner)
            else:
                flat[prefix[:-1]] = value

        visit("", self.config)
        return flat


class OpenRun(ABC):
    """A run that a dashboard takes steps of."""

    @abstractmethod
    def send(self, steps: Sequence[Step]) -> None:
        """Send `steps`, and return when the dashboard has them."""

    @abstractmethod
    def close(self, state: str) -> None:
        """Send no more for now; `state` is that of the run folder."""


class Dashboard(ABC):
    """A dashboard that keeps its files in `folder`. Making one raises ImportError if its package is
    not installed."""

    package: str
    """The name on PyPI, and of the extra."""

    def __init__(self, folder: Path):
        self.folder = folder

    @abstractmethod
    def open(self, run: ExportedRun) -> OpenRun:
        """Return `run`, new or with the steps that it already has."""

    @abstractmethod
    def how_to_look(self) -> str:
        """Return the command that shows what was sent."""
