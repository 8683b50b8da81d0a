"""Tokenisers: from text to token numbers."""

from typing import Any, Protocol

import numpy as np
import tiktoken
from tiktoken.load import data_gym_to_mergeable_bpe_ranks
from tiktoken_ext.openai_public import r50k_pat_str

# OpenAI's own files. Any other file under these names would be another vocabulary, and the
# figures it leads to could not be set beside the paper's.
BPE_SHA256 = "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"
ENCODER_SHA256 = "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"


class Tokeniser(Protocol):
    """A tokeniser with `vocabulary` tokens, of which `end_of_text` separates documents.

    `sha256` identifies the vocabulary: the SHA-256 of the bytes of all tokens in order, the
    length of each before it as four bytes, little-endian.
    """

    name: str
    vocabulary: int
    end_of_text: int
    sha256: str

    def encode(self, text: str) -> np.ndarray:
        """Return the tokens of one document, integers of shape (tokens,)."""


class Bytes:
    """UTF-8 bytes as tokens: nothing to fetch, and small enough for a laptop."""

    name = "bytes"
    vocabulary = 257
    end_of_text = 256
    sha256 = "c8652c242d0cd3b98b3c82d4aa53d102c8ccae44dc16854240715e4e32d8b038"

    def encode(self, text: str) -> np.ndarray:
        return np.frombuffer(text.encode(), dtype=np.uint8)


class GPT2:
    """GPT-2's byte-pair encoding.

    Args:
        vocabulary_files: `{"bpe": path of vocab.bpe, "encoder": path of encoder.json}`, or None
            to let tiktoken fetch them once over the network.
    Raises:
        ValueError: there is no network, or the files are not GPT-2's.
    """

    name = "gpt2"
    vocabulary = 50257
    end_of_text = 50256
    sha256 = "a5623714bcf19049eb0fd78df19b6daa1e61ac435b86a5deae767768e7fcdc3d"

    def __init__(self, vocabulary_files: dict[str, str] | None = None):
        if vocabulary_files is None:
            self._encoding = _fetched()
        else:
            self._encoding = _built(vocabulary_files["bpe"], vocabulary_files["encoder"])

    def encode(self, text: str) -> np.ndarray:
        # A document that quotes <|endoftext|> quotes ordinary characters.
        return self._encoding.encode_to_numpy(text, disallowed_special=())


TOKENISERS: dict[str, type[Tokeniser]] = {"bytes": Bytes, "gpt2": GPT2}


def named(name: str) -> type[Tokeniser]:
    """Return the class of the tokeniser called `name`; raise ValueError if there is none."""
    if name not in TOKENISERS:
        raise ValueError(f"tokeniser is {name!r}; accepted are {', '.join(TOKENISERS)}")
    return TOKENISERS[name]


def build(config: Any) -> Tokeniser:
    """Return the tokeniser `config.tokeniser`, GPT-2's from `config.vocabulary_files` if given."""
    if named(config.tokeniser) is GPT2:
        return GPT2(getattr(config, "vocabulary_files", None))
    return Bytes()


def _fetched() -> tiktoken.Encoding:
    try:
        return tiktoken.get_encoding("gpt2")
    except Exception as error:  # requests, urllib3 and tiktoken each raise kinds of their own
        raise ValueError(
            "cannot fetch the GPT-2 vocabulary; without a network, set data.vocabulary_files to "
            "{bpe: path of vocab.bpe, encoder: path of encoder.json}, or data.tokeniser=bytes"
        ) from error


def _built(bpe: str, encoder: str) -> tiktoken.Encoding:
    try:
        ranks = data_gym_to_mergeable_bpe_ranks(str(bpe), str(encoder), BPE_SHA256, ENCODER_SHA256)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"cannot build the GPT-2 vocabulary from {bpe} and {encoder}; accepted are "
            "OpenAI's vocab.bpe and encoder.json, unchanged"
        ) from error
    return tiktoken.Encoding(
        "gpt2",
        explicit_n_vocab=GPT2.vocabulary,
        pat_str=r50k_pat_str,
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": GPT2.end_of_text},
    )
