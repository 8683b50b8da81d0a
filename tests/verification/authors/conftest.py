"""The checkout that the tests marked `oracle` run, and small recordings for the others."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from verification.authors.checkout import (
    HOW_TO_GET,
    checked,
    difference_from_known,
    make_importable,
)
from verification.authors.recording import Event, Recording


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The authors' code, from the environment's AUTHORS."""
    given = os.environ.get("AUTHORS")
    if not given:
        pytest.skip(f"AUTHORS names no checkout of the authors' repository ({HOW_TO_GET})")
    folder = checked(given)
    if difference := difference_from_known(folder):
        warnings.warn(difference, stacklevel=1)
    make_importable(folder)
    return folder


@pytest.fixture
def recorded() -> Callable[..., Recording]:
    """Make a recording from events written like "F0 F1 B0 send0 update0", a line per stage."""

    def make(*stages: str) -> Recording:
        return Recording([_events(line) for line in stages], {})

    return make


def _events(line: str) -> list[Event]:
    events, version, in_flight = [], 0, 0
    for word in line.split():
        kind = word.rstrip("0123456789")
        rate = 0.1 if kind == "update" else None
        events.append(Event(kind, int(word.removeprefix(kind)), version, in_flight, rate))
        version += kind == "update"
        in_flight += (kind == "F") - (kind == "B")
    return events
