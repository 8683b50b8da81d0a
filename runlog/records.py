"""The records of a run folder. A field is a key of the JSON; one with a default may be absent.

Losses are in nats per token, sizes in bytes. Times are on the clock that the record names: seconds
on "wall", "emulated" and "simulated, measured costs", and units of the configured costs on
"simulated". A time in units has a field of its own; the one in seconds is then None. Records of
older versions have units in the fields of seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, Literal

UNITS = "simulated"
"""The clock that counts units."""

State = Literal["running", "completed", "diverged", "failed", "out-of-memory", "preempted"]
"""`diverged` and `out-of-memory` are results of a run, as `completed` is."""


@dataclass(frozen=True)
class UpdateLine:
    """One update of all stages, a line of metrics.jsonl."""

    update: int
    """Its number, from 1."""
    tokens: int
    """Trained on so far, this update's included."""
    loss: float
    """Mean training loss of the update's window."""
    lr: float
    """Learning rate; the highest, if stages differ."""
    seconds: float | None
    """Since the start of training, evaluations left out, until the last stage made the update."""
    clock: str
    units: float | None = None


@dataclass(frozen=True)
class EvaluationLine:
    """One evaluation on the validation split, a line of metrics.jsonl."""

    update: int
    """Updates done before it; 0 is the untrained model."""
    tokens: int
    validation_loss: float
    perplexity: float
    seconds: float | None
    clock: str
    units: float | None = None


@dataclass(frozen=True)
class RepetitionLine:
    """One repetition of a throughput run, a line of throughput.jsonl: its steady part."""

    repetition: int
    """Its number, from 1."""
    tokens: int
    seconds: float
    updates: int
    clock: str


@dataclass(frozen=True)
class MovementSample:
    """The distance that a stage's weights moved between a micro-batch's forward and backward."""

    update: int
    """The update whose window has the micro-batch."""
    microbatch: int
    drift: int
    """Versions between forward and backward."""
    relative: float
    """Norm of the difference over the norm of the weights."""


@dataclass(frozen=True)
class Skipped:
    """One update that a stage left out."""

    update: int
    why: str


@dataclass(frozen=True)
class StageLine:
    """One stage in one segment, a line of stages.jsonl. Sizes are peaks within the segment."""

    update: int
    """The update that ended the segment."""
    stage: int
    rank: int
    drift: Mapping[int, int]
    """Histogram {versions between forward and backward: micro-batches}."""
    staleness: Mapping[int, int]
    """Histogram {versions between forward and the update that uses the gradient: micro-batches}."""
    movement: Sequence[MovementSample]
    peak_in_flight: int
    """Micro-batches between their forward and backward."""
    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    activation_bytes: int
    version_bytes: int
    """Copies of parameters beside the live ones."""
    busy_seconds: float | None
    """The stage's own."""
    idle_seconds: float | None
    """The rank's; all its stages give the same."""
    clock: str
    busy_units: float | None = None
    idle_units: float | None = None
    copied: float | None = None
    """Share of the parameters of which every graph keeps a copy, as under autocast: their backward
    sees the weights of its forward, whatever the policy of weights says."""
    skipped: Sequence[Skipped] | None = None
    """Updates left out because a loss or a gradient was not finite."""
    waiting_seconds: Mapping[str, float] | None = None
    """The rank's waits by cause ("input", "gradient", "backpressure"); not on a simulated clock."""
    allocated_bytes: int | None = None
    """Peak of what the rank's CUDA allocator gave out to tensors; absent without CUDA."""
    reserved_bytes: int | None = None
    """Peak of what that allocator took from the device."""
    device_used_bytes: int | None = None
    """Taken from the device by everybody, at the end of the segment: nvidia-smi's figure."""


@dataclass(frozen=True)
class Status:
    """The state of a run, status.json."""

    state: State
    why: str | None
    update: int
    """Updates done."""
    updates: int
    """Updates to do."""
    started: str | None = None
    """Wall time of the first start, ISO 8601 in UTC; so is `ended`."""
    ended: str | None = None
    """Absent while the run is at work."""
    wall_seconds: float | None = None
    """From each start to its end, all starts together; so far, while the run is at work."""


@dataclass(frozen=True)
class Start:
    """One start of a run, an entry of environment.json."""

    from_update: int
    """Updates in the checkpoint that it went on from; 0 for the beginning."""
    platform: str
    processor: str
    cores: int | None
    python: str
    packages: Mapping[str, str]
    """{package: version}."""
    commit: str | None
    """The code's, with "-dirty" if files differ from it."""
    started: str | None = None
    """Wall time, ISO 8601 in UTC; so is `ended`."""
    ended: str | None = None
    """Absent while the run is at work; the last report, if its process was killed."""
    wall_seconds: float | None = None
    """From `started` to `ended`, preparation and evaluations included."""


@dataclass(frozen=True)
class CostTable:
    """The measured seconds of each stage for one micro-batch, cost.json."""

    microbatch: int
    """Sequences of a micro-batch."""
    forward: Sequence[float]
    backward: Sequence[float]
    weight: Sequence[float]
    """The second half of a split backward."""
    update: Sequence[float]
    transfer: float | Sequence[float]
    """Time of a message between two ranks: configured, not measured."""
    input: Sequence[float] | None = None
    """The first half of a split backward."""
    sizes: Sequence[float] = (1.0,)
    """Times of a window's micro-batches, in order, over that of the largest; more than one where
    they are not equally large."""


@dataclass(frozen=True)
class Identity:
    """Everything besides the configuration that a run's numbers depend on, identity.json."""

    corpus: Mapping[str, Any]
    """Tokens and SHA-256 of both splits, the tokeniser's name and SHA-256."""
    cut: Sequence[Sequence[int]]
    """First unit of each stage, and the one after its last."""
    cost: Mapping[str, Any] | None
    """The times on the run's clock; none on a wall clock."""
    packages: Mapping[str, str]
    """Versions of those that compute."""
    code: Mapping[str, str]
    """{source file: SHA-256 of what it means}; comments and docstrings do not count."""
    weights: Mapping[str, Any] | None = None
    """The checkpoint whose weights the run began with, and the SHA-256 of its manifest; absent if
    it drew its own."""


def as_json(record: Any) -> dict[str, Any]:
    """Return a record as JSON's object. Optional fields that are None are left out."""
    needed = required(type(record))
    return {
        field.name: _plain(getattr(record, field.name))
        for field in fields(record)
        if field.name in needed or getattr(record, field.name) is not None
    }


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return as_json(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


def keys(record: type[Any]) -> tuple[str, ...]:
    """Return the keys of a record type, in order."""
    return tuple(field.name for field in fields(record))


def required(record: type[Any]) -> frozenset[str]:
    """Return the keys of a record type that no record lacks."""
    return frozenset(field.name for field in fields(record) if field.default is MISSING)
