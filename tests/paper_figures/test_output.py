from errno import ENOSPC

import pandas as pd
import pytest

from paper_figures.output import NotWritable, on_screen, readable, save_table

TABLE = pd.DataFrame({"Δmax": [2, 1], "loss": [2.79, None], "loss ±": [0.00167, None]})
WITHOUT_SPREAD = pd.DataFrame({"speed-up": [1.69, "not reached"], "speed-up ±": [None, None]})


def test_a_spread_joins_its_value_and_undefined_is_a_dash():
    assert readable(TABLE).to_dict("list") == {"Δmax": ["2", "1"], "loss": ["2.79 ± 0.0017", "–"]}
    assert readable(WITHOUT_SPREAD).to_dict("list") == {"speed-up": ["1.69", "not reached"]}


def test_a_table_is_csv_markdown_and_booktabs(tmp_path):
    paths = save_table(TABLE, tmp_path, "t", "Partial data.")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.md", "t.tex"]
    csv, markdown, latex = (path.read_text() for path in paths)
    assert csv == "Δmax,loss,loss ±\n2,2.79,0.00167\n1,,\n"
    assert "| 2      | 2.79 ± 0.0017 |" in markdown
    assert "\nPartial data.\n" in markdown
    assert r"$\Delta$max" in latex
    assert r"\toprule" in latex
    assert latex.isascii()


def test_claims_on_a_screen_fit_it_and_those_not_tested_are_counted(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    claim = {"claim": "final loss tracks flush", "scale": "laptop", "why": "gap within 0.015 " * 4}
    rows = [claim | {"batch": batch, "verdict": "holds"} for batch in (16, 32)]
    rows.append(claim | {"batch": 64, "verdict": "not tested"})
    shown = on_screen(pd.DataFrame(rows).assign(question="q1"), "claims.md")
    above, rest = shown.split("\n\n", 1)
    assert "scale: laptop" in above
    assert "laptop" not in rest
    assert "64" not in shown
    left_out = "Left out, as not tested or not testable: 1 of 3. All are in claims.md."
    assert " ".join(rest.split()).endswith(left_out)
    rows[1]["why"] = "another"
    shown = on_screen(pd.DataFrame(rows).assign(question="q1"), "claims.md")
    assert max(map(len, shown.splitlines())) <= 60


@pytest.mark.parametrize("failing", ["os.replace", "pathlib.Path.write_bytes"])
def test_a_full_disk_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch, failing):
    save_table(TABLE, tmp_path, "t")
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}

    def full(*_):
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(failing, full)
    with pytest.raises(NotWritable, match=r"cannot be written to \(No space left on device\)"):
        save_table(TABLE.tail(1), tmp_path, "t")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before
