"""Timelines: rows of actions with their times, as numbers, as a picture in text, as a trace."""

import json
from collections.abc import Sequence
from pathlib import Path

from paci.actions import (
    BACKWARD,
    ENDS_BACKWARD,
    FORWARD,
    INPUT_GRADIENT,
    WEIGHT_GRADIENT,
    Action,
)
from paci.simulation.event_loop import Step

_MARK = {FORWARD: "", BACKWARD: "'", INPUT_GRADIENT: "i", WEIGHT_GRADIENT: "w"}


class Timeline:
    """The actions of `ranks` ranks with their start and end, in any one unit of time; a stage
    updates with every `accumulation`-th backward."""

    def __init__(self, rows: Sequence[Step], ranks: int, accumulation: int):
        self.rows = rows
        self.ranks = ranks
        self.accumulation = accumulation

    @property
    def makespan(self) -> float:
        """Time from the start of the first action to the end of the last."""
        return max(row.end for row in self.rows) - min(row.start for row in self.rows)

    @property
    def busy(self) -> list[float]:
        """Time spent in actions and updates, per rank."""
        busy = [0.0] * self.ranks
        for row in self.rows:
            busy[row.rank] += row.end - row.start
        return busy

    @property
    def utilization(self) -> float:
        """Busy time of the busiest rank over the makespan."""
        return max(self.busy) / self.makespan

    def updates(self, row: Step) -> bool:
        """Return whether `row` ends in its stage's update."""
        return row.kind in ENDS_BACKWARD and (row.microbatch + 1) % self.accumulation == 0

    def orders(self) -> list[list[Action]]:
        """Return the actions of each rank from first to last."""
        orders: list[list[Action]] = [[] for _ in range(self.ranks)]
        for row in sorted(self.rows, key=lambda row: row.start):
            orders[row.rank].append(Action(row.stage, row.kind, row.microbatch))
        return orders

    def ascii(self, unit: float | None = None) -> str:
        """Return a picture for small cases: a line per rank, a cell per `unit` (default: the
        shortest action).

        `3` is the forward of micro-batch 3, `3'` its backward, `3i` and `3w` the halves of a split
        one, `-` goes on, `.` waits, and `|` is the stage's own update. With several stages on a
        rank, actions are written in full, like `2F3`.

        >>> from paci import simulate, Cost
        >>> run = simulate("1f1b-flush", 2, microbatches=2, accumulation=2, cost=Cost(1, 1))
        >>> print(run.timeline.ascii())
        rank 0  0  1  .  0' .  1'|
        rank 1  .  0  0' 1  1'|
        """
        rows = sorted(self.rows, key=lambda row: row.start)
        unit = unit or min(row.end - row.start for row in rows)
        several = len({row.stage for row in rows}) > self.ranks
        labels = [
            str(Action(row.stage, row.kind, row.microbatch))
            if several
            else f"{row.microbatch}{_MARK[row.kind]}"
            for row in rows
        ]
        width = 1 + max(map(len, labels))
        lines: list[list[str]] = [[] for _ in range(self.ranks)]
        for row, label in zip(rows, labels, strict=True):
            line = lines[row.rank]
            start = round((row.start - rows[0].start) / unit)
            length = max(1, round((row.end - row.start) / unit))
            line += [".".ljust(width)] * (start - len(line))
            cells = label.ljust(width * length - 1, " " if length == 1 else "-")
            line.append(cells + ("|" if self.updates(row) else " "))
            line += [""] * (length - 1)
        return "\n".join(
            f"rank {rank}".ljust(len(f"rank {self.ranks - 1}") + 2) + "".join(line).rstrip()
            for rank, line in enumerate(lines)
        )

    def perfetto(self, path: str | Path, seconds_per_unit: float = 1.0) -> None:
        """Write Chrome's trace format, which https://ui.perfetto.dev opens: a track a rank."""
        names = [
            {"ph": "M", "pid": 0, "tid": r, "name": "thread_name", "args": {"name": f"rank {r}"}}
            for r in range(self.ranks)
        ]
        actions = [
            {
                "ph": "X",
                "pid": 0,
                "tid": row.rank,
                "name": str(Action(row.stage, row.kind, row.microbatch)),
                "cat": row.kind,
                "ts": row.start * seconds_per_unit * 1e6,
                "dur": (row.end - row.start) * seconds_per_unit * 1e6,
                "args": {"stage": row.stage, "microbatch": row.microbatch, "version": row.version},
            }
            for row in self.rows
        ]
        Path(path).write_text(json.dumps({"traceEvents": names + actions}))
