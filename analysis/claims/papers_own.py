"""The claims, judged on the numbers that the paper prints by the rules that judge our runs.

A rule that could never hold for the paper's numbers would say nothing about ours. Where a rule is
undecided on the paper's three seeds, it says how many seeds would decide.
"""

from typing import Any

import pandas as pd

from analysis.claims import learning
from analysis.claims.learning import Step
from analysis.claims.q3 import THEORY
from analysis.claims.verdicts import FAILS, HOLDS, Verdict, varies_less
from analysis.counterparts import Published, papers_row
from analysis.q3.theory import papers_deviations, tolerance
from analysis.statistics import Sample

Judged = dict[tuple[str, int, str], Verdict]
"""Verdicts by claim, batch and method of the paper."""


def papers_own(published: Published) -> Judged:
    """Judge Tables 3, 4 and 6 of the paper. Throughput has the size of micro-batches for batch."""
    return _stability(published("table_3")) | _time(published) | _theory(published("table_4"))


def _stability(table_3: pd.DataFrame) -> Judged:
    judged: Judged = {}
    for batch, rows in table_3.groupby("batch"):
        (flush, *ours) = rows.to_dict("records")
        for it in ours:
            mine, theirs = (
                Sample(one["loss"], one["loss_std"], one["seeds"]) for one in (it, flush)
            )
            key = int(batch), it["method"]
            judged[learning.TRACKS, *key] = learning.tracks(mine, theirs)
            spreads = it["rms_std"], flush["rms_std"]
            judged[learning.VARIES_LESS, *key] = varies_less(*spreads, it["seeds"])
    return judged


def _time(published: Published) -> Judged:
    table_4, table_6 = published("table_4"), published("table_6")
    judged: Judged = {}
    for it in table_4[table_4["method"].str.startswith("paci")].to_dict("records"):
        batch, method = it["batch"], it["method"]
        flushes = table_4[(table_4["batch"] == batch) & table_4["method"].str.startswith("1f1b")]
        best = flushes.loc[flushes["hours"].idxmin()].to_dict()
        equal = papers_row(flushes, method=method.replace("paci a", "1f1b-flush m"))
        matched, against_best = (
            [_step(table_6, threshold, it, flush) for threshold in _thresholds(table_6)]
            for flush in (equal, best)
        )
        perplexities = (
            Sample(one["perplexity"], one["perplexity_std"], one["seeds"]) for one in (it, best)
        )
        found = {
            learning.SHORTER_THAN_BEST: learning.shorter(_hours(best), _hours(it)),
            learning.SHORTER_THAN_EQUAL: learning.shorter(_hours(equal), _hours(it)),
            learning.FINAL_PERPLEXITY: learning.final_perplexity(*perplexities),
            learning.SOONER: learning.sooner(matched),
            learning.GROWS: learning.grows(matched),
            learning.SHRINKS: learning.shrinks([_in_tokens(step, it, equal) for step in matched]),
        }
        if (batch, method) == (256, "paci a=8"):
            found[learning.BEST_IS_LEVEL] = learning.not_sooner(against_best)
        judged |= {(claim, batch, method): verdict for claim, verdict in found.items()}
    return judged


def _theory(table_4: pd.DataFrame) -> Judged:
    deviations = papers_deviations(table_4)
    judged: Judged = {}
    for size, rows in deviations.groupby("microbatch"):
        equal, worst = tolerance(int(size), table_4), rows["deviation"].abs().max()
        ours = ", ".join(f"{it:+.1%}" for it in rows["deviation"])
        verdict = HOLDS if worst <= equal else FAILS
        judged[THEORY, int(size), "paci"] = Verdict(ours, verdict, f"within {equal:.0%}")
    return judged


def _thresholds(table_6: pd.DataFrame) -> list[float]:
    return sorted(table_6["perplexity"].unique(), reverse=True)


def _step(table_6: pd.DataFrame, threshold: float, paci: dict, flush: dict) -> Step:
    rows = (
        papers_row(table_6, batch=it["batch"], method=it["method"], perplexity=threshold)
        for it in (flush, paci)
    )
    return Step(threshold, *(Sample(it["hours"], it["hours_std"], it["seeds"]) for it in rows))


def _in_tokens(step: Step, paci: dict[str, Any], flush: dict[str, Any]) -> Step:
    """Return the tokens, as shares of all: hours to a threshold over those of all tokens."""
    shares = (
        Sample(it.mean / row["hours"], it.std / row["hours"], it.seeds)
        for it, row in ((step.flush, flush), (step.paci, paci))
    )
    return Step(step.perplexity, *shares)


def _hours(row: dict[str, Any]) -> Sample:
    """Return the total hours, whose spread is 0: the paper computes them from one throughput."""
    return Sample(row["hours"], 0.0, row["seeds"])
