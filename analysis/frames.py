"""What a set of run folders says, as data frames."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import pandas as pd

from analysis.logs import numbered
from analysis.states import is_result

NO_EXPERIMENT = "none"
"""The experiment of a run of its own, which no table or figure reads."""


class Note(NamedTuple):
    """A sentence that is to name its run, or its file."""

    text: str
    refuses: bool = False  # whether it says why the run is not used


@dataclass(frozen=True)
class Frames:
    """Everything that a set of run folders says.

    `runs` has one row per folder, readable or not, indexed by its path below the root; a folder
    that cannot be used has a `state` that `is_result` does not accept. The other frames are
    indexed by run and hold every update (loss in nats per token), evaluation, stage and segment
    (drift as a histogram {versions: micro-batches}), sampled weight movement (relative to the
    weights' norm) and, of runs whose task is throughput, repetition. `simulations` has a row per
    line of every `simulations.jsonl`, with whatever columns these have; it stands for no run.
    `remarks` are pairs: a run's name, or a file's, and what is to be known of it.
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
        mine = self.runs["task"].isin(tasks) & (self.runs["experiment"] != NO_EXPERIMENT)
        mine |= self.runs["task"].isna()
        others = set(self.runs.index[~mine])
        remarks = tuple(remark for remark in self.remarks if remark[0] not in others)
        return replace(self, runs=self.runs[mine], remarks=remarks)

    @property
    def notes(self) -> list[str]:
        """`sentences` of all remarks."""
        return sentences(self.remarks)

    @property
    def used(self) -> pd.DataFrame:
        """The rows of runs that are a result."""
        return self.runs[is_result(self.runs)]

    @property
    def partial(self) -> str:
        """ "11 of 12 runs" when some runs cannot be used, else an empty string."""
        used, known = len(self.used), len(self.runs)
        return "" if used == known else f"{used} of {known} runs"


def sentences(remarks: Iterable[tuple[str, Note]]) -> list[str]:
    """A sentence for each different note, which names the runs that it is about."""
    about: dict[Note, list[str]] = {}
    for name, note in remarks:
        about.setdefault(note, []).append(name)
    return [
        f"{names[0] if len(names) == 1 else numbered('run', names)}: {note.text}"
        for note, names in about.items()
    ]
