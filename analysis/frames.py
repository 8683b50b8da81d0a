"""The data frames into which run folders are read."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import pandas as pd

from analysis.logs import numbered
from analysis.states import is_result

NO_EXPERIMENT = "none"
"""The experiment of a run of its own."""


class Note(NamedTuple):
    """A sentence about a run or a file, which stands before it: "RUN: not used: never started."."""

    text: str
    refuses: bool = False
    """Whether the sentence is the reason why the run is not used."""


@dataclass(frozen=True)
class Frames:
    """The content of a set of run folders.

    `runs` has one row per folder, readable or not, indexed by its path below the root; a folder
    that cannot be used has a `state` that `is_result` does not accept. The other frames are
    indexed by run and hold every update (loss in nats per token), evaluation, stage and segment
    (drift as a histogram {versions: micro-batches}), sampled weight movement (relative to the
    weights' norm) and, of runs whose task is throughput, repetition. `simulations` has a row per
    line of every `simulations.jsonl`, with whatever columns these have; it stands for no run.
    `remarks` are pairs of the name of a run, or of a file, and a note on it.
    """

    runs: pd.DataFrame
    updates: pd.DataFrame
    evaluations: pd.DataFrame
    stages: pd.DataFrame
    movement: pd.DataFrame
    throughput: pd.DataFrame
    simulations: pd.DataFrame
    remarks: tuple[tuple[str, Note], ...] = ()

    def of(self, *tasks: str) -> "Frames":
        """Return the same frames with only the runs of these tasks, and those whose own is unknown,
        and the remarks on them."""
        mine = self.runs["task"].isin(tasks) | self.runs["task"].isna()
        others = set(self.runs.index[~mine])
        remarks = tuple(remark for remark in self.remarks if remark[0] not in others)
        return replace(self, runs=self.runs[mine], remarks=remarks)

    @property
    def notes(self) -> list[str]:
        """The `sentences` of all remarks."""
        return sentences(self.remarks)

    @property
    def used(self) -> pd.DataFrame:
        """The rows of `runs` that are a result."""
        return self.runs[is_result(self.runs)]

    @property
    def partial(self) -> str:
        """Text like "11 of 12 runs" if some runs cannot be used, else an empty string."""
        used, known = len(self.used), len(self.runs)
        return "" if used == known else f"{used} of {known} runs"


def sentences(remarks: Iterable[tuple[str, Note]]) -> list[str]:
    """Return a sentence for each different note, which names the runs that have it."""
    about: dict[Note, list[str]] = {}
    for name, note in remarks:
        about.setdefault(note, []).append(name)
    return [
        f"{names[0] if len(names) == 1 else numbered('run', names)}: {note.text}"
        for note, names in about.items()
    ]
