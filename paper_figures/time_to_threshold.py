"""Time of training to each perplexity threshold, of every method."""

import sys
from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import CannotAnswer, Cell, Frames, Setting, by_setting, cells
from analysis.q2.thresholds import derived_thresholds, timed, times_to
from analysis.statistics import mean_and_std
from paper_figures import style
from paper_figures.command import main
from paper_figures.published import published

EXPERIMENT = "q2"
NOTHING = (
    "after its first evaluation, no perplexity is passed by every completed run of a setting; give "
    "some with --thresholds"
)


def table(frames: Frames, thresholds: Sequence[float] | None = None) -> pd.DataFrame:
    """The paper's rows, then per variant and threshold: mean time over seeds ± their std, or in
    how many it is reached."""
    rows = _papers_rows()
    for _, group, steps in _settings(frames, thresholds)[0]:
        unit, name = _unit(group, steps)
        for cell, step in product(group, steps):
            seconds = times_to(cell, step)
            reached = int(np.isfinite(seconds).sum())
            measured = reached == len(seconds)
            mean, std = mean_and_std(seconds / unit) if measured else (_missing(seconds), None)
            rows.append(
                cell.setting._asdict()
                | {
                    "variant": cell.variant.label,
                    "perplexity": f"≤{step:g}",
                    "unit": name,
                    "time": mean,
                    "time ±": std,
                    "seeds": f"{reached} of {cell.seeds}",
                }
            )
    return pd.DataFrame(rows)


def note(made: pd.DataFrame) -> str:
    return (
        "Seconds of training, evaluation and checkpoints apart; ± one standard deviation over "
        "seeds. Between two evaluations the logarithm of the perplexity is taken to be linear in "
        "time, beyond them nothing is assumed. Thresholds, where none are given: round numbers "
        "below the first evaluation of the run that is then lowest, down to the lowest perplexity "
        "that every completed run reaches. Seeds: those that reach it, of all. Perplexities of "
        "different data, and times of different machines, do not compare; ratios are in speedup."
    )


def draw(frames: Frames, thresholds: Sequence[float] | None = None) -> Figure:
    settings, left_out = _settings(frames, thresholds)
    fig, axes = style.panels(len(settings), height=2.8)
    for ax, (setting, group, steps) in zip(axes, settings, strict=True):
        unit, name = _unit(group, steps)
        for place, cell in enumerate(group):
            _line(ax, cell, steps, unit, offset=(place - (len(group) - 1) / 2) * 0.09)
        ax.set_xticks(range(len(steps)), [f"≤{step:g}" for step in steps])
        ax.grid(axis="x", visible=False)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("validation perplexity")
        ax.set_ylabel(style.time_label(setting.clock, name), fontsize=7)
        ax.set_title(style.setting_title(setting, [cell.seeds for cell in group]))
    made = [cell for _, group, _ in settings for cell in group]
    style.legend(fig, [cell.variant for cell in made])
    style.footnote(
        fig,
        "Mean and ± 1 std over seeds; no point where a seed does not get there. "
        f"{style.byte_note(made)}".rstrip(),
        style.sentence(left_out),
        style.partial_note(frames.of(EXPERIMENT).partial),
    )
    return fig


def _settings(
    frames: Frames, thresholds: Sequence[float] | None
) -> tuple[list[tuple[Setting, list[Cell], Sequence[float]]], str]:
    made, left_out = timed(cells(frames, EXPERIMENT))
    found = []
    for setting, group in by_setting(made).items():
        steps = derived_thresholds(group) if thresholds is None else thresholds
        if steps:
            found.append((setting, group, steps))
    if not found:
        raise CannotAnswer(NOTHING)
    return found, left_out


def _unit(group: list[Cell], steps: Sequence[float]) -> tuple[float, str]:
    """The unit of a setting's times."""
    times = (time for cell, step in product(group, steps) for time in times_to(cell, step))
    return style.time_unit(max(filter(np.isfinite, times), default=0))


def _papers_rows() -> list[dict]:
    reference = published(EXPERIMENT)
    return [
        {
            "scale": "paper's own",
            "clock": "wall",
            "batch": int(it.batch),
            "variant": it.variant,
            "perplexity": f"{it.perplexity:g} (read off a figure)",
            "unit": it.unit,
            "time": it.value,
        }
        for it in reference[reference["claim"] == "time to perplexity"].itertuples()
    ]


def _missing(seconds: pd.Series) -> str:
    return "not reached" if np.isinf(seconds).any() else "before the first evaluation"


def _line(ax: Axes, cell: Cell, steps: Sequence[float], unit: float, offset: float) -> None:
    """Slightly beside the threshold, so that methods do not hide each other."""
    times = [times_to(cell, step) / unit for step in steps]
    spreads = [mean_and_std(time.where(np.isfinite(time))) for time in times]
    means, stds = zip(*spreads, strict=True)
    ax.errorbar(
        np.arange(len(steps)) + offset,
        means,
        yerr=stds,
        **style.line(cell.variant),
        marker="o",
        markersize=3,
        elinewidth=0.8,
    )


if __name__ == "__main__":
    sys.exit(main(["time_to_threshold"]))
