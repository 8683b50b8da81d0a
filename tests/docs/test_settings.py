"""docs/settings.md has every key of conf/, the values that it accepts and what it means."""

import re
import runpy

from experiments import CONF
from experiments.config import select
from experiments.config.compose import flat
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "settings.md"


def test_it_is_up_to_date():
    made = runpy.run_path(str(PAGE.with_suffix(".py")))["settings"]()
    assert PAGE.read_text(encoding="utf-8") == made, "settings have changed since: make reference"


def test_every_key_is_described():
    described = {}
    for row in re.findall(r"^\| `(.+)` \| (.*) \| (.*) \|$", PAGE.read_text(), re.MULTILINE):
        described[row[0]] = row[1:]
    assert all(all(words) for words in described.values())
    # The keys of a configuration composed by Hydra, with each option of each group in turn.
    for folder in filter(lambda path: path.is_dir(), CONF.iterdir()):
        for option in folder.glob("*.yaml") if folder.name != "extrapolation" else ():
            composed = select([f"{folder.name}={option.stem}"])
            keys = {re.sub(r"^(method\.options)\..*", r"\1", key) for key in flat(composed)}
            assert keys - {"method.options"} <= set(described)
