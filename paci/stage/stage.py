"""One stage's mathematics: forward, backward and update of its part of the model.

           input ─▶ module ─▶ output ─▶ next stage (or the loss, at the last stage)
    gradient of input ◀─ autograd ◀─ gradient of output
                           │
              every `a` backwards: optimizer step, version += 1

Nothing here knows of clocks, ranks or messages; every executor drives the same `Stage`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import torch
from torch import nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from paci.microbatches import sizes
from paci.schedules.theory import in_flight_bound
from paci.stage.checks import check_optimizer, check_parameters
from paci.stage.compute import Compute, buffers_kept, computation_of
from paci.stage.full_backward import backward, backward_to
from paci.stage.learning_rate import LearningRate, LearningRateSchedule
from paci.stage.memory import SavedTensors
from paci.stage.probe import probe
from paci.stage.rng import check_seed, rng_of
from paci.stage.safeguards import GradientGuard, Safeguards, total_norm
from paci.stage.split_backward import SplitBackward
from paci.stage.version_tracker import VersionTracker
from paci.stage.weights import MakePolicy, Position, make_policy

Batch = tuple[torch.Tensor, torch.Tensor]  # input and target of a micro-batch
SendGradient = Callable[[torch.Tensor], None]
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class _Graph(NamedTuple):
    """The part of a micro-batch's forward that its backward needs."""

    input: torch.Tensor
    output: GradientEdge  # not the tensor: an activation that was sent on need not be kept here
    gradient_of_loss: torch.Tensor | None  # the last stage's only


class Stage:
    """Stage `index` of a pipeline of `stages`.

    module         maps the previous stage's output (at stage 0: the data) to this stage's output
    accumulation   a, the micro-batches of one window
    optimizer      makes an optimizer from the module's parameters
    lr_lambda      factor on the optimizer's learning rate as a function of this stage's version;
                   or one such function for each stage of the pipeline
    loss_fn        (output, target) -> scalar mean over the micro-batch; the last stage's only
    weights        which weights an action sees: a name in `paci.stage.weights.WEIGHTS`, or a
                   function that makes a policy from the module, the optimizer and the position
    seed           seeds the random numbers (dropout), together with stage and micro-batch
    measure_every  updates between two samples of how far the weights move (0: never)
    batch          the sequences of one window, shared out by `paci.microbatches.sizes`: each loss
                   then weighs its micro-batch's part of them; None: all losses weigh 1/a
    in_flight      micro-batches in flight here when the pipeline is full; None: N - i
    compute        precision, recomputation of activations, compilation
    safeguards     clipping of gradients, and what happens to those that are not finite

    Raises ValueError for a module without parameters to train, an optimizer that needs a closure,
    unknown weights and impossible numbers.
    """

    def __init__(
        self,
        index: int,
        stages: int,
        module: nn.Module,
        accumulation: int,
        optimizer: MakeOptimizer,
        lr_lambda: LearningRate | Sequence[LearningRate] | None = None,
        loss_fn: Loss | None = None,
        weights: str | MakePolicy = "live",
        seed: int = 0,
        measure_every: int = 0,
        batch: int | None = None,
        in_flight: int | None = None,
        compute: Compute | None = None,
        safeguards: Safeguards | None = None,
    ):
        parameters = list(module.parameters())
        check_parameters(index, parameters)
        self.index = index
        self.stages = stages
        self.is_first = index == 0
        self.is_last = index == stages - 1
        self.module = module
        self.accumulation = accumulation
        self.sizes = None if batch is None else sizes(batch, accumulation)
        self._loss_weights = [1 / accumulation] * accumulation
        if batch is not None and self.sizes is not None:
            self._loss_weights = [size / batch for size in self.sizes]
        self.optimizer = optimizer(parameters)
        check_optimizer(self.optimizer)
        self.loss_fn = loss_fn
        full = in_flight_bound(stages, index) if in_flight is None else in_flight
        self._position = Position(index, stages, accumulation, full)
        self.compute = compute or Compute()
        self.computation = computation_of(module, self.compute)
        self.weights = make_policy(weights)(self.computation.module, self.optimizer, self._position)
        self.weights.masters = self.computation.masters
        self.safeguards = safeguards or Safeguards()
        self.guard = GradientGuard(index, self.safeguards)
        self.seed = check_seed(seed)
        self.device = parameters[0].device
        self.versions = VersionTracker(accumulation, measure_every)
        self.saved = SavedTensors(self.computation.parameters, self.computation.masters)
        self._rates = LearningRateSchedule(self.optimizer, lr_lambda, self._position)
        self._graphs: dict[int, _Graph] = {}  # by micro-batch
        self._inputs: dict[int, tuple[torch.Tensor, torch.Tensor | None]] = {}  # to be run again
        self._second_halves: dict[int, Callable[[], None]] = {}  # of split backwards
        self._modes: list[tuple[nn.Module, bool]] = []  # at the beginning of the segment
        self.at_version(0)

    def forward(
        self, microbatch: int, input: torch.Tensor, target: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the output of `microbatch`, detached; at the last stage its loss, not scaled.

        input    (sequences, ...): data at stage 0, else the previous stage's output
        target   (sequences, ...): read by the last stage only
        returns  (sequences, ...): the module's output; at the last stage a scalar

        The output is contiguous, as it arrives at another rank: other strides may mean other
        roundings there.
        """
        input = self._received(input)
        with self.weights.forward(microbatch, self.versions.version) as view:
            self.versions.forward(microbatch, view)
            self.saved.note_versions(self.weights.extra_bytes)
            if self.compute.recompute == "stage":
                with torch.no_grad():
                    output = self._output(microbatch, input, target)
                self._inputs[microbatch] = input, target
                self.saved.hold_input(microbatch, input)
            else:
                output, graph = self._run(microbatch, input, target)
                self._graphs[microbatch] = graph
        if self.is_last:
            self.guard.check("loss", output, microbatch, self.versions.version)
        sent: torch.Tensor = output.detach().contiguous()
        return sent

    def backward(
        self,
        microbatch: int,
        gradient: torch.Tensor | None = None,
        send: SendGradient | None = None,
    ) -> None:
        """Backpropagate `microbatch` and pass the gradient of its input to `send`.

        gradient   like the output of `forward`; None at the last stage, where gradients begin
        send       gets a tensor like the input of `forward`; not called at stage 0

        The last backward of a window ends in the update of the weights.
        """
        self._check(gradient, microbatch)
        with self.weights.backward(microbatch, self.versions.version) as view:
            self.versions.backward(microbatch, view)
            self.saved.note_versions(self.weights.extra_bytes)
            graph = self._graph(microbatch)
            gradient = self._gradient_of_output(graph, gradient)
            if self.is_first:
                backward(graph.output, gradient)
            else:
                assert send is not None
                send(backward_to(graph.input, graph.output, gradient))
        del graph
        self._finish(microbatch)

    def backward_input(
        self,
        microbatch: int,
        gradient: torch.Tensor | None = None,
        send: SendGradient | None = None,
    ) -> None:
        """Do the first half of a split backward: pass the gradient of the input to `send`, and
        leave those of the weights to `backward_weight`.

        Arguments are those of `backward`. At stage 0, which sends no gradient, nothing is computed.
        """
        self._check(gradient, microbatch)
        if self.is_first:
            self._second_halves[microbatch] = partial(self._whole_backward, microbatch, gradient)
            return
        assert send is not None
        with self.weights.backward(microbatch, self.versions.version) as view:
            self.versions.backward_input(microbatch, view)
            self.saved.note_versions(self.weights.extra_bytes)
            graph = self._graph(microbatch)
            gradient = self._gradient_of_output(graph, gradient)
            split = SplitBackward(graph.output, graph.input)
            gradient = split.input_gradient(gradient)
        self.saved.add_activations(microbatch, split.nbytes)
        self._second_halves[microbatch] = split.weight_gradients
        send(gradient.contiguous())

    def backward_weight(self, microbatch: int) -> None:
        """Do the second half of a split backward, any time later: add to the gradients of the
        weights. The last one of a window ends in the update of the weights.

        There may have been updates of earlier windows between the halves. What the first half
        computed stays as it is, and what is left of the graph sees the weights that the policy
        shows a backward now. Few operations still look at them, a linear layer does not; at stage
        0 the whole backward does.
        """
        with self.weights.backward(microbatch, self.versions.version) as view:
            if self.is_first:
                self.versions.backward(microbatch, view)
            else:
                self.versions.backward_weight(microbatch)
            self.saved.note_versions(self.weights.extra_bytes)
            self._second_halves.pop(microbatch)()
        self._finish(microbatch)

    def update(self, norm: float | None = None) -> None:
        """Make one optimizer step from the gradients of this window, at this stage alone.

        norm   of all stages' gradients together, if they are clipped to it

        The version counts on even if the safeguards leave the step out.
        """
        version = self.versions.version
        self.saved.before_update()
        window = range(version * self.accumulation, (version + 1) * self.accumulation)
        admitted = self.guard.admit(self.computation.masters, window, version, norm)
        self.weights.update(self._step if admitted else _no_step)
        self.saved.after_update(self.optimizer)
        self.saved.note_versions(self.weights.extra_bytes)
        self.optimizer.zero_grad()
        self.at_version(version + 1)

    @property
    def waits_for_update(self) -> bool:
        """Whether the executor calls `update`, once all stages have ended the window, with the
        norm of all gradients."""
        return self.safeguards.clip == "global"

    def gradient_norm(self) -> float:
        """Return the norm of this window's gradients at this stage."""
        masters = self.computation.masters
        return total_norm([master.grad for master in masters if master.grad is not None])

    def begin_segment(self) -> None:
        """Start new statistics, and drop gradients that are not of this segment's windows.

        Raises ValueError, before anything is changed, if the stage cannot train now: with
        autograd switched off, or with a learning rate that somebody else sets.
        """
        if not torch.is_grad_enabled():
            raise ValueError(
                "training needs autograd: call train outside of torch.no_grad() and "
                "torch.inference_mode()"
            )
        self._rates.check_untouched()
        self.device = next(self.module.parameters()).device
        self.module.zero_grad()
        self.computation.follow()
        self.weights.begin_segment()
        self.versions.clear()
        self.saved.clear()
        self.guard.clear()
        self._modes = self._training_modes()

    def abort_segment(self) -> None:
        """Drop what a segment that ended early leaves in the module beside its weights: gradients,
        graphs, and modes that were switched."""
        self._graphs.clear()
        self._inputs.clear()
        self._second_halves.clear()
        self.module.zero_grad()
        _restore_modes(self._modes)

    def evaluate(self, input: torch.Tensor, target: torch.Tensor | None = None) -> torch.Tensor:
        """Return the output (at the last stage the loss) in evaluation mode, and leave no trace.

        Tensors have the shapes that they have in `forward`.
        """
        input = input.to(self.device, copy=self.is_first)
        self.computation.follow()
        with torch.no_grad(), self._evaluation_mode():
            return self._compute(input, target).contiguous()

    def probe(self, input: torch.Tensor, target: torch.Tensor | None = None) -> torch.Tensor:
        """Return what `evaluate` returns, after a check that the stage can train on micro-batches
        like this one; see `paci.stage.probe` for the ValueErrors."""

        def run(input: torch.Tensor) -> torch.Tensor:
            return self._compute(input, target)

        with torch.inference_mode(False), torch.enable_grad(), self._evaluation_mode():
            parameters = self.computation.parameters
            return probe(self._position, run, parameters, self._received(input), target)

    def window_loss(self, losses: Sequence[torch.Tensor]) -> float:
        """Return the mean loss of a window's sequences, given the mean of each micro-batch."""
        stacked = torch.stack(list(losses))
        if self.sizes is None:
            return stacked.mean().item()
        return (stacked @ stacked.new_tensor(self._loss_weights)).item()

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next update (of the optimizer's first parameter group)."""
        return self._rates.rate

    def at_version(self, version: int) -> None:
        """Count on from `version`; the learning rate follows it."""
        self.versions.version = version
        self._rates.follow(version)

    def _received(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return `tensor` on this stage's device and fit for autograd."""
        tensor = tensor.to(self.device)
        return tensor.clone() if tensor.is_inference() else tensor

    def _loss(self, output: torch.Tensor, target: torch.Tensor | None) -> torch.Tensor:
        assert self.loss_fn is not None
        assert target is not None
        return self.loss_fn(output, self._received(target))

    def _compute(self, input: torch.Tensor, target: torch.Tensor | None) -> torch.Tensor:
        """Return the module's output, at the last stage the loss."""
        output = self.computation(input)
        return self._loss(self.computation.logits(output), target) if self.is_last else output

    def _output(
        self, microbatch: int, input: torch.Tensor, target: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the same with this micro-batch's random numbers."""
        with rng_of(self.seed, self.index, microbatch, self.device):
            return self._compute(input, target)

    def _run(
        self, microbatch: int, input: torch.Tensor, target: torch.Tensor | None
    ) -> tuple[torch.Tensor, _Graph]:
        """Return the output and its graph, on the weights that the parameters hold now."""
        if not self.is_first:
            input = input.detach().requires_grad_()
        with self.saved.saving(microbatch, input):
            output = self._output(microbatch, input, target)
            gradient_of_loss = None
            if self.is_last:
                gradient_of_loss = torch.full_like(
                    output, self._loss_weights[microbatch % self.accumulation]
                )
        return output, _Graph(input, get_gradient_edge(output), gradient_of_loss)

    def _graph(self, microbatch: int) -> _Graph:
        """Return the graph for the backward of `microbatch`: that of its forward or, with
        recomputation, one on the weights that the parameters hold now."""
        if self.compute.recompute != "stage":
            return self._graphs.pop(microbatch)
        self.saved.release(microbatch)
        with buffers_kept(self.computation.module):
            _, graph = self._run(microbatch, *self._inputs.pop(microbatch))
        return graph

    @property
    def copied(self) -> float:
        """The share of the parameters of which a graph keeps a copy from the forward to the
        backward: none with recomputation, whose graphs are made by the backward."""
        return self.saved.copied if self.compute.recompute == "none" else 0.0

    def _whole_backward(self, microbatch: int, gradient: torch.Tensor | None) -> None:
        """Backpropagate at the first stage, which sends no gradient."""
        graph = self._graph(microbatch)
        backward(graph.output, self._gradient_of_output(graph, gradient))

    def _check(self, gradient: torch.Tensor | None, microbatch: int) -> None:
        if gradient is not None:
            self.guard.check("gradient", gradient, microbatch, self.versions.version)

    def _gradient_of_output(self, graph: _Graph, gradient: torch.Tensor | None) -> torch.Tensor:
        if graph.gradient_of_loss is not None:
            return graph.gradient_of_loss
        assert gradient is not None
        return gradient.to(self.device)

    def _finish(self, microbatch: int) -> None:
        """Release what `microbatch` held, and update if its window is complete."""
        self.computation.collect()
        self.saved.release(microbatch)
        self.weights.release(microbatch)
        if (microbatch + 1) % self.accumulation == 0 and not self.waits_for_update:
            self.update()

    def _step(self) -> None:
        self.optimizer.step()
        self.computation.publish()

    @contextmanager
    def _evaluation_mode(self) -> Iterator[None]:
        modes = self._training_modes()
        try:
            self.computation.module.eval()
            yield
        finally:
            _restore_modes(modes)

    def _training_modes(self) -> list[tuple[nn.Module, bool]]:
        return [(module, module.training) for module in self.computation.module.modules()]


def _restore_modes(modes: Iterable[tuple[nn.Module, bool]]) -> None:
    for module, training in modes:
        module.training = training


def _no_step() -> None:
    """Leave the weights as they are."""
