"""The claims of the paper's Q3 (throughput and memory), judged on the runs at hand."""

from collections.abc import Callable
from math import hypot, isnan, nan

import pandas as pd

from analysis.claims.rows import COLUMNS, row
from analysis.claims.verdicts import FAILS, HOLDS, UNDECIDED, UNTESTED, Verdict, everywhere
from analysis.frames import Frames
from analysis.q3.throughput import SETTING, is_papers_paci, memory, theory_check, throughput

FLAT = "throughput flat in the micro-batch count"
THEORY = "flush over bubble efficiency is PACI"
FASTER = "throughput above flush at equal micro-batches"
MEMORY = "peak memory of flush"

MARGIN = 0.05
"""Throughputs within this share of each other count as equal. The paper prints none; its figures
cannot show less."""
MEMORY_MARGIN = 0.01


def q3_claims(frames: Frames) -> pd.DataFrame:
    """One row per claim, scale, source of times and size of micro-batches; columns as in
    `analysis.claims.COLUMNS`. Memory is judged once per scale and source, where stages compute.
    """
    made, held = throughput(frames), memory(frames)
    checked = theory_check(made)
    paci = made[made["variant"].map(is_papers_paci)]
    rows = []
    for setting, group in paci.groupby(SETTING):
        scale, source, clock, ranks, microbatch = setting
        here = checked[checked[SETTING].eq(list(setting)).all(axis=1)]
        place = {
            "batch": f"m micro-batches of {microbatch}",
            "scale": f"{scale}, {source}, N = {ranks}",
            "clock": clock,
        }
        rows += [
            row(FLAT, "paci", flat(group)) | place,
            row(THEORY, "paci", equals_theory(here)) | place,
            row(FASTER, "paci", faster(here)) | place,
        ]
    for (scale, source, ranks), group in held.groupby(["scale", "source", "ranks"]):
        place = {"batch": "all", "scale": f"{scale}, {source}, N = {ranks}", "clock": "–"}
        rows.append(row(MEMORY, "paci", memory_of_flush(group)) | place)
    return pd.DataFrame(rows, columns=COLUMNS)


def flat(paci: pd.DataFrame) -> Verdict:
    """Is PACI's throughput the same at every micro-batch count? Rows of `throughput`.

    Holds if the fastest is at most 5 % above the slowest beyond doubt, which is their 95 %
    intervals in quadrature; does not hold if it is more, beyond doubt; else undecided.
    """
    known = paci[paci["rate"].notna()]
    if known["m"].nunique() < 2:
        return Verdict("–", UNTESTED, "needs completed runs at two micro-batch counts")
    ordered = known.sort_values("rate", kind="stable")
    low, high = ordered.iloc[0], ordered.iloc[-1]
    spread = high["rate"] / low["rate"] - 1
    doubt = nan if known["doubt"].isna().any() else hypot(low["doubt"], high["doubt"])
    ours = f"{spread:.1%} from a={low['m']} to a={high['m']}, over a = {_listed(known['m'])}"
    return Verdict(ours, *_within(spread, doubt * (1 + spread), "at most {:.0%} between any two"))


def equals_theory(checked: pd.DataFrame) -> Verdict:
    """Is measured PACI what measured flush over m/(m+N-1) says? Rows of `theory_check`.

    Holds if they differ by at most 5 % beyond doubt at every m, does not hold if they differ by
    more, beyond doubt, at one; else undecided. Where it does not hold, the reason says what is
    left of the difference with the efficiency of stages as unequal as they are.
    """

    def judge(it: pd.Series) -> tuple[str, str]:
        doubt = it["doubt"] * (1 + it["deviation"])
        verdict, why = _within(abs(it["deviation"]), doubt, "within {:.0%} of the formula")
        left = it["deviation as they are"]
        if verdict == FAILS and not isnan(left):
            why += f"; it is of equal stages: with the times of these, PACI differs by {left:+z.1%}"
        return verdict, why

    return _at_every_m(checked, lambda it: f"{it['deviation']:+z.1%}", judge)


def faster(checked: pd.DataFrame) -> Verdict:
    """Is PACI's throughput above flush's at the same micro-batch count? Rows of `theory_check`.

    Holds if it is beyond doubt at every m, does not hold if it is below beyond doubt at one; else
    undecided.
    """

    def judge(it: pd.Series) -> tuple[str, str]:
        gain, doubt = it["speedup"] - 1, it["doubt"] * it["speedup"]
        if isnan(doubt):
            return UNDECIDED, "needs two repetitions"
        if gain > doubt:
            return HOLDS, "above 1, with its 95% interval"
        if gain <= -doubt:
            return FAILS, "not above 1, with its 95% interval"
        return UNDECIDED, "the 95% interval contains 1"

    return _at_every_m(
        checked, lambda it: f"{it['speedup']:.2f}× of {1 / it['efficiency']:.2f}×", judge
    )


def memory_of_flush(held: pd.DataFrame) -> Verdict:
    """Is PACI's peak memory flush's, rank by rank, at equal micro-batch size and count?

    Holds if no rank holds over 1 % more at any m of at least the number of ranks. Below it flush
    has no more than m micro-batches in flight, its pipeline never fills, and it holds less: that
    is said and not judged.
    """
    key = ["microbatch", "m", "rank"]
    flush, paci = (
        held[held["variant"].map(is_it)].set_index(key)["total"]
        for is_it in (lambda it: it.is_flush, is_papers_paci)
    )
    ratios = (paci / flush).dropna().groupby("m").max()
    if ratios.empty:
        return Verdict("–", UNTESTED, "no flush run of the same micro-batches to compare with")
    ours = ", ".join(f"m={m}: {ratio:.2f}×" for m, ratio in ratios.items())
    full = ratios[ratios.index >= held["ranks"].iloc[0]]
    if full.empty:
        return Verdict(ours, UNTESTED, "needs as many micro-batches as ranks")
    partly = "; with fewer micro-batches than ranks flush never fills" * (len(full) < len(ratios))
    if full.max() > 1 + MEMORY_MARGIN:
        return Verdict(ours, FAILS, f"above flush's at m={full.idxmax()}{partly}")
    return Verdict(ours, HOLDS, f"every rank within {MEMORY_MARGIN:.0%}, m of N or more{partly}")


def _at_every_m(
    checked: pd.DataFrame,
    say: Callable[[pd.Series], str],
    judge: Callable[[pd.Series], tuple[str, str]],
) -> Verdict:
    """Holds if `judge` says so at every m; the first m at which it says worse decides else."""
    if checked.empty:
        return Verdict("–", UNTESTED, "no flush run at the same micro-batches")
    points = [it for _, it in checked.sort_values("m").iterrows()]
    ours = ", ".join(f"m={it['m']}: {say(it)}" for it in points)
    judged = [(f"m={it['m']}", *judge(it)) for it in points]
    return everywhere(ours, judged, "at every m")


def _within(distance: float, doubt: float, what: str) -> tuple[str, str]:
    """Verdict and reason on a relative distance with half of its 95 % interval, against MARGIN."""
    if isnan(doubt):
        return UNDECIDED, "needs two repetitions"
    if distance + doubt <= MARGIN:
        return HOLDS, what.format(MARGIN)
    if distance - doubt > MARGIN:
        return FAILS, "not " + what.format(MARGIN)
    return UNDECIDED, f"the 95% interval contains {MARGIN:.0%}"


def _listed(counts: pd.Series) -> str:
    return ", ".join(str(count) for count in sorted(counts))
