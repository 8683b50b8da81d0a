"""Text in, micro-batches out: sources, tokenisers, token files, and their order in a run."""

from experiments.data.batches import Batches, evaluation_batches
from experiments.data.corpus import Corpus, load, prepare
from experiments.data.tokenfile import TokenFile

__all__ = ["Batches", "Corpus", "TokenFile", "evaluation_batches", "load", "prepare"]
