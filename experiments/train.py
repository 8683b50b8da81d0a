"""Train one run: python -m experiments.train [method=paci] [method.accumulation=8] [seed=3] ...

Every key of conf/config.yaml and every group of conf/ can be set. The run lands in a folder of
its own below `runs`; a finished run is not repeated, an interrupted one goes on.
"""

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import torch
from omegaconf import DictConfig, OmegaConf
from torch import nn
from tqdm import tqdm

from experiments import data, models
from experiments.cli import arguments, user_errors
from experiments.config import compose, run_name, updates
from experiments.cut import cut_for
from experiments.optimizer import make_optimizer, warmup_cosine
from experiments.runfolder import RunFolder
from paci import Cost, LocalPipeline, checkpoint, theory
from paci.local import Segment, Update

CLOCK = "simulated"


class Diverged(Exception):
    """The training loss is no longer a number."""


class Training:
    """One run, built and ready to go; whatever a user may have got wrong raises ValueError."""

    def __init__(self, config: DictConfig):
        executor, method = config.executor, config.method
        if executor.device == "cuda" and not torch.cuda.is_available():
            raise ValueError("executor.device is cuda, but PyTorch finds no CUDA device here")
        torch.set_num_threads(executor.threads)
        self.config = config
        self.folder = RunFolder(Path(config.runs) / run_name(config), config)
        self.folder.check_config()
        self.updates = updates(config)
        self.microbatch = config.batch // method.accumulation  # in sequences
        self.corpus = data.load(config.data)
        self.batches(first=0, count=method.accumulation)  # refuses a corpus that is too small
        self.validation = data.evaluation_batches(
            self.corpus.validation.tokens,
            config.model.context,
            config.validation_microbatch,
            config.validation_sequences,
        )

        vocabulary = self.corpus.vocabulary
        cut = cut_for(config, vocabulary)
        modules = models.build_stages(config.model, vocabulary, config.stages, config.seed, cut)
        self.pipeline = LocalPipeline(
            [_on_device(module, executor) for module in modules],
            method.schedule,
            method.accumulation,
            method.slack,
            method.weights,
            optimizer=make_optimizer(config),
            loss_fn=models.loss,
            lr_lambda=warmup_cosine(self.updates, config.optimizer.warmup, config.optimizer.final),
            cost=_cost(executor.cost, self.microbatch),
            seed=config.seed,
            measure_every=config.measure_every,
        )

    def batches(self, first: int, count: int) -> data.Batches:
        tokens, context = self.corpus.train.tokens, self.config.model.context
        seed = self.config.seed
        return data.Batches(tokens, context, self.microbatch, seed, first, count=count)

    def run(self) -> None:
        """Train in segments, each ended by a drained pipeline, an evaluation and a checkpoint."""
        parts, a = self.config.evaluations, self.config.method.accumulation
        done = self.go_on()
        with self.progress(done) as on_update:
            if done == 0:
                self.evaluate(0)
            for end in (self.updates * part // parts for part in range(1, parts + 1)):
                if end <= done:
                    continue
                batches = self.batches(self.pipeline.microbatch, (end - done) * a)
                self.log_stages(end, self.pipeline.train(batches, on_update))
                self.evaluate(end)
                self.save(end)
                done = end
        gpt2 = models.config(self.config.model, self.corpus.vocabulary)
        trained = [stage.module for stage in self.pipeline.stages]
        models.save_pretrained(trained, gpt2, self.folder.model)
        self.folder.report("completed", self.updates, self.updates)

    def go_on(self) -> int:
        """Load the newest checkpoint, if there is one; returns the updates done."""
        newest = checkpoint.newest(self.folder.checkpoints)
        state = {"microbatch": 0, "seconds": 0.0, "update": 0}
        if newest is not None:
            state = checkpoint.load(newest, self.pipeline.stages)
        self.pipeline.microbatch, self.pipeline.seconds = state["microbatch"], state["seconds"]
        self.folder.rewind(state["update"] if newest else -1)
        return state["update"]

    def save(self, update: int) -> None:
        state = {
            "update": update,
            "microbatch": self.pipeline.microbatch,
            "seconds": self.pipeline.seconds,
        }
        checkpoint.save(self.folder.checkpoints, self.pipeline.stages, state)

    @contextmanager
    def progress(self, done: int) -> Iterator[Callable[[Update], None]]:
        """Gives what logs each update, keeps the status fresh, and shows a bar on a terminal."""
        self.folder.report("running", done, self.updates)
        reported = time.monotonic()

        def on_update(update: Update) -> None:
            nonlocal reported
            self.folder.log("metrics.jsonl", [self.line(update)])
            if not math.isfinite(update.loss):
                raise Diverged(f"diverged: the loss of update {update.number} is {update.loss}")
            if time.monotonic() - reported > 1:
                self.folder.report("running", update.number, self.updates)
                reported = time.monotonic()
            bar.set_postfix_str(f"loss {update.loss:.3f}", refresh=False)
            bar.update()

        name = self.folder.path.name
        with tqdm(total=self.updates, initial=done, desc=name, unit="update", disable=None) as bar:
            yield on_update

    def line(self, update: Update) -> dict:
        return {
            "update": update.number,
            "tokens": self.tokens(update.number),
            "loss": update.loss,
            "lr": update.learning_rate,
            "seconds": update.seconds,
            "clock": CLOCK,
        }

    def tokens(self, update: int) -> int:
        return update * self.config.batch * self.config.model.context

    def evaluate(self, update: int) -> None:
        loss = self.pipeline.evaluate(self.validation)
        line = {
            "update": update,
            "tokens": self.tokens(update),
            "validation_loss": loss,
            "perplexity": math.exp(min(loss, 700.0)),
            "seconds": self.pipeline.seconds,
            "clock": CLOCK,
        }
        self.folder.log("metrics.jsonl", [line])

    def log_stages(self, update: int, segment: Segment) -> None:
        """A line per stage of what its books say of the segment that ended with `update`."""
        method, lines = self.config.method, []
        for i, stage in enumerate(self.pipeline.stages):
            busy = segment.timeline.busy[i]
            lines.append(
                {
                    "update": update,
                    "stage": i,
                    "drift": segment.drift[i],
                    "drift_bound": theory.drift_bound(
                        self.config.stages, i, method.accumulation, method.slack
                    ),
                    "staleness": segment.staleness[i],
                    "movement": [asdict(movement) for movement in segment.movements[i]],
                    "peak_in_flight": segment.peak_in_flight[i],
                    "activation_bytes": segment.peak_held[i].activations,
                    "parameter_bytes": sum(p.nbytes for p in stage.module.parameters()),
                    "version_bytes": segment.peak_held[i].copies,
                    "busy_seconds": busy,
                    "idle_seconds": segment.seconds - busy,
                    "clock": CLOCK,
                }
            )
        self.folder.log("stages.jsonl", lines)


def train(training: Training) -> dict:
    """Run it to its end and return its status; a finished run is left alone.

    Raises ValueError if the folder is in use. A run that diverges or runs out of memory is a
    result, in the status; any other failure is there too, and raised.
    """
    folder = training.folder
    with folder.claimed(), _interrupts():
        if folder.status().get("state") == "completed":
            return folder.status()

        def ended(state: str, why: str) -> None:
            folder.report(state, folder.status().get("update", 0), training.updates, why)

        try:
            training.run()
        except Diverged as error:
            ended("failed", str(error))
        except (torch.OutOfMemoryError, MemoryError) as error:
            ended("out-of-memory", str(error).splitlines()[0] if str(error) else "out of memory")
        except KeyboardInterrupt:
            ended("preempted", "interrupted")
        except Exception as error:
            ended("failed", f"{type(error).__name__}: {error}")
            raise
    return folder.status()


@contextmanager
def _interrupts() -> Iterator[None]:
    """Inside, SIGTERM stops the run as Ctrl-C does."""

    def interrupt(signum, frame):
        raise KeyboardInterrupt

    before = {s: signal.signal(s, interrupt) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _on_device(module: nn.Module, executor: DictConfig) -> nn.Module:
    """The module on the run's device, its forward in the run's precision."""
    module.to(executor.device)
    if executor.precision == "bfloat16-autocast":
        module.forward = torch.autocast(executor.device, torch.bfloat16)(module.forward)
    return module


def _cost(times: DictConfig, microbatch: int) -> Cost:
    """The times of a micro-batch from those of one sequence (an update's are its own)."""
    times = OmegaConf.to_container(times)
    for name in ("forward", "backward", "transfer"):
        one = times[name]
        times[name] = [microbatch * t for t in one] if isinstance(one, list) else microbatch * one
    return Cost(**times)


def main() -> None:
    with user_errors():
        config = compose(arguments(__doc__))
        data.prepare(config.data)
        training = Training(config)
        status = train(training)
    print(f"{training.folder.path}: {status['state']}", status["why"] or "")
    raise SystemExit(status["state"] != "completed")


if __name__ == "__main__":
    main()
