"""The gap to the flush and the share of updates lost against the length of training, with a power
law extrapolated to the paper's 190,000 updates."""

import sys
from collections import defaultdict

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis import CannotAnswer, Frames, Variant
from analysis.horizon import PAPER, by_length, gap, lost, power_law
from analysis.statistics import mean_and_interval
from analysis.studies import study
from analysis.tuning import Pair, pairs, rate
from paper_figures import style
from paper_figures.command import main

NEEDS = "training"
COMPARED = {"best against best": False, "equal against equal": True}
MEASURED = {"gap": gap, "1 - E": lost}

Curves = dict[Variant, list[tuple[int, Pair]]]
"""Of each method, its pairs with flush by their updates."""


def table(frames: Frames) -> pd.DataFrame:
    rows = []
    for compared, curves in _curves(frames).items():
        for variant, found in curves.items():
            for updates, pair in found:
                row: dict[str, object] = {
                    "rates": compared,
                    "variant": variant.label,
                    "updates": f"{updates:,}",
                }
                row |= {"lr": rate(pair.method), "lr of flush": rate(pair.flush)}
                for name, of in MEASURED.items():
                    row[name], row[f"{name} ±"] = mean_and_interval(of(pair))
                rows.append(row)
            law: dict[str, object] = {
                "rates": compared,
                "variant": variant.label,
                "updates": f"{PAPER:,}, fitted",
            }
            for name, of in MEASURED.items():
                fit = power_law(by_length([(updates, of(pair)) for updates, pair in found]))
                if fit is not None:
                    low, high = fit.values
                    law |= {name: fit.value, f"{name} from": low, f"{name} to": high}
                    law |= {f"p of {name}": fit.power, f"draws fitted of {name}": fit.fitted}
            if len(law) > 3:
                rows.append(law)
    return pd.DataFrame(rows)


def note(_: pd.DataFrame) -> str:
    return (
        "Gap of the final training loss to flush, nats per token, and share of the updates lost, "
        "1 - E at the end of training, seed for seed, ± half of the 95 % interval. Every length is "
        "a training of its own. Fitted: a power law, c · updates^-p, by least squares in the "
        f"logarithms, at {PAPER:,} updates; its interval, from a bootstrap over seeds, supposes "
        "that the law goes on so far beyond the lengths measured, and is too narrow for few seeds."
    )


def draw(frames: Frames) -> Figure:
    found = _curves(frames)
    looks = style.looks(variant for curves in found.values() for variant in curves)
    fig, axes = style.panels(2 * len(found), height=2.2)
    places = [(compared, name) for compared in found for name in MEASURED]
    for ax, (compared, name) in zip(axes, places, strict=True):
        for variant, points in found[compared].items():
            look = looks[variant.label]
            measured = by_length([(updates, MEASURED[name](pair)) for updates, pair in points])
            mean = measured.mean(axis=1)
            ax.plot(mean.index, mean.where(mean > 0), **(look | {"marker": "o", "markersize": 3}))
            fit = power_law(measured)
            if fit is not None:
                ends = np.array([mean.index[-1], PAPER])
                line = fit.value * (ends / PAPER) ** -fit.power
                ax.plot(ends, line, color=look["color"], linestyle=style.DOTTED, linewidth=0.8)
                ax.vlines(PAPER, *fit.values, color=look["color"])
        ax.set(xscale="log", yscale="log", xlabel="updates of the training")
        ax.set_ylabel("gap (nats per token)" if name == "gap" else "share of updates lost, 1 - E")
        ax.set_title(compared)
    style.legend(fig, looks)
    style.caption(
        fig,
        f"Mean over seeds; dotted, a power law extrapolated to {PAPER:,} updates, with the 95 % "
        "interval of a bootstrap over seeds.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _curves(frames: Frames) -> dict[str, Curves]:
    """Return the pairs of each way to compare; CannotAnswer if there is none."""
    made = study(frames, "horizon")
    found: dict[str, Curves] = {}
    for compared, equal in COMPARED.items():
        curves: defaultdict[Variant, list[tuple[int, Pair]]] = defaultdict(list)
        for pair in pairs(made, equal):
            curves[pair.method.variant].append((len(pair.method.losses), pair))
        if curves:
            found[compared] = dict(sorted(curves.items()))
    if not found:
        raise CannotAnswer("no method of experiment=horizon is trained beside flush")
    return found


if __name__ == "__main__":
    sys.exit(main(["horizon"]))
