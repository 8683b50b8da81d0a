"""Table 6: time of training to each perplexity, and speed-ups over flush."""

import sys

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import CannotAnswer, Cell, Frames, Setting, by_setting
from analysis.counterparts import papers_batch, papers_row
from analysis.q2.speedup import Contest, contests, missing, ratio
from analysis.q2.thresholds import PAPERS, PAPERS_WAY, Thresholds
from analysis.q2.timing import Timings
from analysis.statistics import mean_and_std
from paper_figures import style
from paper_figures.command import main
from paper_figures.published import published

NEEDS = "training"
NOTHING = "no perplexity is reached by every completed run of a setting: give some, --thresholds"


def table(frames: Frames, thresholds: Thresholds = PAPERS_WAY) -> pd.DataFrame:
    """Return, per batch, threshold and method, time ± std over seeds, and flush's time over it: at
    the same m (match) and of the flush that reaches the threshold first (best)."""
    timings = Timings.of_paper(frames, thresholds)
    reference, rows = published("table_6"), []
    for setting, group, steps in _settings(timings):
        found = timings.everything(group)
        flushes = [it for it in found if it.cell.variant.is_flush]
        unit, name = style.time_unit(max(it.total.mean() for it in found))
        batch = papers_batch(group[0], timings.made, reference)
        for place, step in enumerate(steps):
            papers_step = PAPERS[place] if thresholds.given is None else step
            best = min(flushes, key=lambda it: it.time_to(step).fillna(np.inf).mean(), default=None)
            for it in found:
                match = next((flush for flush in flushes if flush.m == it.m), None)
                time, std = mean_and_std(it.time_to(step) / unit)
                theirs = papers_row(reference, batch=batch, method=it.label, perplexity=papers_step)
                row = setting.columns | {
                    "perplexity": f"≤{step:g}",
                    "variant": it.label,
                    "time is": it.basis,
                    "unit": name,
                    "time": missing(it, step) or time,
                    "time ±": None if missing(it, step) else std,
                }
                for column, flush in (("match", match), ("best", best)):
                    gain, spread = mean_and_std(ratio(flush, it, step))
                    is_flush = it.cell.variant.is_flush  # over itself: a pace, without a spread
                    row |= {column: gain, f"{column} ±": None if is_flush else spread}
                rows.append(
                    row
                    | {
                        "paper's": f"≤{papers_step:g}" if theirs else None,
                        "paper's hours": theirs.get("hours"),
                        "paper's hours ±": theirs.get("hours_std"),
                        "paper's match": theirs.get("match"),
                        "paper's best": theirs.get("best"),
                    }
                )
    return pd.DataFrame(rows)


def note(made: pd.DataFrame) -> str:
    return (
        "Time of training, without evaluations and checkpoints; ± one standard deviation over "
        "seeds, for ratios that of the seeds' ratios. Between two evaluations the perplexity is "
        "taken to be linear in time, as in the paper (--log-linear: its logarithm); nothing is "
        "extrapolated. Match: time of the flush with as many micro-batches over the method's; "
        "best: time of the flush that reaches the perplexity first over the method's. Mapped: from "
        "flush at another m, by steady-state throughput. Unless they are given, the thresholds "
        "below the paper's scale lie as far above the lowest perplexity that all runs of flush and "
        "PACI reach as 18, 17 and 16 lie above the paper's; the paper's numbers stand beside them "
        "in this order."
    )


def draw(frames: Frames, thresholds: Thresholds = PAPERS_WAY) -> Figure:
    timings = Timings.of_paper(frames, thresholds)
    drawn = [
        (setting, found, steps)
        for setting, group, steps in _settings(timings)
        if (found := contests(group, timings))
    ]
    if not drawn:
        raise CannotAnswer("no completed paci run has a completed 1f1b-flush run beside it")
    fig, axes = style.panels(2 + len(drawn), height=2.5)
    looks = style.looks(contest.paci.variant for _, found, _ in drawn for contest in found)
    for ax, batch in zip(axes, (128, 256), strict=False):
        _draw_papers(ax, batch)
    for ax, (setting, found, steps) in zip(axes[2:], drawn, strict=True):
        _draw_ours(ax, found, steps, looks)
        seeds = [contest.paci.cell.seeds for contest in found]
        ax.set_title(style.setting_title(setting, seeds))
        ax.set_ylabel(f"speed-up\n{style.clock_name(setting.clock)}")
    top = 0.1 + max(ax.get_ylim()[1] for ax in axes)
    low = min(0.85, *(ax.get_ylim()[0] for ax in axes))
    for ax in axes:
        ax.set_ylim(low, top)
        ax.axhline(1, color=style.INK, linewidth=0.7)
        ax.grid(axis="x", visible=False)
        ax.set_xlabel("validation perplexity")
    style.legend(fig, looks)
    style.caption(
        fig,
        "Filled: over the flush that reaches the perplexity first; open: over the flush with as "
        "many micro-batches (m = a). Ours: mean and ± 1 std over seeds; a point is missing where "
        "some seed does not reach it. "
        f"{style.byte_note(timings.made)}".rstrip(),
        style.mapped_note([it for _, found, _ in drawn for it in found[0].flushes]),
        style.sentence(timings.left_out),
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


def _settings(timings: Timings) -> list[tuple[Setting, list[Cell], list[float]]]:
    """Return setting, cells and thresholds of each setting that has any."""
    found = [
        (setting, group, steps)
        for setting, group in by_setting(timings.made).items()
        if (steps := timings.thresholds.of(group))
    ]
    if not found:
        raise CannotAnswer(NOTHING)
    return found


def _draw_papers(ax: Axes, batch: int) -> None:
    reference = published("table_6")
    mine = reference[(reference["batch"] == batch) & reference["method"].str.startswith("paci")]
    for method, rows in mine.groupby("method"):
        colour = style.BY_ACCUMULATION[int(method.partition("=")[2])]
        places = np.arange(len(rows))
        ax.plot(places, rows["match"], "o", color=colour, markersize=3.5, markerfacecolor="white")
        ax.plot(places, rows["best"], "o-", color=colour, markersize=3.5)
    steps = sorted(reference["perplexity"].unique(), reverse=True)
    ax.set_xticks(range(len(steps)), [f"≤{step:g}" for step in steps])
    ax.set_xlim(-0.5, len(steps) - 0.5)
    ax.set_title(f"the paper, batch {batch}")
    ax.set_ylabel("speed-up\nwall clock")


def _draw_ours(
    ax: Axes, found: list[Contest], steps: list[float], looks: dict[str, style.Look]
) -> None:
    for place, contest in enumerate(found):
        offset = (place - (len(found) - 1) / 2) * 0.12
        for filled in (False, True):
            values = [
                mean_and_std(
                    ratio(contest.first_to(step) if filled else contest.match, contest.paci, step)
                )
                for step in steps
            ]
            means, stds = zip(*values, strict=True)
            line = looks[contest.paci.label]
            ax.errorbar(
                np.arange(len(steps)) + offset,
                means,
                yerr=stds,
                color=line["color"],
                linestyle=line["linestyle"] if filled else "none",
                marker="o",
                markersize=3.5,
                markerfacecolor=line["color"] if filled else "white",
                elinewidth=0.8,
            )
    ax.set_xticks(range(len(steps)), [f"≤{step:g}" for step in steps])
    ax.set_xlim(-0.5, len(steps) - 0.5)


if __name__ == "__main__":
    sys.exit(main(["table_6_time_to_perplexity"]))
