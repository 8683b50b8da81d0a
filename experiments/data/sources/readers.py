"""Read documents from .txt, .jsonl and .parquet files.

The files are opened here, since `datasets` takes some characters of a file's name ([, ?, *, ::)
for a pattern or a protocol.
"""

import codecs
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a second to import
    import datasets

BATCH = 1000  # documents


def read(paths: Iterable[Path], scratch: Path) -> "datasets.Dataset":
    """Return the documents of all files in order, memory-mapped from a new file in `scratch`.

    Raises:
        ValueError: a file is empty, binary, of another kind, or has no `text`. A .parquet file
            without rows is accepted.
    """
    import pyarrow as pa
    from datasets import Dataset

    paths = list(paths)
    for path in paths:
        _check(path)
    documents = itertools.chain.from_iterable(_READERS[path.suffix](path) for path in paths)
    schema = pa.schema({"text": pa.large_string()})
    file = str(scratch / "documents.arrow")
    with pa.OSFile(file, "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        while batch := list(itertools.islice(documents, BATCH)):
            writer.write_batch(pa.record_batch({"text": batch}, schema))
    return Dataset.from_file(file)


def _paragraphs(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig") as file:  # skips a byte-order mark
        for blank, lines in itertools.groupby(file, key="\n".__eq__):
            if not blank:
                yield "".join(lines).removesuffix("\n")


def _json_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _text_field(line, f"{path}, line {number}")


def _text_field(line: str, place: str) -> str:
    try:
        text = json.loads(line)["text"]
        text.encode()  # a string, and without half a surrogate pair
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{place}: {line[:60].strip()!r} is not accepted; each line of a .jsonl file is "
            'an object with a string: {"text": "..."}'
        ) from error
    return text


def _rows(path: Path) -> Iterator[str | None]:
    import pyarrow.parquet as pq

    with path.open("rb") as file, pq.ParquetFile(file) as table:
        if table.metadata.num_rows:
            for batch in table.iter_batches(BATCH, columns=["text"]):
                yield from batch.column("text").to_pylist()


_READERS = {".txt": _paragraphs, ".jsonl": _json_lines, ".parquet": _rows}
SUFFIXES = tuple(_READERS)


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
        with path.open("rb") as file, pq.ParquetFile(file) as table:
            schema, rows = table.schema_arrow, table.metadata.num_rows
    except pa.ArrowException as error:
        raise ValueError(f"{path} is not a parquet file, whatever its name says") from error
    strings = (pa.string(), pa.large_string())
    # Writers give an empty shard any type, since there is no value to infer it from.
    if rows and ("text" not in schema.names or schema.field("text").type not in strings):
        raise ValueError(
            f"{path} has the columns {', '.join(schema.names)}; accepted is a parquet file with "
            "a column 'text' of strings"
        )
