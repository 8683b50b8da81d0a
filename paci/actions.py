"""What a rank can do, and how it is written down.

An action is written as PyTorch writes it, stage then kind then micro-batch:

    2F0   forward of micro-batch 0 at stage 2
    2B0   its whole backward
    2I0   the half of the backward that gives the gradient of the input
    2W0   the half that gives the gradients of the weights

An *order* is the actions of one rank from first to last; the orders of all ranks are written one
rank a line, actions separated by commas (PyTorch's CSV of a schedule), or read from a grid:

    rank 0  0F0  0F1   .    .   0B0  0B1
    rank 1   .   1F0  1B0  1F1  1B1   .
"""

import re
from typing import NamedTuple

FORWARD = "F"
BACKWARD = "B"
INPUT_GRADIENT = "I"
WEIGHT_GRADIENT = "W"

KINDS = (FORWARD, BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT)
ENDS_BACKWARD = (BACKWARD, WEIGHT_GRADIENT)  # with it the gradients of the weights are complete

_NOTATION = re.compile(r"(\d+)([FBIW])(\d+)")
_RANK = re.compile(r"^\s*rank\s+\d+\b")


class Action(NamedTuple):
    """One action of a rank. Stages and micro-batches count from 0; `kind` is one of `KINDS`."""

    stage: int
    kind: str
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"

    @classmethod
    def parse(cls, text: str) -> "Action":
        """Read one action; raises ValueError for anything that `str(action)` does not write."""
        match = _NOTATION.fullmatch(text.strip())
        if match is None:
            raise ValueError(
                f"{text.strip()!r} is not an action: "
                "write stage, kind (F, B, I or W) and micro-batch, like 2F0"
            )
        stage, kind, microbatch = match.groups()
        return cls(int(stage), kind, int(microbatch))


def write_orders(orders: list[list[Action]]) -> str:
    """The orders of all ranks as text, one rank a line; `read_orders` is its inverse."""
    return "".join(",".join(map(str, order)) + "\n" for order in orders)


def read_orders(text: str) -> list[list[Action]]:
    """The orders of all ranks from text: actions separated by commas or blanks, one rank a line.

    Empty fields and lines, dots (steps of waiting) and names of ranks in front are skipped.
    """
    lines = [_RANK.sub("", line) for line in text.splitlines() if line.strip()]
    return [
        [Action.parse(field) for field in re.split(r"[,\s]+", line) if field not in ("", ".")]
        for line in lines
    ]
