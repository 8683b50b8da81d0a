"""PACI's speed-up over flush at each perplexity threshold, paper and reproduction."""

import sys
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import CannotAnswer, Cell, Frames, by_setting, cells
from analysis.counterparts import published_batch
from analysis.q2.speedup import BEST, EQUAL, SpeedUp, speed_ups
from analysis.q2.thresholds import timed
from paper_figures import style
from paper_figures.command import main
from paper_figures.published import published

EXPERIMENT = "q2"
LOWEST = "lowest"
IN_ALL = "in all"
PAPERS = "speed-up over the best flush"
NOTHING = "no completed paci run of q2 has a completed 1f1b-flush run beside it"
PAPERS_MARKERS = ("s", "^", "v", "P")


def table(frames: Frames, thresholds: Sequence[float] | None = None) -> pd.DataFrame:
    """The paper's rows, then per PACI variant and threshold the speed-ups over flush: means over
    seeds ± their std, each seed with its own flush."""
    reference = published(EXPERIMENT)
    made = timed(cells(frames, EXPERIMENT))[0]
    rows = []
    for setting, group in by_setting(made).items():
        stands_for = published_batch(setting.batch, made, setting.scale, reference)
        place = setting._asdict() | {"paper's batch": stands_for}
        for step in _steps(speed_ups(group, thresholds)):
            rows.append(place | _row(step))
    if not rows:
        raise CannotAnswer(NOTHING)
    return pd.DataFrame([*_papers_rows(reference), *rows], columns=list(rows[0]))


def note(made: pd.DataFrame) -> str:
    return (
        "Flush's time over PACI's, paired by seed: mean ± one standard deviation over seeds. The "
        "best flush is the one with the least time to that perplexity, of all micro-batch counts. "
        "Lowest: the lowest perplexity that PACI and every flush reach. Perplexities of different "
        "data do not compare; of the paper's batches, the one of the same rank by size is named."
    )


def draw(frames: Frames, thresholds: Sequence[float] | None = None) -> Figure:
    made, left_out = timed(cells(frames, EXPERIMENT))
    settings = {
        setting: steps
        for setting, group in by_setting(made).items()
        if (steps := _steps(speed_ups(group, thresholds)))
    }
    if not settings:
        raise CannotAnswer(NOTHING)
    fig, axes = style.panels(1 + len(settings), height=2.8)
    _draw_papers(axes[0])
    for ax, (setting, steps) in zip(axes[1:], settings.items(), strict=True):
        _draw_ours(ax, steps)
        seeds = [len(it.by_seed) for step in steps for it in step.values()]
        ax.set_title(style.setting_title(setting, seeds))
        ax.set_ylabel(f"speed-up\n{style.clock_name(setting.clock)}")
    top = 0.1 + max(ax.get_ylim()[1] for ax in axes)
    low = min(0.95, *(ax.get_ylim()[0] for ax in axes))
    for ax in axes:
        ax.set_ylim(low, top)
        ax.axhline(1, color=style.INK, linewidth=0.7)
        ax.grid(axis="x", visible=False)
        ax.set_xlabel("validation perplexity")
    shown = {step[BEST].paci.variant for steps in settings.values() for step in steps}
    style.legend(fig, list(shown))
    style.footnote(
        fig,
        "Filled: over the best flush; open: over flush of as many micro-batches (m = a). Mean and "
        "± 1 std over seeds; no point where a seed does not get there. Last: the lowest perplexity "
        f"that PACI and every flush reach. {style.byte_note(made)}".rstrip(),
        style.sentence(left_out),
        style.partial_note(frames.of(EXPERIMENT).partial),
    )
    return fig


def _steps(found) -> list[dict[str, SpeedUp]]:
    """The speed-ups of each PACI variant at each perplexity, by what they are over."""
    steps: dict[tuple, dict[str, SpeedUp]] = {}
    for it in found:
        steps.setdefault((it.paci, it.perplexity, it.lowest), {})[it.against] = it
    return list(steps.values())


def _row(step: dict[str, SpeedUp]) -> dict:
    best, equal = step[BEST], step.get(EQUAL)
    row = {
        "variant": best.paci.variant.label,
        "perplexity": f"{LOWEST}, {best.perplexity:.4g}"
        if best.lowest
        else f"≤{best.perplexity:g}",
        "over the best flush": best.why or best.mean_and_std[0],
        "over the best flush ±": None if best.why else best.mean_and_std[1],
        "which is": best.flush.variant.label,
    }
    over_equal = "no such run" if equal is None else equal.why
    return row | {
        "over flush, m = a": over_equal or equal.mean_and_std[0],
        "over flush, m = a ±": None if over_equal else equal.mean_and_std[1],
        "seeds": len(best.by_seed),
    }


def _papers_rows(reference: pd.DataFrame) -> list[dict]:
    rows = []
    for it in reference[reference["claim"].str.startswith("speed-up")].itertuples():
        equal = "equal" in it.claim
        where = IN_ALL if pd.isna(it.perplexity) else f"≤{it.perplexity:g}"
        rows.append(
            {
                "scale": "paper's own",
                "clock": "wall",
                "batch": None if pd.isna(it.batch) else int(it.batch),
                "variant": "paci",
                "perplexity": f"{where} (their code's figure)" if "figure" in it.claim else where,
                "over the best flush": None if equal else f"{it.value:.2f}",
                "over flush, m = a": f"up to {it.value:.2f}" if equal else None,
            }
        )
    return rows


def _draw_papers(ax: Axes) -> None:
    """What the paper prints: by threshold, and in all."""
    reference = published(EXPERIMENT)
    best = reference[reference["claim"] == PAPERS]
    places = sorted(best["perplexity"].dropna().unique(), reverse=True)
    for marker, (batch, rows) in zip(PAPERS_MARKERS, best.groupby("batch"), strict=False):
        at = rows["perplexity"].map(lambda x: len(places) if pd.isna(x) else places.index(x))
        order = at.argsort()
        at, values = at.iloc[order], rows["value"].iloc[order]
        ax.plot(at, values, color=style.GREY, marker=marker, markersize=4)
        end = (at.iloc[-1], values.iloc[-1])
        ax.annotate(
            f"batch {batch:g}", end, (0, 6), textcoords="offset points", ha="right", fontsize=7.5
        )
    ax.set_xticks(range(len(places) + 1), [*(f"≤{place:g}" for place in places), IN_ALL])
    ax.set_title("the paper: GPT-2 Medium, 8 GPUs")
    ax.set_ylabel("speed-up\nwall clock")


def _draw_ours(ax: Axes, steps: list[dict[str, SpeedUp]]) -> None:
    by_cell: dict[Cell, list[dict[str, SpeedUp]]] = {}
    for step in steps:
        by_cell.setdefault(step[BEST].paci, []).append(step)
    for place, (cell, mine) in enumerate(by_cell.items()):
        offset = (place - (len(by_cell) - 1) / 2) * 0.12
        for against, filled in ((EQUAL, False), (BEST, True)):
            _points(ax, cell, [step.get(against) for step in mine], offset, filled)
    labels = [f"≤{step[BEST].perplexity:g}" for step in mine[:-1]]
    ax.set_xticks(range(len(labels) + 1), [*labels, LOWEST])
    ax.set_xlim(-0.5, len(labels) + 0.5)


def _points(
    ax: Axes, cell: Cell, found: Sequence[SpeedUp | None], offset: float, filled: bool
) -> None:
    values = [it.mean_and_std if it else (np.nan, np.nan) for it in found]
    means, stds = zip(*values, strict=True)
    line = style.line(cell.variant)
    ax.errorbar(
        np.arange(len(found)) + offset,
        means,
        yerr=stds,
        color=line["color"],
        linestyle=line["linestyle"] if filled else "none",
        marker="o",
        markersize=3.5,
        markerfacecolor=line["color"] if filled else "white",
        elinewidth=0.8,
    )


if __name__ == "__main__":
    sys.exit(main(["speedup"]))
