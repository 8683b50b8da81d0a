"""One stage's mathematics: forward, backward and update of its part of the model.

           input ─▶ module ─▶ output ─▶ next stage (or the loss, at the last stage)
    gradient of input ◀─ autograd ◀─ gradient of output
                           │
              every `a` backwards: optimizer step, version += 1

Nothing here knows of clocks, ranks or messages; every executor drives the same `Stage`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import torch
from torch import nn
from torch.autograd.graph import GradientEdge, _engine_run_backward, get_gradient_edge

from paci.stage import weights as weight_policies
from paci.stage.memory import SavedTensors
from paci.stage.rng import rng_of
from paci.stage.split_backward import SplitBackward
from paci.stage.version_tracker import VersionTracker

SendGradient = Callable[[torch.Tensor], None]
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
LearningRate = Callable[[int], float]


class Stage:
    """Stage `index` of a pipeline of `stages`.

    module         maps the previous stage's output (at stage 0: the data) to this stage's output
    accumulation   a, the micro-batches of one update; each loss is scaled by 1/a
    optimizer      makes an optimizer from the module's parameters
    lr_lambda      factor on the optimizer's learning rate as a function of this stage's version;
                   or one such function for each stage of the pipeline
    loss_fn        (output, target) -> scalar mean over the micro-batch; the last stage's only
    weights        which weights an action sees: a name in `paci.stage.weights.WEIGHTS`,
                   or a function that makes a policy from a stage
    seed           of the draws (dropout), together with stage and micro-batch
    measure_every  updates between two samples of how far the weights move (0: never)
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
        weights: str | Callable[["Stage"], weight_policies.Policy] = "live",
        seed: int = 0,
        measure_every: int = 0,
    ):
        parameters = list(module.parameters())
        if not parameters or (index == 0 and not any(p.requires_grad for p in parameters)):
            raise ValueError(
                f"stage {index} has no parameters to train"
                + (": the first stage's must not all be frozen" if parameters else "")
            )
        self.index = index
        self.stages = stages
        self.is_first = index == 0
        self.is_last = index == stages - 1
        self.module = module
        self.accumulation = accumulation
        self.optimizer = optimizer(parameters)
        self.lr_lambda = self._own(lr_lambda) or (lambda version: 1.0)
        self._full_rates = [group["lr"] for group in self.optimizer.param_groups]
        self.loss_fn = loss_fn
        self.weights = weight_policies.build(weights, self)
        self.seed = seed
        self.device = parameters[0].device
        self._gradient_of_loss = torch.tensor(1 / accumulation, device=self.device)
        self.versions = VersionTracker(accumulation, measure_every)
        self.saved = SavedTensors(parameters)
        self._graphs: dict[int, tuple] = {}  # micro-batch -> input, where its backward starts
        self._second_halves: dict[int, Callable[[], None]] = {}  # of split backwards
        self.at_version(0)

    def forward(
        self, microbatch: int, input: torch.Tensor, target: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The output of `microbatch`, detached; at the last stage its loss, not scaled. What leaves
        a stage is contiguous, for so it arrives at another rank, and other strides may mean other
        roundings there."""
        input = input.to(self.device)
        if not self.is_first:
            input = input.detach().requires_grad_()
        with self.weights.forward(microbatch, self.versions.version) as seen:
            self.versions.forward(microbatch, seen)
            self.saved.note_versions(self.weights.extra_bytes)
            with (
                rng_of(self.seed, self.index, microbatch, self.device),
                self.saved.saving(microbatch, input, seen.tensors),
            ):
                output = self.module(input)
                if self.is_last:
                    output = self.loss_fn(output, target.to(self.device))
        # The edge, not the output: an activation that was sent on need not be kept here.
        self._graphs[microbatch] = input, get_gradient_edge(output)
        return output.detach().contiguous()

    def backward(
        self,
        microbatch: int,
        gradient: torch.Tensor | None = None,
        send: SendGradient | None = None,
    ) -> None:
        """From the gradient of the output of `microbatch` (at the last stage None: its loss is
        where gradients begin) that of its input, which `send` gets (not at stage 0: nobody waits
        for it). Then closes the window, and so updates the weights, if this was its last
        backward."""
        input, edge = self._graphs.pop(microbatch)
        with self.weights.backward(microbatch, self.versions.version) as seen:
            self.versions.backward(microbatch, seen)
            self.saved.note_versions(self.weights.extra_bytes)
            gradient = self._gradient_of_output(gradient)
            if self.is_first:
                _backward(edge, gradient)
            else:
                send(_backward_to(input, edge, gradient))
        del edge
        self._finish(microbatch)

    def backward_input(
        self,
        microbatch: int,
        gradient: torch.Tensor | None = None,
        send: SendGradient | None = None,
    ) -> None:
        """The first half of a split backward: the gradient that `send` gets, and none of the
        weights. It sees the weights of now. At stage 0 nothing is done yet."""
        input, edge = self._graphs.pop(microbatch)
        gradient = self._gradient_of_output(gradient)
        if self.is_first:
            self._second_halves[microbatch] = partial(_backward, edge, gradient)
            return
        with self.weights.backward(microbatch, self.versions.version) as seen:
            self.versions.backward_input(microbatch, seen)
            self.saved.note_versions(self.weights.extra_bytes)
            split = SplitBackward(edge, input)
            gradient = split.input_gradient(gradient)
        self.saved.add_activations(microbatch, split.nbytes)
        self._second_halves[microbatch] = split.weight_gradients
        send(gradient.contiguous())

    def backward_weight(self, microbatch: int) -> None:
        """The second half, any time later: adds to the gradients of the weights, and closes the
        window if this was its last. Between the halves there may have been updates (of earlier
        windows): what the first half computed stays as it is, and what is left of the graph sees
        the weights of now. Few operations still look at them, a linear layer does not; at stage 0
        the whole backward does."""
        with self.weights.backward(microbatch, self.versions.version) as seen:
            if self.is_first:
                self.versions.backward(microbatch, seen)
            else:
                self.versions.backward_weight(microbatch)
            self.saved.note_versions(self.weights.extra_bytes)
            self._second_halves.pop(microbatch)()
        self._finish(microbatch)

    def _gradient_of_output(self, gradient: torch.Tensor | None) -> torch.Tensor:
        if self.is_last:
            return self._gradient_of_loss
        return gradient.to(self.device)

    def _finish(self, microbatch: int) -> None:
        """The backward of `microbatch` is done; so may be its window."""
        self.saved.release(microbatch)
        self.weights.release(microbatch)
        if (microbatch + 1) % self.accumulation == 0:
            self.update()

    def update(self) -> None:
        """One optimizer step from the gradients of this window, by this stage alone."""
        self.weights.update(self._step)
        self.saved.after_update(self.optimizer)
        self.saved.note_versions(self.weights.extra_bytes)
        self.optimizer.zero_grad()
        self.at_version(self.versions.version + 1)

    def _step(self) -> None:
        self.saved.before_update()
        self.optimizer.step()

    def clear_statistics(self) -> None:
        """Start new books, of versions and of memory; the version goes on."""
        self.versions.clear()
        self.saved.clear()

    def evaluate(self, input: torch.Tensor, target: torch.Tensor | None = None) -> torch.Tensor:
        """The output (at the last stage the loss) in evaluation mode, leaving no trace."""
        return self._evaluate(input.to(self.device, copy=self.is_first), target).contiguous()

    @torch.no_grad()
    def _evaluate(self, input: torch.Tensor, target: torch.Tensor | None) -> torch.Tensor:
        modes = [(module, module.training) for module in self.module.modules()]
        self.module.eval()
        try:
            output = self.module(input)
            return self.loss_fn(output, target.to(self.device)) if self.is_last else output
        finally:
            for module, training in modes:
                module.training = training

    def probe(self, input: torch.Tensor, target: torch.Tensor | None = None) -> torch.Tensor:
        """As `evaluate`; ValueError, saying what was given, if a micro-batch does not fit, or if
        the stage would change what it is given."""
        given = input.to(self.device, copy=True)
        try:
            output = self._evaluate(given, target)
        except torch.OutOfMemoryError:
            raise  # not the micro-batch's fault
        except (RuntimeError, IndexError) as error:
            raise ValueError(
                f"stage {self.index} cannot take its input of shape {tuple(input.shape)} "
                f"(target: {tuple(target.shape)}): {error}"
            ) from error
        if given._version:  # autograd's count of changes in place, which has no public name
            raise ValueError(
                f"stage {self.index} changes its input in place: let its first operation make a "
                "new tensor (a ReLU without inplace=True)"
            )
        if self.is_last and output.dim() != 0:
            raise ValueError(f"loss_fn must give one number, not a shape of {tuple(output.shape)}")
        return output

    def _own(self, lr_lambda: LearningRate | Sequence[LearningRate] | None) -> LearningRate | None:
        if not isinstance(lr_lambda, Sequence):
            return lr_lambda
        if len(lr_lambda) != self.stages:
            raise ValueError(
                f"lr_lambda must be one function or one for each of the {self.stages} stages, "
                f"not {len(lr_lambda)} functions"
            )
        return lr_lambda[self.index]

    @property
    def learning_rate(self) -> float:
        """Of the next update (of the optimizer's first parameter group)."""
        return self.optimizer.param_groups[0]["lr"]

    def at_version(self, version: int) -> None:
        """Count on from `version`; the learning rate follows it."""
        self.versions.version = version
        for group, full_rate in zip(self.optimizer.param_groups, self._full_rates, strict=True):
            group["lr"] = full_rate * self.lr_lambda(version)


def check_no_shared_parameters(stages: Mapping[int, nn.Module]) -> None:
    """Raise ValueError if two stages share a parameter: both would update it."""
    owner: dict[nn.Parameter, int] = {}
    for index, module in stages.items():
        for name, parameter in module.named_parameters():
            if owner.setdefault(parameter, index) != index:
                raise ValueError(
                    f"stages {owner[parameter]} and {index} share a parameter ({name}): "
                    "the stages of a pipeline must each own theirs"
                )


def _backward(edge: GradientEdge, gradient: torch.Tensor) -> None:
    """What `torch.autograd.backward` calls in the end. Before that it compares shapes in Python,
    for a third of its time, and the engine compares them again."""
    _engine_run_backward(
        (edge,), (gradient,), False, False, (), allow_unreachable=True, accumulate_grad=True
    )


def _backward_to(input: torch.Tensor, edge: GradientEdge, gradient: torch.Tensor) -> torch.Tensor:
    """As `_backward`; returns the gradient of `input`. It is caught on its way into `input.grad`,
    where autograd would copy one that has only passed through."""
    caught = []

    def catch(gradients: tuple[torch.Tensor]) -> tuple[None]:
        caught.extend(gradients)
        return (None,)

    get_gradient_edge(input).node.register_prehook(catch)
    _backward(edge, gradient)
    if not caught:
        raise ValueError("the output of a stage must depend on its input")
    return caught.pop().contiguous()
