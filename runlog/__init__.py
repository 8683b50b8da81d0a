"""The contract of a run folder: its files, their records, how they are written and read.

    RUNS/NAME/
      config.yaml        the resolved configuration
      code.diff          the difference of a submitted run's code to its commit
      identity.json      what the numbers depend on beside the configuration        Identity
      cost.json          the measured times of a simulated clock                    CostTable
      environment.json   machine, versions, commit and wall time, a list            [Start]
      status.json        state, progress, and the reason for the state              Status
      metrics.jsonl      a line per update and per evaluation          UpdateLine, EvaluationLine
      throughput.jsonl   a line per repetition; instead of metrics.jsonl         RepetitionLine
      stages.jsonl       a line per stage and segment                                StageLine
      checkpoints/       checkpoints of `paci`, the newest two
      stable/            the last checkpoint before the rate falls; with optimizer.schedule=wsd
      decayed/           logs and models behind which a run that was made longer went back
      orders/            the order of each rank's actions, a file per segment
      timeline.parquet/  the times of all actions, a file per segment; with timeline=true
      trace.json         the same for a trace viewer; written by `experiments.timeline`
      model/             the trained model, for transformers' `from_pretrained`
      .lock              held by the process that executes the run

    RUNS/                what the runs of a folder share
      cut.json           measured cuts of models into stages
      costs.json         measured times
      .jobs/             logs of processes and of SLURM's jobs
      .code/             the code of submitted runs
      .dashboards/       what `experiments.export` has written for dashboards

`experiments` writes run folders and `analysis` reads them; neither spells a key of a record. This
package imports nothing of them, and no torch.
"""

from typing import Any

from runlog.reading import Damaged, deviations, read_json, read_last_lines, read_lines
from runlog.records import (
    UNITS,
    CostTable,
    EvaluationLine,
    Identity,
    MovementSample,
    RepetitionLine,
    Skipped,
    StageLine,
    Start,
    State,
    Status,
    UpdateLine,
    as_json,
    keys,
    required,
)
from runlog.writing import append, drafted, drafts, write, write_json

CONFIG = "config.yaml"
CODE_DIFF = "code.diff"
IDENTITY = "identity.json"
COST = "cost.json"
ENVIRONMENT = "environment.json"
STATUS = "status.json"
METRICS = "metrics.jsonl"
THROUGHPUT = "throughput.jsonl"
STAGES = "stages.jsonl"
CHECKPOINTS = "checkpoints"
STABLE = "stable"
DECAYED = "decayed"
ORDERS = "orders"
TIMELINE = "timeline.parquet"
TRACE = "trace.json"
MODEL = "model"
LOCK = ".lock"
CUTS = "cut.json"
COSTS = "costs.json"
JOBS = ".jobs"
CODE = ".code"

LATER: dict[str, Any] = {
    "named": [],
    "weights_from": None,
    "on_nonfinite": "stop",
    "most_skips": 10,
    "executor.recompute": "none",
    "executor.compile": False,
    "optimizer.schedule": "cosine",
    "optimizer.cooldown": 0.2,
    "optimizer.clip": "none",
    "optimizer.max_norm": 1.0,
}
"""Settings that configurations of older versions lack, and the values that their runs had."""

__all__ = [
    "CHECKPOINTS",
    "CODE",
    "CODE_DIFF",
    "CONFIG",
    "COST",
    "COSTS",
    "CUTS",
    "DECAYED",
    "ENVIRONMENT",
    "IDENTITY",
    "JOBS",
    "LATER",
    "LOCK",
    "METRICS",
    "MODEL",
    "ORDERS",
    "STABLE",
    "STAGES",
    "STATUS",
    "THROUGHPUT",
    "TIMELINE",
    "TRACE",
    "UNITS",
    "CostTable",
    "Damaged",
    "EvaluationLine",
    "Identity",
    "MovementSample",
    "RepetitionLine",
    "Skipped",
    "StageLine",
    "Start",
    "State",
    "Status",
    "UpdateLine",
    "append",
    "as_json",
    "deviations",
    "drafted",
    "drafts",
    "keys",
    "read_json",
    "read_last_lines",
    "read_lines",
    "required",
    "write",
    "write_json",
]
