"""PACI's distance from flush, split into delay and inconsistency by a control (ours, not the
paper's): PACI with stashed weights, as late as PACI but consistent."""

import sys

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis import CannotAnswer, Frames, Setting, by_setting, planned
from analysis.q1.control import PARTS, Split, flush_of, splits
from paper_figures import style
from paper_figures.command import main

NEEDS = "training"
COLOURS = {"delay": "#56B4E9", "inconsistency": "#E69F00", "distance": style.INK}


def table(frames: Frames) -> pd.DataFrame:
    """Return, per setting and PACI variant, the parts of the gap in final training loss ± their 95
    % intervals over paired seeds, and how far the weights move from forward to backward."""
    rows = []
    for found in _settings(frames).values():
        for it in found:
            row: dict[str, object] = it.live.setting.columns | {
                "variant": it.live.variant.label,
                "seeds": len(it.by_seed),
                "unit": f"nats per {it.live.token}",
            }
            for part in PARTS:
                row[part], row[f"{part} ±"] = it.part(part)
            rows.append(row | {"movement of stage 0 (%)": 100 * it.movement})
    return pd.DataFrame(rows)


def note(made: pd.DataFrame) -> str:
    return (
        "Final training loss: delay is PACI with stashed weights less flush, inconsistency PACI "
        "less PACI with stashed weights, distance their sum; ± half of the 95% interval of the "
        "mean over paired seeds (Student's t). Movement: of PACI's weights between a micro-batch's "
        "forward and its backward, relative to their norm, mean over the samples of the run."
    )


def draw(frames: Frames) -> Figure:
    settings = _settings(frames)
    most = max(len(found) for found in settings.values())
    fig, axes = style.panels(len(settings), height=1.4 + 0.6 * most)
    for ax, (setting, found) in zip(axes, settings.items(), strict=True):
        for row, it in enumerate(found):
            for place, part in enumerate(PARTS):
                mean, doubt = it.part(part)
                y = row + (place - 1) * 0.26
                ax.barh(y, mean, 0.22, color=COLOURS[part], label=part if row == 0 else None)
                ax.errorbar(mean, y, xerr=doubt, color=style.GREY, capsize=2, elinewidth=1)
        labels = [f"{it.live.variant.label}\nweights move\n{_percent(it)}" for it in found]
        ax.set_yticks(range(len(found)), labels)
        ax.set_ylim(len(found) - 0.5, -0.5)
        ax.axvline(0, color=style.INK, linewidth=0.7)
        ax.grid(axis="y", visible=False)
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.set_xlabel(f"final loss above flush's (nats per {found[0].live.token})")
        ax.set_title(style.setting_title(setting, [len(it.by_seed) for it in found]))
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper center", ncols=len(PARTS), handlelength=1.2)
    style.caption(
        fig,
        "Delay: stashed weights less flush; inconsistency: live less stashed weights; distance: "
        "their sum. Mean over paired seeds and its 95% interval (Student's t). Weights move: "
        "stage 0's, from forward to backward, relative to their norm.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _settings(frames: Frames) -> dict[Setting, list[Split]]:
    found = {
        setting: list(splits(group, flush_of(group)))
        for setting, group in by_setting(planned(frames)).items()
    }
    found = {setting: these for setting, these in found.items() if these}
    if not found:
        raise CannotAnswer(
            "no completed paci run has a flush and a paci of stashed weights beside it"
        )
    return found


def _percent(it: Split) -> str:
    return "–" if np.isnan(it.movement) else f"{100 * it.movement:.2g} %"


if __name__ == "__main__":
    sys.exit(main(["delay_or_inconsistency"]))
