"""One split of a corpus on disk: a header, and tokens that are mapped into memory.

bytes 0 .. 4095    b"PACITOK\\n", a JSON object, spaces (so `head -1` and `head -c` show it)
bytes 4096 ..      the tokens: little-endian uint16, each document followed by end-of-text
"""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from experiments.data.tokenisers import Tokeniser
from runlog import drafted

MAGIC = b"PACITOK\n"
HEADER_BYTES = 4096
TOKEN = np.dtype("<u2")
VERSION = 1


@dataclass(frozen=True)
class Header:
    """The header of a token file; `sha256` is the digest of the token bytes."""

    version: int
    source: str
    tokeniser: str
    vocabulary: int
    documents: int
    tokens: int
    sha256: str


@dataclass(frozen=True, eq=False)
class TokenFile:
    """A token file, mapped read-only.

    Attributes:
        path: the file.
        header: counts, tokeniser and checksum.
        tokens: uint16 array of shape (header.tokens,), read from disk as it is used.
    """

    path: Path
    header: Header
    tokens: np.ndarray

    @classmethod
    def open(cls, path: str | Path, verify: bool = True) -> "TokenFile":
        """Map the token file at `path`.

        Args:
            verify: read all of it once and compare the checksum (about a second per GB).
        Raises:
            ValueError: the file is not a token file, or is truncated or damaged.
        """
        path = Path(path)
        with path.open("rb") as file:
            header = _parse(path, file.read(HEADER_BYTES))
            expected = HEADER_BYTES + header.tokens * TOKEN.itemsize
            if path.stat().st_size != expected:
                raise ValueError(
                    f"{path} has {path.stat().st_size} bytes and its header promises {expected}; "
                    "delete it and prepare the data again"
                )
            if verify and hashlib.file_digest(file, "sha256").hexdigest() != header.sha256:
                raise ValueError(
                    f"the tokens in {path} do not match their checksum; "
                    "delete it and prepare the data again"
                )
        tokens = np.memmap(path, TOKEN, mode="r", offset=HEADER_BYTES, shape=(header.tokens,))
        return cls(path, header, tokens)

    @classmethod
    def write(
        cls, path: str | Path, documents: Iterable[np.ndarray], source: str, tokeniser: Tokeniser
    ) -> "TokenFile":
        """Write a token file at `path`, all of it or nothing, one document at a time.

        Args:
            documents: iterable of at least one integer array, the tokens of one document each.
            source: the name of the source, for the header.
            tokeniser: the tokeniser that made the tokens; its `name` and `vocabulary` go to the
                header, and its `end_of_text` follows every document.
        Returns:
            The TokenFile, opened.
        """
        path = Path(path)
        end_of_text = np.array([tokeniser.end_of_text], TOKEN).tobytes()
        digest, count, size = hashlib.sha256(), 0, 0
        with drafted(path) as draft, draft.open("wb") as file:
            file.write(bytes(HEADER_BYTES))  # no magic yet: not a token file until complete
            for document in documents:
                data = np.asarray(document).astype(TOKEN).tobytes() + end_of_text
                digest.update(data)
                count += 1
                size += len(data) // TOKEN.itemsize
                file.write(data)
            file.seek(0)
            names = (VERSION, source, tokeniser.name, tokeniser.vocabulary)
            file.write(_format(Header(*names, count, size, digest.hexdigest())))
            file.flush()
            os.fsync(file.fileno())
        return cls.open(path, verify=False)


def _format(header: Header) -> bytes:
    return (MAGIC + json.dumps(asdict(header)).encode() + b"\n").ljust(HEADER_BYTES)


def _parse(path: Path, head: bytes) -> Header:
    if not head.startswith(MAGIC):
        raise ValueError(f"{path} is not a token file: it does not begin with {MAGIC!r}")
    try:
        fields = json.loads(head[len(MAGIC) :])
        if fields["version"] == VERSION:
            return Header(**fields)
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(
            f"the header of {path} is damaged; delete it and prepare the data again"
        ) from error
    raise ValueError(
        f"{path} is a token file of version {fields['version']}, and this code reads {VERSION}; "
        "delete it and prepare the data again"
    )
