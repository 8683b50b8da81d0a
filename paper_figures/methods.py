"""Methods of the field, simulated at eight ranks, beside what their own papers state."""

import sys
from pathlib import Path

import pandas as pd
import yaml

from paci import Cost
from paci.method import Method
from paci.simulation.traits import traits_of
from paper_figures.command import main
from paper_figures.published import published

EXPERIMENT = None
RANKS = 8
WINDOW = 32  # micro-batches of an update, of methods that flush; the others have their own
COST = Cost(forward=1, backward=2)  # of a rank, which shares it out among its stages
ROOT = Path(__file__).resolve().parents[1]
# A wheel holds conf/ in the package `experiments`.
CONF = next(path for path in (ROOT / "experiments/conf", ROOT / "conf") if path.is_dir()) / "method"


def table() -> pd.DataFrame:
    """A row a method: bubble (idle over working time), the largest drift and staleness (updates),
    copies of the weights beyond one, activations in those of 1F1B; each measured and as stated."""
    rows = []
    for stated in published("methods").itertuples():
        method = configured(stated.method).with_window(WINDOW)
        it = traits_of(method, RANKS, COST)
        rows.append(
            {
                "method": stated.method,
                "a or m": method.accumulation,
                "bubble": it.bubble,
                "bubble (stated)": stated.bubble,
                "drift": it.drift,
                "drift (stated)": stated.drift,
                "staleness": it.staleness,
                "staleness (stated)": stated.staleness,
                "copies": it.copies,
                "copies (stated)": stated.copies,
                "activations": it.activations,
                "activations (stated)": stated.activations,
                "synchronisation": "flush" if method.flushes else "none",
            }
        )
    return pd.DataFrame(rows)


def note(_: pd.DataFrame) -> str:
    stated = published("methods").groupby("source", sort=False)["method"].agg(", ".join)
    sources = (f"- {methods}: {source}" for source, methods in stated.items())
    return (
        f"Simulated with {RANKS} ranks; forward, input gradient and weight gradient take one unit "
        "of time each, messages none. What is stated, and where:\n\n" + "\n".join(sources)
    )


def configured(name: str) -> Method:
    """Return a method of conf/method/."""
    config = yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))
    return Method.read(config.get("method", config))


if __name__ == "__main__":
    sys.exit(main(["methods"]))
