import pytest
import torch

from paci.stage.perform import Mailbox, perform
from paci.stage.stage import Stage
from tests.paci import toys

BATCH = toys.batches(1)[0]


def exchanged(index: int, kinds: str) -> tuple[list, list]:
    """Return what stage `index` of 3 takes and sends when it does `kinds` of
    micro-batch 7, and the result of each."""
    stage = Stage(index, 3, toys.layer(), 1, toys.sgd, loss_fn=toys.loss_fn)
    stage.optimizer.register_step_pre_hook(lambda *_: said.append("update"))
    said = []

    def batch_of(microbatch):
        said.append(f"batch {microbatch}")
        return BATCH

    def take(to, kind):
        said.append(f"take {to}{kind}")
        return torch.ones(toys.ROWS, toys.WIDTH)

    def send(to, kind, tensor):
        assert tensor.shape == (toys.ROWS, toys.WIDTH)
        said.append(f"send {to}{kind}")

    return said, [perform(stage, kind, 7, batch_of, take, send) for kind in kinds]


@pytest.mark.parametrize(
    ("index", "kinds", "said"),
    [
        (0, "FB", ["batch 7", "send 1F", "take 0B", "update"]),
        (1, "FB", ["take 1F", "send 2F", "take 1B", "send 0B", "update"]),
        (2, "FB", ["take 2F", "batch 7", "send 1B", "update"]),
        (0, "FIW", ["batch 7", "send 1F", "take 0B", "update"]),
        (1, "FIW", ["take 1F", "send 2F", "take 1B", "send 0B", "update"]),
        (2, "FIW", ["take 2F", "batch 7", "send 1B", "update"]),
    ],
)
def test_a_gradient_is_sent_before_the_update_and_none_from_stage_0(index, kinds, said):
    assert exchanged(index, kinds)[0] == said


def test_only_a_forward_of_the_last_stage_has_a_loss():
    assert exchanged(1, "FIW")[1] == [None] * 3
    loss, *others = exchanged(2, "FIW")[1]
    assert loss.dim() == 0
    assert others == [None, None]


def test_messages_of_one_kind_keep_their_order():
    mail = Mailbox()
    for stage, kind, value in ((1, "F", 0), (1, "B", 1), (2, "F", 2), (1, "F", 3)):
        mail.put(stage, kind, torch.tensor(value))
    assert [mail.take(1, "F").item() for _ in range(2)] == [0, 3]
    assert (mail.take(1, "B").item(), mail.take(2, "F").item()) == (1, 2)
