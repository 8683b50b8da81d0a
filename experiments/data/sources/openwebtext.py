"""OpenWebText, the paper's corpus: 8 million web pages, from the Hugging Face hub."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.data.sources.readers import read

if TYPE_CHECKING:  # a second to import
    import datasets

HUB = "Skylion007/openwebtext"
# The data set's main branch is a script, which datasets refuses since version 4; this branch
# holds the same rows as parquet files.
REVISION = "refs/convert/parquet"


def identity(config: Any) -> list[str]:
    """Return the name on the hub and its revision, or the absolute path of the local copy."""
    if config.path is None:
        return [HUB, REVISION]
    folder = _folder(config)
    return [str(folder.absolute()) if folder else config.path]


def files(config: Any) -> dict[str, Path]:
    """Return all .parquet files below the folder `config.path`; none for a name on the hub."""
    folder = _folder(config)
    if folder is None:
        return {}
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*.parquet"))}


def documents(config: Any, scratch: Path) -> "datasets.Dataset":
    """Return one document per page: the hub's OpenWebText, or the data set in `config.path`.

    Raises:
        ValueError: it cannot be reached or read, or has no column `text` of strings.
    """
    folder = _folder(config)
    if folder is None:
        return _from_hub(config.path)
    paths = files(config).values()
    if not paths:
        raise ValueError(f"there is no .parquet file in {folder}; accepted is a folder with some")
    return read(paths, scratch)


def _folder(config: Any) -> Path | None:
    folder = None if config.path is None else Path(config.path).expanduser()
    return folder if folder and folder.exists() else None


def _from_hub(path: str | None) -> "datasets.Dataset":
    from datasets import Value, load_dataset

    name, revision = (HUB, REVISION) if path is None else (path, None)
    try:
        pages = load_dataset(name, revision=revision, split="train")
    except Exception as error:  # hub, network and readers each raise kinds of their own
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"cannot load OpenWebText from {name!r} ({reason}); without a network, set data.path "
            "to a folder with its parquet files"
        ) from error
    if pages.features.get("text") not in (Value("string"), Value("large_string")):
        raise ValueError(
            f"{name!r} has the columns {', '.join(pages.column_names)}; accepted is a data set "
            "with a column 'text' of strings"
        )
    return pages.select_columns("text")
