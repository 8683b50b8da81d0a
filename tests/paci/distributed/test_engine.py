"""One rank's event loop, without processes: its messages go into a list."""

import pytest
import torch

from paci.distributed.engine import Engine
from paci.distributed.inbox import Inbox, Message
from paci.distributed.transport import LinkLost
from paci.schedules import build
from paci.stage.stage import Stage
from tests.paci import toys

A = 2


class Next:
    """A next stage that answers every activation with a gradient at once."""

    def __init__(self, said: list, inbox: Inbox):
        self.said, self.inbox = said, inbox

    def send(self, tensor):
        self.said.append("activation")
        self.inbox.put(Message(1, "B", torch.ones_like(tensor)))


class Previous:
    def __init__(self, said: list):
        self.said = said

    def send(self, tensor):
        assert tensor.shape == (toys.ROWS, toys.WIDTH)
        self.said.append("gradient")


def middle(schedule: str, inputs: int, count: int = A) -> tuple[Engine, list, Inbox]:
    """Stage 1 of 3 with so many inputs, what it says (messages, updates), and its inbox."""
    said, inbox = [], Inbox()
    stage = Stage(1, 3, toys.layer(), A, toys.adamw)
    stage.optimizer.register_step_pre_hook(lambda *_: said.append("update"))
    weight = stage.backward_weight
    stage.backward_weight = lambda m: (said.append("weights"), weight(m))
    senders = {(2, "F"): Next(said, inbox), (0, "B"): Previous(said)}
    for _ in range(inputs):
        inbox.put(Message(1, "F", torch.ones(toys.ROWS, toys.WIDTH)))
    rule = build(schedule, 3, A)
    engine = Engine(
        rule, [stage], range(count), inbox, senders, said.append, None, gather=lambda x: [x]
    )
    return engine, said, inbox


@pytest.mark.parametrize(
    ("schedule", "second_halves"), [("paci", []), ("zb-h1", ["weights", "weights"])]
)
def test_a_gradient_leaves_before_weights_and_update(schedule, second_halves):
    engine, said, _ = middle(schedule, inputs=A)
    engine.run([])
    said = [word for word in said if word != "activation"]
    assert said == ["gradient", "gradient", *second_halves, "update"]


class Late(Inbox):
    """An inbox whose messages come once somebody waits for them."""

    def get(self):
        if self.empty():
            self.put(Message(1, "F", torch.ones(toys.ROWS, toys.WIDTH)))
        return super().get()


def test_waiting_has_a_cause():
    engine, _, _ = middle("paci", inputs=0)
    engine.inbox = Late()
    engine.senders[2, "F"].inbox = engine.inbox
    engine.run([])
    assert set(engine.waiting) == {"input"}
    assert engine.waiting["input"] > 0


def test_notices_are_handed_on_and_a_lost_link_is_raised():
    engine, said, inbox = middle("paci", inputs=0)
    inbox.put({"a": "notice"})
    inbox.put(LinkLost(0, 0, 0, "gone"))
    with pytest.raises(LinkLost, match="gone"):
        engine.run([])
    assert said == [{"a": "notice"}]


def test_it_stops_after_the_window_it_is_told():
    engine, said, _ = middle("paci", inputs=A, count=4 * A)
    engine.stop_at(A)
    engine.run([])
    assert said.count("update") == 1
