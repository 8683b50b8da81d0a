"""The micro-batches that a run takes from the two splits of its corpus."""

from omegaconf import DictConfig

from experiments.config.derived import microbatch_sizes
from experiments.data import Batches, Corpus, evaluation_batches


def training_batches(config: DictConfig, corpus: Corpus, first: int, count: int) -> Batches:
    """Return micro-batches `first` to `first + count - 1` of the run that `config` describes.

    Raises ValueError for a corpus that is too small.
    """
    sizes, order_seed = microbatch_sizes(config), config.data.order_seed
    return Batches(corpus.train.tokens, config.model.context, sizes, order_seed, first, count=count)


def validation_batches(config: DictConfig, corpus: Corpus) -> Batches:
    """Return the micro-batches of every evaluation. Raises ValueError for too small a split."""
    try:
        return evaluation_batches(
            corpus.validation.tokens,
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


def check_size(config: DictConfig, corpus: Corpus) -> None:
    """Raise ValueError if a split of the corpus is too small for the run."""
    training_batches(config, corpus, first=0, count=config.method.accumulation)
    validation_batches(config, corpus)
