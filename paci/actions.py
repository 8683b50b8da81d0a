"""Actions of a rank, and their text form.

An action is written as PyTorch writes it, stage then kind then micro-batch:

    2F0   forward of micro-batch 0 at stage 2
    2B0   its full backward
    2I0   the first half of a split backward: the gradient of the input
    2W0   the second half: the gradients of the weights

An *order* is the list of one rank's actions from first to last. The orders of all ranks are
written as PyTorch's CSV of a schedule, one line per rank with commas between the actions.
`read_orders` also reads grids:

    rank 0  0F0  0F1   .    .   0B0  0B1
    rank 1   .   1F0  1B0  1F1  1B1   .
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

FORWARD = "F"
BACKWARD = "B"
INPUT_GRADIENT = "I"
WEIGHT_GRADIENT = "W"

KINDS = (FORWARD, BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT)
ENDS_BACKWARD = (BACKWARD, WEIGHT_GRADIENT)  # these complete the gradients of the weights

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
        """Read one action; the inverse of `str(action)`. Raises ValueError for any other text."""
        match = _NOTATION.fullmatch(text.strip())
        if match is None:
            raise ValueError(
                f"{text.strip()!r} is not an action: "
                "write stage, kind (F, B, I or W) and micro-batch, like 2F0"
            )
        stage, kind, microbatch = match.groups()
        return cls(int(stage), kind, int(microbatch))


def write_orders(orders: Sequence[Sequence[Action]]) -> str:
    """Return the orders of all ranks as text, one rank per line; the inverse of `read_orders`."""
    return "".join(",".join(map(str, order)) + "\n" for order in orders)


def read_orders(text: str) -> list[list[Action]]:
    """Return the orders of all ranks from text with one rank per line.

    Actions are separated by commas or blanks. Empty fields and lines, dots (idle steps) and
    leading names of ranks are skipped. Raises ValueError for anything that is not an action.
    """
    lines = [_RANK.sub("", line) for line in text.splitlines() if line.strip()]
    return [
        [Action.parse(field) for field in re.split(r"[,\s]+", line) if field not in ("", ".")]
        for line in lines
    ]
