import json
import re

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.data import sources

LONG = "a document of more than twenty characters"


def write_parquet(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return str(path)


def documents(config):
    return sources.named(config.source).documents(config)["text"][:]


@pytest.fixture(scope="module")
def chapters():
    return sources.kjv.documents(None)["text"][:]


class TestKJV:
    def test_a_document_is_a_chapter_and_a_line_is_a_verse(self, chapters):
        assert len(chapters) == 1189
        assert sum(len(chapter.splitlines()) for chapter in chapters) == 31102

    def test_verse_numbers_are_gone(self, chapters):
        assert not any(re.search(r"\d", chapter) for chapter in chapters)

    def test_the_chapters_are_in_order(self, chapters):
        assert chapters[0].startswith("In the beginning God created the heavens")
        assert chapters[-1].endswith("Christ be with you all. Amen.")

    def test_without_its_package_the_source_is_refused(self, configuration, monkeypatch):
        monkeypatch.setattr(sources.kjv, "PACKAGE", "not-installed")
        with pytest.raises(ValueError, match="source 'kjv' needs the package not-installed"):
            sources.kjv.fingerprint(configuration(source="kjv"))


class TestFiles:
    def test_a_blank_line_ends_a_document_in_a_text_file(self, configuration, tmp_path):
        (tmp_path / "a.txt").write_bytes(b"one\r\nline\r\n\r\ntwo\n\n\nthr\xc3\xa9\xc3\xa9\n")
        config = configuration(source="files", files=str(tmp_path / "a.txt"))
        assert [text.strip() for text in documents(config)] == ["one\nline", "two", "thréé"]

    def test_the_three_kinds_together_through_globs(self, configuration, tmp_path):
        (tmp_path / "deep" / "er").mkdir(parents=True)
        (tmp_path / "deep" / "er" / "a.txt").write_text("from text")
        (tmp_path / "b.jsonl").write_text('{"text": "from json"}\n\n')
        write_parquet(tmp_path / "c.parquet", text=["from parquet"], other=[1])
        config = configuration(
            source="files",
            files=[f"{tmp_path}/**/*.txt", f"{tmp_path}/*.jsonl", f"{tmp_path}/c.parquet"],
        )
        assert documents(config) == ["from text", "from json", "from parquet"]

    def test_other_json_fields_and_dates_do_not_matter(self, configuration, tmp_path):
        (tmp_path / "a.jsonl").write_text('{"text": "2020-01-01 00:00:00", "x": 1}\n')
        (tmp_path / "b.jsonl").write_text('{"x": ["y"], "text": "b"}\n')
        config = configuration(source="files", files=[f"{tmp_path}/*.jsonl"])
        assert documents(config) == ["2020-01-01 00:00:00", "b"]

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.txt", b"", "is empty; accepted are .txt files with documents"),
            ("a.txt", b"text\0text", "is binary; accepted are .txt files in UTF-8"),
            ("a.txt", b"caf\xe9", "is binary; accepted are .txt files in UTF-8"),
            ("a.txt", b"cut \xc3", "is binary; accepted are .txt files in UTF-8"),
            ("a.csv", b"text\n", "is not a text file; accepted are .txt, .jsonl, .parquet"),
            ("a.parquet", b"PAR2", "is not a parquet file"),
            ("a.jsonl", b'{"body": "b"}', "an object with a string"),
            ("a.jsonl", b'{"text": 3}', "an object with a string"),
            ("a.jsonl", b'{"text": "\\ud800"}', "an object with a string"),
            ("a.jsonl", b'{"te', "an object with a string"),
            ("a.jsonl", b'"text"', "an object with a string"),
        ],
    )
    def test_what_is_not_text_is_refused(self, configuration, tmp_path, name, content, message):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(message)):
            documents(configuration(source="files", files=[str(tmp_path / name)]))

    @pytest.mark.parametrize("columns", [{"body": ["b"]}, {"text": [3]}])
    def test_a_parquet_file_needs_a_column_of_text(self, configuration, tmp_path, columns):
        file = write_parquet(tmp_path / "a.parquet", **columns)
        with pytest.raises(ValueError, match="accepted is a parquet file with a column 'text'"):
            documents(configuration(source="files", files=[file]))

    def test_a_pattern_without_a_match_is_refused(self, configuration, tmp_path):
        with pytest.raises(ValueError, match=r"no file matches .*absent"):
            documents(configuration(source="files", files=[f"{tmp_path}/absent/*.txt"]))
        with pytest.raises(ValueError, match="has no files"):
            documents(configuration(source="files", files=[]))


class TestOpenWebText:
    def test_a_local_folder_of_the_same_form(self, configuration, tmp_path):
        # The layout of the hub's parquet branch.
        write_parquet(tmp_path / "owt/plain_text/train/0000.parquet", text=["a", "b"])
        write_parquet(tmp_path / "owt/plain_text/train/0001.parquet", text=["c"])
        config = configuration(source="openwebtext", path=str(tmp_path / "owt"))
        assert documents(config) == ["a", "b", "c"]

    def test_a_folder_without_text_is_refused(self, configuration, tmp_path):
        write_parquet(tmp_path / "owt/train/0000.parquet", body=["a"])
        with pytest.raises(ValueError, match="has the columns body; accepted is a data set"):
            documents(configuration(source="openwebtext", path=str(tmp_path / "owt")))

    @pytest.mark.parametrize("path", [None, "/nowhere/owt"])
    def test_what_cannot_be_reached_is_one_sentence(self, configuration, monkeypatch, path):
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        with pytest.raises(ValueError, match=r"cannot load OpenWebText from .*set data\.path") as e:
            documents(configuration(source="openwebtext", path=path))
        assert "\n" not in str(e.value)


class TestSplit:
    @pytest.fixture
    def config(self, configuration, tmp_path):
        lines = [json.dumps({"text": f"{LONG} {n}"}) for n in range(100)]
        lines += [json.dumps({"text": "x" * length}) for length in (0, 19, 20, 21)]
        (tmp_path / "a.jsonl").write_text("\n".join(lines))
        return configuration(source="files", files=[f"{tmp_path}/a.jsonl"])

    def test_documents_of_up_to_twenty_characters_are_dropped(self, config):
        train, validation = sources.split(config)
        kept = train["text"][:] + validation["text"][:]
        assert sorted(kept) == sorted([f"{LONG} {n}" for n in range(100)] + ["x" * 21])

    def test_it_is_the_split_of_the_paper(self, config):
        train, validation = sources.split(config)
        paper = datasets.Dataset.from_dict(
            {"text": [f"{LONG} {n}" for n in range(100)] + ["x" * 21]}
        ).train_test_split(test_size=0.02, seed=1234, shuffle=True)
        assert train["text"][:] == paper["train"]["text"][:]
        assert validation["text"][:] == paper["test"]["text"][:]
        assert len(validation) == 3

    def test_missing_texts_are_dropped(self, configuration, tmp_path):
        file = write_parquet(tmp_path / "a.parquet", text=[LONG, None, LONG])
        train, validation = sources.split(configuration(source="files", files=[file]))
        assert len(train) == len(validation) == 1

    def test_one_document_cannot_be_split(self, configuration, tmp_path):
        (tmp_path / "a.txt").write_text(LONG)
        with pytest.raises(ValueError, match=r"has 1 document\(s\) longer than 20 characters"):
            sources.split(configuration(source="files", files=[f"{tmp_path}/a.txt"]))

    def test_an_unknown_source_is_refused(self, configuration):
        with pytest.raises(ValueError, match="source is 'web'; accepted are kjv, files, openweb"):
            sources.split(configuration(source="web"))
