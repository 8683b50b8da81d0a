"""One run: what it computes, on what, and where its results go; nothing has started yet."""

from pathlib import Path

import torch
from omegaconf import DictConfig

from experiments import data
from experiments.config.derived import run_name, updates
from experiments.run.folder import RunFolder
from paci import microbatches


class Run:
    """The run that `config` describes; whatever a user may have got wrong raises ValueError."""

    def __init__(self, config: DictConfig):
        if config.executor.device == "cuda" and not torch.cuda.is_available():
            raise ValueError("executor.device is cuda, but PyTorch finds no CUDA device here")
        self.config = config
        self.folder = RunFolder(Path(config.runs) / run_name(config), config)
        self.updates = updates(config)
        self.corpus = data.load(config.data)
        self.batches(first=0, count=config.method.accumulation)  # refuses too small a corpus
        try:
            self.validation = data.evaluation_batches(
                self.corpus.validation.tokens,
                config.model.context,
                config.validation_microbatch,
                config.validation_sequences,
            )
        except ValueError as error:
            raise ValueError(
                f"validation split: {error} (data.validation={config.data.validation}, "
                f"validation_microbatch={config.validation_microbatch}, "
                f"validation_sequences={config.validation_sequences})"
            ) from error

    @property
    def segment_ends(self) -> list[int]:
        """The updates after which the pipeline drains, to evaluate and to write a checkpoint."""
        parts = self.config.evaluations
        return [self.updates * part // parts for part in range(1, parts + 1)]

    def batches(self, first: int, count: int) -> data.Batches:
        """Return micro-batches `first` to `first + count - 1` of this run."""
        config = self.config
        sizes = microbatches.sizes(config.batch, config.method.accumulation)
        order_seed = config.data.order_seed
        tokens, context = self.corpus.train.tokens, config.model.context
        return data.Batches(tokens, context, sizes, order_seed, first, count=count)

    def tokens(self, update: int) -> int:
        """Trained on, after `update` updates."""
        return update * self.config.batch * self.config.model.context
