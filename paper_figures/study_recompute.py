"""Recomputation of activations with live and with stashed weights: loss, memory and time."""

import sys

import pandas as pd
from matplotlib.figure import Figure

from analysis import Frames
from analysis.study import numbers, study
from paper_figures import style
from paper_figures.command import main
from paper_figures.study import bars

NEEDS = "training"


def table(frames: Frames) -> pd.DataFrame:
    rows = pd.DataFrame([numbers(cell) for cell in study(frames, "recompute")])
    return rows.drop(columns=["largest rise", "copied (%)"])


def note(_: pd.DataFrame) -> str:
    return (
        "The backward of a stage runs its forward again, with the weights that the backward sees: "
        "the newest (live), as the paper's appendix describes and does not evaluate, or those of "
        "the forward (stashed), which gives the same bits as no recomputation. Time is that of an "
        "update, on the clock named."
    )


def draw(frames: Frames) -> Figure:
    made = study(frames, "recompute")
    fig = bars(
        made,
        table(frames),
        {
            "final loss": f"final training loss (nats per {made[0].token})",
            "activations (MiB)": "activations, fullest stage (MiB)",
            "weight copies (MiB)": "copies of weights, fullest stage (MiB)",
            "time": "time of an update",
        },
    )
    style.caption(
        fig,
        f"Mean and ± 1 std over seeds. Time on the clock {made[0].clock!r}.",
        style.partial_note(frames.of(NEEDS).partial),
    )
    return fig


if __name__ == "__main__":
    sys.exit(main(["study_recompute"]))
