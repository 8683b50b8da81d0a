"""Where the time of a run went: python -m experiments.timeline RUN

Prints, for each rank, what it was busy with and what it waited for, in seconds of training on the
clock of the run. If the run kept its timeline (timeline=true), writes it to RUN/trace.json, which
https://ui.perfetto.dev opens.
"""

import json
from collections import Counter, defaultdict
from pathlib import Path

import pandas
from omegaconf import OmegaConf
from tabulate import tabulate

from experiments.cli import arguments, user_errors
from paci.clock import Step
from paci.timeline import Timeline

WAITING = ("input", "gradient", "backpressure")


def main() -> None:
    with user_errors():
        given = arguments(__doc__)
        if len(given) != 1:
            raise ValueError(f"name one run folder, not {len(given)} of them")
        run = Path(given[0])
        rows = table(run)
    print(tabulate(rows, headers="keys", floatfmt=".3f", missingval="–"))
    if (run / "timeline.parquet").is_dir():
        read(run).perfetto(run / "trace.json")
        print(f"\n{run / 'trace.json'}: the same action by action, for https://ui.perfetto.dev")
    else:
        print("\nNo trace.json: the run kept no timeline (timeline=true).")


def table(run: Path) -> list[dict]:
    """A row a rank, from stages.jsonl. The bubble is all the time not busy; what of it no wait
    accounts for is the runtime's own, and the ends of segments, which not all ranks reach at once.
    """
    if not (run / "stages.jsonl").is_file():
        raise ValueError(f"{run} has no stages.jsonl: it is no run folder, or no segment has ended")
    busy: Counter[int] = Counter()
    idle: dict[int, dict[int, float]] = defaultdict(dict)  # a rank's stages all give the rank's
    waiting: dict[int, dict[int, dict]] = defaultdict(dict)
    for text in (run / "stages.jsonl").read_text().splitlines():
        line = json.loads(text)
        rank, update = line["rank"], line["update"]
        busy[rank] += line["busy_seconds"]
        idle[rank][update] = line["idle_seconds"]
        waiting[rank][update] = line.get("waiting_seconds", {})
    rows = []
    for rank in sorted(busy):
        all_idle = sum(idle[rank].values())
        bubble = all_idle / (busy[rank] + all_idle)
        row = {"rank": rank, "busy": busy[rank], "idle": all_idle, "bubble": f"{bubble:.1%}"}
        waits = sum(map(Counter, waiting[rank].values()), Counter())
        if waits:
            row |= {f"waits for {cause}": waits[cause] for cause in WAITING}
        rows.append(row)
    return rows


def keep(timeline: Timeline, file: Path, first: int, seconds: float) -> None:
    """Write a segment, which began with micro-batch `first` of the run after so many `seconds` of
    training, atomically. Columns are those of `paci.clock.Step`, counted from the run's start."""
    rows = pandas.DataFrame(timeline.rows, columns=Step._fields)
    rows = rows.assign(
        microbatch=rows.microbatch + first, start=rows.start + seconds, end=rows.end + seconds
    )
    file.parent.mkdir(exist_ok=True)
    draft = file.with_name(f".{file.name}")
    rows.to_parquet(draft, index=False)
    draft.replace(file)


def read(run: Path) -> Timeline:
    """What `keep` kept of a run, all its segments together."""
    rows = pandas.read_parquet(run / "timeline.parquet")
    accumulation = OmegaConf.load(run / "config.yaml").method.accumulation
    steps = [Step(*row) for row in rows.itertuples(index=False)]
    return Timeline(steps, int(rows["rank"].max()) + 1, accumulation)


if __name__ == "__main__":
    main()
