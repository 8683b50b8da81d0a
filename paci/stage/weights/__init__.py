"""Which weights an action sees. One file holds one policy; `policy.py` says what a policy is."""

from collections.abc import Callable

from paci.stage.weights.corrected import Corrected
from paci.stage.weights.double_buffered import DoubleBuffered
from paci.stage.weights.live import Live
from paci.stage.weights.policy import Policy
from paci.stage.weights.predicted import Predicted
from paci.stage.weights.stashed import Stashed

WEIGHTS: dict[str, type[Policy]] = {
    policy.name: policy for policy in (Live, Stashed, DoubleBuffered, Predicted, Corrected)
}


def build(weights: str | Callable[..., Policy], stage) -> Policy:
    """The policy called `weights` for one `Stage`; what makes one from a stage does so.

    Raises ValueError for an unknown name and for a stage that the policy cannot serve.
    """
    if callable(weights):
        return weights(stage)
    if weights not in WEIGHTS:
        raise ValueError(f"unknown weights {weights!r}: choose from {', '.join(WEIGHTS)}")
    return WEIGHTS[weights](stage)


__all__ = ["WEIGHTS", "Policy", "build"]
