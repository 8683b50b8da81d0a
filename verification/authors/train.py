"""Train one case with the authors' code: their processes, their messages, their decisions.

    python -m verification.authors.train CASE FOLDER FIRST LAST

trains updates FIRST to LAST (not included) and writes to FOLDER what `recording.py` reads. From any
FIRST but 0 it goes on from the checkpoint of the part before. `recording.py` starts it, with the
checkout on Python's path.
"""

# ruff: noqa: I001  (the stand-ins come before anything of the authors')

import os
import sys
from functools import partial
from pathlib import Path

import torch

import verification.authors.stand_ins  # noqa: F401
from DistPACI import LRstepMode, PACIModel, TrainingConfig
from torch.optim.lr_scheduler import LambdaLR
from TrainGPT import build_adamw, gpt2_like_lr_lambda
from Utils.metrics import LanguageModelingLoss
from verification.authors import workload
from verification.authors.cases import CASES, Case
from verification.authors.recorder import RecordingWorker

CHECKPOINT = "checkpoint.pt"


def configuration(case: Case) -> TrainingConfig:
    """Return the authors' configuration of `case`."""
    rates = gpt2_like_lr_lambda(workload.WARMUP, case.updates, workload.FINAL)
    return TrainingConfig(
        None,
        build_optimizer_func=build_adamw,
        optimizer_params=workload.ADAMW,
        total_steps=case.updates,
        loss_function=LanguageModelingLoss(workload.VOCABULARY, workload.IGNORED),
        grad_accumulation=case.accumulation,
        allowed_lagging=case.in_flight,
        pipeline_mode="flush" if case.schedule == "1f1b-flush" else "paci",
        paci_mode="mem" if case.recompute else "perf",
        split_to=case.stages,
        device="cpu",
        lr_scheduler_class=LambdaLR,
        lr_scheduler_params={"lr_lambda": rates.lr_lambda},
        lr_step_on=LRstepMode.step,
        ignore_token=workload.IGNORED,
        output_verbose=False,
    )


def start(case: Case, folder: Path, first: int) -> PACIModel:
    """Start the stages, from initial weights or, at update `first`, from a checkpoint."""
    worker = partial(RecordingWorker, folder, case.jitter, first * case.accumulation, first)
    vars(sys.modules[PACIModel.__module__])["LayerWorker"] = worker
    pipeline = PACIModel(workload.make_model(), configuration(case))
    sample = workload.training_batches(case)[0][0]
    if first:
        state = torch.load(folder.parent / CHECKPOINT, weights_only=False)
        pipeline.load_state_dict(state, sample)
        pipeline.init(sample)
    else:
        pipeline.init(sample, workload.CUTS[case.stages])
    if case.autocast:
        pipeline.half()
    pipeline.train()
    return pipeline


def evaluate(case: Case, pipeline: PACIModel) -> list[float]:
    """Return the loss of each micro-batch of an evaluation."""
    pipeline.eval()
    results = [r for batch in workload.evaluation_batches(case) for r in pipeline(*batch)]
    losses = [result.get_data(wait=True)["loss"] for result in results]
    pipeline.train()
    return losses


def train(case: Case, folder: Path, first: int, last: int) -> None:
    """Train updates `first` to `last`, write the result, and end this process."""
    pipeline = start(case, folder, first)
    results, evaluations = [], []
    for number, batch in enumerate(workload.training_batches(case)[first:last], first + 1):
        results += pipeline(*batch)
        if number in case.evaluate_after:
            evaluations.append(evaluate(case, pipeline))
        if number in case.drain_after:
            pipeline.state_dict()
    losses = [result.get_data(wait=True)["loss"] for result in results]
    state = pipeline.state_dict()
    torch.save(state, folder.parent / CHECKPOINT)
    result = {
        "losses": losses,
        "evaluations": evaluations,
        "weights": state["model_state_dict"],
        "optimizers": state["optimizers_state_dict"],
    }
    torch.save(result, folder / "result.pt")
    pipeline.stop_training()
    sys.stdout.flush()
    os._exit(0)  # their threads do not end by themselves


if __name__ == "__main__":
    _, name, folder, first, last = sys.argv
    train(CASES[name], Path(folder), int(first), int(last))
