"""Where documents come from, and how they are split into training and validation.

A source is a module with two functions of the data configuration:

- `fingerprint(config)`: what determines its documents, as JSON values; cheap, every rank asks.
- `documents(config)`: a `datasets.Dataset` with one string column, `text`.
"""

from types import ModuleType
from typing import TYPE_CHECKING, Any

from experiments.data.sources import files, kjv, openwebtext

if TYPE_CHECKING:  # a second to import
    import datasets

SOURCES = {"kjv": kjv, "files": files, "openwebtext": openwebtext}

# The paper keeps the documents longer than this.
SHORTEST = 20  # characters


def named(name: str) -> ModuleType:
    """The source called `name`; ValueError if there is none."""
    if name not in SOURCES:
        raise ValueError(f"source is {name!r}; accepted are {', '.join(SOURCES)}")
    return SOURCES[name]


def split(config: Any) -> tuple["datasets.Dataset", "datasets.Dataset"]:
    """The documents of `config.source`, as the paper prepares its own.

    Documents longer than 20 characters, shuffled with `shuffle_seed`, a fraction `validation`
    of them split off. The split comes before tokenising, so no document is in both halves.

    Returns:
        `(train, validation)`: two `datasets.Dataset` with a `text` column.
    Raises:
        ValueError: the source cannot be read, or has fewer than two such documents.
    """
    documents = named(config.source).documents(config)
    # A missing text (null in a parquet file) is not longer than 20 characters either.
    long_enough = documents.filter(
        lambda text: len(text or "") > SHORTEST, input_columns="text", desc="Filter"
    )
    if len(long_enough) < 2:
        raise ValueError(
            f"source {config.source!r} has {len(long_enough)} document(s) longer than {SHORTEST} "
            "characters, and a training and a validation split need one each (in a .txt file, "
            "a blank line ends a document)"
        )
    parts = long_enough.train_test_split(
        test_size=config.validation, seed=config.shuffle_seed, shuffle=True
    )
    return parts["train"], parts["test"]
