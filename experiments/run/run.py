"""One run: its data, cut, costs and folder. Nothing has started yet."""

from functools import cached_property
from pathlib import Path

import torch
from omegaconf import DictConfig

from experiments import data
from experiments.config.derived import segment_ends, updates
from experiments.config.naming import run_name
from experiments.run.costs import cost_for
from experiments.run.cut import cut_for
from experiments.run.folder import RunFolder
from experiments.run.identity import changes, identity
from experiments.run.text import check_size, training_batches, validation_batches
from experiments.run.weights import check_source, source_of
from paci import Cost
from runlog import Identity


class Run:
    """The run that `config` describes. Raises ValueError for whatever a user may have got wrong."""

    def __init__(self, config: DictConfig):
        if config.executor.device == "cuda" and not torch.cuda.is_available():
            raise ValueError("executor.device is cuda, but PyTorch finds no CUDA device here")
        self.config = config
        self.folder = RunFolder(Path(config.runs) / run_name(config), config)
        self.updates = updates(config)
        self.corpus = data.load(config.data)
        check_size(config, self.corpus)
        self.validation = validation_batches(config, self.corpus)

    @cached_property
    def cut(self) -> list[range]:
        """The units of each stage. A resumed run keeps the cut that it began with."""
        begun = self.folder.identity() if self.folder.checkpointed_update else None
        if begun is not None:
            return [range(*ends) for ends in begun.cut]
        return cut_for(self.config, self.corpus.vocabulary)

    @cached_property
    def cost(self) -> Cost:
        """Times of a micro-batch on the run's simulated or emulated clock."""
        return cost_for(self.folder, self.corpus.vocabulary, self.cut)

    def identity(self) -> Identity:
        """Return what the run's numbers depend on beside its configuration."""
        return identity(
            self.corpus.fingerprint, self.cut, self.folder.cost(), source_of(self.config)
        )

    def check(self) -> None:
        """Raise ValueError if the folder holds the run of another configuration, or if the run
        would go on from a checkpoint with another corpus, cost table, code or package than it
        began with, and so mix two runs. A completed run is not asked."""
        self.folder.check_config()
        if self.folder.completed:
            return
        if not self.folder.checkpointed_update:
            return check_source(self.config)
        begun = self.folder.identity()
        if begun is None:  # a folder of an older version has no identity.json
            return
        if found := changes(begun, self.corpus.fingerprint, self.folder.cost()):
            raise ValueError(
                f"{self.folder.path} cannot go on, as it began with something else "
                f"({'; '.join(found)}): restore that to finish it (environment.json records "
                f"commit {self.folder.starts.first_commit()}), or start anew with runs=..."
            )

    @property
    def segment_ends(self) -> list[int]:
        """The updates after which the pipeline drains, to evaluate and to write a checkpoint."""
        return segment_ends(self.config)

    def batches(self, first: int, count: int) -> data.Batches:
        """Return micro-batches `first` to `first + count - 1` of this run."""
        return training_batches(self.config, self.corpus, first, count)

    def tokens(self, update: int) -> int:
        """Return the tokens trained on after `update` updates."""
        return update * self.config.batch * self.config.model.context
