"""The fingerprint of a corpus: what it was made from, and the tokens that came of it.

A JSON object. It stands beside the token files, in `Corpus.fingerprint`, and in run folders:

    {"source": "files",
     "files": [{"name": "a.txt", "bytes": 4068213, "sha256": "9f…"}, …],
     "tokeniser": {"name": "gpt2", "vocabulary": 50257, "sha256": "59…"},
     "train": {"documents": 1165, "tokens": 1003297, "sha256": "c1…"},
     "validation": {…}}

`files` is empty for a data set that was read from the hub.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from experiments.data.tokenfile import Header
from experiments.data.tokenisers import Tokeniser


def describe_files(files: Mapping[str, Path], known: Iterable[dict] = ()) -> list[dict]:
    """Return name, bytes, nanosecond of the last change and SHA-256 of each of `files`.

    Files that `known`, an earlier result, lists with their present size and time are not read.
    Raises ValueError for what is not a file.
    """
    digests = {(it["name"], it["bytes"], it["modified"]): it["sha256"] for it in known}
    described = []
    for name, path in files.items():
        if not path.is_file():
            raise ValueError(f"{path} is not a file; accepted are the names of files, and globs")
        stat = path.stat()
        digest = digests.get((name, stat.st_size, stat.st_mtime_ns)) or _sha256(path)
        described.append(
            {"name": name, "bytes": stat.st_size, "sha256": digest, "modified": stat.st_mtime_ns}
        )
    return described


def describe_tokeniser(tokeniser: type[Tokeniser]) -> dict:
    """Return the tokeniser's name, the size of its vocabulary and the SHA-256 of it."""
    return {
        "name": tokeniser.name,
        "vocabulary": tokeniser.vocabulary,
        "sha256": tokeniser.sha256,
    }


def describe_split(header: Header) -> dict:
    """Return the counts and the SHA-256 of a token file."""
    return {"documents": header.documents, "tokens": header.tokens, "sha256": header.sha256}


def difference(before: Mapping, now: Mapping) -> str:
    """Return in words how the fingerprint `now` differs from `before`; "" if it does not."""
    old = {file["name"]: file["sha256"] for file in before["files"]}
    new = {file["name"]: file["sha256"] for file in now["files"]}
    found = [f"{name} is gone" for name in old if name not in new]
    found += [f"{name} is new" for name in new if name not in old]
    found += [f"{name} has other contents" for name in new if old.get(name, new[name]) != new[name]]
    if len(found) > 3:
        found[3:] = [f"{len(found) - 3} more files differ"]
    if before["source"] != now["source"]:
        found.append(f"the source is {now['source']}, not {before['source']}")
    one, other = before["tokeniser"], now["tokeniser"]
    if one["name"] != other["name"]:
        found.append(f"the tokeniser is {other['name']}, not {one['name']}")
    elif one != other:
        found.append(f"the vocabulary of the tokeniser {one['name']} has changed")
    for split in ("train", "validation"):
        if before[split] != now[split]:
            counts = f"{now[split]['tokens']:,} tokens now, {before[split]['tokens']:,} before"
            found.append(f"the {split} split has other tokens ({counts})")
    return ", ".join(found)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
