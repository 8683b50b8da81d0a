"""The claims of the paper's Q1 (stability), judged on the runs at hand."""

from collections.abc import Callable, Sequence

import pandas as pd

from analysis.cells import Cell, by_setting, differences
from analysis.claims import learning
from analysis.claims.papers_own import Judged, papers_own
from analysis.claims.rows import COLUMNS, NOT_THE_PAPERS, Row, at, row, unless_smoke
from analysis.claims.verdicts import (
    FAILS,
    HOLDS,
    UNTESTED,
    Verdict,
    grows_with_drift,
    mostly_delay,
    varies_less,
)
from analysis.counterparts import Published, papers_batch, papers_row
from analysis.q1.control import flush_of, splits
from analysis.q1.drift import largest_drift
from analysis.statistics import rms_of_std


def q1_claims(made: Sequence[Cell], published: Published) -> pd.DataFrame:
    """Return one row per claim and place where it can be looked at; columns as in
    `analysis.claims.COLUMNS`.

    Rows are never pooled over scales or clocks. Loss claims are made per batch size and PACI
    variant of Δmax 1 or 2; drift and memory claims once per scale and clock, on the worst run,
    stage and segment.
    """
    own, rows = papers_own(published), []
    for setting, group in by_setting(made).items():
        stands_for = papers_batch(group[0], made, published("table_3"))
        judged = _loss_claims(group, setting.scale, stands_for, published, own)
        rows += [it | at(*setting) for it in judged]
    for scale, clock in sorted({(cell.scale, cell.clock) for cell in made}):
        group = [cell for cell in made if (cell.scale, cell.clock) == (scale, clock)]
        place: Row = {"batch": "all", "scale": scale, "clock": clock}
        rows += [found | place for found in _runtime_claims(group)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _loss_claims(
    group: Sequence[Cell],
    scale: str,
    stands_for: int | None,
    published: Published,
    own: Judged,
) -> list[Row]:
    flush = flush_of(group)
    bounded = [cell for cell in group if cell.variant.is_mild_paci]
    rows = []
    for cell in bounded:
        label = cell.variant.label
        theirs = [
            papers_row(published("table_3"), batch=stands_for, method=name)
            for name in (label, "1f1b-flush")
        ]
        for claim, rule, quoted in (
            (learning.TRACKS, _tracks, "{loss:.2f} ± {loss_std:g}"),
            (learning.VARIES_LESS, _varies_less, "{rms_std:g}"),
        ):
            paper = " vs ".join(quoted.format(**it) for it in theirs) if all(theirs) else "–"
            verdict = _against(flush, cell, scale, rule)
            rows.append(row(claim, label, verdict, paper, own.get((claim, stands_for or 0, label))))
    if not bounded:
        missing = Verdict("–", UNTESTED, "no completed paci run with Δmax 1 or 2")
        rows.append(row(learning.TRACKS, "–", missing, "–"))
    plain = [cell for cell in group if cell.variant.is_paci or cell.variant.name == "async-1f1b"]
    plain = [cell for cell in plain if not differences(cell, plain[0])]
    ordered = [(c.variant.label, c.variant.max_drift, c.final_losses) for c in plain]
    verdict = unless_smoke(scale) or grows_with_drift(ordered)
    rows.append(row(f"gap to flush grows with Δmax {NOT_THE_PAPERS}", "all", verdict))
    for split in splits(group, flush):
        verdict = unless_smoke(scale) or mostly_delay(split.by_seed)
        claim = f"the gap is delay, not inconsistency {NOT_THE_PAPERS}"
        rows.append(row(claim, split.live.variant.label, verdict))
    return rows


def _tracks(paci: Cell, flush: Cell) -> Verdict:
    return learning.tracks(paci.final_losses, flush.final_losses)


def _varies_less(paci: Cell, flush: Cell) -> Verdict:
    seeds = min(paci.seeds, flush.seeds)
    return varies_less(rms_of_std(paci.binned), rms_of_std(flush.binned), seeds)


def _against(
    flush: Cell | None, cell: Cell, scale: str, rule: Callable[[Cell, Cell], Verdict]
) -> Verdict:
    if flush is None:
        return Verdict("–", UNTESTED, "no completed 1f1b-flush run")
    if others := differences(cell, flush):
        return Verdict("–", UNTESTED, f"differs from flush in {', '.join(others)} too")
    return unless_smoke(scale) or rule(cell, flush)


def _runtime_claims(group: Sequence[Cell]) -> list[Row]:
    # A run that diverged in its first segment has nothing to say here.
    group = [cell for cell in group if cell.completed or not cell.stages.empty]
    live = [it for it in group if it.variant.asynchronous and it.variant.weights == "live"]
    paci = [cell for cell in group if cell.variant.is_paci]
    flush = [cell for cell in group if cell.variant.is_flush]
    return [
        row("drift within its bound", "all", drift_within_bound(live)),
        row("one copy of the weights", "paci", one_copy(live)),
        row("activation peak of flush", "paci", activation_peak(paci, flush)),
    ]


def drift_within_bound(group: Sequence[Cell]) -> Verdict:
    """Judge whether at every stage the largest measured drift is at most ⌈(N-1-i+slack)/a⌉.

    It is not tested unless every stage of every run has a measurement.
    """
    if not group:
        return Verdict("–", UNTESTED, "no completed run of live weights")
    measured: dict[str, int] = {}
    beyond: list[str] = []
    for cell in group:
        largest = largest_drift([cell])
        counts = cell.stages[cell.stages["drift"].map(bool)].groupby("run")["stage"].nunique()
        if not {*cell.completed} <= {*counts.index} or (counts < cell.variant.stages).any():
            return Verdict("–", UNTESTED, f"{cell.variant.label} logged no drift at some stage")
        label, bound = cell.variant.label, cell.variant.drift_bound
        measured[label] = max(measured.get(label, 0), int(largest.max()))
        beyond += [f"{label}, stage {i}" for i, drift in largest.items() if drift > bound(i)]
    ours = ", ".join(f"{label}: {drift}" for label, drift in measured.items())
    if beyond:
        return Verdict(ours, FAILS, f"beyond the bound at {beyond[0]}")
    return Verdict(ours, HOLDS, "every stage of every run")


def one_copy(group: Sequence[Cell]) -> Verdict:
    """Judge whether no stage ever kept bytes of another version of its weights."""
    kept = [cell.stages["version_bytes"] for cell in group]
    if not group or any(column.empty or column.isna().any() for column in kept):
        return Verdict("–", UNTESTED, "no log of version bytes")
    most = int(max(column.max() for column in kept))
    verdict = HOLDS if most == 0 else FAILS
    return Verdict(f"{most} bytes of other versions", verdict, "every stage of every run")


def activation_peak(paci: Sequence[Cell], flush: Sequence[Cell]) -> Verdict:
    """Judge whether each PACI stage's peak of saved activations is at most flush's, to within 1 %.

    They are compared at equal micro-batch size, whichever batch it belongs to: activations are
    saved per micro-batch, so another size is another quantity. A variant without its match is not
    tested; the number is the largest ratio over stages.
    """
    if not paci or not flush:
        return Verdict("–", UNTESTED, "needs completed paci and 1f1b-flush runs")
    ratios: dict[str, float] = {}
    unmatched: list[str] = []
    for cell in paci:
        matches = [other for other in flush if _microbatch(other) == _microbatch(cell)]
        if not matches:
            unmatched.append(f"{cell.variant.label} at batch {cell.batch}")
            continue
        theirs = pd.concat([_peak(other) for other in matches], axis=1).max(axis=1)
        ratio = float((_peak(cell) / theirs).max())
        ratios[cell.variant.label] = max(ratio, ratios.get(cell.variant.label, 0))
    ours = ", ".join(f"{label}: {ratio:.2f}×" for label, ratio in ratios.items()) or "–"
    if any(ratio > 1.01 for ratio in ratios.values()):
        return Verdict(ours, FAILS, "above flush at equal micro-batch size")
    if not ratios:
        return Verdict(ours, UNTESTED, "no flush run of the same micro-batch size")
    skipped = f"; no flush run to match {', '.join(unmatched)}" if unmatched else ""
    return Verdict(ours, HOLDS, "at equal micro-batch size" + skipped)


def _microbatch(cell: Cell) -> tuple[float, int]:
    """Return the sequences of a micro-batch, and the number of stages that they run through."""
    return cell.batch / cell.variant.accumulation, cell.variant.stages


def _peak(cell: Cell) -> pd.Series:
    return cell.stages.groupby("stage")["activation_bytes"].max()
