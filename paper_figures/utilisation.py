"""Utilisation beyond the paper: against jitter, late messages and depth, and what slack buys."""

import sys
from fractions import Fraction
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter, ScalarFormatter

from analysis import Frames
from analysis.extrapolation.simulations import broadest, simulations
from paper_figures import style
from paper_figures.command import main
from paper_figures.format import COLUMN, current

NEEDS = "simulations"
AS_PACI = "async-1f1b"  # its times are those of PACI without slack: it updates more often
PACI_COLOURS = ["#08306b", "#2171b5", "#4eb3d3", "#41ab5d", "#a1d99b"]  # the lighter the more slack
MARKERS = "osD^v"
FLUSHES = {"1f1b-flush": style.FLUSH, "zb-2p": "#CC79A7"}
DASHES = ["-", "--", ":"]


def table(frames: Frames) -> pd.DataFrame:
    """Return the points that are drawn, with the price of slack: drift and micro-batches in
    flight."""
    panels = _panels(simulations(frames))
    drawn = pd.concat([panel.points for panel in panels]).drop_duplicates()
    columns = {
        "stages": "N",
        "schedule": "schedule",
        "accumulation": "a or m",
        "slack": "slack",
        "transfer": "transfer",
        "jitter": "jitter",
        "utilization": "utilisation",
        "max_drift": "largest drift",
        "drift_bound": "its bound",
        "peak_in_flight": "in flight",
    }
    ordered = drawn.sort_values(list(columns)[:6])
    return ordered[list(columns)].rename(columns=columns).reset_index(drop=True)


def note(_: pd.DataFrame) -> str:
    return (
        "Simulated; times in forwards of a micro-batch, a backward takes two. Utilisation: busy "
        "share of a rank's time once the pipeline is full. In flight: the most micro-batches at "
        "any stage."
    )


def draw(frames: Frames) -> Figure:
    panels = _panels(simulations(frames))
    shape = (len(panels), 1) if current().is_narrow else (1, len(panels))
    width = COLUMN if current().is_narrow else 2 * COLUMN / len(panels)
    fig, grid = style.grid(*shape, 2.6, width, sharey=True)
    axes = list(grid.flat)
    lines = _lines(pd.concat([panel.points for panel in panels]))
    for ax, panel in zip(axes, panels, strict=True):
        for name, look in lines.items():
            mine = panel.points[panel.points["line"] == name].sort_values(panel.axis)
            ax.plot(mine[panel.axis], mine["utilization"], markersize=3, **look)
        ax.set_title(panel.title)
        ax.set_xlabel(panel.label)
    axes[-1].set_xscale("log", base=2)
    axes[-1].xaxis.set_major_formatter(ScalarFormatter())
    axes[0].set_ylabel("utilisation")
    axes[0].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    fig.legend(
        [Line2D([], [], markersize=3, **look) for look in lines.values()],
        list(lines),
        loc="outside upper center",
        ncols=2 if current().is_narrow else 4,
        columnspacing=1.2,
    )
    style.caption(
        fig,
        "Simulated; times in forwards of a micro-batch, a backward takes two. async-1f1b is timed "
        "like paci with slack 0.",
    )
    return fig


def _lines(points: pd.DataFrame) -> dict[str, dict]:
    """Return the look of each line of `points`: PACI by its slack, least first, then the others."""
    looks = {}
    paci = points[points["schedule"] == "paci"].sort_values("slack_share")
    for count, name in enumerate(paci["line"].unique()):
        colour, marker = PACI_COLOURS[count % 5], MARKERS[count % 5]
        looks[name] = {"color": colour, "marker": marker}
    for schedule, colour in FLUSHES.items():
        mine = points[points["schedule"] == schedule].sort_values("window_share")
        for count, name in enumerate(mine["line"].unique()):
            looks[name] = {"color": colour, "linestyle": DASHES[count % 3]}
    return looks


def _name(point: pd.Series) -> str:
    """Return a line's name: "paci slack N/8", "1f1b-flush m = 4N"."""
    if point["schedule"] in (AS_PACI, "paci"):
        return f"{point['schedule']} slack {_of_stages(point['slack_share'])}"
    return f"{point['schedule']} m = {_of_stages(point['window_share'])}"


def _of_stages(share: float) -> str:
    """Return a share of N as text: 0.125 as "N/8", 4 as "4N"."""
    times, over = Fraction(share).limit_denominator(64).as_integer_ratio()
    if not times:
        return "0"
    return ("" if times == 1 else str(times)) + "N" + ("" if over == 1 else f"/{over}")


class Panel(NamedTuple):
    """The points of one panel: they differ in `axis` and in their method; the title names the
    rest."""

    axis: str
    label: str
    title: str
    points: pd.DataFrame


def _panels(points: pd.DataFrame) -> list[Panel]:
    points = points.assign(line=points.apply(_name, axis=1))
    one_depth = broadest(points, ["transfer", "jitter"])
    settings = points.groupby(["transfer", "jitter"])["stages"].nunique()
    transfer, jitter = settings.idxmax()
    depths = points[(points["transfer"] == transfer) & (points["jitter"] == jitter)]
    depths = depths[depths.groupby("line")["stages"].transform("nunique") > 1]
    N = one_depth["stages"].iloc[0]
    return [
        Panel(
            "jitter",
            "jitter of every duration (±)",
            f"{N} stages, messages at once",
            one_depth[one_depth["transfer"] == 0],
        ),
        Panel(
            "transfer",
            "time of a message (forwards)",
            f"{N} stages, no jitter",
            one_depth[one_depth["jitter"] == 0],
        ),
        Panel("stages", "stages", f"jitter {jitter:g}, messages {transfer:g}", depths),
    ]


if __name__ == "__main__":
    sys.exit(main(["utilisation"]))
