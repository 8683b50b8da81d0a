"""The sources of documents, and their split into training and validation.

A source is a module with three functions of the data configuration:

- `identity(config)`: how the configuration names the text, as JSON values.
- `files(config)`: the files that hold the text, by a name for each; none if they are remote.
- `documents(config, scratch)`: a `datasets.Dataset` with one string column, `text`; a source may
  write temporary files into the folder `scratch`.
"""

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from experiments.data.sources import files, kjv, openwebtext

if TYPE_CHECKING:  # a second to import
    import datasets

SOURCES = {"kjv": kjv, "files": files, "openwebtext": openwebtext}

# `shortest` in the configuration: which documents are kept.
LONG_ENOUGH = {
    "characters": ("more than 20 characters", lambda text: len(text) > 20),  # the paper's code
    "words": ("at least 20 words", lambda text: len(text.split()) >= 20),  # the paper's text
}


def named(name: str) -> ModuleType:
    """Return the source called `name`; raise ValueError if there is none."""
    if name not in SOURCES:
        raise ValueError(f"source is {name!r}; accepted are {', '.join(SOURCES)}")
    return SOURCES[name]


def split(config: Any, scratch: Path) -> tuple["datasets.Dataset", "datasets.Dataset"]:
    """Return training and validation documents, prepared as the paper prepares its own.

    Short documents are left out, the others shuffled with `shuffle_seed`, and a fraction
    `validation` of them is split off. The split comes before tokenising, so no document is in
    both halves.

    Returns:
        `(train, validation)`: two `datasets.Dataset` with a `text` column.
    Raises:
        ValueError: the source cannot be read, or has fewer than two documents that are kept.
    """
    documents = named(config.source).documents(config, scratch)
    length, is_long_enough = LONG_ENOUGH[config.shortest]
    # A parquet file may have missing texts, which are None.
    kept = documents.filter(
        lambda text: text is not None and is_long_enough(text), input_columns="text", desc="Filter"
    )
    if len(kept) < 2:
        raise ValueError(
            f"source {config.source!r} has {len(kept)} document(s) of {length}, and a training "
            "and a validation split need one each (in a .txt file, a blank line ends a document)"
        )
    parts = kept.train_test_split(
        test_size=config.validation, seed=config.shuffle_seed, shuffle=True
    )
    return parts["train"], parts["test"]
