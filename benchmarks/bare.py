"""1F1B by hand, over gloo: the order written down, autograd, and as little else as can be.

It measures what messages and mathematics cost where nobody decides, checks or records anything.
"""

from collections import deque

import torch
import torch.distributed as dist

from benchmarks import stages
from paci.distributed.scheduling_policy import batch_scheduling

AHEAD = 4  # receives that are posted before their messages come


def empty() -> dict[str, float]:
    """Return the seconds of a micro-batch, by size of its messages, at one of eight ranks."""
    torch.set_num_threads(1)
    return {"empty": _seconds(stages.KB64), "empty 512k": _seconds(stages.KB512)}


def _seconds(size: int) -> float:
    rank, ranks, m = dist.get_rank(), dist.get_world_size(), stages.M
    is_first, is_last = rank == 0, rank == ranks - 1
    with batch_scheduling():  # like ours, which leaves the runtime to make the difference
        activations, gradients = (dist.new_group(list(range(ranks))) for _ in range(2))
    module, batch = stages.Empty(), torch.zeros(size)
    weight = module.weight
    weight.grad = torch.zeros_like(weight)

    def step() -> None:
        sent, graphs = deque(), deque()
        inputs = None if is_first else Messages(activations, rank - 1, size)
        gradients_of_outputs = None if is_last else Messages(gradients, rank + 1, size)

        def send(tensor: torch.Tensor, to: int, group: dist.ProcessGroup) -> None:
            sent.append((dist.isend(tensor, to, group), tensor))

        def forward() -> None:
            input = batch if is_first else inputs.take().requires_grad_()
            output = module(input)
            if is_last:
                output = stages.empty_loss(output, batch)
            else:
                send(output.detach(), rank + 1, activations)
            graphs.append((input, output))

        def backward() -> None:
            input, output = graphs.popleft()
            gradient = torch.tensor(1 / m) if is_last else gradients_of_outputs.take()
            if is_first:
                (of_weight,) = torch.autograd.grad(output, (weight,), gradient)
            else:
                of_weight, of_input = torch.autograd.grad(output, (weight, input), gradient)
                send(of_input, rank - 1, gradients)
            weight.grad += of_weight

        in_flight = ranks - rank
        for _ in range(in_flight):
            forward()
        for _ in range(m - in_flight):
            backward()
            forward()
        for _ in range(in_flight):
            backward()
        for work, _ in sent:
            work.wait()

    with batch_scheduling():
        return stages.timed(step, warm_up=stages.EMPTY // 2, steps=stages.EMPTY) / m


class Messages:
    """The messages of one step from `rank`, received in order."""

    def __init__(self, group: dist.ProcessGroup, rank: int, size: int):
        self.group, self.rank, self.size = group, rank, size
        self.to_post, self.posted = stages.M, deque()
        for _ in range(AHEAD):
            self._post()

    def take(self) -> torch.Tensor:
        tensor, work = self.posted.popleft()
        work.wait()
        self._post()
        return tensor

    def _post(self) -> None:
        if self.to_post:
            tensor = torch.empty(self.size)
            self.posted.append((tensor, dist.irecv(tensor, self.rank, self.group)))
            self.to_post -= 1
