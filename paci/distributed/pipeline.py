"""A pipeline of processes, one rank each, on torch.distributed."""

from collections import ChainMap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from paci import checkpoint
from paci.checks import positive
from paci.distributed.connections import Connections
from paci.distributed.control import Notice
from paci.distributed.device import make_current, on_cuda, reset_peaks
from paci.distributed.evaluation import evaluate
from paci.distributed.failure import FailureMonitor, RankFailed
from paci.distributed.handshake import exchange_shapes
from paci.distributed.links import Links, Specs
from paci.distributed.rank_group import RankGroup
from paci.distributed.scheduling_policy import batch_scheduling
from paci.distributed.training import Training
from paci.pipeline import SegmentGuard, check_sizes
from paci.schedules import Schedule, build
from paci.segment import Segment, Update
from paci.simulation.event_loop import whole_windows
from paci.simulation.simulate import fixed_order
from paci.stage.checks import check_no_shared_parameters
from paci.stage.compute import Compute
from paci.stage.learning_rate import LearningRate
from paci.stage.safeguards import Safeguards, check_schedule
from paci.stage.stage import Batch, Loss, MakeOptimizer, Stage

ORDERS = ("dynamic", "static")


class DistributedPipeline:
    """Train a pipeline of which this process holds `stages`: a module, or several, in order.

    Every rank of the default process group makes one, with the same arguments but its own stages.
    `paci.pipeline.Pipeline` describes the arguments that are not listed here, and the methods;
    `weights` must be a name.

    order          "dynamic": the schedule decides by what has arrived; "static": the order that it
                   takes at the default `Cost()` is fixed in advance. Results then repeat bitwise;
                   on GPUs only under `torch.use_deterministic_algorithms(True)`
    message_dtype  floating-point type in which messages travel, for example torch.bfloat16, which
                   rounds activations and gradients; None: their own
    make_stage     makes a stage from the arguments of `Stage`; `emulated.Emulation` is another

    Raises ValueError, at every rank, for unknown names, impossible sizes and unequal arguments.
    Once any rank has failed, every later call raises RuntimeError at every rank.
    """

    def __init__(
        self,
        stages: nn.Module | Sequence[nn.Module],
        schedule: str | Schedule = "paci",
        accumulation: int | None = None,
        slack: int = 0,
        weights: str = "live",
        *,
        optimizer: MakeOptimizer,
        loss_fn: Loss,
        lr_lambda: LearningRate | Sequence[LearningRate] | None = None,
        seed: int = 0,
        measure_every: int = 0,
        batch: int | None = None,
        compute: Compute | None = None,
        safeguards: Safeguards | None = None,
        order: str = "dynamic",
        message_dtype: torch.dtype | None = None,
        make_stage: Callable[..., Stage] = Stage,
    ):
        modules = [stages] if isinstance(stages, nn.Module) else list(stages)
        self.order = order
        self.microbatch = 0  # the number of the next one
        self.seconds = 0.0  # of training on the wall, all segments together
        self.interrupted = False  # whether the last segment was asked to end early
        self._guard = SegmentGuard()
        self._segments = 0
        self._training: Training | None = None  # the segment in training

        device = next(modules[0].parameters(), torch.empty(0)).device
        make_current(device)
        self._batch = not on_cuda(device)
        self._ranks = ranks = RankGroup(self._batch)
        try:
            ranks.check_equal(
                stages=len(modules), schedule=getattr(schedule, "name", schedule),
                accumulation=getattr(schedule, "accumulation", accumulation), slack=slack,
                weights=weights, order=order, message_dtype=message_dtype, seed=seed,
                batch=batch, compute=compute, safeguards=safeguards,
            )  # fmt: skip
            with ranks.raise_together():
                if order not in ORDERS:
                    raise ValueError(f"unknown order {order!r}: choose from {', '.join(ORDERS)}")
                self.schedule = build(schedule, ranks.size * len(modules), accumulation, slack)
                self.accumulation = self.schedule.accumulation
                check_schedule(safeguards or Safeguards(), self.schedule)
                own = _own_stages(self.schedule, ranks, len(modules))
                check_no_shared_parameters(dict(zip(own, modules, strict=True)))
                self.stages = [
                    make_stage(
                        index, self.schedule.stages, module, self.accumulation, optimizer,
                        lr_lambda=lr_lambda, loss_fn=loss_fn, weights=weights, seed=seed,
                        measure_every=measure_every, batch=batch,
                        in_flight=self.schedule.in_flight_limit(index), compute=compute,
                        safeguards=safeguards,
                    )
                    for index, module in zip(own, modules, strict=True)
                ]  # fmt: skip
        except Exception:
            ranks.close()
            raise

        links = Links(self.schedule.rank_of, ranks.rank, self.stages, message_dtype)
        self._connections = Connections.open(ranks, links)
        self._control, self._inbox = self._connections.control, self._connections.inbox
        self._failures = FailureMonitor(ranks.rank, self._control, self._inbox, ranks.close)

    @property
    def rank(self) -> int:
        """This process's rank."""
        return self._ranks.rank

    @property
    def reports(self) -> bool:
        """True at the rank that knows the losses, the one of the last stage."""
        return any(stage.is_last for stage in self.stages)

    def train(
        self, batches: Iterable[Batch], on_update: Callable[[Update], None] | None = None
    ) -> Segment | None:
        """Fill the pipeline, train on `batches`, drain it. Return what all ranks did at the rank
        that `reports`, elsewhere None.

        Every rank passes the same number of batches; inputs are read by the first stage only and
        targets by the last. `on_update` is called where it `reports`, as soon as that stage has
        made an update; its seconds are the wall's, of training. Raises ValueError at every rank,
        before any work, unless batches are whole windows that fit the stages, and `RankFailed`
        within seconds when any rank has failed.
        """
        batches = batches if isinstance(batches, Sequence) else list(batches)
        count, first = len(batches), self.microbatch
        self._guard.check_drained("train")
        with self._failures.guard():
            self._ranks.check_equal(microbatches=count, first_microbatch=first)
        whole_windows(count, self.accumulation)
        with self._failures.guard(), batch_scheduling(self._batch):
            with self._ranks.raise_together():
                check_sizes(self.stages, batches)
            specs = self._exchange_shapes(batches, self.stages[0].sizes)
            with self._ranks.raise_together():
                for stage in self.stages:
                    stage.begin_segment()
        with (
            self._failures.guard(first, self._where),
            self._guard.segment(self.stages),
            batch_scheduling(self._batch),
        ):
            reset_peaks(self.stages[0].device)
            self._segments += 1
            self._training = training = Training(
                self._segments, self._rule(count), range(first, first + count), specs,
                self._connections, on_update, self.seconds,
            )  # fmt: skip
            segment = training.run(batches)
        self._training = None
        self.microbatch += training.count
        self.seconds += training.seconds
        self.interrupted = training.interrupted
        return segment

    def _rule(self, count: int) -> Schedule:
        """Return the rule for a segment of `count` micro-batches."""
        if self.order == "dynamic":
            return self.schedule
        window_by_window = self.stages[0].waits_for_update
        return fixed_order(self.schedule, self.accumulation if window_by_window else count)

    def evaluate(self, batches: Iterable[Batch]) -> float:
        """Return the mean loss over `batches` in evaluation mode, at every rank; leave no trace.

        Raises ValueError, at every rank, if there are none or they do not fit the stages.
        """
        batches = batches if isinstance(batches, Sequence) else list(batches)
        self._guard.check_drained("evaluate")
        with self._failures.guard():
            self._ranks.check_equal(microbatches=len(batches))
        positive("micro-batches to evaluate", len(batches))
        interrupts: list[Notice | None] = []  # that concern the next segment

        def on_notice(notice: Notice | None) -> None:
            failure = RankFailed.of_notice(notice)
            if failure is not None:
                raise failure
            interrupts.append(notice)

        with self._failures.guard():
            specs = self._exchange_shapes(batches)
            losses = evaluate(self._connections.links, specs, batches, self._inbox, on_notice)
            loss = torch.stack(losses).mean().item() if losses else None
            mean: float = self.gather(loss)[self.schedule.rank_of[-1]]
        for notice in interrupts:
            self._inbox.put(notice)
        return mean

    def interrupt(self) -> None:
        """Ask all ranks to end the segment in training (or the next) after the window that has
        begun. May be called at any rank, from a signal handler."""
        self._control.post({"interrupt": self.rank})

    def gather(self, value: object) -> list[Any]:
        """Return the `value` of every rank, in order of ranks, at every rank. All ranks call it."""
        self._failures.check_unbroken()
        return self._ranks.gather(value)

    def save(self, folder: str | Path, keep: int = 2) -> None:
        """Write a checkpoint below `folder`, which all ranks share; see `paci.checkpoint`.

        Raises ValueError, at every rank and before it writes, if two stages name a weight alike.
        """
        self._guard.check_drained("save")
        state = {"microbatch": self.microbatch, "seconds": self.seconds}
        with self._failures.guard():
            names = self.gather(checkpoint.names_of(self.stages))
        checkpoint.check_names([name for of_rank in names for name in of_rank])
        with self._failures.guard():
            parts = self.gather(checkpoint.write_parts(Path(folder), state, self.stages))
            if self.rank == 0:
                checkpoint.commit(Path(folder), state, dict(ChainMap(*parts)), keep)
            self.gather(None)

    def load(self, folder: str | Path) -> bool:
        """Go on from the newest valid checkpoint below `folder`, however many stages wrote it.

        Return whether there is one.

        Raises ValueError, at every rank and before anything is set, if it does not fit the stages
        of one.
        """
        self._guard.check_drained("load")
        with self._failures.guard():
            newest = self.gather(checkpoint.newest(Path(folder)) if self.rank == 0 else None)[0]
            if newest is None:
                return False
            with self._ranks.raise_together():
                state, tensors = checkpoint.read(newest, self.stages)
            checkpoint.restore(self.stages, state, tensors)
        self.microbatch, self.seconds = state["microbatch"], state["seconds"]
        return True

    def close(self) -> None:
        """Wait for all ranks, unless one has failed, and give back what the pipeline holds."""
        if self._failures.failure is None:
            self.gather(None)
            if self.rank == 0:
                self._control.end()
        else:
            self._control.end()
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exchange_shapes(
        self, batches: Sequence[Batch], sizes: Sequence[int] | None = None
    ) -> Specs:
        return exchange_shapes(self._ranks, self.stages, self.schedule.rank_of, batches, sizes)

    def _where(self) -> tuple[int | None, int | None]:
        """Return the stage and the micro-batch that this rank is at."""
        return self._training.engine.at_work if self._training else (None, None)


def _own_stages(schedule: Schedule, ranks: RankGroup, count: int) -> Sequence[int]:
    """Return the stages that the schedule puts on this rank. Raises ValueError unless every rank
    has `count`."""
    placement = schedule.placement
    if any(len(stages) != count for stages in placement):
        raise ValueError(
            f"{schedule.name} puts {schedule.stages} stages on {len(placement)} rank(s), "
            f"{len(placement[0])} on each: {count} on each of {ranks.size} do not fit"
        )
    return placement[ranks.rank]
