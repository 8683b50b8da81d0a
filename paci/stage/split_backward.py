"""A backward in two halves: the gradient of the input now, the gradients of the weights later.

    output ──▶ fork ──▶ node ──▶ fork ──▶ input       the trunk: all nodes that lead to the input
                 │                 │
                 ▼                 ▼
              weights           weights               branches

The first half runs along the trunk and notes the gradients that reach the forks; the second starts
at every fork with those gradients and runs along the branches only. PyTorch's own split
(torch.distributed.pipelining) does the same, but needs the output itself to be kept; here the
output's edge is enough.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

from paci.stage.torch_private import leaf_of

Gradients = tuple[torch.Tensor | None, ...]


class SplitBackward:
    """The backward through the graph from the output at `edge` to `input`."""

    def __init__(self, edge: GradientEdge, input: torch.Tensor):
        self._edge, self._input = edge, input
        self._gradients: dict[Node, Gradients] = {}  # that reach a fork

    def input_gradient(self, gradient: torch.Tensor) -> torch.Tensor:
        """Do the first half: return the gradient of the input, given the output's.

        Raises ValueError for a graph with reentrant checkpoints, which autograd cannot split.
        """
        self._forks = _forks(self._edge.node, get_gradient_edge(self._input).node)
        hooks = [fork.register_prehook(self._note(fork)) for fork in self._forks]
        try:
            (result,) = torch.autograd.grad(self._edge, self._input, gradient, retain_graph=True)
        except RuntimeError as error:
            if "use_reentrant" not in str(error):
                raise
            raise ValueError(
                "a schedule that splits backwards cannot train a stage with reentrant "
                "checkpoints: call torch.utils.checkpoint with use_reentrant=False"
            ) from error
        for hook in hooks:
            hook.remove()
        del self._edge, self._input
        return result

    @property
    def nbytes(self) -> int:
        """Bytes of the gradients that are kept for the second half."""
        storages = {
            gradient.untyped_storage().data_ptr(): gradient.untyped_storage().nbytes()
            for gradients in self._gradients.values()
            for gradient in gradients
            if gradient is not None
        }
        return sum(storages.values())

    def weight_gradients(self) -> None:
        """Do the second half: add to the gradients of the weights."""
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
            # Along the trunk, one fork of a group leads to another and so to its weights; but the
            # gradient noted at that one contains what arrives on this way.
            hooks = [
                fork.register_prehook(_replace_by(self._gradients[fork]))
                for fork in forks
                if len(forks) > 1
            ]
            inputs = [leaf for weight in weights if (leaf := leaf_of(weight)) is not None]
            torch.autograd.backward(edges, gradients, retain_graph=True, inputs=inputs)
            for hook in hooks:
                hook.remove()

    def _note(self, fork: Node) -> Callable[[Gradients], None]:
        def note(gradients: Gradients) -> None:
            self._gradients[fork] = gradients

        return note


def _replace_by(noted: Gradients) -> Callable[[Gradients], Any]:
    return lambda _: noted


def _forks(output: Node, input: Node) -> dict[Node, set[Node]]:
    """Return the forks of the trunk from `output` to `input`, each with the nodes of the weights
    that its branches lead to."""
    trunk: set[Node] = {input}
    weights: dict[Node, set[Node]] = {}
    for node, children in children_first(output):
        own = {node} if leaf_of(node) is not None and node is not input else set()
        for child in children:
            if child in trunk:
                trunk.add(node)
            else:
                own |= weights[child]
        weights[node] = own
    return {node: own for node, own in weights.items() if own and node in trunk}


def children_first(output: Node) -> Iterator[tuple[Node, list[Node]]]:
    """Yield all nodes of a graph with those that they lead to, each after all of these."""
    seen: set[Node] = set()
    stack: list[tuple[Node, list[Node] | None]] = [(output, None)]
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
    """Return groups of forks with their weights, such that no two groups share a weight."""
    groups: list[tuple[list[Node], set[Node]]] = []
    for fork, weights in forks.items():
        apart = [group for group in groups if not group[1] & weights]
        shared = [group for group in groups if group[1] & weights]
        together = [f for own, _ in shared for f in own]
        groups = [*apart, ([*together, fork], weights.union(*(own for _, own in shared)))]
    return groups
