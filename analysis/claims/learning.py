"""The rules of the claims on loss and time: from quantities of flush and of PACI to a verdict.

A quantity is a value of each seed of our runs, or a mean and spread as the paper prints it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from analysis.claims.verdicts import (
    FAILS,
    HOLDS,
    UNDECIDED,
    UNTESTED,
    Verdict,
    above,
    everywhere,
    faster,
    within,
)
from analysis.statistics import Quantity, contrast, logarithm, sample

TRACKS = "final loss tracks flush"
VARIES_LESS = "across-seed RMS std below flush"
SHORTER_THAN_BEST = "shorter training than the best-tuned flush"
SHORTER_THAN_EQUAL = "shorter training than flush at the same m"
FINAL_PERPLEXITY = "final perplexity is flush's"
SOONER = "sooner than flush at the same m, at every threshold"
GROWS = "matched speed-up grows as the threshold falls"
SHRINKS = "gap in tokens to flush shrinks as training goes on"
BEST_IS_LEVEL = "a=8 at batch 256 is not sooner than the best flush at every threshold"

MARGIN = 0.02
"""Nats per token, and so about 2 % of a perplexity: the paper calls final losses tracking that
differ by 0.01 as printed (2.79 and 2.80), and so by less than 0.02."""


class Step(NamedTuple):
    """A threshold, and flush's and PACI's seconds (or tokens) to it."""

    perplexity: float
    flush: Quantity
    paci: Quantity


def tracks(paci: Quantity, flush: Quantity) -> Verdict:
    """Judge whether PACI's final training loss (nats per token) is within MARGIN of flush's."""
    ours, theirs = sample(paci), sample(flush)
    if theirs.mean != theirs.mean:
        return Verdict("–", UNDECIDED, "flush diverged")
    if ours.mean != ours.mean:
        return Verdict("diverged", FAILS, "a seed of PACI diverged")
    judged = within(contrast((1, paci), (-1, flush)), MARGIN)
    return judged._replace(ours=f"{ours.mean:.3f} - {theirs.mean:.3f} = {judged.ours}")


def final_perplexity(paci: Quantity, flush: Quantity) -> Verdict:
    """Judge whether PACI's final validation perplexity is within MARGIN of flush's, of itself."""
    ratio = contrast((1, logarithm(paci)), (-1, logarithm(flush)))
    judged = within(ratio, MARGIN, "{:+.1%}".format)
    return judged._replace(
        ours=f"{sample(paci).mean:.4g} vs {sample(flush).mean:.4g}: {judged.ours}"
    )


def shorter(flush: Quantity, paci: Quantity) -> Verdict:
    """Judge whether PACI takes less time than flush."""
    return faster(contrast((1, logarithm(flush)), (-1, logarithm(paci))))


def sooner(steps: Sequence[Step]) -> Verdict:
    """Judge whether PACI reaches every threshold before flush does."""
    if not steps:
        return Verdict("–", UNTESTED, "no threshold that the runs pass")
    return everywhere(
        [(f"≤{it.perplexity:g}", shorter(it.flush, it.paci)) for it in steps], "at each"
    )


def not_sooner(steps: Sequence[Step]) -> Verdict:
    """Judge the opposite of `sooner`: at some threshold PACI is surely not first."""
    judged = sooner(steps)
    opposite = {HOLDS: FAILS, FAILS: HOLDS}.get(judged.verdict, judged.verdict)
    return judged._replace(verdict=opposite)


def grows(steps: Sequence[Step]) -> Verdict:
    """Judge whether flush's time over PACI's is larger at the lowest threshold than at the
    highest."""
    if len(steps) < 2:
        return Verdict("–", UNTESTED, "needs two thresholds that both reach")
    first, last = steps[0], steps[-1]
    growth = contrast(
        (1, logarithm(last.flush)), (-1, logarithm(last.paci)),
        (-1, logarithm(first.flush)), (1, logarithm(first.paci)),
    )  # fmt: skip
    ratios = [f"≤{it.perplexity:g}: {_ratio(it):.2f}×" for it in steps]
    return above(growth)._replace(ours=", ".join(ratios))


def shrinks(steps: Sequence[Step]) -> Verdict:
    """Judge whether PACI's tokens to a threshold less flush's, as shares of all tokens, are fewer
    at the lowest threshold than at the highest."""
    if len(steps) < 2:
        return Verdict("–", UNTESTED, "needs two thresholds that both reach")
    first, last = steps[0], steps[-1]
    loss = contrast((1, first.paci), (-1, first.flush), (-1, last.paci), (1, last.flush))
    gaps = [f"≤{it.perplexity:g}: {_gap(it):.1%}" for it in steps]
    return above(loss, shown="{:+.1%}".format)._replace(ours=", ".join(gaps) + " of all tokens")


def _ratio(step: Step) -> float:
    return sample(step.flush).mean / sample(step.paci).mean


def _gap(step: Step) -> float:
    return sample(step.paci).mean - sample(step.flush).mean
