"""Train modules of your own in a loop of your own: python examples/own_loop.py [FOLDER]

Four stages of a residual network learn the next value of a wave, once with a flush and once with
PACI. The loop reads data, evaluates, logs and saves (into FOLDER) when it likes; `pipeline.train`
keeps to the schedule, and returns when the pipeline has drained.
"""

import sys
from pathlib import Path

import torch
from torch import nn

import paci

WIDTH, LENGTH, WINDOW, WINDOWS, EPOCHS = 32, 16, 4, 25, 5


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU())

    def forward(self, x):
        return x + self.layers(x)


def waves(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a micro-batch: 16 values of each of 32 waves, and the next one."""
    random = torch.Generator().manual_seed(seed)
    phase, pace = (torch.rand(32, 1, generator=random) for _ in range(2))
    values = torch.sin(6.28 * phase + (0.2 + pace) * torch.arange(LENGTH + 1))
    return values[:, :-1], values[:, -1:]


def train(schedule: str, folder: Path | None = None) -> float:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(LENGTH, WIDTH), *[Block() for _ in "1234"], nn.Linear(WIDTH, 1))
    pipeline = paci.LocalPipeline(
        [model[:2], model[2:3], model[3:4], model[4:]],  # slices keep the names of the weights
        schedule=schedule,
        accumulation=WINDOW,
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=3e-3),
        loss_fn=nn.functional.mse_loss,
    )
    if folder and pipeline.load(folder):
        print(f"{schedule} goes on from micro-batch {pipeline.microbatch}")
    for epoch in range(pipeline.microbatch // (WINDOW * WINDOWS), EPOCHS):
        seeds = range(epoch * WINDOW * WINDOWS, (epoch + 1) * WINDOW * WINDOWS)
        segment = pipeline.train([waves(seed) for seed in seeds])
        loss, drift = sum(segment.losses) / len(seeds), max(map(max, segment.drift))
        print(f"{schedule:10}  time {pipeline.seconds:5.0f}  loss {loss:.4f}  drift {drift}")
        if folder:
            pipeline.save(folder)
    return pipeline.evaluate([waves(1_000_000 + n) for n in range(8)])


if __name__ == "__main__":
    for name in ("1f1b-flush", "paci"):
        print(f"loss of waves not seen: {train(name, *(Path(f) / name for f in sys.argv[1:])):.4f}")
