"""Bubble rates of the zero-bubble paper's schedules, published and simulated.

Qi et al. (ICLR 2024) state the idle share of a window for twelve configurations, computed from the
times that they profiled. `paci` simulates the same schedules at the same times: a check of the
simulator that shares nothing with it.
"""

import sys

import pandas as pd

from analysis.extrapolation.zero_bubble import PUBLISHED, compared
from paper_figures.command import main
from paper_figures.published import published

NEEDS = None


def table() -> pd.DataFrame:
    """Return idle share of a window: a row a configuration, two columns a schedule."""
    rates = compared(published("zero_bubble"), published("zero_bubble_times"))
    rates = rates[rates["schedule"].isin(PUBLISHED)]
    rates = rates.pivot(
        index=["model", "N", "m"],
        columns="schedule",
        values=["published bubble", "simulated bubble"],
    )
    made = pd.DataFrame(
        {
            name: rates[source, schedule]
            for schedule in PUBLISHED
            for name, source in (
                (schedule, "published bubble"),
                (f"{schedule} sim.", "simulated bubble"),
            )
        }
    )
    return made.reset_index().sort_values(["N", "m", "model"], ignore_index=True)


def differences(made: pd.DataFrame) -> pd.DataFrame:
    """Return simulated less published: a row a configuration, a column a schedule."""
    return pd.DataFrame({name: made[f"{name} sim."] - made[name] for name in PUBLISHED})


def note(made: pd.DataFrame) -> str:
    most = differences(made).abs().max()
    return (
        "Idle share of a window, published (Qi et al., ICLR 2024, Table 5) and simulated (sim.) at "
        "the same profiled times. Largest difference: "
        + ", ".join(f"{name} {most[name]:.4f}" for name in PUBLISHED)
        + ". ZB-1p and ZB-2p run our greedy order, planned for these times. Theirs is the better "
        "of a search's and a solver's; the difference shows where memory leaves room and windows "
        "are short. A stage of 1F1B-I is taken to be one layer that sends whole messages."
    )


if __name__ == "__main__":
    sys.exit(main(["zero_bubble"]))
