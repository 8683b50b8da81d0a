"""The FLOPs of each unit of a GPT-2, counted instead of measured: the same on every machine."""

from transformers import GPT2Config

from paci.partition import UnitCost


def count_flops(config: GPT2Config) -> list[UnitCost]:
    """Return the forward FLOPs per token of each unit, in the order of `unit_names`, as its time.

    A backward costs twice its forward in every unit, so it does not change the balance. Bytes are
    not counted.
    """
    width, context = config.n_embd, config.n_positions
    embedding = width  # one addition per feature: small, but a unit takes some time
    projections = 2 * width * (3 * width + width)
    scores = 2 * (2 * width * context)  # queries x keys and weights x values, unmasked
    mlp = 2 * (width * 4 * width) * 2
    head = 2 * width * config.vocab_size
    halves = [projections + scores, mlp] * config.n_layer
    return [UnitCost(time) for time in (embedding, *halves, head)]
