import hashlib
from types import SimpleNamespace

import pytest
import tiktoken

from experiments.data.tokenisers import GPT2, Bytes, build

# GPT-2's tokens of these, as published with the model.
TEXT, TOKENS = "Hello world", [15496, 995]


@pytest.fixture(scope="module")
def gpt2(vocabulary_files):
    return GPT2(vocabulary_files)


def test_bytes_are_utf_8():
    assert Bytes().encode("aé").tolist() == [97, 0xC3, 0xA9]
    assert Bytes().encode("").tolist() == []


def test_gpt2_from_local_files_is_gpt2(gpt2):
    assert gpt2.encode(TEXT).tolist() == TOKENS
    assert (gpt2.vocabulary, gpt2.end_of_text) == (50257, 50256)


def test_the_digest_is_that_of_the_vocabulary(gpt2):
    of_bytes = [*(bytes([number]) for number in range(256)), b"<|endoftext|>"]
    assert Bytes.sha256 == vocabulary_sha256(of_bytes)
    encoding = gpt2._encoding
    assert encoding.n_vocab == 50257
    assert GPT2.sha256 == vocabulary_sha256(map(encoding.decode_single_token_bytes, range(50257)))


def vocabulary_sha256(tokens):
    digest = hashlib.sha256()
    for token in tokens:
        digest.update(len(token).to_bytes(4, "little") + token)
    return digest.hexdigest()


def test_a_document_cannot_smuggle_in_the_end_of_text(gpt2):
    assert gpt2.end_of_text not in gpt2.encode("a<|endoftext|>b")


def test_other_vocabulary_files_are_refused(vocabulary_files, tmp_path):
    other = tmp_path / "vocab.bpe"
    other.write_text("#version: 0.2\na b\n")
    with pytest.raises(ValueError, match=r"OpenAI's vocab\.bpe and encoder\.json, unchanged"):
        GPT2(vocabulary_files | {"bpe": other})
    with pytest.raises(ValueError, match=r"cannot build the GPT-2 vocabulary from .*absent"):
        GPT2(vocabulary_files | {"bpe": tmp_path / "absent"})


def test_without_a_network_the_way_out_is_named(monkeypatch):
    def unreachable(name):
        raise OSError("no route to host")

    monkeypatch.setattr(tiktoken, "get_encoding", unreachable)
    with pytest.raises(ValueError, match=r"without a network, set data\.vocabulary_files"):
        GPT2()


def test_an_unknown_tokeniser_is_refused():
    with pytest.raises(ValueError, match="tokeniser is 'words'; accepted are bytes, gpt2"):
        build(SimpleNamespace(tokeniser="words"))
