"""The identity of a run (all that its numbers depend on beside its configuration), and changes."""

import ast
import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from experiments.data.fingerprint import difference
from experiments.run.environment import ROOT
from runlog import Identity

PACKAGES = ("torch", "transformers", "numpy")
"""Packages that compute."""
CODE = (
    *("paci", "experiments/run", "experiments/data", "experiments/models"),
    "experiments/optimizers",
)
"""Folders of the code that computes."""
PAGE = ROOT / "paci" / "explore"
"""A folder in them that computes nothing of a run."""


def identity(
    corpus: dict[str, Any],
    cut: list[range],
    cost: dict[str, Any] | None,
    weights: dict[str, Any] | None,
) -> Identity:
    """Return the identity of a run that begins now. `corpus` is the corpus's fingerprint, `cost`
    the content of cost.json, None without measured times, `weights` names the checkpoint whose
    weights it begins with, None if it draws its own."""
    ends = [[units.start, units.stop] for units in cut]
    return Identity(corpus, ends, cost, packages(), code(), weights)


def changes(begun: Identity, corpus: dict[str, Any], cost: dict[str, Any] | None) -> list[str]:
    """Return a phrase for each thing that has changed since a run of identity `begun` began."""
    found = []
    if text := difference(begun.corpus, corpus):
        found.append(f"the corpus: {text}")
    if begun.cost != cost:
        found.append(f"cost.json: {_differing(begun.cost or {}, cost or {})}")
    if begun.packages != packages():
        found.append(f"the packages: {_differing(begun.packages, packages())}")
    if begun.code != code():
        found.append(f"the code: {_differing(begun.code, code(), values=False)}")
    return found


def packages() -> dict[str, str]:
    """Return the versions of the packages that compute."""
    return {name: version(name) for name in PACKAGES}


def code() -> dict[str, str]:
    """Return {source file: digest of its `meaning`} for the code that computes."""
    files = sorted(file for folder in CODE for file in (ROOT / folder).rglob("*.py"))
    return {
        file.relative_to(ROOT).as_posix(): meaning(file.read_text())
        for file in files
        if PAGE not in file.parents
    }


def meaning(source: str) -> str:
    """Return a digest that comments, docstrings and layout do not change."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _is_text(line)]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


def _is_text(line: ast.stmt) -> bool:
    return (
        isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and isinstance(line.value.value, str)
    )


def _differing(before: Mapping[str, Any], now: Mapping[str, Any], values: bool = True) -> str:
    keys = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
    named = [
        f"{key} was {before.get(key)}, is {now.get(key)}" if values else key for key in keys[:3]
    ]
    more = f", and {len(keys) - 3} more" if len(keys) > 3 else ""
    return ", ".join(named) + more
