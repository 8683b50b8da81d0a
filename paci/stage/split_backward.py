"""A backward in two halves: the gradient of the input now, those of the weights later.

    output ──▶ fork ──▶ node ──▶ fork ──▶ input       the trunk: all that leads to the input
                 │                 │
                 ▼                 ▼
              weights           weights               branches

The first half goes along the trunk, and notes which gradients reach the forks; the second visits
every fork again, with those gradients, on its way to its weights only. So does PyTorch's own
split (torch.distributed.pipelining), which needs the output to be kept; here its edge will do.
"""

from collections.abc import Iterator

import torch
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge


class SplitBackward:
    """The backward through the graph that `edge` is the output of and `input` the input."""

    def __init__(self, edge: GradientEdge, input: torch.Tensor):
        self._edge, self._input = edge, input
        self._gradients: dict[Node, tuple[torch.Tensor | None, ...]] = {}  # that reach a fork

    def input_gradient(self, gradient: torch.Tensor) -> torch.Tensor:
        """The first half, from the gradient of the output."""
        self._forks = _forks(self._edge.node, get_gradient_edge(self._input).node)
        hooks = [fork.register_prehook(self._note(fork)) for fork in self._forks]
        (result,) = torch.autograd.grad(self._edge, self._input, gradient, retain_graph=True)
        for hook in hooks:
            hook.remove()
        del self._edge, self._input
        return result

    @property
    def nbytes(self) -> int:
        """Of the gradients that are kept for the second half."""
        storages = {
            gradient.untyped_storage().data_ptr(): gradient.untyped_storage().nbytes()
            for gradients in self._gradients.values()
            for gradient in gradients
            if gradient is not None
        }
        return sum(storages.values())

    def weight_gradients(self) -> None:
        """The second half: adds to the gradients of the weights."""
        for forks, weights in _groups(self._forks):
            edges, gradients = zip(
                *(
                    (GradientEdge(fork, number), gradient)
                    for fork in forks
                    for number, gradient in enumerate(self._gradients[fork])
                    if gradient is not None
                ),
                strict=True,
            )
            # Along the trunk, one fork of a group leads to another and so to its weights; but what
            # arrives on this way is in the gradient noted there already.
            hooks = [
                fork.register_prehook(lambda _, noted=self._gradients[fork]: noted)
                for fork in forks
                if len(forks) > 1
            ]
            inputs = [weight.variable for weight in weights]
            torch.autograd.backward(edges, gradients, retain_graph=True, inputs=inputs)
            for hook in hooks:
                hook.remove()

    def _note(self, fork: Node):
        def note(gradients):
            self._gradients[fork] = gradients

        return note


def _forks(output: Node, input: Node) -> dict[Node, set[Node]]:
    """The forks of the trunk from `output` to `input`, each with the weights that it leads to
    without following the trunk."""
    trunk, weights = {input}, {}
    for node, children in _children_first(output):
        own = {node} if hasattr(node, "variable") and node is not input else set()
        for child in children:
            if child in trunk:
                trunk.add(node)
            else:
                own |= weights[child]
        weights[node] = own
    return {node: own for node, own in weights.items() if own and node in trunk}


def _children_first(output: Node) -> Iterator[tuple[Node, list[Node]]]:
    """All nodes of a graph with those that they lead to, each after all of these."""
    seen, stack = set(), [(output, None)]
    while stack:
        node, children = stack.pop()
        if children is not None:
            yield node, children
        elif node not in seen:
            seen.add(node)
            children = [child for child, _ in node.next_functions if child is not None]
            stack.append((node, children))
            stack += [(child, None) for child in children]


def _groups(forks: dict[Node, set[Node]]) -> list[tuple[list[Node], set[Node]]]:
    """(forks, their weights), such that no two groups share a weight."""
    groups: list[tuple[list[Node], set[Node]]] = []
    for fork, weights in forks.items():
        apart = [group for group in groups if not group[1] & weights]
        shared = [group for group in groups if group[1] & weights]
        together = [f for own, _ in shared for f in own]
        groups = [*apart, ([*together, fork], weights.union(*(own for _, own in shared)))]
    return groups
