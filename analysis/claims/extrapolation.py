"""The claims of the paper's extrapolation to 28.3 billion parameters, judged on published figures,
as the paper does, and on our simulation. It needs no runs."""

import pandas as pd

from analysis.claims.rows import COLUMNS, row
from analysis.claims.verdicts import FAILS, HOLDS, Verdict
from analysis.extrapolation.zero_bubble import Setting, compared, settings
from paci import simulate

MODEL = "28.3B"
NEAR = 0.05
"""A throughput is near another if it is above, or below by less than this share."""

SOURCES = {"published": "published: 1F1B over m/(m+N-1)", "simulated": "simulated"}


def extrapolation_claims(published: pd.DataFrame, times: pd.DataFrame) -> pd.DataFrame:
    """Return one row per claim, rival and source of the figures; columns as in
    `analysis.claims.COLUMNS`.

    `published` and `times` are reference/zero_bubble.csv and zero_bubble_times.csv.
    """
    times = times[times["model"] == MODEL]
    largest = list(settings(times))
    rates = compared(published, times).pivot(
        index="m", columns="schedule", values=["published", "simulated"]
    )
    place = {
        "batch": "m = " + ", ".join(str(it.microbatches) for it in largest),
        "scale": f"{MODEL}, N = {largest[0].ranks}",
    }
    rows = [
        row(f"{claim} at 28.3 B", f"paci against {rival}", rule(rates[source], rival))
        | place
        | {"clock": clock}
        for source, clock in SOURCES.items()
        for claim, rival, rule in (
            ("throughput above interleaved 1F1B", "1F1B-I", above),
            ("throughput above zero bubble", "ZB-1p", above),
            ("throughput near that of twice the memory", "ZB-2p", near),
        )
    ]
    memory = row("memory of 1F1B at 28.3 B", "paci", as_many_in_flight(largest))
    return pd.DataFrame([*rows, memory | place | {"clock": "simulated"}], columns=COLUMNS)


def above(rates: pd.DataFrame, rival: str) -> Verdict:
    """Judge whether PACI's throughput is above the rival's at every number m of micro-batches."""
    return _at_every_m(rates, rival, 1.0, "above")


def near(rates: pd.DataFrame, rival: str) -> Verdict:
    """Judge whether PACI's throughput is above the rival's, or less than 5 % below, at every m."""
    return _at_every_m(rates, rival, 1 - NEAR, f"above, or less than {NEAR:.0%} below,")


def _at_every_m(rates: pd.DataFrame, rival: str, least: float, what: str) -> Verdict:
    ours, theirs = rates["PACI"], rates[rival]
    measured = " vs ".join(", ".join(f"{rate:.3f}" for rate in side) for side in (ours, theirs))
    measured += " samples per GPU and second"
    short = [str(m) for m in rates.index if ours[m] <= least * theirs[m]]
    if short:
        return Verdict(measured, FAILS, f"not {what} at m = {', '.join(short)}")
    return Verdict(measured, HOLDS, f"{what} at every m")


def as_many_in_flight(configurations: list[Setting]) -> Verdict:
    """Judge whether no stage of PACI ever has more micro-batches in flight than under 1F1B.

    That their activations take as much memory each, and that PACI keeps one copy of the weights,
    is taken from the runs of Q1 and Q3.
    """
    ours, theirs = (_in_flight(configurations, name) for name in ("PACI", "1F1B"))
    measured = f"at most {max(ours)} micro-batches in flight vs {max(theirs)}"
    more = any(mine > flush for mine, flush in zip(ours, theirs, strict=True))
    return Verdict(measured, FAILS if more else HOLDS, "every stage, at every m")


def _in_flight(configurations: list[Setting], schedule: str) -> list[int]:
    """Return the peak of every stage of every configuration."""
    peaks = []
    for setting in configurations:
        rule, cost = setting.rule(schedule)
        peaks += simulate(rule, rule.stages, setting.microbatches, cost=cost).peak_in_flight
    return peaks
