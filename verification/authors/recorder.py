"""The authors' stage with an observer, which records events and changes nothing but their times.

An event is [kind, number, version, in flight, learning rate]:

    F         the forward of micro-batch `number` begins
    B         its backward begins
    send      a gradient goes to the previous stage
    update    the optimizer has stepped, with this learning rate; `number` is the version before
    refuse    a message from the previous stage is here, no gradient is, and no forward begins

`version` counts the stage's updates so far, `in flight` is the authors' own count. Evaluation is
not recorded. Events are written to stage<i>.json when the stage ends.
"""

import json
import random
import time
from pathlib import Path
from typing import Any

from DistPACI import Workers


class RecordingWorker(Workers.LayerWorker):  # type: ignore[misc]  # has no type here
    """A stage of the authors' that writes its events to `folder`.

    Micro-batches and versions are counted from `microbatch` and `version`. Every action begins late
    by a random time, mostly below `jitter` seconds, so that stages meet in ever new ways.
    """

    def __init__(
        self, folder: Path, jitter: float, microbatch: int, version: int, *arguments: Any
    ) -> None:
        self.folder, self.jitter = folder, jitter
        self.version, self.forwards, self.backwards = version, microbatch, microbatch
        self.events: list[tuple[Any, ...]] = []
        self.sees_message = False  # from the previous stage, and has not taken it
        super().__init__(*arguments)

    def setup(self) -> None:
        super().setup()
        self.random = random.Random(self.layer_idx)
        self._observe_optimizer()
        self._observe_queues()

    def forward_other_layers(self, *arguments: Any) -> None:
        self._begin_forward()
        super().forward_other_layers(*arguments)

    def forward_last_layer(self, *arguments: Any) -> None:
        self._begin_forward()
        super().forward_last_layer(*arguments)

    def backward_other_layers(self, *arguments: Any) -> None:
        self._begin_backward()
        super().backward_other_layers(*arguments)

    def backward_last_layer(self, *arguments: Any) -> None:
        self._begin_backward()
        super().backward_last_layer(*arguments)

    def handle_input_or_signal(self, message: Any) -> None:
        self.sees_message = False
        super().handle_input_or_signal(message)

    def wait_for_signal(self) -> None:
        super().wait_for_signal()
        self.sees_message = False  # it only waited for one

    def handle_signals(self) -> None:
        super().handle_signals()
        self._observe_optimizer()  # a checkpoint brings a new one

    def cleanup(self) -> None:
        path = self.folder / f"stage{self.layer_idx}.json"
        path.write_text(json.dumps(self.events))
        super().cleanup()

    def _begin_forward(self) -> None:
        self._be_late()
        if not self.eval_mode:
            self._note("F", self.forwards)
            self.forwards += 1

    def _begin_backward(self) -> None:
        self._be_late()
        if not self.eval_mode:
            self._note("B", self.backwards)
            self.backwards += 1

    def _be_late(self) -> None:
        usual = self.random.random() < 0.8
        time.sleep(self.jitter * self.random.random() * (1 if usual else 3))

    def _note(self, kind: str, number: int, rate: float | None = None) -> None:
        event = (kind, number, self.version, self.inference_without_update, rate)
        if self.events[-1:] != [event]:  # it refuses as often as it looks
            self.events.append(event)

    def _observe_optimizer(self) -> None:
        if getattr(self, "_observed", None) is self.optimizer:
            return
        self._observed = self.optimizer

        def after_step(optimizer: Any, *_: object) -> None:
            self._note("update", self.version, optimizer.param_groups[0]["lr"])
            self.version += 1

        self.optimizer.register_step_post_hook(after_step)

    def _observe_queues(self) -> None:
        gradients, inputs = self.grad_queue, self.data_queue
        put, no_gradient, no_input = gradients.put, gradients.empty, inputs.empty

        def observed_put(message: Any, *more: Any) -> None:
            if hasattr(message, "shape"):  # not a signal
                self._note("send", self.backwards - 1)
            put(message, *more)

        def observed_no_gradient() -> Any:
            # They look for gradients after they have looked for an input and not taken it.
            if self.sees_message and not self.eval_mode:
                self._note("refuse", self.forwards)
            self.sees_message = False
            return no_gradient()

        def observed_no_input() -> Any:
            empty = no_input()
            self.sees_message = not empty
            if empty:
                time.sleep(0.001)  # their loop never rests, and there are more stages than cores
            return empty

        gradients.put = observed_put
        gradients.empty = observed_no_gradient
        inputs.empty = observed_no_input
