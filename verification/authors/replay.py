"""paci trains a case: in the order that the authors' code took, or in its own."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import paci
from paci.actions import Action
from paci.distributed.launch import spawn
from paci.segment import Segment, Update
from verification.authors import workload
from verification.authors.cases import Case
from verification.authors.outcome import Outcome, named_adam, named_weights

Orders = list[list[Action]]
Factor = Callable[[int], float]


class Recomputed(nn.Module):
    """A stage that keeps its input only, and repeats the forward in the backward."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = checkpoint(self.inner, input, use_reentrant=False)
        return output


class Autocast(nn.Module):
    """A stage, or loss, under bfloat16 autocast."""

    def __init__(self, inner: Callable[..., torch.Tensor]):
        super().__init__()
        self.inner = inner

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return self.inner(*inputs)


def replay(case: Case, orders: Orders, factor: Factor | None = None) -> Outcome:
    """Train `case` in this process in the recorded `orders`; `factor` on the peak learning rate
    replaces that of the workload."""
    return _train(case, paci.FixedOrder(orders, case.accumulation), factor)


def train_in_own_order(case: Case) -> Outcome:
    """Train `case` in this process in the order that paci's schedule takes."""
    return _train(case, paci.schedules.build(case.schedule, case.stages, case.accumulation))


def replay_distributed(case: Case, orders: Orders) -> Outcome:
    """Train `case` like `replay`, with one process per rank."""
    ranks = spawn(_rank, case.stages, case, orders, preload=["transformers"])
    segment, rates = ranks[-1][2:]  # the last rank reports
    weights, optimizers = [rank[0] for rank in ranks], [rank[1] for rank in ranks]
    return _outcome(case, weights, optimizers, segment, rates, [])


def _train(case: Case, schedule: paci.Schedule, factor: Factor | None = None) -> Outcome:
    modules = workload.make_stages(case)
    pipeline = paci.LocalPipeline(
        [_as_trained(case, i, module) for i, module in enumerate(modules)],
        schedule,
        optimizer=workload.make_optimizer,
        loss_fn=_loss(case),
        lr_lambda=factor or workload.learning_rate(case.updates),
    )
    held_out = workload.microbatches(case, workload.evaluation_batches(case))
    rates, evaluations = [], []

    def after(update: Update) -> None:
        rates.append(update.learning_rate)
        if update.number in case.evaluate_after:
            evaluations.append([pipeline.evaluate([batch]) for batch in held_out])

    segment = pipeline.train(_batches(case, schedule), after)
    weights = [module.state_dict() for module in modules]
    optimizers = [stage.optimizer.state_dict() for stage in pipeline.stages]
    return _outcome(case, weights, optimizers, segment, rates, evaluations)


def _rank(case: Case, orders: Orders) -> tuple[Any, ...]:
    """Train one rank; return its weights, its optimizer's state, and what the pipeline reports."""
    rank = torch.distributed.get_rank()
    module = workload.make_stages(case)[rank]
    schedule = paci.FixedOrder(orders, case.accumulation)
    pipeline = paci.DistributedPipeline(
        _as_trained(case, rank, module),
        schedule,
        optimizer=workload.make_optimizer,
        loss_fn=_loss(case),
        lr_lambda=workload.learning_rate(case.updates),
    )
    rates: list[float] = []
    segment = pipeline.train(
        _batches(case, schedule), lambda update: rates.append(update.learning_rate)
    )
    optimizer = pipeline.stages[0].optimizer.state_dict()
    pipeline.close()
    return module.state_dict(), optimizer, segment, rates


def _as_trained(case: Case, stage: int, module: nn.Module) -> nn.Module:
    if case.autocast:
        module = Autocast(module)
    if case.recompute and stage < case.stages - 1:
        module = Recomputed(module)
    return module


def _loss(case: Case) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return Autocast(workload.loss_fn) if case.autocast else workload.loss_fn


def _batches(case: Case, schedule: paci.Schedule) -> Sequence[workload.Batch]:
    """Return the micro-batches of the recorded order, or of all updates."""
    batches = workload.microbatches(case, workload.training_batches(case))
    if isinstance(schedule, paci.FixedOrder):
        return batches[: 1 + max(action.microbatch for action in schedule.orders[0])]
    return batches


def _outcome(
    case: Case,
    weights: list[dict[str, torch.Tensor]],
    optimizers: list[dict[str, Any]],
    segment: Segment,
    rates: list[float],
    evaluations: list[list[float]],
) -> Outcome:
    return Outcome(
        losses=segment.losses,
        weights=named_weights(weights),
        adam=named_adam(optimizers),
        drift=[Counter(histogram) for histogram in segment.drift],
        in_flight=[stage.peak_in_flight for stage in segment.stages],
        rates=[rates] * case.stages,
        evaluations=evaluations,
    )
