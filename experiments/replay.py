"""Replay a run in one process: python -m experiments.replay RUN

Every segment is trained again, in `LocalPipeline`, in exactly the order in which the ranks of the
recorded run did it, and the trained model is compared with the run's own, bit by bit. A run whose
order was decided by the arrival of messages is thus as repeatable as any other.
"""

from experiments.cli import arguments, user_errors

if __name__ == "__main__":
    arguments(__doc__)  # asked for help, it answers before torch is loaded, which takes seconds

from pathlib import Path

import torch
from omegaconf import OmegaConf
from safetensors.torch import load_file

from experiments.pipelines import build_pipeline
from experiments.progress import Progress
from experiments.run import Run
from paci import LocalPipeline, Recorded, read_orders


def main() -> None:
    with user_errors():
        given = arguments(__doc__)
        if len(given) != 1:
            raise ValueError(f"name one run folder to replay, not {len(given)} of them")
        recorded = Path(given[0])
        run = recorded_run(recorded)
        pipeline = build_pipeline(run)
    replay(run, pipeline, recorded)
    differing = differences(pipeline, recorded / "model")
    for name, distance in differing.items():
        print(f"{name} differs by up to {distance:.3g}")
    print(f"{recorded}: " + ("replayed, not equal" if differing else "replayed, bitwise equal"))
    raise SystemExit(bool(differing))


def recorded_run(folder: Path) -> Run:
    """The run of `folder`, to be done in this process. Raises ValueError unless it is complete."""
    if not (folder / "config.yaml").is_file():
        raise ValueError(f"{folder} is not a run folder: it has no config.yaml")
    config = OmegaConf.load(folder / "config.yaml")
    if not (folder / "model").is_dir():
        raise ValueError(f"{folder} has no trained model to compare with: let the run finish first")
    if config.executor.name == "emulated":
        raise ValueError(f"{folder} was emulated: its stages computed nothing to replay")
    if config.executor.name != "local":
        config.executor.name = "local"
        config.executor.cost = {"forward": 1.0, "backward": 2.0, "transfer": 0.0}
    config.runs = str(folder.parent)  # where a measured cut is kept
    return Run(config)


def replay(run: Run, pipeline: LocalPipeline, recorded: Path) -> None:
    """Train `pipeline` as the orders below `recorded` say, one file a segment."""
    a, done = run.config.method.accumulation, 0
    files = sorted((recorded / "orders").glob("*.csv"))
    for file in Progress(iterable=files, desc="replay", unit="segment"):
        orders, end = read_orders(file.read_text()), int(file.stem)
        pipeline.schedule = Recorded(orders, a)
        pipeline.train(run.batches(pipeline.microbatch, (end - done) * a))
        done = end


def differences(pipeline: LocalPipeline, model: Path) -> dict[str, float]:
    """{weight: largest absolute difference} of what is not bitwise equal."""
    recorded = {}
    for shard in model.glob("*.safetensors"):
        recorded |= load_file(shard)
    found = {}
    for stage in pipeline.stages:
        for name, weight in stage.module.state_dict().items():
            if not torch.equal(weight.cpu(), recorded[name]):
                found[name] = (weight.cpu() - recorded[name]).abs().max().item()
    return found


if __name__ == "__main__":
    main()
