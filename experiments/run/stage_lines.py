"""The lines of stages.jsonl: what the books of the stages say of a segment."""

from collections import Counter
from dataclasses import asdict

from experiments import models
from experiments.run.cut import cut_for
from experiments.run.run import Run
from paci.segment import Segment


def stage_lines(run: Run, segment: Segment, update: int, clock: str) -> list[dict]:
    """A line a stage of a segment that ended after `update`. Bytes are peaks within the segment,
    those of the allocator its rank's."""
    busy: Counter[int] = Counter()
    for row in segment.timeline.rows:
        busy[row.stage] += row.end - row.start
    ranks = {row.stage: row.rank for row in segment.timeline.rows}
    vocabulary = run.corpus.vocabulary
    cut = cut_for(run.config, vocabulary)
    parameter_bytes = models.parameter_bytes(run.config.model, vocabulary, cut)
    lines = []
    for stage, rank in sorted(ranks.items()):
        held = segment.peak_held[stage]
        line = {
            "update": update,
            "stage": stage,
            "rank": rank,
            "drift": segment.drift[stage],
            "staleness": segment.staleness[stage],
            "movement": [asdict(movement) for movement in segment.movements[stage]],
            "peak_in_flight": segment.peak_in_flight[stage],
            "parameter_bytes": parameter_bytes[stage],
            "gradient_bytes": held.gradients,
            "optimizer_bytes": held.optimizer,
            "activation_bytes": held.activations,
            "version_bytes": held.copies,
            "busy_seconds": busy[stage],
            "idle_seconds": segment.seconds - segment.timeline.busy[rank],
            "clock": clock,
        }
        if segment.waiting:
            line["waiting_seconds"] = segment.waiting[rank]
        if segment.allocated:
            line["allocated_bytes"] = segment.allocated[rank]
        lines.append(line)
    return lines
