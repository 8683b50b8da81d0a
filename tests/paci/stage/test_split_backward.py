import pytest
import torch
from torch import nn
from torch.autograd.graph import get_gradient_edge
from torch.distributed.pipelining._backward import stage_backward_input, stage_backward_weight
from torch.nn import functional as F

from paci.stage.split_backward import SplitBackward
from paci.stage.torch_private import keep_version_counters
from tests.paci import toys

WIDTH = 8


class Block(nn.Module):
    """A transformer block, its attention without heads: forks, residuals, a node of two inputs."""

    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.ln_1(x)).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.down(F.gelu(self.up(self.ln_2(x))))


class Shared(nn.Module):
    """One weight used three times, with another in between."""

    def __init__(self):
        super().__init__()
        self.weight, self.other = (
            nn.Parameter(torch.randn(WIDTH, WIDTH) / 3),
            nn.Linear(WIDTH, WIDTH),
        )

    def forward(self, x):
        # Not transposed: the three uses lead to one and the same node.
        return torch.tanh(self.other(torch.tanh(x @ self.weight)) @ self.weight) @ self.weight


class Product(nn.Module):
    """A branch with a fork of its own, and a parameter that nothing uses."""

    def __init__(self):
        super().__init__()
        self.g, self.v = (
            nn.Parameter(torch.randn(WIDTH, 1)),
            nn.Parameter(torch.randn(WIDTH, WIDTH)),
        )
        self.idle = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        return x @ (self.g * self.v / self.v.norm(dim=1, keepdim=True)) + self.g.sum()


MODULES = {
    "block": Block,
    "two blocks": lambda: nn.Sequential(Block(), Block()),
    "shared": Shared,
    "product": Product,
    "convolution": lambda: nn.Sequential(
        nn.Conv1d(5, 7, 3, padding=1), nn.ReLU(), nn.Conv1d(7, 5, 1)
    ),
    "gru": lambda: Gru(),
}


class Gru(nn.GRU):
    def __init__(self):
        super().__init__(WIDTH, WIDTH)

    def forward(self, x):
        return super().forward(x)[0]


def whole(module, x, gradient):
    y = module(x)
    torch.autograd.backward(y, gradient)
    return [x.grad, *[p.grad for p in module.parameters()]]


def split(module, x, gradient):
    backward = SplitBackward(get_gradient_edge(module(x)), x)
    result = backward.input_gradient(gradient)
    assert all(p.grad is None for p in module.parameters())
    assert x.grad is None
    backward.weight_gradients()
    return [result, *[p.grad for p in module.parameters()]]


def pytorchs(module, x, gradient):
    y = module(x)
    (result,), groups = stage_backward_input([y], [gradient], [x], module.parameters())
    stage_backward_weight(module.parameters(), groups)
    return [result, *[p.grad for p in module.parameters()]]


def results(name, how):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = MODULES[name]()
        x, gradient = torch.randn(2, 3, 5, WIDTH).unbind()
    return how(module, x.requires_grad_(), gradient)


@pytest.mark.parametrize("name", [name for name in MODULES if name != "shared"])
def test_two_halves_make_a_whole_to_the_last_bit(name):
    assert toys.same(results(name, split), results(name, whole))


def test_a_shared_weight_counts_every_use_once():
    """Its gradients come in another order."""
    torch.testing.assert_close(results("shared", split), results("shared", whole))


@pytest.mark.parametrize("name", ["block", "two blocks", "convolution", "gru"])
def test_equals_pytorchs_own_split(name):
    """Which fails for "shared" and for "product"."""
    assert toys.same(results(name, split), results(name, pytorchs))


def test_an_update_between_the_halves_changes_nothing_that_the_first_has_computed():
    """Linear layers do not look at their weights in the second half."""
    module = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))
    other = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))
    other.load_state_dict(module.state_dict())
    x, gradient = torch.randn(2, 5, WIDTH).unbind()
    backward = SplitBackward(get_gradient_edge(module(x.requires_grad_())), x)
    backward.input_gradient(gradient)
    with (
        torch.no_grad(),
        keep_version_counters(tuple(module.parameters())),
    ):
        for parameter in module.parameters():
            parameter.add_(1)
    backward.weight_gradients()
    expected = whole(other, x, gradient)[1:]
    assert toys.same([p.grad for p in module.parameters()], expected)


def test_what_is_kept_for_the_second_half():
    """The gradients of the outputs of both linears."""
    module = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.Tanh(), nn.Linear(2 * WIDTH, WIDTH))
    x, gradient = torch.randn(5, WIDTH, requires_grad=True), torch.randn(5, WIDTH)
    backward = SplitBackward(get_gradient_edge(module(x)), x)
    backward.input_gradient(gradient)
    assert backward.nbytes == 4 * 5 * (2 * WIDTH + WIDTH)
