"""A pipeline of processes, one rank each, on torch.distributed."""

import time
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import torch
import torch.distributed as dist
from torch import nn

from paci import checkpoint
from paci.checks import positive
from paci.cost import Cost, Durations
from paci.distributed import evaluation
from paci.distributed.control import ControlChannel
from paci.distributed.emulated import Emulated, EmulatedDevice, EmulatedStage, emulated_loss
from paci.distributed.engine import Engine
from paci.distributed.failure import LOST, RankFailed, first_failure, post_failure
from paci.distributed.handshake import Refused, agree_settings, agree_shapes, clock_offset, together
from paci.distributed.links import Links, Specs, drain
from paci.distributed.scheduling_policy import batch_scheduling
from paci.distributed.statistics import RankStatistics, segment_of
from paci.distributed.transport import LinkLost, Receiver, link_errors
from paci.schedules import Schedule, build
from paci.segment import Batch, Segment, Update
from paci.simulation.event_loop import whole_windows
from paci.simulation.simulate import fixed_order
from paci.stage.stage import LearningRate, Loss, MakeOptimizer, Stage, check_no_shared_parameters

ORDERS = ("dynamic", "static")


class DistributedPipeline:
    """Train a pipeline of which this process holds `stages`: a module, or several, in order.

    Every rank of the default process group makes one, with the same arguments but its own stages.
    They are those of `LocalPipeline` without `cost`; `weights` is a name; and:

    order    "dynamic": the schedule decides by what has arrived; "static": the order that it takes
             at the default `Cost()` is fixed in advance, and results repeat to the last bit
    emulate  times in seconds that stages take instead of computing

    Raises ValueError, at every rank, for unknown names, impossible sizes and unequal arguments.
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
        order: str = "dynamic",
        emulate: Cost | None = None,
    ):
        modules = [stages] if isinstance(stages, nn.Module) else list(stages)
        self.rank = dist.get_rank()
        self.order = order
        self.seed = seed
        self.emulate = emulate
        self.microbatch = 0  # the index of the next one
        self.seconds = 0.0  # of training on the wall, all segments together
        self.interrupted = False  # whether the last segment was asked to end early
        self._segment = 0
        self._engine: Engine | None = None  # of the segment in training

        everyone = list(range(dist.get_world_size()))
        with batch_scheduling():
            self._control = dist.new_group(everyone, backend="gloo")
        try:
            agree_settings(
                self.gather, stages=len(modules), schedule=getattr(schedule, "name", schedule),
                accumulation=getattr(schedule, "accumulation", accumulation), slack=slack,
                weights=weights, order=order, seed=seed,
            )  # fmt: skip
            with together(self.gather):
                if order not in ORDERS:
                    raise ValueError(f"unknown order {order!r}: choose from {', '.join(ORDERS)}")
                self.schedule = build(schedule, len(everyone) * len(modules), accumulation, slack)
                self.accumulation = self.schedule.accumulation
                self.stages = self._make_stages(
                    modules, optimizer=optimizer, lr_lambda=lr_lambda, loss_fn=loss_fn,
                    weights=weights, seed=seed, measure_every=measure_every,
                )  # fmt: skip
        except Exception:
            dist.destroy_process_group(self._control)
            raise

        self._rank_of = self.schedule.rank_of
        with batch_scheduling():
            self._links = Links(self._rank_of, self.rank, self.stages)
        self._inbox: SimpleQueue = SimpleQueue()
        self._board = ControlChannel(self._inbox.put)
        self._links.widen()
        self._offset = clock_offset(self.gather, self._control)

    @property
    def reports(self) -> bool:
        """Whether this is the rank that knows the losses, and so reports: the last stage's."""
        return any(stage.is_last for stage in self.stages)

    def train(
        self, batches: Iterable[Batch], on_update: Callable[[Update], None] | None = None
    ) -> Segment | None:
        """Fill the pipeline, train on `batches`, drain it; returns what all ranks did at the rank
        that `reports`, elsewhere None.

        Every rank passes the same number of batches; inputs are read by the first stage only and
        targets by the last. `on_update` is called where it `reports`, as soon as that stage has
        made an update; its seconds are the wall's, of training. Raises ValueError at every rank,
        before any work, unless batches are whole windows that fit the stages, and `RankFailed`
        within seconds when any rank has failed.
        """
        batches = batches if isinstance(batches, Sequence) else list(batches)
        count, first = len(batches), self.microbatch
        # A check that every rank fails alike stays outside: it is no rank's failure.
        with self._failures():
            agree_settings(self.gather, microbatches=count, first_microbatch=first)
        whole_windows(count, self.accumulation)
        with self._failures(), batch_scheduling():
            specs = self._agree_shapes(batches)
            for stage in self.stages:
                stage.begin_segment()
            if self.stages[0].device.type == "cuda":
                torch.cuda.reset_peak_memory_stats(self.stages[0].device)
            if self.emulate:
                durations = Durations(self.emulate, len(self._rank_of), count, self.seed, first)
                for stage in self.stages:
                    stage.begin(durations, specs, first)
            self._segment += 1
            senders = self._links.senders(specs)
            receivers = self._links.receivers(specs, count, self._inbox)
            started = time.monotonic()

            def on_window(losses: list[torch.Tensor], rate: float, end: float) -> None:
                version = self.stages[-1].versions.version
                seconds = self.seconds + end - started
                on_update(Update(version, torch.stack(losses).mean().item(), rate, seconds))

            static = self.order == "static"
            rule = fixed_order(self.schedule, count) if static else self.schedule
            self._engine = Engine(
                self.rank, rule, self.stages, count, first, self._inbox,
                senders, self._on_notice, on_window if on_update else None,
            )  # fmt: skip
            self.interrupted = False
            self._engine.run(batches)
            return self._finish(count, started, senders, receivers)

    def evaluate(self, batches: Iterable[Batch]) -> float:
        """Mean loss over `batches` in evaluation mode, at every rank; leaves no trace. Raises
        ValueError, at every rank, if there are none or they do not fit the stages."""
        batches = batches if isinstance(batches, Sequence) else list(batches)
        with self._failures():
            agree_settings(self.gather, microbatches=len(batches))
        positive("micro-batches to evaluate", len(batches))
        with self._failures():
            losses = evaluation.evaluate(self._links, self._agree_shapes(batches), batches)
            loss = torch.stack(losses).mean().item() if losses else None
            return self.gather(loss)[self._rank_of[-1]]

    def interrupt(self) -> None:
        """Ask all ranks to end the segment in training (or the next) after the window that has
        begun. May be called at any rank, from a signal handler."""
        self._board.post({"interrupt": self.rank})

    def gather(self, value: object) -> list:
        """The `value` of every rank, in order of ranks, at every rank. All ranks call it."""
        values = [None] * dist.get_world_size()
        with link_errors(None):
            dist.all_gather_object(values, value, group=self._control)
        return values

    def save(self, folder: Path, keep: int = 2) -> None:
        """Write a checkpoint below `folder`, which all ranks share; see `paci.checkpoint`. Raises
        ValueError, at every rank and before it writes, if two stages name a weight alike."""
        state = {"microbatch": self.microbatch, "seconds": self.seconds}
        with self._failures():
            names = self.gather(checkpoint.names_of(self.stages))
        checkpoint.check_names([name for of_rank in names for name in of_rank])
        with self._failures():
            parts = self.gather(checkpoint.write_parts(folder, state, self.stages))
            if self.rank == 0:
                checkpoint.commit(folder, state, dict(ChainMap(*parts)), keep)
            self.gather(None)

    def load(self, folder: Path) -> bool:
        """Go on from the newest valid checkpoint below `folder`, by however many stages it was
        written; False if there is none. Raises ValueError, at every rank and before anything is
        set, if it does not fit the stages of one."""
        with self._failures():
            newest = self.gather(checkpoint.newest(folder) if self.rank == 0 else None)[0]
            if newest is None:
                return False
            with together(self.gather):
                state, tensors = checkpoint.read(newest, self.stages)
            checkpoint.restore(self.stages, state, tensors)
        self.microbatch, self.seconds = state["microbatch"], state["seconds"]
        return True

    def close(self) -> None:
        """Wait for all ranks, and give back what the pipeline holds."""
        self.gather(None)
        if self.rank == 0:
            self._board.end()
        self._board.join()
        self._links.close()
        dist.destroy_process_group(self._control)
        del self._control  # its threads and connections last as long as anybody holds it

    def _make_stages(self, modules: list[nn.Module], *, loss_fn: Loss, **options) -> list[Stage]:
        """This rank's. Raises ValueError if they are not what the schedule puts on a rank."""
        placement, total = self.schedule.placement, self.schedule.stages
        ranks = dist.get_world_size()
        if any(len(own) != len(modules) for own in placement):
            raise ValueError(
                f"{self.schedule.name} puts {total} stages on {len(placement)} rank(s), "
                f"{len(placement[0])} on each: {len(modules)} on each of {ranks} do not fit"
            )
        own, make = placement[self.rank], Stage
        check_no_shared_parameters(dict(zip(own, modules, strict=True)))
        if self.emulate is not None:
            device, loss_fn, make = EmulatedDevice(), emulated_loss(loss_fn), EmulatedStage
            modules = [Emulated(m, i, device) for i, m in zip(own, modules, strict=True)]
        return [
            make(index, total, module, self.accumulation, loss_fn=loss_fn, **options)
            for index, module in zip(own, modules, strict=True)
        ]

    def _agree_shapes(self, batches: Sequence[Batch]) -> Specs:
        return agree_shapes(self.stages, self._rank_of, batches[0], self.gather, self._control)

    def _finish(
        self, count: int, started: float, senders: dict, receivers: list[Receiver]
    ) -> Segment | None:
        """The segment is done here; wait for all ranks, and tell the one that reports."""
        engine, offset, self._engine = self._engine, self._offset, None
        ranks = self.gather(RankStatistics.of(engine, started, offset, self.interrupted))
        for receiver in receivers:
            receiver.stop_after(engine.count)
        self.gather(None)  # now all receivers know where it ends
        drain(senders, receivers, unanswered=count - engine.count)

        origin = min(books.started for books in ranks)
        self.microbatch += engine.count
        self.seconds += max(books.ended for books in ranks) - origin
        self.interrupted = any(books.interrupted for books in ranks)
        shift = offset - origin
        own = [s._replace(start=s.start + shift, end=s.end + shift) for s in engine.steps]
        steps = [None] * len(ranks) if self.reports else None
        with link_errors(None):
            dist.gather_object(own, steps, self._rank_of[-1], group=self._control)
        if not self.reports:
            return None
        rows = [step for of_rank in steps for step in of_rank]
        losses = torch.stack(engine.losses).tolist()
        return segment_of(ranks, rows, losses, self.accumulation)

    def _on_notice(self, notice: dict | None) -> None:
        """What the board says, read while training.

        {"failed": ...}          ends this rank; so does None, that the board is gone
        {"interrupt": rank}      is answered, where stage 0 is, with
        {"stop": micro-batches, "segment": its number}, which every rank obeys
        """
        if notice is None:
            why = "the process that holds torch's store is gone"
            raise RankFailed(None, None, None, LOST, why)
        if "failed" in notice:
            raise RankFailed(*notice["failed"])
        engine = self._engine
        if "interrupt" in notice and self._rank_of[0] == self.rank and not self.interrupted:
            notice = {"stop": engine.window_end, "segment": self._segment}
            self._board.post(notice)
        if notice.get("segment") == self._segment:
            self.interrupted = True
            engine.stop_at(notice["stop"])

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Whichever rank fails inside, all are told and raise the same; to be interrupted or to
        exit is left to end this process in its own way."""
        try:
            yield
        except (RankFailed, Refused):
            raise
        except LinkLost as lost:
            raise first_failure(self._board, self._inbox, lost, self.microbatch) from lost
        except BaseException as error:
            at = self._engine.at_work if self._engine else (None, None)
            failure = RankFailed.of(self.rank, error, at)
            post_failure(self._board, failure)
            if not isinstance(error, Exception):
                raise
            raise failure from error
