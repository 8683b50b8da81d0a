import pytest

from experiments import data, prepare
from experiments.config import compose
from tests.experiments.smoke import stamps


def run(monkeypatch, *overrides):
    monkeypatch.setattr("sys.argv", ["prepare", *overrides])
    prepare.main()


def test_it_writes_what_runs_read_once(tmp_path, monkeypatch, capsys):
    overrides = ["data=kjv", f"data.folder={tmp_path}"]
    run(monkeypatch, *overrides)
    said = capsys.readouterr().out.splitlines()
    corpus = data.load(compose(overrides).data)
    for line, split in zip(said, (corpus.train, corpus.validation), strict=True):
        assert line.startswith(str(split.path))
        assert f"{len(split.tokens):,} tokens" in line
    written = stamps(tmp_path)
    run(monkeypatch, *overrides)
    assert capsys.readouterr().out.splitlines() == said
    assert stamps(tmp_path) == written


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["data.validation=2.0"], "data.validation must be a number from 0 to 1, not 2.0"),
        (["data.tokeniser=words"], "data.tokeniser must be bytes or gpt2, not 'words'"),
        (["data=files"], "source 'files' has no files"),
        (["data=files", "data.files=[/absent/*.txt]"], "no file matches '/absent/\\*.txt'"),
    ],
)
def test_what_cannot_be_prepared_leaves_nothing(overrides, sentence, tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, *overrides, f"data.folder={tmp_path / 'data'}")
    assert sentence.replace("\\", "") in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
