"""Outcomes of trainings, on either side, and their differences."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch


@dataclass(frozen=True)
class Outcome:
    """The quantities that a training computed; lists of lists are per stage.

    losses       the loss of every micro-batch, in their order, not scaled
    weights      {stage/name: tensor} after the last update
    adam         {stage/parameter/key: tensor}, the optimizer's moments and counts of steps
    drift        histogram {updates between forward and backward: micro-batches}
    in_flight    the most micro-batches at once
    rates        the learning rate of every update
    evaluations  the loss of every micro-batch, a list per evaluation
    """

    losses: list[float]
    weights: dict[str, torch.Tensor]
    adam: dict[str, torch.Tensor]
    drift: list[Counter[int]]
    in_flight: list[int]
    rates: list[list[float]]
    evaluations: list[list[float]]


class Check(NamedTuple):
    """The verdict on one quantity: whether it is equal bitwise, and a detail to print."""

    equal: bool
    detail: str = ""

    def __str__(self) -> str:
        return f"{'=' if self.equal else '≠'} {self.detail}".strip()


def compare(theirs: Outcome, ours: Outcome) -> dict[str, Check]:
    """Compare every quantity. Empty ones are left out."""
    checks = {}
    for field in fields(Outcome):
        expected, found = getattr(theirs, field.name), getattr(ours, field.name)
        if expected or found:
            checks[field.name] = _check(field.name, expected, found)
    return checks


def named_weights(states: Iterable[Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Return {stage/name: tensor} from the state of every stage's module."""
    return {f"{i}/{name}": t.clone() for i, state in enumerate(states) for name, t in state.items()}


def named_adam(states: Iterable[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    """Return {stage/parameter/key: tensor} from the state of every stage's optimizer."""
    return {
        f"{i}/{number}/{key}": value.clone()
        for i, state in enumerate(states)
        for number, kept in state["state"].items()
        for key, value in kept.items()
    }


def _check(name: str, expected: Any, found: Any) -> Check:
    if isinstance(expected, dict):
        return _check_tensors(expected, found)
    if name == "drift":
        return Check(expected == found, f"≤ {max(max(histogram) for histogram in found)}")
    if name == "in_flight":
        return Check(expected == found, f"≤ {max(found)}")
    return _check_numbers(expected, found)


def _check_tensors(
    expected: Mapping[str, torch.Tensor], found: Mapping[str, torch.Tensor]
) -> Check:
    if expected.keys() != found.keys():
        return Check(False, "other names")
    if all(torch.equal(expected[name], found[name]) for name in expected):
        return Check(True)
    return Check(False, _size(max((expected[n] - found[n]).abs().max().item() for n in expected)))


def _check_numbers(expected: Any, found: Any) -> Check:
    if expected == found:
        return Check(True)
    pairs = list(zip(_flat(expected), _flat(found), strict=False))
    if len(_flat(expected)) != len(_flat(found)):
        return Check(False, "other lengths")
    return Check(False, _size(max(abs(a - b) for a, b in pairs)))


def _flat(numbers: Any) -> list[float]:
    if isinstance(numbers, list):
        return [number for part in numbers for number in _flat(part)]
    return [numbers]


def _size(difference: float) -> str:
    return f"by up to {difference:.1g}"
