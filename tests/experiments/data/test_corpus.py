import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from experiments.config import compose
from experiments.data import corpus, load, prepare
from experiments.data.tokenisers import Bytes

CONF = Path(__file__).parents[3] / "conf" / "data"


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(f"document number {n} of a small corpus" for n in range(3000)))
    return path


def test_the_king_james_bible_in_bytes(configuration):
    prepared = prepare(configuration(source="kjv"))
    assert prepared.vocabulary == 257
    assert (prepared.train.header.documents, prepared.validation.header.documents) == (1165, 24)
    assert (prepared.train.header.tokens, prepared.validation.header.tokens) == (4051360, 86560)
    assert (prepared.train.tokens == Bytes.end_of_text).sum() == 1165


def test_the_king_james_bible_in_gpt2_tokens(configuration, vocabulary_files):
    config = configuration(source="kjv", tokeniser="gpt2", vocabulary_files=vocabulary_files)
    prepared = prepare(config)
    assert prepared.vocabulary == 50257
    assert (prepared.train.header.tokens, prepared.validation.header.tokens) == (1003297, 21250)


@pytest.mark.parametrize("name", ["kjv", "files", "openwebtext"])
def test_the_configuration_files_have_what_is_asked_of_them(name, texts, tmp_path):
    config = OmegaConf.merge(
        OmegaConf.load(CONF / f"{name}.yaml"), {"folder": str(tmp_path / "data")}
    )
    if name == "files":
        config.files = [str(texts)]
    OmegaConf.set_struct(config, True)
    assert (config.source, config.validation, config.order_seed) == (name, 0.02, 1234)
    with pytest.raises(ValueError, match=f"run `python -m experiments.prepare data={name} "):
        load(config)


def test_the_work_is_done_once(configuration, texts, monkeypatch):
    config = configuration(source="files", files=[str(texts)])
    first = prepare(config)
    monkeypatch.setattr(corpus, "_write", None)
    for again in (prepare(config), load(config)):
        assert again.train.header == first.train.header
        assert again.validation.tokens.tolist() == first.validation.tokens.tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"validation": 0.5},
        {"shortest": "words"},
        {"shuffle_seed": 1},
        {"files": ["texts.txt", "more.txt"]},
    ],
)
def test_what_changes_the_tokens_changes_the_folder(
    configuration, texts, tmp_path, monkeypatch, change
):
    monkeypatch.chdir(tmp_path)
    Path("more.txt").write_text("more")
    options = {"source": "files", "files": ["texts.txt"]}
    one, other = configuration(**options), configuration(**(options | change))
    assert corpus.folder_of(one) != corpus.folder_of(other)


def test_the_fingerprint_tells_text_tokeniser_and_tokens(configuration, texts):
    prepared = prepare(configuration(source="files", files=[str(texts)]))
    described = prepared.fingerprint
    assert json.loads(json.dumps(described)) == described
    assert described["source"] == "files"
    text = texts.read_bytes()
    digest = hashlib.sha256(text).hexdigest()
    assert described["files"] == [{"name": str(texts), "bytes": len(text), "sha256": digest}]
    assert described["tokeniser"] == {"name": "bytes", "vocabulary": 257, "sha256": Bytes.sha256}
    for split in (prepared.train, prepared.validation):
        tokens = split.tokens.tobytes()
        assert described[split.path.stem] == {
            "documents": (split.tokens == Bytes.end_of_text).sum(),
            "tokens": split.tokens.size,
            "sha256": hashlib.sha256(tokens).hexdigest(),
        }


def test_edited_text_is_refused_and_can_be_prepared_again(configuration, texts):
    config = configuration(source="files", files=[str(texts)])
    before = prepare(config).fingerprint
    texts.write_text(texts.read_text() + "\n\nand one more document at the end")
    with pytest.raises(
        ValueError, match=r"has changed since .* \(.*texts\.txt has other contents\)"
    ):
        load(config)
    again = prepare(config)
    assert again.train.header.documents == 2940
    assert load(config).fingerprint == again.fingerprint != before


def test_a_text_that_was_only_touched_is_the_same(configuration, texts, monkeypatch):
    config = configuration(source="files", files=[str(texts)])
    first = prepare(config)
    os.utime(texts, ns=(1, 1))
    assert load(config).fingerprint == first.fingerprint
    monkeypatch.setattr(corpus, "_write", None)
    assert prepare(config).fingerprint == first.fingerprint
    monkeypatch.setattr("experiments.data.fingerprint._sha256", None)  # no need to read it again
    assert load(config).fingerprint == first.fingerprint


def test_a_file_that_a_pattern_matches_since_is_named(configuration, texts, tmp_path):
    config = configuration(source="files", files=[f"{tmp_path}/*.txt"])
    prepare(config)
    (tmp_path / "more.txt").write_text("more")
    with pytest.raises(ValueError, match=r"more\.txt is new"):
        load(config)
    texts.unlink()
    with pytest.raises(ValueError, match=r"texts\.txt is gone, .*more\.txt is new"):
        load(config)


def test_another_vocabulary_or_other_tokens_are_refused(configuration, texts, monkeypatch):
    config = configuration(source="files", files=[str(texts)])
    prepared = prepare(config)
    with monkeypatch.context() as patch:
        patch.setattr(Bytes, "sha256", "another")
        with pytest.raises(ValueError, match="vocabulary of the tokeniser bytes has changed"):
            load(config)
    prepared.validation.path.rename(prepared.train.path)
    shutil.copy(prepared.train.path, prepared.validation.path)
    with pytest.raises(ValueError, match="the train split has other tokens"):
        load(config)


def test_text_that_changes_while_it_is_prepared_is_noticed(configuration, texts, monkeypatch):
    split = corpus.sources.split

    def edit_and_split(*args):
        parts = split(*args)
        texts.write_text("edited meanwhile")
        return parts

    monkeypatch.setattr(corpus.sources, "split", edit_and_split)
    with pytest.raises(ValueError, match="has other contents"):
        prepare(configuration(source="files", files=[str(texts)]))


@pytest.mark.parametrize(
    "overrides",
    [
        ["data=kjv", "data.folder=else/where", "data.validation=0.5"],
        ["data=files", "data.files=['a b/ü\"$x.txt', 5.txt]", "data.folder='5'"],
        ["data=files", "data.files=[5.txt]", "data.vocabulary_files={bpe: '/a b', encoder: c}"],
    ],
)
def test_who_lacks_a_corpus_is_told_what_prepares_it(overrides, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (Path('a b/ü"$x.txt'), Path("5.txt")):
        path.parent.mkdir(exist_ok=True)
        path.write_text("one\n\ntwo")
    config = compose(overrides).data
    with pytest.raises(ValueError, match="there is no prepared corpus") as refused:
        load(config)
    words = shlex.split(re.search("run `(.*)` first", str(refused.value))[1])
    assert words[:3] == ["python", "-m", "experiments.prepare"]
    assert compose(words[3:]).data == config


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("source", "web", "source is 'web'"),
        ("tokeniser", "words", "tokeniser is 'words'"),
        ("validation", 0.0, "validation is 0.0"),
        ("validation", 1, "validation is 1"),
        ("shortest", 20, "shortest is 20; accepted are characters or words"),
        ("shuffle_seed", -1, "shuffle_seed is -1"),
        ("shuffle_seed", "1234", "shuffle_seed is '1234'"),
    ],
)
def test_the_configuration_is_checked_before_any_work(
    configuration, tmp_path, option, value, message
):
    with pytest.raises(ValueError, match=message):
        prepare(configuration(**({"source": "kjv"} | {option: value})))
    assert not (tmp_path / "data").exists()


def test_a_damaged_corpus_is_not_loaded(configuration, texts):
    config = configuration(source="files", files=[str(texts)])
    path = prepare(config).train.path
    os.truncate(path, 10_000)
    with pytest.raises(ValueError, match="delete it and prepare the data again"):
        load(config, verify=False)
    path.unlink()
    assert prepare(config).train.header.tokens == load(config).train.tokens.size


# The same preparation in a process of its own, which may be killed.
SCRIPT = """
import os, sys, time
from types import SimpleNamespace
from experiments.data import prepare, tokenisers

class Slow(tokenisers.Bytes):
    encoded = []
    def encode(self, text):
        Slow.encoded.append(text)
        if sys.argv[3] == "die" and len(Slow.encoded) > 2000:
            os._exit(9)
        time.sleep(2e-4)
        return super().encode(text)

tokenisers.Bytes = Slow
prepare(SimpleNamespace(source="files", files=[sys.argv[1]], folder=sys.argv[2],
                        tokeniser="bytes", validation=0.02, shortest="characters",
                        shuffle_seed=1234))
print(len(Slow.encoded))
"""


def start(config, ending="finish"):
    command = [sys.executable, "-c", SCRIPT, config.files[0], config.folder, ending]
    cache = {"HF_DATASETS_CACHE": str(Path(config.folder).with_name("cache"))}
    return subprocess.Popen(command, env=os.environ | cache, stdout=subprocess.PIPE, text=True)


def test_a_killed_preparation_leaves_nothing_that_looks_whole(configuration, texts):
    config = configuration(source="files", files=[str(texts)])
    killed = start(config, "die")
    killed.communicate()
    assert killed.returncode == 9
    folder = corpus.folder_of(config)
    left = sorted(path.name for path in folder.iterdir())
    assert left[-1] == "scratch"
    assert [name[:7] for name in left[:-1]] == [".draft-"]
    with pytest.raises(ValueError, match="there is no prepared corpus"):
        load(config)

    assert prepare(config).train.header.documents == 2940
    files = ["fingerprint.json", "train.tokens", "validation.tokens"]
    assert sorted(path.name for path in folder.iterdir()) == files


def test_two_preparations_at_once_do_the_work_once(configuration, texts):
    config = configuration(source="files", files=[str(texts)])
    processes = [start(config), start(config)]
    counts = [int(process.communicate()[0]) for process in processes]
    assert sorted(counts) == [0, 3000]
    assert load(config).train.header.documents == 2940
