"""docs/settings.md lists what every setting accepts, as the code does. After a change:

python -m tests.docs.test_settings
"""

from experiments.config.accepted import ACCEPTED
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "settings.md"
HEAD = """\
# Settings

Every setting is a key of the configuration in `conf/`, set as `KEY=VALUE`. `python -m
experiments.train --help` prints all of them with their values and comments, and the options of each
group. A value that is not accepted stops a command before any work, with one sentence.

| key | accepted |
|---|---|
"""


def page() -> str:
    rows = (f"| `{key}` | {accepted.words} |\n" for key, accepted in ACCEPTED.items())
    return HEAD + "".join(rows)


def test_the_page_lists_what_is_accepted():
    assert PAGE.read_text() == page()


if __name__ == "__main__":
    PAGE.write_text(page())
