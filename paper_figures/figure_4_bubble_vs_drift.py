"""Figure 4: bubble fraction against the bound of the drift, as the micro-batches of an update grow,
for flush, interleaved flush and PACI."""

import sys

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from analysis.steady_state import seconds_per_update
from paci import Cost
from paci.schedules import build
from paci.schedules.theory import bubble_rate, drift_bound
from paper_figures import style
from paper_figures.command import main

NEEDS = None
RANKS = 8
VIRTUAL = 2  # stages of a rank, of the interleaved flush
COUNTS = (8, 16, 24, 32, 64)  # multiples of the ranks, which the interleaved flush wants
FORWARD, BACKWARD = 1.0, 2.0  # of a rank, which shares it out among its stages
METHODS = {
    "1f1b-flush": ("1f1b-flush", 1, style.FLUSH, "s"),
    "interleaved-1f1b, V = 2": ("interleaved-1f1b", VIRTUAL, "#E69F00", "D"),
    "paci": ("paci", 1, "#0072B2", "o"),
}


def table() -> pd.DataFrame:
    """Return bubble (idle share of all time), by the closed form and simulated, and the bound of
    the drift at the first stage: a row for each method and number of micro-batches."""
    rows = []
    for name, (schedule, virtual, _, _) in METHODS.items():
        for m in (1, 2, 4, *COUNTS) if schedule == "paci" else COUNTS:
            idle = bubble_rate(schedule, RANKS, m, virtual)
            rows.append(
                {
                    "method": name,
                    "m or a": m,
                    "drift bound": drift_bound(RANKS, 0, m) if schedule == "paci" else 0,
                    "bubble": idle / (1 + idle),
                    "simulated": _simulated(schedule, virtual, m),
                }
            )
    return pd.DataFrame(rows)


def note(_: pd.DataFrame) -> str:
    return (
        f"{RANKS} ranks with equal stages; a backward takes twice a forward, messages no time. "
        "Bubble: idle share of the time from one update to the next, in closed form: 1 - m/(m+N-1) "
        "for flush, 1 - mV/(mV+N-1) for interleaved flush, 0 for PACI. Simulated: the same share "
        "when the rule itself runs. Drift bound: ⌈(N-1)/a⌉."
    )


def draw() -> Figure:
    made = table()
    fig, (ax,) = style.panels(1, height=2.6)
    for name, (_, _, colour, marker) in METHODS.items():
        mine = made[made["method"] == name]
        ax.plot(mine["drift bound"], mine["bubble"], color=colour, linewidth=0.8)
        ax.plot(
            mine["drift bound"], mine["simulated"], marker, color=colour, markersize=4,
            label=name, clip_on=False, zorder=3,
        )  # fmt: skip
    _name_ends(ax, made)
    ax.set_xlabel("bound of the drift (versions)")
    ax.set_ylabel("bubble (idle share)")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(bottom=0)
    ax.set_xlim(left=-0.3)
    ax.legend(loc="upper right")
    style.caption(
        fig,
        f"{RANKS} ranks, m and a from {COUNTS[0]} (PACI: 1) to {COUNTS[-1]}. Lines: closed forms; "
        "marks: simulated.",
    )
    return fig


def _simulated(schedule: str, virtual: int, m: int) -> float:
    """Return the idle share of a rank from one update to the next."""
    cost = Cost(forward=FORWARD / virtual, backward=BACKWARD / virtual)
    options = {"stages_per_rank": virtual} if virtual > 1 else {}
    rule = build(schedule, RANKS * virtual, m, **options)
    return 1 - m * (FORWARD + BACKWARD) / seconds_per_update(rule, cost)


def _name_ends(ax, made: pd.DataFrame) -> None:
    """Write the number of micro-batches beside the first and last point of each method."""
    for name, mine in made.groupby("method", sort=False):
        is_paci = name == "paci"
        for it in (mine.iloc[0], mine.iloc[-1]):
            ax.annotate(
                f"{'a' if is_paci else 'm'} = {it['m or a']}", (it["drift bound"], it["bubble"]),
                (0, 5) if is_paci else (6, -2), textcoords="offset points", fontsize=6.5,
                ha="center" if is_paci else "left", color=style.GREY,
            )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(["figure_4_bubble_vs_drift"]))
