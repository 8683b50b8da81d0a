"""The interface that LocalPipeline and DistributedPipeline share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from paci.schedules import Schedule
from paci.segment import Segment, Update
from paci.stage.stage import Batch, Stage

T = TypeVar("T")


class Pipeline(Protocol):
    """A pipeline that trains in segments: it is filled, trains and is drained.

    Both kinds take these arguments:

    schedule       a name in `paci.SCHEDULES`, or a `Schedule`
    accumulation   a, the micro-batches of one window, which are accumulated for one update of the
                   weights; None: the schedule's own, mostly 4
    slack          forwards more in flight at every stage but the last; PACI's only
    weights        which weights an action sees: a name in `paci.stage.weights.WEIGHTS`, or a
                   function that makes a policy from a module, its optimizer and its position
    optimizer      makes an optimizer from a stage's parameters: `lambda params: AdamW(params)`
    lr_lambda      factor on its learning rate as a function of the stage's own version; or one
                   such function for each stage
    loss_fn        (output of the last stage, target) -> scalar mean over the micro-batch
    seed           seeds all random numbers: dropout (together with stage and micro-batch) and the
                   jitter of the cost; from 0 to 2^63 - 1
    measure_every  updates between two samples of how far the weights move (0: never)
    compute        a `Compute`: precision, recomputation of activations, compilation
    safeguards     a `Safeguards`: clipping of gradients, and those that are not finite
    batch          the sequences of one window, where its micro-batches are not equally large: the
                   first (batch mod a) of them have one more, and each loss weighs as many
                   sequences as its micro-batch has; None: all losses weigh 1/a

    Raises ValueError for unknown names and impossible sizes. A pipeline is a context manager,
    which closes it.
    """

    schedule: Schedule
    accumulation: int
    stages: list[Stage]  # of this process
    microbatch: int  # the index of the next one
    seconds: float  # of training so far, on the executor's clock

    def train(
        self, batches: Iterable[Batch], on_update: Callable[[Update], None] | None = None
    ) -> Segment | None:
        """Train one segment on `batches` of (input, target): whole windows of micro-batches.

        Inputs enter at the first stage, targets stay at the last. Return what happened, at the
        process that `reports`; there, `on_update` is called after every update.
        """

    def evaluate(self, batches: Iterable[Batch]) -> float:
        """Return the mean loss over `batches` in evaluation mode, and leave no trace."""

    def save(self, folder: str | Path, keep: int = 2) -> None:
        """Write a checkpoint below `folder` and drop all but the newest `keep`."""

    def load(self, folder: str | Path) -> bool:
        """Go on from the newest valid checkpoint below `folder`; return whether there is one."""

    def gather(self, value: T) -> list[T]:
        """Return the `value` of every process, at every process."""

    @property
    def reports(self) -> bool:
        """True at the process that knows the losses."""

    @property
    def interrupted(self) -> bool:
        """True if the last segment was asked to end early, and did so after a whole window."""

    def close(self) -> None:
        """Give back what the pipeline holds."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class SegmentGuard:
    """Refuses calls that need a drained pipeline while micro-batches are in flight, and all calls
    once a segment was cut short.

    drained ──▶ in flight ──▶ drained
                    └── an exception ──▶ broken, for ever
    """

    def __init__(self) -> None:
        self._in_flight = self._broken = False

    def check_whole(self, action: str) -> None:
        """Raise RuntimeError if an earlier segment ended early."""
        if self._broken:
            raise RuntimeError(
                f"cannot {action}: an earlier segment was cut short, and its micro-batches are "
                "still in flight; make a new pipeline and load a checkpoint into it"
            )

    def check_drained(self, action: str) -> None:
        """Raise RuntimeError inside a segment and after one that ended early."""
        self.check_whole(action)
        if self._in_flight:
            raise RuntimeError(
                f"cannot {action} inside a segment: micro-batches are in flight until train returns"
            )

    @contextmanager
    def segment(self, stages: Sequence[Stage]) -> Iterator[None]:
        """Run a segment of `stages` inside the block. An exception breaks the pipeline for ever; of
        the segment it leaves only the weights in the modules."""
        self._in_flight = True
        try:
            yield
        except BaseException:
            self._broken = True
            for stage in stages:
                stage.abort_segment()
            raise
        self._in_flight = False


def check_sizes(stages: Sequence[Stage], batches: Sequence[Batch]) -> None:
    """Raise ValueError unless every micro-batch has as many sequences as the pipeline's `batch`
    gives it. Inputs are checked where the first stage is, targets where the last is."""
    sizes = stages[0].sizes
    if sizes is None:
        return
    read = [*[0] * stages[0].is_first, *[1] * stages[-1].is_last]
    for number, batch in enumerate(batches):
        wanted = sizes[number % len(sizes)]
        for part in read:
            if len(batch[part]) != wanted:
                raise ValueError(
                    f"micro-batch {number} must have {wanted} sequences, as a batch of "
                    f"{sum(sizes)} in {len(sizes)} micro-batches has, not {len(batch[part])}"
                )
