"""OpenWebText, the paper's corpus: 8 million web pages, from the Hugging Face hub."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.data.sources.files import stamps

if TYPE_CHECKING:  # a second to import
    import datasets

HUB = "Skylion007/openwebtext"
# The data set's main branch is a script, which datasets refuses since version 4; this branch
# holds the same rows as parquet files.
REVISION = "refs/convert/parquet"


def fingerprint(config: Any) -> list | str:
    """The name on the hub, or the files of the local copy in `config.path`."""
    if config.path is None:
        return [HUB, REVISION]
    folder = Path(config.path).expanduser()
    if folder.exists():
        return stamps(sorted(path.resolve() for path in folder.rglob("*") if path.is_file()))
    return str(config.path)


def documents(config: Any) -> "datasets.Dataset":
    """One document per page: the hub's OpenWebText, or a data set of its form in `config.path`.

    Raises:
        ValueError: it cannot be reached or read, or has no column `text` of strings.
    """
    from datasets import Value, load_dataset

    if config.path is None:
        name, revision = HUB, REVISION
    else:
        name, revision = str(Path(config.path).expanduser()), None
    try:
        pages = load_dataset(name, revision=revision, split="train")
    except Exception as error:  # hub, network and readers each raise kinds of their own
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"cannot load OpenWebText from {name!r} ({reason}); without a network, set data.path "
            "to a folder with its parquet files"
        ) from error
    text = pages.features.get("text")
    if text not in (Value("string"), Value("large_string")):
        raise ValueError(
            f"{name!r} has the columns {', '.join(pages.column_names)}; accepted is a data set "
            "with a column 'text' of strings"
        )
    return pages.select_columns("text")
