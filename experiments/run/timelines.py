"""The timeline of a run on disk, a file for each segment. Loads pandas, which takes a second."""

from pathlib import Path

import pandas
from omegaconf import OmegaConf

import runlog
from paci.simulation.event_loop import Step
from paci.simulation.timeline import Timeline


def save_timeline(timeline: Timeline, file: Path, first: int, start: float) -> None:
    """Write the timeline of a segment that began with micro-batch `first` of the run, at time
    `start` of its clock. Columns are the fields of `paci.simulation.event_loop.Step`;
    micro-batches and times count from the start of the run."""
    rows = pandas.DataFrame(timeline.rows, columns=Step._fields)
    rows = rows.assign(
        microbatch=rows.microbatch + first, start=rows.start + start, end=rows.end + start
    )
    with runlog.drafted(file) as draft:
        rows.to_parquet(draft, index=False)


def load_timeline(run: Path) -> Timeline:
    """Return the timeline of all segments in the run folder `run`. Raises ValueError if it is
    damaged."""
    try:
        rows = pandas.read_parquet(run / runlog.TIMELINE)
        accumulation = OmegaConf.load(run / runlog.CONFIG).method.accumulation
    except Exception as error:
        raise ValueError(
            f"{run}: timeline.parquet or config.yaml cannot be read ({type(error).__name__})"
        ) from error
    steps = [Step(*row) for row in rows.itertuples(index=False)]
    return Timeline(steps, int(rows["rank"].max()) + 1, accumulation)
