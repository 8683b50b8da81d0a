"""The claims of the paper's Q2 (time to perplexity), judged on the runs at hand."""

from collections.abc import Sequence

import pandas as pd

from analysis.cells import CannotAnswer, Cell, by_setting
from analysis.claims.rows import COLUMNS, row, unless_smoke
from analysis.claims.verdicts import (
    FAILS,
    UNDECIDED,
    UNTESTABLE,
    UNTESTED,
    Verdict,
    everywhere,
    sooner,
)
from analysis.counterparts import published_batch
from analysis.q2.speedup import BEST, EQUAL, SpeedUp, speed_ups
from analysis.q2.thresholds import GIVEN_COSTS, timed

SOONER = "sooner than the best-tuned flush"
SOONER_THAN_EQUAL = "sooner than flush at equal micro-batches"
AT_EVERY_THRESHOLD = "sooner at every threshold"


def q2_claims(
    made: list[Cell], published: pd.DataFrame, thresholds: Sequence[float] | None = None
) -> pd.DataFrame:
    """One row per claim, setting and PACI variant of Δmax 1 or 2; columns as in
    `analysis.claims.COLUMNS`.

    `published` holds the paper's figures (claim, batch, perplexity, value). The first two claims
    are judged at the lowest perplexity that PACI and every flush reach, the third at each of
    `thresholds`, or of those that the runs have in common.
    """
    rows = []
    for (scale, clock, batch), group in by_setting(made).items():
        paper_batch = published_batch(batch, made, scale, published)
        place = {"batch": str(batch), "scale": scale, "clock": clock}
        papers = _papers(paper_batch, published)
        if refused := _refused(group):
            rows += [row(claim, "paci", refused, paper) | place for claim, paper in papers.items()]
            continue
        found = list(speed_ups(timed(group)[0], thresholds))
        for paci in (cell for cell in group if cell.variant.is_mild_paci):
            mine = [it for it in found if it.paci is paci]
            judged = {
                SOONER: _at_lowest([it for it in mine if it.against == BEST]),
                SOONER_THAN_EQUAL: _at_lowest([it for it in mine if it.against == EQUAL]),
                AT_EVERY_THRESHOLD: _at_all([it for it in mine if it.against == BEST]),
            }
            label = paci.variant.label
            rows += [row(claim, label, it, papers[claim]) | place for claim, it in judged.items()]
    return pd.DataFrame(rows, columns=COLUMNS)


def _papers(batch: int | None, published: pd.DataFrame) -> dict[str, str]:
    """What the paper says of each claim at one of its batch sizes."""
    best = published[
        (published["claim"] == "speed-up over the best flush") & (published["batch"] == batch)
    ]
    headline = best[best["perplexity"].isna()]["value"]
    steps = best.dropna(subset="perplexity")
    most = published[published["claim"].str.startswith("speed-up over flush at equal")]["value"]
    listed = ", ".join(
        f"≤{at:g}: {x:.2f}×" for at, x in zip(steps["perplexity"], steps["value"], strict=True)
    )
    return {
        SOONER: "".join(f"{value:.2f}× (batch {batch})" for value in headline) or "–",
        SOONER_THAN_EQUAL: f"up to {most.max():.2f}×",
        AT_EVERY_THRESHOLD: f"{listed} (batch {batch})" if listed else "–",
    }


def _refused(group: list[Cell]) -> Verdict | None:
    """Why a setting can say nothing about time, if it cannot."""
    if group[0].clock == GIVEN_COSTS:
        return Verdict("–", UNTESTABLE, "its clock counts given costs, not measured times")
    try:
        able, _ = timed(group)
    except CannotAnswer as error:
        return Verdict("–", UNTESTED, str(error))
    if not any(cell.variant.is_mild_paci for cell in able):
        return Verdict("–", UNTESTED, "no completed paci run with Δmax 1 or 2")
    if not any(cell.variant.is_flush for cell in able):
        return Verdict("–", UNTESTED, "no completed 1f1b-flush run")
    return unless_smoke(group[0].scale)


def _at_lowest(found: list[SpeedUp]) -> Verdict:
    found = [it for it in found if it.lowest]
    return _judge(found[0]) if found else Verdict("–", UNTESTED, "no flush run to compare it with")


def _at_all(found: list[SpeedUp]) -> Verdict:
    """Holds if it does at every threshold, does not hold if it does not at one."""
    steps = [it for it in found if not it.lowest]
    if not steps:
        return Verdict("–", UNTESTED, "no threshold that every completed run passes")
    ours = ", ".join(
        f"≤{it.perplexity:g}: {'–' if it.why else f'{it.mean_and_std[0]:.2f}×'}" for it in steps
    )
    judged = [(f"at {it.perplexity:g}", *_judge(it)[1:]) for it in steps]
    return everywhere(ours, judged, "at each")


def _judge(it: SpeedUp) -> Verdict:
    if it.why:
        return Verdict("–", FAILS if it.only_flush else UNDECIDED, it.why)
    judged = sooner(it.by_seed)
    against = f"{judged.ours} at {it.perplexity:.4g}, over {it.flush.variant.label}"
    return judged._replace(ours=against)
