"""The user's own text: .txt, .jsonl with a field `text`, .parquet with a column `text`."""

import codecs
import glob
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a second to import
    import datasets

SUFFIXES = (".txt", ".jsonl", ".parquet")


def fingerprint(config: Any) -> list:
    """The path, size and time of change of every file that `config.files` names."""
    return stamps(_matches(config))


def stamps(paths: Iterable[Path]) -> list[list]:
    """`[path, bytes, nanoseconds of last change]` of each of `paths`."""
    return [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in paths]


def documents(config: Any) -> "datasets.Dataset":
    """The documents in `config.files`, a list of paths and globs (`**` for any depth).

    A document is what a blank line ends in a .txt file, a line in a .jsonl, a row in a .parquet.

    Raises:
        ValueError: a pattern matches nothing; a file is empty, binary, of another kind, or
            without its `text`.
    """
    from datasets import concatenate_datasets

    paths = _matches(config)
    for path in paths:
        _check(path)
    readers = {".txt": _paragraphs, ".jsonl": _json_lines, ".parquet": _rows}
    of_a_kind = {suffix: [str(p) for p in paths if p.suffix == suffix] for suffix in SUFFIXES}
    return concatenate_datasets(
        [readers[suffix](names) for suffix, names in of_a_kind.items() if names]
    )


def _matches(config: Any) -> list[Path]:
    patterns = [config.files] if isinstance(config.files, str) else list(config.files or [])
    if not patterns:
        raise ValueError("source 'files' has no files; give paths or globs, data.files=[my/*.txt]")
    paths = set()
    for pattern in patterns:
        matched = glob.glob(str(Path(pattern).expanduser()), recursive=True)
        if not matched:
            raise ValueError(f"no file matches {pattern!r}; accepted are paths and globs")
        paths.update(Path(name).resolve() for name in matched)
    return sorted(paths)


def _check(path: Path) -> None:
    if path.suffix not in SUFFIXES or not path.is_file():
        raise ValueError(f"{path} is not a text file; accepted are {', '.join(SUFFIXES)} files")
    if path.stat().st_size == 0:
        raise ValueError(
            f"{path} is empty; accepted are {path.suffix} files with documents in them"
        )
    if path.suffix == ".parquet":
        _check_parquet(path)
    elif _is_binary(path):
        raise ValueError(f"{path} is binary; accepted are {path.suffix} files in UTF-8")


def _is_binary(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                if "\0" in decoder.decode(chunk):
                    return True
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return True
    return False


def _check_parquet(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except pa.ArrowException as error:
        raise ValueError(f"{path} is not a parquet file, whatever its name says") from error
    if "text" not in schema.names or schema.field("text").type not in (
        pa.string(),
        pa.large_string(),
    ):
        raise ValueError(
            f"{path} has the columns {', '.join(schema.names)}; accepted is a parquet file with "
            "a column 'text' of strings"
        )


def _paragraphs(names: list[str]) -> "datasets.Dataset":
    from datasets import load_dataset

    return load_dataset("text", data_files=names, split="train", sample_by="paragraph")


def _json_lines(names: list[str]) -> "datasets.Dataset":
    from datasets import load_dataset

    # Not the "json" builder: it infers one schema for all fields of all files, so it turns texts
    # that look like dates into dates and refuses files whose other fields differ.
    lines = load_dataset("text", data_files=names, split="train", sample_by="line")
    return lines.map(
        lambda batch: {"text": [_text_field(line) for line in batch if line.strip()]},
        input_columns="text",
        batched=True,
        desc="Parse",
    )


def _text_field(line: str) -> str:
    try:
        text = json.loads(line)["text"]
        text.encode()  # a string, and without half a surrogate pair
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"the line {line[:60]!r} of a .jsonl file is not accepted; each line is "
            'an object with a string: {"text": "..."}'
        ) from error
    return text


def _rows(names: list[str]) -> "datasets.Dataset":
    from datasets import Features, Value, load_dataset

    return load_dataset(
        "parquet",
        data_files=names,
        split="train",
        columns=["text"],
        features=Features({"text": Value("string")}),
    )
