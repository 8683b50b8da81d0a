"""Write docs/settings.md from conf/ and from what the code accepts: python docs/settings.py"""

import re
from pathlib import Path

from experiments import CONF
from experiments.config.accepted import ACCEPTED
from paci.schedules import SCHEDULES

FILE = Path(__file__).with_suffix(".md")
HEAD = """\
# Settings

Every setting is a key of the configuration in `conf/`, set as `KEY=VALUE`, and a group takes one of
its files, as `GROUP=OPTION`. `python -m experiments.train --help` prints their values. A value that
is not accepted stops a command before any work, with one sentence. `make reference` writes this
page from the comments in `conf/`.
"""
GROUPS = ("method", "model", "optimizer", "data", "executor", "cluster", "scale")
USUAL = {"method": "paci", "model": "smoke", "optimizer": "adamw", "data": "files",
         "executor": "local", "cluster": "slurm", "scale": "laptop"}  # fmt: skip
"""The file of each group that describes its keys; the others add those that it lacks."""

TEXT, TIME = "null or a text", "a number of at least 0, or a list of one for each stage"
WITH_OTHERS = {
    "scale": "as the file is called",
    "experiment": "null or a name",
    "grid": "null or a list of entries, {KEY: VALUE or list of values}",
    "method.schedule": ", ".join(SCHEDULES),
    "method.options": "what the schedule takes",
    "model.name": "as the file is called",
    "data.files": "a list of paths and globs",
    "data.path": "null, or the path of a folder or of a data set on the hub",
    "data.vocabulary_files": "null or {bpe: PATH, encoder: PATH}",
    "executor.cost": "measured, or the times below",
    **{f"executor.cost.{key}": TIME for key in ("forward", "backward", "update", "transfer")},
    **{f"executor.cost.{key}": f"null, {TIME}" for key in ("weight", "input")},
    "executor.cost.jitter": "a number from 0 to below 1",
    **{f"cluster.{key}": TEXT for key in ("partition", "account", "qos", "constraint", "memory")},
}
"""The values of keys that are checked together with others, or by whoever reads them."""


def settings() -> str:
    """Return the page."""
    one_run = comments(CONF / "config.yaml")
    parts = [HEAD, _table("One run", {**one_run, **comments(CONF / "experiment" / "none.yaml")})]
    for group in GROUPS:
        files = sorted((CONF / group).glob("*.yaml"))
        options = ", ".join(f"`{name}`" for name in sorted(file.stem for file in files))
        files.sort(key=lambda file: file.stem != USUAL[group])  # stable: the usual one first
        found: dict[str, str] = {}
        for file in files:
            if group != "scale" and file.read_text().startswith("# @package _global_"):
                continue  # It sets keys that other files describe.
            for name, comment in comments(file).items():
                key = name if group == "scale" else f"{group}.{name}"
                found[key] = found.get(key) or comment
        if group == "scale":  # whose keys are those of one run and of other groups, too
            found = {key: found[key] for key in found if key not in one_run}
            found = {key: found[key] for key in found if key.partition(".")[0] not in GROUPS[:-1]}
        parts.append(_table(f"`{group}`", found, f"Options: {options}.\n"))
    return "\n".join(parts)


def _table(title: str, found: dict[str, str], text: str = "") -> str:
    rows = [f"| `{key}` | {accepted(key)} | {found[key]} |" for key in found if accepted(key)]
    head = ["| key | accepted | meaning |", "|---|---|---|"]
    return "\n".join([f"## {title}\n", *([text] if text else []), *head, *rows, ""])


def accepted(key: str) -> str:
    """Return the words for the values that `key` accepts; "" for a group of keys."""
    return ACCEPTED[key].words if key in ACCEPTED else WITH_OTHERS.get(key, "")


def comments(file: Path) -> dict[str, str]:
    """Return {key: its comment} for the keys of a file, in order: what follows its value or, if
    nothing does, what stands above it. The comment above the first key is that of the file."""
    found: dict[str, str] = {}
    outer, above, is_head = "", [], True
    for line in file.read_text(encoding="utf-8").splitlines():
        comment = re.fullmatch(r"\s*# ?(.*)", line)
        key = re.match(r"( *)(\w+):(.*)", line)
        if comment:
            above.append(comment[1])
            continue
        if key:
            indent, name, rest = key.groups()
            behind = rest.partition(" # ")[2]
            outer = outer if indent else name
            full = f"{outer}.{name}" if indent else name
            found[full] = behind.strip() or ("" if is_head else " ".join(above))
        above, is_head = [], False
    return {key: text for key, text in found.items() if key != "defaults"}


if __name__ == "__main__":
    FILE.write_text(settings(), encoding="utf-8")
    print(FILE)
