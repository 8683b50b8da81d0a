"""What else the machine did while it was measured: others' work, and time that its host took."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")
REST = 1.0  # seconds before and after a benchmark in which only others use the processors
MOST_BUSY, MOST_STOLEN = 0.05, 0.01


@dataclass
class Machine:
    """The state of the machine around one benchmark; shares are of all its processors' time.

    busy     of others, while the benchmark rested before it began and after it had ended
    stolen   by the host, for other virtual machines, from the beginning to the end
    load     the load average of the last minute before the beginning
    """

    processors: int
    load: float
    busy: float = 0.0
    stolen: float = 0.0

    @property
    def disturbance(self) -> str:
        """Say what disturbed the measurement; empty if nothing did."""
        found = []
        if self.busy > MOST_BUSY:
            found.append(f"other processes took {self.busy:.0%} of the processors at rest")
        if self.stolen > MOST_STOLEN:
            found.append(f"the host took {self.stolen:.1%} of their time")
        return " and ".join(found)


@contextmanager
def watched() -> Iterator[Machine]:
    """Give the machine's state, which is complete after the block. Where the system keeps no
    /proc/stat the shares stay 0."""
    machine = Machine(os.cpu_count() or 1, os.getloadavg()[0])
    before = _busy_at_rest()
    start = _jiffies()
    try:
        yield machine
    finally:
        machine.stolen = _shares(start, _jiffies())[1]
        machine.busy = max(before, _busy_at_rest())


def _busy_at_rest() -> float:
    start = _jiffies()
    time.sleep(REST)
    return _shares(start, _jiffies())[0]


def _jiffies() -> list[int]:
    """Return the jiffies of all processors together: user, nice, system, idle, iowait, irq,
    softirq, steal."""
    if not STAT.exists():
        return [0] * 8
    return [int(field) for field in STAT.read_text().splitlines()[0].split()[1:9]]


def _shares(start: list[int], end: list[int]) -> tuple[float, float]:
    """Return the shares of the time between two readings that were busy, and stolen."""
    spent = [after - before for before, after in zip(start, end, strict=True)]
    total = sum(spent) or 1
    idle, stolen = spent[3] + spent[4], spent[7]
    return (sum(spent) - idle - stolen) / total, stolen / total
