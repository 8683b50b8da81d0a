import json
import os

import numpy as np
import pytest

from experiments.data import TokenFile
from experiments.data.tokenfile import HEADER_BYTES, MAGIC
from experiments.data.tokenisers import Bytes


@pytest.fixture
def path(tmp_path):
    return tmp_path / "train.tokens"


def write(path, *texts):
    return TokenFile.write(path, map(Bytes().encode, texts), "test", Bytes())


def test_end_of_text_follows_every_document(path):
    write(path, "ab", "", "c")
    file = TokenFile.open(path)
    assert file.tokens.dtype == np.uint16
    assert file.tokens.tolist() == [97, 98, 256, 256, 99, 256]
    assert (file.header.documents, file.header.tokens, file.header.vocabulary) == (3, 6, 257)


def test_the_header_can_be_read_without_this_code(path):
    write(path, "ab")
    header = json.loads(path.read_bytes().splitlines()[1])
    assert header["source"] == "test"
    assert header["tokeniser"] == "bytes"


def test_the_tokens_cannot_be_changed_by_accident(path):
    with pytest.raises(ValueError, match="read-only"):
        write(path, "ab").tokens[0] = 0


def test_numbers_beyond_a_byte_survive(path):
    TokenFile.write(path, [np.array([50255, 300], np.uint32)], "test", Bytes())
    assert TokenFile.open(path).tokens.tolist() == [50255, 300, 256]


def test_another_file_is_refused(path):
    path.write_text("Call me Ishmael.")
    with pytest.raises(ValueError, match="is not a token file"):
        TokenFile.open(path)


@pytest.mark.parametrize("length", [20, HEADER_BYTES, HEADER_BYTES + 4])
def test_a_truncated_file_is_refused(path, length):
    write(path, "abc")
    os.truncate(path, length)
    with pytest.raises(ValueError, match=r"damaged|header promises"):
        TokenFile.open(path, verify=False)


def test_changed_tokens_are_refused(path):
    write(path, "abc")
    with path.open("r+b") as file:
        file.seek(HEADER_BYTES)
        file.write(b"z")
    TokenFile.open(path, verify=False)
    with pytest.raises(ValueError, match="do not match their checksum"):
        TokenFile.open(path)


def test_another_version_is_refused(path):
    path.write_bytes((MAGIC + b'{"version": 99}').ljust(HEADER_BYTES))
    with pytest.raises(ValueError, match="version 99, and this code reads 1"):
        TokenFile.open(path)


def test_a_failure_halfway_leaves_what_was_there(path, tmp_path):
    write(path, "the old tokens")
    before = path.read_bytes()

    def documents():
        yield np.zeros(100_000, np.uint16)
        assert len(list(tmp_path.iterdir())) == 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TokenFile.write(path, documents(), "test", Bytes())
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before
