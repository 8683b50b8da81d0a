"""Tables 1 and 5: methods by memory, bubble and inconsistency, as the paper ranks them, as their
own papers state them, and simulated at eight ranks."""

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from paci import Cost
from paci.method import Method
from paci.traits import traits_of
from paper_figures.command import main
from paper_figures.published import published

NEEDS = None
RANKS = 8
WINDOW = 32  # micro-batches of an update, of methods that flush; the others have their own
COST = Cost(forward=1, backward=2)  # of a rank, which shares it out among its stages
ROOT = Path(__file__).resolve().parents[1]
# A wheel holds conf/ in the package `experiments`.
CONF = next(path for path in (ROOT / "experiments/conf", ROOT / "conf") if path.is_dir()) / "method"
TRAITS = ("bubble", "drift", "staleness", "copies", "activations")
RANKED = ("memory", "bubble", "inconsistency")


def table() -> pd.DataFrame:
    """Return a row for each method: the paper's three columns; then bubble (idle over working
    time), the largest drift and staleness (updates), copies of the weights beyond one, and
    activations in those of 1F1B, each simulated and as stated. The paper's methods come first."""
    stated = {it["method"]: it for it in published("methods").to_dict("records")}
    ranked = published("table_1").to_dict("records")
    named = {it["ours"] for it in ranked}
    lines = [(it["method"], it["ours"], it) for it in ranked]
    lines += [(name, name, {}) for name in stated if name not in named]
    return pd.DataFrame(
        {"method": title}
        | {f"{it} (paper)": theirs.get(it) for it in RANKED}
        | _simulated(ours, stated.get(ours, {}))
        for title, ours, theirs in lines
    )


def note(_: pd.DataFrame) -> str:
    stated = published("methods").groupby("source", sort=False)["method"].agg(", ".join)
    sources = (f"- {methods}: {source}" for source, methods in stated.items())
    return (
        f"Simulated with {RANKS} ranks; forward, input gradient and weight gradient take one unit "
        "of time each, messages none. "
        "What is stated, and where:\n\n" + "\n".join(sources)
    )


def _simulated(name: str, stated: dict[str, Any]) -> dict[str, Any]:
    """Return the traits of a method, as simulated if conf/method/ has it, and as stated."""
    if not (CONF / f"{name}.yaml").exists():
        return {"ours": "not implemented"} | {f"{it} (stated)": stated.get(it) for it in TRAITS}
    method = configured(name).with_window(WINDOW)
    found = traits_of(method, RANKS, COST)
    row: dict[str, Any] = {"ours": name, "a or m": method.accumulation}
    for trait in TRAITS:
        row |= {trait: getattr(found, trait), f"{trait} (stated)": stated.get(trait)}
    return row | {"synchronisation": "flush" if method.flushes else "none"}


def configured(name: str) -> Method:
    """Return a method of conf/method/."""
    config = yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))
    return Method.read(config.get("method", config))


if __name__ == "__main__":
    sys.exit(main(["table_1_methods"]))
