"""Rules that turn measurements into a verdict on a claim. Each states when it refuses to judge.

A mean over seeds decides if all of its 95 % confidence interval by Student's t does
(`statistics.mean_and_interval`). Two standard errors are that for many seeds, but with two or
three, chance alone exceeds them in 30 or 18 % of cases.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.statistics import (
    final_losses,
    mean_and_interval,
    mean_and_std,
    paired_gap,
    rms_of_std,
)

HOLDS = "holds"
FAILS = "does not hold"
UNDECIDED = "undecided"
"""It was measured, but noise, too few seeds or a missing match leave both answers open."""
UNTESTABLE = "not testable at this scale"
"""Runs of this scale, or on this clock, cannot answer it, however many there are."""
UNTESTED = "not tested"
"""The runs or logs that it takes are not there."""

TRACKING_MARGIN = 0.015
"""Nats per token, or byte. A gap below it prints as 0.01, the widest that the paper itself shows
and calls tracking (arXiv 2606.07881: 2.79 against about 2.80)."""


class Verdict(NamedTuple):
    """What was measured, what follows, and from which comparison."""

    ours: str
    verdict: str
    why: str


def tracks(paci: pd.DataFrame, flush: pd.DataFrame) -> Verdict:
    """Does PACI's final training loss track flush's? Losses: updates × seeds, nats per token.

    It holds if the 95 % interval of the mean over common seeds of the difference of final losses
    is within the margin of 0.015 nats, does not hold if all of it is beyond or if PACI diverged,
    and is undecided in between, with fewer than two common seeds or if flush diverged. Being
    within the noise is thus no proof of tracking.
    """
    ours, theirs = final_losses(paci), final_losses(flush)
    gap, doubt = paired_gap(ours, theirs)
    (mine, _), (flushs, _) = mean_and_std(ours), mean_and_std(theirs)
    measured = f"{mine:.3f} - {flushs:.3f} = {_signed(gap, doubt)}"
    if theirs.isna().any():
        return Verdict(measured, UNDECIDED, "flush diverged")
    if ours.isna().any():
        return Verdict("diverged", FAILS, f"{ours.isna().sum()} of {len(ours)} seeds diverged")
    if np.isnan(doubt):
        return Verdict(measured, UNDECIDED, "needs two seeds in common with flush")
    if abs(gap) + doubt <= TRACKING_MARGIN:
        return Verdict(measured, HOLDS, f"gap within {TRACKING_MARGIN}, with its 95% interval")
    if abs(gap) - doubt > TRACKING_MARGIN:
        return Verdict(measured, FAILS, f"gap beyond {TRACKING_MARGIN}, with its 95% interval")
    return Verdict(measured, UNDECIDED, f"the gap's 95% interval contains ±{TRACKING_MARGIN}")


def varies_less(paci: pd.DataFrame, flush: pd.DataFrame) -> Verdict:
    """Is the RMS over training of PACI's across-seed deviation below flush's?

    Holds, or does not, if the order is the same with all common seeds and with any one of them
    left out; else, with fewer than three common seeds, or after a divergence, undecided: one odd
    seed would decide.
    """
    measured = f"{rms_of_std(paci):.4f} vs {rms_of_std(flush):.4f}"
    seeds = sorted(set(paci) & set(flush))
    if len(seeds) < 3:
        return Verdict(measured, UNDECIDED, "needs three seeds in common with flush")
    subsets = [seeds] + [[s for s in seeds if s != left_out] for left_out in seeds]
    ratios = [rms_of_std(paci[kept]) / rms_of_std(flush[kept]) for kept in subsets]
    if np.isnan(ratios).any():
        return Verdict(measured, UNDECIDED, "a seed diverged")
    if max(ratios) < 1:
        return Verdict(measured, HOLDS, "lower, whichever seed is left out")
    if min(ratios) > 1:
        return Verdict(measured, FAILS, "higher, whichever seed is left out")
    return Verdict(measured, UNDECIDED, "the order depends on one seed")


def grows_with_drift(by_drift: list[tuple[str, int, pd.DataFrame]]) -> Verdict:
    """Does the final training loss, and so the gap to flush, grow with Δmax?

    Takes (label, Δmax, losses) of the asynchronous variants of one setting, least drift first.

    Over every pair of different Δmax: holds if the larger Δmax has the higher loss, by a paired
    difference whose 95 % interval excludes zero, or diverged; does not hold if some pair is as
    surely the other way round; else undecided, also with fewer than two common seeds. Not a claim
    of the paper.
    """
    if len({drift for _, drift, _ in by_drift}) < 2:
        return Verdict("–", UNTESTED, "needs variants of different Δmax")
    finals = [(label, drift, final_losses(losses)) for label, drift, losses in by_drift]
    measured = ", ".join(f"{label} {final.mean(skipna=False):.3f}" for label, _, final in finals)
    measured = measured.replace("nan", "diverged")
    unclear = []
    for low, low_drift, low_final in finals:
        for high, high_drift, high_final in finals:
            if low_drift >= high_drift:
                continue
            if low_final.isna().any():
                return Verdict(measured, FAILS, f"{low} diverged")
            if high_final.isna().any():
                continue
            gap, doubt = paired_gap(high_final, low_final)
            if gap < -doubt:
                return Verdict(measured, FAILS, f"{high} is below {low}")
            if not gap > doubt:
                unclear.append(f"{high} and {low}")
    if unclear:
        return Verdict(measured, UNDECIDED, f"too close to order: {unclear[0]}")
    return Verdict(measured, HOLDS, "every pair is ordered, with its 95% interval")


def mostly_delay(parts: pd.DataFrame) -> Verdict:
    """Is PACI's distance from flush more delay than inconsistency? Columns delay, inconsistency
    and distance (`analysis.q1.control`), seeds as rows.

    It holds if the 95 % interval of the distance excludes zero, and that of delay less
    inconsistency, both without their signs and paired, is above zero; it does not hold if the
    latter is below zero; else undecided, also below two seeds or after a divergence. Not a claim
    of the paper.
    """
    means = {name: parts[name].mean(skipna=False) for name in parts}
    sizes = {name: parts[name] * (-1 if means[name] < 0 else 1) for name in parts}
    ours = ", ".join(f"{it} {_signed(*mean_and_interval(parts[it]))}" for it in parts)
    if parts.isna().any(axis=None):
        return Verdict("–", UNDECIDED, "a seed diverged")
    if len(parts) < 2:
        return Verdict(ours, UNDECIDED, "needs two seeds in common with flush and the control")
    distance, doubt = mean_and_interval(sizes["distance"])
    if not distance > doubt:
        return Verdict(ours, UNDECIDED, "the 95% interval of the distance from flush contains 0")
    excess, doubt = mean_and_interval(sizes["delay"] - sizes["inconsistency"])
    if excess > doubt:
        return Verdict(ours, HOLDS, "delay is the larger, with its 95% interval")
    if excess < -doubt:
        return Verdict(ours, FAILS, "inconsistency is the larger, with its 95% interval")
    return Verdict(ours, UNDECIDED, "the two are too close to order")


def sooner(ratios: pd.Series) -> Verdict:
    """Is flush's time to a perplexity over PACI's, seed by seed, above one?

    Holds, or does not, if the 95 % interval of the mean is above, or below, one; else undecided,
    also below two seeds.
    """
    mean, doubt = mean_and_interval(ratios)
    ours = f"{mean:.2f}× ± {'–' if np.isnan(doubt) else f'{doubt:.2f}'}"
    if np.isnan(doubt):
        return Verdict(ours, UNDECIDED, "needs two seeds in common with flush")
    if mean - doubt > 1:
        return Verdict(ours, HOLDS, "above 1, with its 95% interval")
    if mean + doubt < 1:
        return Verdict(ours, FAILS, "below 1, with its 95% interval")
    return Verdict(ours, UNDECIDED, "the 95% interval contains 1")


def everywhere(ours: str, judged: Sequence[tuple[str, str, str]], each: str) -> Verdict:
    """The verdict on what is to be so at several places, from (place, verdict, why) of each.

    The first place where it does not hold decides, else the first where it is undecided; else it
    holds, for the reason that it does at the first, `each` ("at every m").
    """
    for worst in (FAILS, UNDECIDED):
        for place, verdict, why in judged:
            if verdict == worst:
                return Verdict(ours, verdict, f"{place}: {why}")
    return Verdict(ours, HOLDS, f"{judged[0][2]}, {each}")


def _signed(gap: float, doubt: float) -> str:
    return f"{gap:+.3f} ± {'–' if np.isnan(doubt) else f'{doubt:.3f}'}"
