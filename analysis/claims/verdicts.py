"""Rules that turn an estimate into a verdict on a claim. Each says when it refuses to judge.

A rule takes an `Estimate`, so the same rule judges our runs, seed by seed, and the paper's printed
means and spreads (`analysis.claims.papers_own`). Its answer to the question "and if it is
undecided?" is the number of seeds that would decide, with a probability of 80 %, if means and
spreads stayed as they are.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from math import exp, isnan
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import f as fisher

from analysis.statistics import MOST_SEEDS, Estimate, contrast, mean_and_interval

HOLDS = "holds"
FAILS = "does not hold"
UNDECIDED = "undecided"
"""It was measured, but noise, too few seeds or a missing match leave both answers open."""
UNTESTABLE = "not testable at this scale"
"""Runs of this scale, or on this clock, cannot answer it, however many there are."""
UNTESTED = "not tested"
"""The runs or logs that it takes are not there."""


class Verdict(NamedTuple):
    """A measurement, the answer that follows from it, and the comparison behind it."""

    ours: str
    verdict: str
    why: str


def within(
    gap: Estimate, margin: float, shown: Callable[[float], str] = "{:+.3f}".format
) -> Verdict:
    """Judge whether a gap is zero for all practical purposes: two one-sided tests at 5 %.

    It holds if the 90 % interval of the gap lies within ± `margin`, does not hold if the 95 %
    interval lies beyond, and is undecided in between: a gap within the noise is no proof.
    """
    ours = f"{shown(gap.mean)} ± {_shown(gap.half_width(), shown)}"
    size, limit = abs(gap.mean), _shown(margin, shown)
    if isnan(gap.half_width()):
        return Verdict(ours, UNDECIDED, "needs two seeds in common with flush")
    if size + gap.half_width(0.9) <= margin:
        return Verdict(ours, HOLDS, f"within ± {limit}, with its 90% interval")
    if size - gap.half_width() > margin:
        return Verdict(ours, FAILS, f"beyond ± {limit}, with its 95% interval")
    takes = _takes(gap.seeds_for(abs(margin - size), 0.9 if size < margin else 0.95))
    return Verdict(ours, UNDECIDED, f"the interval contains ± {limit}; {takes}")


def above(
    estimate: Estimate, least: float = 0.0, shown: Callable[[float], str] = "{:+.3f}".format
) -> Verdict:
    """Judge whether a mean is above `least`: it holds, or does not, if all of the 95 % interval
    is on one side; else it is undecided."""
    doubt = estimate.half_width()
    ours = f"{shown(estimate.mean)} ± {_shown(doubt, shown)}"
    if isnan(doubt):
        return Verdict(ours, UNDECIDED, "needs two seeds in common with flush")
    if estimate.mean - doubt > least:
        return Verdict(ours, HOLDS, f"above {shown(least)}, with its 95% interval")
    if estimate.mean + doubt < least:
        return Verdict(ours, FAILS, f"below {shown(least)}, with its 95% interval")
    takes = _takes(estimate.seeds_for(abs(estimate.mean - least)))
    return Verdict(ours, UNDECIDED, f"the 95% interval contains {shown(least)}; {takes}")


def faster(log_ratio: Estimate) -> Verdict:
    """Judge whether a ratio of times, given as the estimate of its logarithm, is above one."""
    doubt = log_ratio.half_width()
    judged = above(log_ratio, 0.0, lambda value: f"{exp(value):.2f}×")
    spread = "–" if isnan(doubt) else f"{exp(log_ratio.mean) * doubt:.2f}"
    return judged._replace(ours=f"{exp(log_ratio.mean):.2f}× ± {spread}")


def varies_less(ours: float, flush: float, seeds: int) -> Verdict:
    """Judge whether one RMS of the across-seed deviation is below another.

    Fisher's test of two variances at 5 %, with the degrees of freedom of the seeds alone, as if
    all bins of a run were one: it holds if (flush / ours)² exceeds the quantile, does not hold if
    the inverse does, and is undecided in between.
    """
    measured = f"{ours:.3g} vs {flush:.3g}"
    if isnan(ours) or isnan(flush) or seeds < 2:
        return Verdict(measured, UNDECIDED, "needs two seeds of both, none diverged")
    ratio = (flush / ours) ** 2 if ours else np.inf
    quantile = fisher.ppf(0.95, seeds - 1, seeds - 1)
    if ratio > quantile:
        return Verdict(measured, HOLDS, f"lower by Fisher's test, {seeds} seeds")
    if ratio < 1 / quantile:
        return Verdict(measured, FAILS, f"higher by Fisher's test, {seeds} seeds")
    freedom = np.arange(1, MOST_SEEDS)
    enough = np.flatnonzero(fisher.ppf(0.95, freedom, freedom) < max(ratio, 1 / ratio))
    takes = _takes(int(freedom[enough[0]]) + 1 if len(enough) else None)
    return Verdict(measured, UNDECIDED, f"the ratio may be chance; {takes}")


def grows_with_drift(by_drift: Sequence[tuple[str, int, pd.Series]]) -> Verdict:
    """Judge whether the final training loss, and so the gap to flush, grows with Δmax.

    Takes (label, Δmax, final losses by seed) of the asynchronous variants of one setting, the
    least drift first. Over every pair of different Δmax: it holds if the larger has the higher
    loss, by a paired difference whose 95 % interval excludes zero, or diverged; it does not hold
    if some pair is as surely the other way round; else it is undecided. Not a claim of the paper.
    """
    if len({drift for _, drift, _ in by_drift}) < 2:
        return Verdict("–", UNTESTED, "needs variants of different Δmax")
    measured = ", ".join(f"{label} {final.mean(skipna=False):.3f}" for label, _, final in by_drift)
    measured = measured.replace("nan", "diverged")
    unclear = []
    for (low, low_drift, low_final), (high, high_drift, high_final) in combinations(by_drift, 2):
        if low_drift >= high_drift or high_final.isna().any():
            continue
        if low_final.isna().any():
            return Verdict(measured, FAILS, f"{low} diverged")
        judged = above(contrast((1, high_final), (-1, low_final))).verdict
        if judged == FAILS:
            return Verdict(measured, FAILS, f"{high} is below {low}")
        if judged != HOLDS:
            unclear.append(f"{high} and {low}")
    if unclear:
        return Verdict(measured, UNDECIDED, f"too close to order: {unclear[0]}")
    return Verdict(measured, HOLDS, "every pair is ordered, with its 95% interval")


def mostly_delay(parts: pd.DataFrame) -> Verdict:
    """Judge whether PACI's distance from flush is more delay than inconsistency.

    `parts` has the columns delay, inconsistency and distance (`analysis.q1.control`) and a row for
    each seed. It holds if the 95 % interval of the distance excludes zero, and that of delay less
    inconsistency, both without their signs and paired, is above zero; it does not hold if the
    latter is below zero; else it is undecided. Not a claim of the paper.
    """
    sizes = {it: parts[it] * (-1 if parts[it].mean() < 0 else 1) for it in parts}
    ours = ", ".join(
        "{} {:+.3f} ± {:.3f}".format(it, *mean_and_interval(parts[it])) for it in parts
    )
    if parts.isna().any(axis=None):
        return Verdict("–", UNDECIDED, "a seed diverged")
    if len(parts) < 2:
        return Verdict(ours, UNDECIDED, "needs two seeds in common with flush and the control")
    if above(contrast((1, sizes["distance"]))).verdict != HOLDS:
        return Verdict(ours, UNDECIDED, "the 95% interval of the distance from flush contains 0")
    excess = above(contrast((1, sizes["delay"]), (-1, sizes["inconsistency"]))).verdict
    if excess == HOLDS:
        return Verdict(ours, HOLDS, "delay is the larger, with its 95% interval")
    if excess == FAILS:
        return Verdict(ours, FAILS, "inconsistency is the larger, with its 95% interval")
    return Verdict(ours, UNDECIDED, "the two are too close to order")


def everywhere(judged: Iterable[tuple[str, Verdict]], each: str) -> Verdict:
    """Return the verdict on what is to be so at several places, from (place, verdict) of each.

    The first place where it does not hold decides, else the first where it is undecided; else it
    holds, for the reason that it does at the first, `each` ("at every m").
    """
    judged = list(judged)
    ours = ", ".join(f"{place}: {it.ours.partition(' ±')[0]}" for place, it in judged)
    for worst in (FAILS, UNDECIDED):
        for place, it in judged:
            if it.verdict == worst:
                return Verdict(ours, worst, f"{place}: {it.why}")
    return Verdict(ours, HOLDS, f"{judged[0][1].why}, {each}")


def _shown(size: float, shown: Callable[[float], str]) -> str:
    return "–" if isnan(size) else shown(size).lstrip("+")


def _takes(seeds: int | None) -> str:
    return (
        f"would take more than {MOST_SEEDS} seeds" if seeds is None else f"would take {seeds} seeds"
    )
