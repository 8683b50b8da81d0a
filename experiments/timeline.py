"""Break down the time of a run: python -m experiments.timeline RUN

Prints how long each rank was busy and what it waited for, in seconds on the clock of the run, or in
the units of the given costs. If the run recorded its timeline (timeline=true), writes it to
RUN/trace.json, which https://ui.perfetto.dev opens.
"""

from collections import Counter, defaultdict
from pathlib import Path

from tabulate import tabulate

import runlog
from experiments.run.timelines import load_timeline
from experiments.terminal.command_line import command, run_folder, user_errors

WAITING = ("input", "gradient", "backpressure")


@command()
def main() -> None:
    with user_errors():
        run = run_folder(__doc__)
        rows = table(run)
        print(tabulate(rows, headers="keys", floatfmt=".3f", missingval="–"))
        if recorded := any((run / runlog.TIMELINE).glob("*.parquet")):
            load_timeline(run).perfetto(run / runlog.TRACE)
    if recorded:
        print(f"\n{run / 'trace.json'}: the same action by action, for https://ui.perfetto.dev")
    else:
        print("\nNo trace.json: the run recorded no timeline (timeline=true).")


def table(run: Path) -> list[dict]:
    """Return a row per rank, from stages.jsonl. The bubble is idle time over busy time. Idle time
    beyond the waits was spent in the runtime, and at the ends of segments, where a rank that has
    finished waits for the others.
    """
    lines = runlog.read_lines(run / runlog.STAGES)[0]
    if not lines:
        raise ValueError(
            f"{run} has nothing in stages.jsonl: it is no run folder, or no segment has ended"
        )
    if not all({"rank", "busy_seconds", "idle_seconds"} <= line.keys() for line in lines):
        raise ValueError(
            f"{run / 'stages.jsonl'} does not say how long each rank was busy: it is damaged, or "
            "of an older version"
        )
    busy: Counter[int] = Counter()
    idle: dict[int, dict[int, float]] = defaultdict(dict)  # all stages of a rank give the rank's
    waiting: dict[int, dict[int, dict]] = defaultdict(dict)
    for line in lines:
        rank, update = line["rank"], line["update"]
        busy[rank] += line.get("busy_units", line["busy_seconds"])
        idle[rank][update] = line.get("idle_units", line["idle_seconds"])
        waiting[rank][update] = line.get("waiting_seconds", {})
    unit = "units" if lines[0].get("clock") == runlog.UNITS else "s"
    rows = []
    for rank in sorted(busy):
        all_idle = sum(idle[rank].values())
        row = {
            "rank": rank,
            f"busy ({unit})": busy[rank],
            f"idle ({unit})": all_idle,
            "bubble (idle/busy)": f"{all_idle / busy[rank]:.1%}" if busy[rank] else None,
        }
        waits = sum(map(Counter, waiting[rank].values()), Counter())
        if waits:
            row |= {f"waits for {cause} ({unit})": waits[cause] for cause in WAITING}
        rows.append(row)
    return rows


if __name__ == "__main__":
    main()
