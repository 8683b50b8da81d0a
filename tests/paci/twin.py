"""PACI once more, from the paper's rule and the chain rule alone, naive and slow.

Nothing here comes from `paci` (the random numbers of dropout and the durations are handed in).
Time is in exact fractions. No tensor ever changes: an update appends one more copy of the
weights to a stage's history, so that an action says which version it reads.

    history[i] = [v0, v1, v2, ...]      stage i updates: append
    forward  of m at stage i reads history[i][-1] and remembers its input, output and version
                          (of "double-buffered" weights: it reads version m // a - 1 instead)
    backward of m at stage i reads history[i][-1] of *its* moment ("live"),
                          or the version of the forward ("stashed" and "double-buffered"),
                          or it goes back from history[i][-1] by a fading mean of the changes
                          in the history, as often as there were updates since ("corrected")
"""

import itertools
from fractions import Fraction
from typing import NamedTuple

import torch

FADING = 0.135  # over the delay of a stage: (N - 1 - i) / a updates


class Row(NamedTuple):
    stage: int
    kind: str
    microbatch: int
    start: float
    end: float
    version: int


def clock(N, a, slack, microbatches, duration, update, transfer) -> list[Row]:
    """All actions of PACI by their start. `duration(kind, stage, microbatch)`, `update[stage]`
    and `transfer[stage]` are times; every stage decides by itself, at each instant at which
    anything ends or arrives."""
    inputs = [[Fraction(0)] * microbatches] + [[] for _ in range(N - 1)]  # arrival times
    gradients = [[] for _ in range(N)]
    free = [Fraction(0)] * N
    forwards, backwards = [0] * N, [0] * N
    rows = []

    now = Fraction(0)
    while min(backwards) < microbatches:
        for i in reversed(range(N)):
            if free[i] > now:
                continue
            gradient_is_here = (
                len(gradients[i]) > backwards[i] and gradients[i][backwards[i]] <= now
            )
            input_is_here = len(inputs[i]) > forwards[i] and inputs[i][forwards[i]] <= now
            limit = N - i if i == N - 1 else N - i + slack
            version = backwards[i] // a
            if gradient_is_here:
                m = backwards[i]
                backwards[i] += 1
                done = now + Fraction(duration("B", i, m))
                free[i] = done + (Fraction(update[i]) if backwards[i] % a == 0 else 0)
                if i > 0:
                    gradients[i - 1].append(done + Fraction(transfer[i]))
                rows.append(Row(i, "B", m, now, free[i], version))
            elif input_is_here and forwards[i] - backwards[i] < limit:
                m = forwards[i]
                forwards[i] += 1
                done = free[i] = now + Fraction(duration("F", i, m))
                if i < N - 1:
                    inputs[i + 1].append(done + Fraction(transfer[i]))
                else:
                    gradients[i].append(done)
                rows.append(Row(i, "F", m, now, done, version))
        now = min(t for times in (free, *inputs, *gradients) for t in times if t > now)
    return rows


def train(
    rows, parameters, batches, a, optimizer, lr_lambda, masks, weights="live", shares=None, slack=0
):
    """Losses (by micro-batch) and final weights of stages leaky_relu(x Wᵀ + b) * mask under a
    mean squared error, for actions in the order of `rows`.

    `parameters[i]` is [W, b]; `masks(stage, microbatch)` is dropout's mask, already scaled;
    `shares` are the parts of a window's loss that its micro-batches make, 1/a each if not given;
    "corrected" weights depend on the `slack`.
    """
    N = len(parameters)
    history = [[[p.clone() for p in stage]] for stage in parameters]
    leaves = [[p.clone() for p in stage] for stage in parameters]  # for torch.optim only
    optimizers = [optimizer(stage) for stage in leaves]
    full_rates = [o.param_groups[0]["lr"] for o in optimizers]
    sums = [[None, None] for _ in range(N)]
    sent, returned, remembered, losses = {}, {}, {}, {}

    for i, kind, m, _, _, version in rows:
        assert version == len(history[i]) - 1
        if kind == "F":
            if weights == "double-buffered":
                version = max(m // a - 1, 0)
            W, b = history[i][version]
            x = batches[m][0] if i == 0 else sent.pop((i, m))
            z = x @ W.T + b
            y = sent[i + 1, m] = z * slope(z) * masks(i, m)
            remembered[i, m] = x, z, version
            if i == N - 1:
                error = y - batches[m][1]
                losses[m] = (error * error).mean().item()
                returned[i, m] = 2 / error.numel() * error * (shares[m % a] if shares else 1 / a)
            continue

        x, z, seen = remembered.pop((i, m))
        W, b = history[i][seen if weights in ("stashed", "double-buffered") else -1]
        if weights == "corrected":
            changes = mean_change(history[i], fading=FADING ** (a / max(N - 1 - i + slack, 1)))
            W, b = (p - (version - seen) * c for p, c in zip((W, b), changes, strict=True))
        dz = returned.pop((i, m)) * masks(i, m) * slope(z)
        if i > 0:
            returned[i - 1, m] = dz @ W
        for k, g in enumerate([dz.T @ x, dz.sum(0)]):
            sums[i][k] = g if sums[i][k] is None else sums[i][k] + g

        if (m + 1) % a == 0:
            for p, g in zip(leaves[i], sums[i], strict=True):
                p.grad = g
            optimizers[i].param_groups[0]["lr"] = full_rates[i] * lr_lambda(version)
            optimizers[i].step()
            history[i].append([p.clone() for p in leaves[i]])
            sums[i] = [None, None]

    return [losses[m] for m in range(len(batches))], [stage[-1] for stage in history]


def mean_change(versions, fading):
    """The mean change from version to version, the weight of one fading with every later one."""
    mean = [torch.zeros_like(p) for p in versions[0]]
    for before, after in itertools.pairwise(versions):
        mean = [fading * mean[k] + (1 - fading) * (after[k] - before[k]) for k in range(len(mean))]
    return mean


def slope(z):
    """Slope of the leaky ReLU: powers of two, so that its products round nothing."""
    return torch.where(z > 0, 1.0, 0.5)
