"""Figure 2: schedules of four stages as they run, 1F1B with a flush and PACI with a = 1 and
a = 4."""

import sys

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from paci import Cost, Simulation, simulate
from paci.actions import FORWARD
from paper_figures import style
from paper_figures.command import main
from paper_figures.format import COLUMN, current

NEEDS = None
STAGES = 4
WINDOW = 4  # micro-batches of an update, but with a = 1
MICROBATCHES = 4 * WINDOW  # simulated: more than are shown
SHOWN = 42  # units of time: two windows of the flush
COST = Cost(forward=1, backward=2)
FORWARD_FILL = "#ececec"
BY_DRIFT = ["#c6dbef", "#6baed6", "#2b7bba", "#08306b"]  # one hue, so that grey print tells them


def draw() -> Figure:
    """Draw a chart for each schedule, a line for each stage; numbers are micro-batches."""
    charts = [
        (f"1f1b-flush, m = {WINDOW}", "1f1b-flush", WINDOW),
        ("paci, a = 1", "paci", 1),
        (f"paci, a = {WINDOW}", "paci", WINDOW),
    ]
    width, until = (COLUMN, SHOWN / 2) if current().is_narrow else (2 * COLUMN, SHOWN)
    fig, axes = style.grid(len(charts), 1, 1.13, width, sharex=True)
    for ax, (title, schedule, accumulation) in zip(axes.flat, charts, strict=True):
        run = simulate(schedule, STAGES, MICROBATCHES, accumulation, cost=COST)
        _draw(ax, run, until)
        ax.set_title(f"{title}: {done(run, until)} micro-batches done", loc="left")
    axes[-1, 0].set_xlabel("time (forwards of a micro-batch)")
    fig.legend(
        [
            Patch(facecolor=FORWARD_FILL),
            *(Patch(facecolor=colour) for colour in BY_DRIFT),
            Patch(facecolor=style.INK),
        ],
        ["forward", "backward, Δ = 0", "Δ = 1", "Δ = 2", "Δ = 3", "update"],
        loc="outside upper center",
        ncols=style.legend_columns(6),
        handlelength=1.2,
        columnspacing=1.2,
    )
    style.caption(
        fig,
        "Simulated; a backward takes twice a forward, messages and updates no time. Δ: updates of "
        "the stage between a micro-batch's forward and its backward.",
    )
    return fig


def done(run: Simulation, until: float = SHOWN) -> int:
    """Return how many micro-batches are back at the first stage by the time `until`."""
    return sum(
        step.stage == 0 and step.kind != FORWARD and step.end <= until for step in run.actions
    )


def _draw(ax: Axes, run: Simulation, until: float) -> None:
    seen = {}
    for step in run.actions:
        is_forward = step.kind == FORWARD
        if is_forward:
            seen[step.stage, step.microbatch] = step.version
        if step.end > until:
            continue
        drift = step.version - seen[step.stage, step.microbatch]
        fill = FORWARD_FILL if is_forward else BY_DRIFT[drift]
        length = step.end - step.start
        cell = Rectangle(
            (step.start, step.stage - 0.5), length, 1, facecolor=fill, edgecolor="white"
        )
        ax.add_patch(cell)
        ax.text(
            step.start + length / 2,
            step.stage,
            f"{step.microbatch}" + (f" Δ{drift}" if drift else ""),
            size=5.5,
            ha="center",
            va="center_baseline",
            color="white" if not is_forward and drift >= 2 else style.INK,
        )
        if run.timeline.updates(step):
            ax.plot([step.end] * 2, [step.stage - 0.5, step.stage + 0.5], color=style.INK, lw=1.6)
    ax.set_xlim(0, until)
    ax.set_ylim(STAGES - 0.5, -0.5)
    ax.set_yticks(range(STAGES), [f"stage {stage}" for stage in range(STAGES)])
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False)
    ax.spines["left"].set_visible(False)


if __name__ == "__main__":
    sys.exit(main(["figure_2_schedule"]))
