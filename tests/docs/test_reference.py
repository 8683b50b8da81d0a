"""The reference is that of the docstrings, and names whatever `paci` offers."""

import runpy

import paci
from tests.docs.pages import ROOT


def test_it_is_up_to_date():
    written = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    made = runpy.run_path(str(ROOT / "docs" / "reference.py"))["reference"]()
    assert written == made, "docstrings have changed since: make reference"


def test_every_public_name_is_in_it():
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for name in {*paci.__all__} - {"SCHEDULES"}:
        assert f"### `paci.{name}`\n" in text
    for schedule in paci.SCHEDULES:
        assert f"### `{schedule}`\n" in text
