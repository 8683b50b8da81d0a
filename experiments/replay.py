"""Replay a run in one process: python -m experiments.replay RUN

Every segment is trained again, in `LocalPipeline`, in exactly the order in which the ranks of the
recorded run did it, and the trained model is compared with the run's own, bit by bit. A run whose
order was decided by the arrival of messages is thus as repeatable as any other.
"""

from experiments.terminal.command_line import arguments, command, run_folder, user_errors

if __name__ == "__main__":
    arguments(__doc__)  # answers --help before torch is loaded, which takes seconds

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import torch
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from safetensors import SafetensorError
from safetensors.torch import load_file
from yaml import YAMLError

import runlog
from experiments.config.derived import schedule_of
from experiments.run.pipelines import build_pipeline
from experiments.run.run import Run
from experiments.run.weights import load_weights, source_of
from experiments.terminal.progress import Progress
from paci import FixedOrder, LocalPipeline, read_orders
from paci.simulation.event_loop import Deadlock


@command()
def main() -> None:
    with user_errors():
        recorded = run_folder(__doc__)
        run = recorded_run(recorded)
        segments, weights = recorded_orders(recorded, run), recorded_weights(recorded)
        pipeline = cast(LocalPipeline, build_pipeline(run))  # `_run_of` made the executor local
        if missing := {name for name, _ in parameters(pipeline)} - weights.keys():
            raise ValueError(f"{recorded / 'model'} lacks {min(missing)}: the model is incomplete")
    try:
        replay(run, pipeline, segments)
    except Deadlock:
        print(f"{recorded}: not replayed, its orders cannot be followed: one is damaged")
        raise SystemExit(1) from None
    differing = differences(pipeline, weights)
    for name, distance in differing.items():
        print(f"{name} differs by up to {distance:.3g}")
    print(f"{recorded}: " + ("replayed, not equal" if differing else "replayed, bitwise equal"))
    raise SystemExit(bool(differing))


def recorded_run(folder: Path) -> Run:
    """Return the run of `folder`, set to be done in this process. Raises ValueError unless it is
    complete."""
    if not (folder / runlog.CONFIG).is_file():
        raise ValueError(f"{folder} is not a run folder: it has no config.yaml")
    try:
        run = _run_of(cast(DictConfig, OmegaConf.load(folder / runlog.CONFIG)), folder)
        schedule_of(run.config)
    except (YAMLError, OmegaConfBaseException, AttributeError) as error:
        why = str(error).partition("\n")[0]
        raise ValueError(
            f"{folder / 'config.yaml'} is damaged, or of an older version: {why}"
        ) from error
    return run


def _run_of(config: DictConfig, folder: Path) -> Run:
    for key, value in runlog.LATER.items():
        if OmegaConf.select(config, key) is None:
            OmegaConf.update(config, key, value, force_add=True)
    if config.executor.name == "emulated":
        raise ValueError(f"{folder} was emulated: its stages computed nothing to replay")
    if config.task == "throughput":
        raise ValueError(f"{folder} was a measurement of throughput: it keeps no model to compare")
    if config.executor.get("message", "float32") != "float32":
        raise ValueError(
            f"{folder} sent its messages in {config.executor.message}, which rounds them: a replay "
            "does not"
        )
    if not (folder / runlog.MODEL).is_dir():
        raise ValueError(f"{folder} has no trained model to compare with: let the run finish first")
    if config.executor.name != "local":
        config.executor.name = "local"
        config.executor.cost = {"forward": 1.0, "backward": 2.0, "transfer": 0.0}
    config.runs = str(folder.parent)  # where a measured cut is kept
    run = Run(config)
    begun, source = run.folder.identity(), source_of(config)
    if begun and begun.weights and source and begun.weights["sha256"] != source["sha256"]:
        raise ValueError(f"{folder} began with weights that {config.weights_from} no longer has")
    return run


def recorded_orders(folder: Path, run: Run) -> dict[int, FixedOrder]:
    """Return {update at which a segment ended: the order of its actions}. Raises ValueError if a
    segment of the run is missing or damaged."""
    segments = {}
    for file in sorted((folder / runlog.ORDERS).glob("*.csv")):
        try:
            orders = read_orders(file.read_text())
            order = FixedOrder(orders, run.config.method.accumulation)
            if order.stages != run.config.stages:
                raise ValueError(f"it has {order.stages} stage(s), the run has {run.config.stages}")
            segments[int(file.stem)] = order
        except ValueError as error:
            raise ValueError(f"{file} is damaged: {error}") from None
    if missing := set(run.segment_ends) - segments.keys():
        raise ValueError(f"{folder / 'orders'} lacks the segment to update {min(missing)}")
    return segments


def recorded_weights(folder: Path) -> dict[str, torch.Tensor]:
    """Return the run's trained weights by name. Raises ValueError if a file is damaged."""
    weights: dict[str, torch.Tensor] = {}
    for shard in sorted((folder / runlog.MODEL).glob("*.safetensors")):
        try:
            weights |= load_file(shard)
        except SafetensorError as error:
            raise ValueError(f"{shard} is damaged: {error}") from None
    return weights


def replay(run: Run, pipeline: LocalPipeline, segments: dict[int, FixedOrder]) -> None:
    """Train `pipeline` in the orders of `segments`."""
    if run.config.weights_from:
        load_weights(pipeline.stages, run.config)
    a, done = run.config.method.accumulation, 0
    for end, order in Progress(iterable=segments.items(), desc="replay", unit="segment"):
        pipeline.schedule = order
        pipeline.train(run.batches(pipeline.microbatch, (end - done) * a))
        done = end


def differences(pipeline: LocalPipeline, recorded: dict[str, torch.Tensor]) -> dict[str, float]:
    """Return {weight: largest absolute difference} for the weights that are not bitwise equal."""
    return {
        name: (weight.cpu() - recorded[name]).abs().max().item()
        for name, weight in parameters(pipeline)
        if not torch.equal(weight.cpu(), recorded[name])
    }


def parameters(pipeline: LocalPipeline) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the name and the tensor of every parameter and buffer, stage by stage."""
    for stage in pipeline.stages:
        yield from stage.module.state_dict().items()


if __name__ == "__main__":
    main()
