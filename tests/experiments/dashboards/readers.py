"""What dashboards have of a run, read from the files that they write: {name: [(step, value)]}."""

import json
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

Series = dict[str, list[tuple[int, float]]]


def tensorboard(folder: Path, run: str) -> Series:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / run), size_guidance={"scalars": 0}).Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def wandb(folder: Path, run: str) -> Series:
    """Read all offline parts of the run, as `wandb sync` does, once the process that writes them
    has ended."""
    import wandb
    from wandb.proto.wandb_internal_pb2 import Record

    wandb.teardown()
    series = defaultdict(list)
    for file in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        name, parts = "", []
        for data in _leveldb_log(file):
            record = Record.FromString(data)
            if record.HasField("run"):
                name = record.run.display_name
            if record.HasField("history"):
                row = {
                    item.key or "/".join(item.nested_key): json.loads(item.value_json)
                    for item in record.history.item
                }
                parts += [(key, row["_step"], value) for key, value in row.items() if key[0] != "_"]
        if name == run:
            for key, step, value in parts:
                series[key].append((step, value))
    return dict(series)


def _leveldb_log(file: Path) -> Iterator[bytes]:
    """Yield the records of a file in the format of LevelDB's log, after a header of 7 bytes."""
    data, at, record = file.read_bytes(), 7, b""
    while at < len(data):
        left = 32768 - at % 32768  # in this block, which no header crosses
        if left < 7:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or its last part
            yield record
            record = b""


def mlflow(folder: Path, run: str) -> Series:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")
    (experiment,) = client.search_experiments(filter_string="name = 'paci'")
    (found,) = client.search_runs([experiment.experiment_id], f"attributes.run_name = '{run}'")
    return {
        name: [(m.step, m.value) for m in client.get_metric_history(found.info.run_id, name)]
        for name in found.data.metrics
    }
