"""The claims of the paper's Q3 (throughput and memory), judged on the runs at hand."""

from collections.abc import Callable
from math import hypot, isnan, nan

import pandas as pd

from analysis.claims.rows import COLUMNS, row
from analysis.claims.verdicts import FAILS, HOLDS, UNDECIDED, UNTESTED, Verdict, everywhere
from analysis.counterparts import Published
from analysis.frames import Frames
from analysis.q3.memory import memory
from analysis.q3.theory import theory_check, tolerance
from analysis.q3.throughput import SETTING, is_papers_paci, of_sizes, throughput

FLAT = "throughput flat in the micro-batch count"
THEORY = "flush over bubble efficiency is PACI"
FASTER = "throughput above flush at equal micro-batches"
MEMORY = "peak memory of flush"

MEMORY_MARGIN = 0.01


def q3_claims(frames: Frames, published: Published) -> pd.DataFrame:
    """Return one row per claim, scale, source of times and size of micro-batches; columns as in
    `analysis.claims.COLUMNS`. Memory is judged once per scale and source, where stages compute.
    """
    made, held = of_sizes(throughput(frames)), memory(frames)
    checked = theory_check(made)
    paci = made[made["variant"].map(is_papers_paci)]
    rows = []
    for setting, group in paci.groupby(SETTING):
        scale, source, clock, ranks, microbatch = setting
        here = checked[checked[SETTING].eq(list(setting)).all(axis=1)]
        equal = tolerance(microbatch, published("table_4"))
        place = {
            "batch": f"m micro-batches of {microbatch}",
            "scale": f"{scale}, {source}, N = {ranks}",
            "clock": clock,
        }
        rows += [
            row(FLAT, "paci", flat(group, equal)) | place,
            row(THEORY, "paci", equals_theory(here, equal)) | place,
            row(FASTER, "paci", faster(here)) | place,
        ]
    held = held[held["even"]]
    for (scale, source, ranks), group in held.groupby(["scale", "source", "ranks"]):
        place = {"batch": "all", "scale": f"{scale}, {source}, N = {ranks}", "clock": "–"}
        rows.append(row(MEMORY, "paci", memory_of_flush(group)) | place)
    return pd.DataFrame(rows, columns=COLUMNS)


def flat(paci: pd.DataFrame, equal: float) -> Verdict:
    """Judge whether PACI's throughput is the same at every micro-batch count, to the share `equal`.
    Takes rows of `throughput`.

    It holds if the fastest is at most that much above the slowest beyond doubt, which is their 95 %
    intervals in quadrature; it does not hold if it is more, beyond doubt; else it is undecided.
    """
    known = paci[paci["rate"].notna()]
    if known["m"].nunique() < 2:
        return Verdict("–", UNTESTED, "needs completed runs at two micro-batch counts")
    ordered = known.sort_values("rate", kind="stable")
    low, high = ordered.iloc[0], ordered.iloc[-1]
    spread = high["rate"] / low["rate"] - 1
    doubt = nan if known["doubt"].isna().any() else hypot(low["doubt"], high["doubt"])
    counts = ", ".join(str(m) for m in sorted(known["m"]))
    ours = f"{spread:.1%} from a={low['m']} to a={high['m']}, over a = {counts}"
    what = "at most {:.0%} between any two"
    return Verdict(ours, *_within(spread, doubt * (1 + spread), equal, what))


def equals_theory(checked: pd.DataFrame, equal: float) -> Verdict:
    """Judge whether measured PACI is measured flush over m/(m+N-1), to the share `equal`. Takes
    rows of `theory_check`.

    It holds if they differ by at most that much beyond doubt at every m, and does not hold if they
    differ by more, beyond doubt, at one; else it is undecided. Where it does not hold, the reason
    says what is left of the difference with the efficiency of stages as unequal as they are.
    """

    def judge(it: pd.Series) -> Verdict:
        doubt = it["doubt"] * (1 + it["deviation"])
        what = "within {:.0%} of the formula"
        verdict, why = _within(abs(it["deviation"]), doubt, equal, what)
        left = it["deviation as they are"]
        if verdict == FAILS and not isnan(left):
            why += f"; it is of equal stages: with the times of these, PACI differs by {left:+z.1%}"
        return Verdict(f"{it['deviation']:+z.1%}", verdict, why)

    return _at_every_m(checked, judge)


def faster(checked: pd.DataFrame) -> Verdict:
    """Judge whether PACI's throughput is above flush's at the same micro-batch count. Takes rows of
    `theory_check`.

    It holds if it is beyond doubt at every m, and does not hold if it is below beyond doubt at one;
    else it is undecided.
    """

    def judge(it: pd.Series) -> Verdict:
        gain, doubt = it["speedup"] - 1, it["doubt"] * it["speedup"]
        ours = f"{it['speedup']:.2f}× of {1 / it['efficiency']:.2f}×"
        if isnan(doubt):
            return Verdict(ours, UNDECIDED, "needs two repetitions")
        if gain > doubt:
            return Verdict(ours, HOLDS, "above 1, with its 95% interval")
        if gain <= -doubt:
            return Verdict(ours, FAILS, "not above 1, with its 95% interval")
        return Verdict(ours, UNDECIDED, "the 95% interval contains 1")

    return _at_every_m(checked, judge)


def memory_of_flush(held: pd.DataFrame) -> Verdict:
    """Judge whether PACI's peak memory is flush's, rank by rank, at equal micro-batch size and
    count.

    It holds if no rank holds over 1 % more at any m of at least the number of ranks. Below it flush
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


def _at_every_m(checked: pd.DataFrame, judge: Callable[[pd.Series], Verdict]) -> Verdict:
    """Return the verdict on what `judge` says of each m."""
    if checked.empty:
        return Verdict("–", UNTESTED, "no flush run at the same micro-batches")
    points = (it for _, it in checked.sort_values("m").iterrows())
    return everywhere([(f"m={it['m']}", judge(it)) for it in points], "at every m")


def _within(distance: float, doubt: float, margin: float, what: str) -> tuple[str, str]:
    """Return verdict and reason on a relative distance with half of its 95 % interval."""
    if isnan(doubt):
        return UNDECIDED, "needs two repetitions"
    if distance + doubt <= margin:
        return HOLDS, what.format(margin)
    if distance - doubt > margin:
        return FAILS, "not " + what.format(margin)
    return UNDECIDED, f"the 95% interval contains {margin:.0%}"
