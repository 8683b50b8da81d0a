import pytest
import torch

from paci.weights import build


def test_backward_reads_the_weights_of_its_own_moment():
    weight, x = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    y = weight * x
    with torch.no_grad():
        build("live", [weight]).update(lambda: weight.fill_(5.0))
    y.backward()
    assert (x.grad, weight.grad) == (5, 3)


def test_autograd_refuses_any_other_change():
    weight, x = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    y = weight * x
    with torch.no_grad():
        weight.fill_(5.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_unknown_weights():
    with pytest.raises(ValueError, match="unknown weights 'old': choose from live"):
        build("old", [])
