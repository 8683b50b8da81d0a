import codecs
import json
import re

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.data import sources

NAMES = [
    "a[1]",
    "what?",
    "all*",
    "zip::a",
    "with space",
    "#1",
    "größe-日本",
    "50%",
    "{x}",
    "-\udcff",
]
LONG = "a document of more than twenty characters"


def write_parquet(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:  # pyarrow takes no name that is not UTF-8
        pq.write_table(pa.table(columns), file)
    return str(path)


def write_document(path, text):
    """A file of one document, of the kind that its name says."""
    if path.suffix == ".parquet":
        write_parquet(path, text=[text])
    else:
        path.write_text(text if path.suffix == ".txt" else json.dumps({"text": text}))


@pytest.fixture
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture
def documents(scratch):
    """documents(config): the texts of its source."""
    return lambda config: sources.named(config.source).documents(config, scratch)["text"][:]


@pytest.fixture(scope="module")
def chapters():
    return sources.kjv.documents(None, None)["text"][:]


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
            sources.kjv.files(configuration(source="kjv"))


class TestFiles:
    def test_a_blank_line_ends_a_document_in_a_text_file(self, configuration, tmp_path, documents):
        (tmp_path / "a.txt").write_bytes(b"one\r\nline\r\n\r\ntwo\n\n\nthr\xc3\xa9\xc3\xa9\n")
        config = configuration(source="files", files=str(tmp_path / "a.txt"))
        assert [text.strip() for text in documents(config)] == ["one\nline", "two", "thréé"]

    def test_the_three_kinds_together_through_globs(self, configuration, tmp_path, documents):
        (tmp_path / "deep" / "er").mkdir(parents=True)
        (tmp_path / "deep" / "er" / "a.txt").write_text("from text")
        (tmp_path / "b.jsonl").write_text('{"text": "from json"}\n\n')
        write_parquet(tmp_path / "c.parquet", text=["from parquet"], other=[1])
        config = configuration(
            source="files",
            files=[f"{tmp_path}/**/*.txt", f"{tmp_path}/*.jsonl", f"{tmp_path}/c.parquet"],
        )
        assert documents(config) == ["from json", "from parquet", "from text"]

    def test_other_json_fields_and_dates_do_not_matter(self, configuration, tmp_path, documents):
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
    def test_what_is_not_text_is_refused(
        self, configuration, tmp_path, documents, name, content, message
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(message)):
            documents(configuration(source="files", files=[str(tmp_path / name)]))

    @pytest.mark.parametrize("columns", [{"body": ["b"]}, {"text": [3]}])
    def test_a_parquet_file_needs_a_column_of_text(
        self, configuration, tmp_path, documents, columns
    ):
        file = write_parquet(tmp_path / "a.parquet", **columns)
        with pytest.raises(ValueError, match="accepted is a parquet file with a column 'text'"):
            documents(configuration(source="files", files=[file]))

    def test_a_pattern_without_a_match_is_refused(self, configuration, tmp_path, documents):
        with pytest.raises(ValueError, match=r"no file matches .*absent"):
            documents(configuration(source="files", files=[f"{tmp_path}/absent/*.txt"]))
        with pytest.raises(ValueError, match="has no files"):
            documents(configuration(source="files", files=[]))

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("suffix", [".txt", ".jsonl", ".parquet"])
    def test_any_character_may_be_in_a_name(self, configuration, tmp_path, documents, name, suffix):
        write_document(tmp_path / f"{name}{suffix}", "this one")
        write_document(tmp_path / f"a1{suffix}", "another")  # which a[1] as a pattern would match
        literal = configuration(source="files", files=[f"{tmp_path}/{name}{suffix}"])
        assert documents(literal) == ["this one"]
        both = configuration(source="files", files=[f"{tmp_path}/*{suffix}"])
        assert sorted(documents(both)) == ["another", "this one"]

    def test_a_name_without_a_file_is_a_pattern(self, configuration, tmp_path, documents):
        write_document(tmp_path / "a1.txt", "text")
        config = configuration(source="files", files=[f"{tmp_path}/a[1].txt"])
        assert documents(config) == ["text"]

    def test_a_link_is_judged_by_its_own_name(self, configuration, tmp_path, documents):
        (tmp_path / "blobs").mkdir()
        for name in ("x.parquet", "y.txt"):
            write_document(tmp_path / name, f"text of {name}")
            (tmp_path / name).rename(tmp_path / "blobs" / name[0])
            (tmp_path / name).symlink_to(tmp_path / "blobs" / name[0])
        config = configuration(source="files", files=[f"{tmp_path}/*.*"])
        assert documents(config) == ["text of x.parquet", "text of y.txt"]
        assert list(sources.files.files(config)) == [f"{tmp_path}/x.parquet", f"{tmp_path}/y.txt"]

    def test_a_file_is_read_once_whatever_names_it(self, configuration, tmp_path, documents):
        write_document(tmp_path / "b.txt", "text")
        (tmp_path / "a.txt").symlink_to(tmp_path / "b.txt")
        names = [
            f"{tmp_path}/**/*.txt",
            f"{tmp_path}/b.txt",
            f"{tmp_path}/../{tmp_path.name}/b.txt",
        ]
        assert documents(configuration(source="files", files=names)) == ["text"]

    def test_folders_that_a_pattern_matches_are_left_out(self, configuration, tmp_path, documents):
        (tmp_path / "deep.txt").mkdir()
        write_document(tmp_path / "deep.txt" / "a.txt", "text")
        assert documents(configuration(source="files", files=[f"{tmp_path}/**"])) == ["text"]

    @pytest.mark.parametrize("text", [[], pa.array([], pa.string()), None])
    def test_shards_without_rows_may_stand_beside_others(
        self, configuration, tmp_path, documents, text
    ):
        write_parquet(tmp_path / "0.parquet", **({} if text is None else {"text": text}))
        write_document(tmp_path / "1.parquet", "text")
        config = configuration(source="files", files=[f"{tmp_path}/*.parquet"])
        assert documents(config) == ["text"]

    def test_a_byte_order_mark_is_no_text(self, configuration, tmp_path, documents):
        for suffix in (".txt", ".jsonl"):
            write_document(tmp_path / f"a{suffix}", "text")
            content = (tmp_path / f"a{suffix}").read_bytes()
            (tmp_path / f"a{suffix}").write_bytes(codecs.BOM_UTF8 + content)
        assert documents(configuration(source="files", files=[f"{tmp_path}/a*"])) == ["text"] * 2


class TestOpenWebText:
    def test_a_local_folder_of_the_same_form(self, configuration, tmp_path, documents):
        # The layout of the hub's parquet branch.
        write_parquet(tmp_path / "owt/plain_text/train/0000.parquet", text=["a", "b"])
        write_parquet(tmp_path / "owt/plain_text/train/0001.parquet", text=["c"])
        config = configuration(source="openwebtext", path=str(tmp_path / "owt"))
        assert documents(config) == ["a", "b", "c"]

    def test_the_folder_may_have_any_name_and_hold_links(self, configuration, tmp_path, documents):
        write_parquet(tmp_path / "blob", text=["text"])
        folder = tmp_path / "owt[1]::*"
        folder.mkdir()
        (folder / "0000.parquet").symlink_to(tmp_path / "blob")
        (folder / "README.md").write_text("about")
        config = configuration(source="openwebtext", path=str(folder))
        assert documents(config) == ["text"]
        assert list(sources.openwebtext.files(config)) == ["0000.parquet"]

    def test_a_folder_without_parquet_files_is_refused(self, configuration, tmp_path, documents):
        with pytest.raises(ValueError, match=r"there is no \.parquet file in"):
            documents(configuration(source="openwebtext", path=str(tmp_path)))

    def test_a_folder_without_text_is_refused(self, configuration, tmp_path, documents):
        write_parquet(tmp_path / "owt/train/0000.parquet", body=["a"])
        with pytest.raises(ValueError, match="has the columns body; accepted is a parquet"):
            documents(configuration(source="openwebtext", path=str(tmp_path / "owt")))

    @pytest.mark.parametrize("path", [None, "/nowhere/owt"])
    def test_what_cannot_be_reached_is_one_sentence(
        self, configuration, documents, monkeypatch, path
    ):
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

    def test_documents_of_up_to_twenty_characters_are_dropped(self, config, scratch):
        train, validation = sources.split(config, scratch)
        kept = train["text"][:] + validation["text"][:]
        assert sorted(kept) == sorted([f"{LONG} {n}" for n in range(100)] + ["x" * 21])

    def test_it_is_the_split_of_the_paper(self, config, scratch):
        train, validation = sources.split(config, scratch)
        paper = datasets.Dataset.from_dict(
            {"text": [f"{LONG} {n}" for n in range(100)] + ["x" * 21]}
        ).train_test_split(test_size=0.02, seed=1234, shuffle=True)
        assert train["text"][:] == paper["train"]["text"][:]
        assert validation["text"][:] == paper["test"]["text"][:]
        assert len(validation) == 3

    def test_documents_of_under_twenty_words_can_be_dropped_instead(
        self, config, tmp_path, scratch
    ):
        texts = ["word " * 19, "word " * 20, "a\n" * 20, None]
        write_parquet(tmp_path / "b.parquet", text=texts)
        config.files, config.shortest = [f"{tmp_path}/b.parquet"], "words"
        train, validation = sources.split(config, scratch)
        assert sorted(train["text"][:] + validation["text"][:]) == sorted(texts[1:3])

    def test_missing_texts_are_dropped(self, configuration, tmp_path, scratch):
        file = write_parquet(tmp_path / "a.parquet", text=[LONG, None, LONG])
        train, validation = sources.split(configuration(source="files", files=[file]), scratch)
        assert len(train) == len(validation) == 1

    def test_one_document_cannot_be_split(self, configuration, tmp_path, scratch):
        (tmp_path / "a.txt").write_text(LONG)
        with pytest.raises(ValueError, match=r"has 1 document\(s\) of more than 20 characters"):
            sources.split(configuration(source="files", files=[f"{tmp_path}/a.txt"]), scratch)

    def test_an_unknown_source_is_refused(self, configuration, scratch):
        with pytest.raises(ValueError, match="source is 'web'; accepted are kjv, files, openweb"):
            sources.split(configuration(source="web"), scratch)
