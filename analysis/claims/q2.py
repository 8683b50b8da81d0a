"""The claims of the paper's Q2 (time of training), judged on the runs at hand."""

from collections.abc import Sequence

import pandas as pd

from analysis.cells import CannotAnswer, Cell, by_setting, of_paper
from analysis.claims import learning
from analysis.claims.learning import Step
from analysis.claims.papers_own import papers_own
from analysis.claims.rows import COLUMNS, at, row, unless_smoke
from analysis.claims.verdicts import FAILS, UNDECIDED, UNTESTABLE, UNTESTED, Verdict
from analysis.counterparts import Published, papers_batch, papers_row
from analysis.frames import Frames
from analysis.q2.rates import GIVEN_COSTS, on_clocks
from analysis.q2.speedup import Contest, contests, missing
from analysis.q2.thresholds import PAPERS_WAY, Thresholds
from analysis.q2.timing import Timed, Timings, timed

CLAIMS = (
    learning.SHORTER_THAN_BEST,
    learning.SHORTER_THAN_EQUAL,
    learning.FINAL_PERPLEXITY,
    learning.SOONER,
    learning.GROWS,
    learning.SHRINKS,
)


def q2_claims(
    made: Sequence[Cell],
    frames: Frames,
    published: Published,
    thresholds: Thresholds = PAPERS_WAY,
) -> pd.DataFrame:
    """Return one row per claim, setting and PACI variant of Δmax 1 or 2; columns as in
    `analysis.claims.COLUMNS`."""
    own, rows = papers_own(published), []
    made = of_paper(on_clocks(made, frames))
    for setting, group in by_setting(made).items():
        stands_for = papers_batch(group[0], made, published("table_4"))
        place = at(*setting)
        judged = _refused(group) or _judged(group, made, frames, thresholds, stands_for)
        if isinstance(judged, Verdict):
            rows += [row(claim, "paci", judged) | place for claim in CLAIMS]
            continue
        for (claim, label), verdict in judged.items():
            paper = _papers(claim, stands_for, label, published)
            theirs = own.get((claim, stands_for or 0, label))
            rows.append(row(claim, label, verdict, paper, theirs) | place)
    return pd.DataFrame(rows, columns=COLUMNS)


def _refused(group: Sequence[Cell]) -> Verdict | None:
    """Return why a setting can say nothing about time, if it cannot."""
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


def _judged(
    group: Sequence[Cell],
    made: Sequence[Cell],
    frames: Frames,
    thresholds: Thresholds,
    stands_for: int | None,
) -> dict[tuple[str, str], Verdict]:
    able, _ = timed(group)
    steps = thresholds.of(able)
    judged: dict[tuple[str, str], Verdict] = {}
    for contest in contests(able, Timings(made, frames, thresholds)):
        if not contest.paci.cell.variant.is_mild_paci:
            continue
        label = contest.paci.label
        judged |= {(claim, label): it for claim, it in _of_contest(contest, steps).items()}
        if (stands_for, label) == (256, "paci a=8"):
            rivals = [(step, contest.first_to(step)) for step in steps]
            judged[learning.BEST_IS_LEVEL, label] = _at_steps(
                contest.paci, rivals, learning.not_sooner
            )
    return judged


def _of_contest(contest: Contest, steps: Sequence[float]) -> dict[str, Verdict]:
    paci, fastest, match = contest.paci, contest.fastest, contest.match
    judged = {
        learning.SHORTER_THAN_BEST: _over(fastest, learning.shorter(fastest.total, paci.total)),
        learning.FINAL_PERPLEXITY: learning.final_perplexity(
            paci.final_perplexity, fastest.final_perplexity
        ),
    }
    if match is None:
        why = f"no flush of m={paci.m}, trained or mapped"
        return judged | dict.fromkeys(
            (learning.SHORTER_THAN_EQUAL, learning.SOONER, learning.GROWS, learning.SHRINKS),
            Verdict("–", UNTESTED, why),
        )
    rivals = [(step, match) for step in steps]
    return judged | {
        learning.SHORTER_THAN_EQUAL: _over(match, learning.shorter(match.total, paci.total)),
        learning.SOONER: _at_steps(paci, rivals, learning.sooner),
        learning.GROWS: _at_steps(paci, rivals, learning.grows),
        learning.SHRINKS: _at_steps(paci, rivals, learning.shrinks, tokens=True),
    }


def _at_steps(paci: Timed, rivals: Sequence[tuple[float, Timed]], rule, tokens=False) -> Verdict:
    """Apply a rule to the times to each perplexity, of PACI and of the flush beside it.

    A perplexity that flush reaches in every seed and PACI does not fails the claim; one that flush
    does not reach leaves it open.
    """
    steps = []
    for step, flush in rivals:
        if why := missing(flush, step):
            return Verdict("–", UNDECIDED, f"≤{step:g}: {why}")
        if why := missing(paci, step):
            return Verdict("–", FAILS, f"≤{step:g}: {why}")
        both = (it.tokens_to(step) if tokens else it.time_to(step) for it in (flush, paci))
        steps.append(Step(step, *both))
    return rule(steps)


def _over(flush: Timed, judged: Verdict) -> Verdict:
    mapped = f" ({flush.basis})" if flush.mapped else ""
    return judged._replace(ours=f"{judged.ours}, over {flush.label}{mapped}")


def _papers(claim: str, batch: int | None, label: str, published: Published) -> str | None:
    """Quote the paper on a claim at one of its batch sizes and methods."""
    table_4, table_6 = published("table_4"), published("table_6")
    total = papers_row(table_4, batch=batch, method=label)
    steps = table_6[(table_6["batch"] == batch) & (table_6["method"] == label)]
    if not total:
        return None
    if claim == learning.SHORTER_THAN_BEST:
        return f"{total['best']:.2f}×"
    if claim == learning.SHORTER_THAN_EQUAL:
        return f"{total['match']:.2f}×"
    if claim == learning.FINAL_PERPLEXITY:
        flush = table_4[(table_4["batch"] == batch)].iloc[0]
        return f"{total['perplexity']:.2f} vs {flush['perplexity']:.2f}"
    column = "best" if claim == learning.BEST_IS_LEVEL else "match"
    if claim in (learning.SOONER, learning.GROWS, learning.BEST_IS_LEVEL):
        pairs = zip(steps["perplexity"], steps[column], strict=True)
        return ", ".join(f"≤{at:g}: {it:.2f}×" for at, it in pairs)
    return None
