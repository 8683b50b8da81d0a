"""Compare one case from end to end: the rows of the table."""

from pathlib import Path

from paci.schedules import Schedule
from paci.schedules.paci import PACI
from verification.authors import workload
from verification.authors.cases import CASES, Case
from verification.authors.decisions import compare_decisions
from verification.authors.outcome import Check, compare
from verification.authors.recording import Recording, record
from verification.authors.replay import replay, replay_distributed, train_in_own_order
from verification.authors.table import Row

RATE_FAULT = "their fault: the first update after resuming has rate 0"


def compare_case(checkout: Path, name: str, folder: Path) -> list[Row]:
    """Train the case `name` with the authors' code and with paci, and compare.

    `folder` keeps what the authors' code leaves. Raises AuthorsFailed if it fails.
    """
    case = CASES[name]
    if case.resume_at is not None:
        return _compare_resumed(checkout, name, folder, case.resume_at)
    recording = record(checkout, name, folder, 0, case.updates)
    theirs, orders = recording.outcome(), recording.orders()
    checks = _decisions(case, recording) | compare(theirs, replay(case, orders))
    rows = [Row(name, "LocalPipeline, their order", checks)]
    if case.distributed:
        checks = compare(theirs, replay_distributed(case, orders))
        rows.append(Row(name, "DistributedPipeline, their order", checks))
    if case.schedule == "1f1b-flush":
        checks = compare(theirs, train_in_own_order(case))
        del checks["in_flight"]  # of their order; the weights do not depend on it
        rows.append(Row(name, "LocalPipeline, its own order", checks))
    return rows


def _compare_resumed(checkout: Path, name: str, folder: Path, at: int) -> list[Row]:
    """Compare a training that was resumed after update `at` with one never interrupted."""
    case = CASES[name]
    factor = workload.learning_rate(case.updates)
    before = record(checkout, name, folder, 0, at)
    whole = before.then(record(checkout, name, folder, at, case.updates))

    def with_their_rates(version: int) -> float:
        return 0.0 if version == at else factor(version)

    theirs, orders = whole.outcome(), whole.orders()
    until = compare(before.outcome(), replay(case, before.orders()))
    meant = compare(theirs, replay(case, orders))
    theirs_too = compare(theirs, replay(case, orders, with_their_rates))
    return [
        Row(name, "LocalPipeline, until the checkpoint", _decisions(case, before) | until),
        Row(name, "LocalPipeline, never interrupted", _decisions(case, whole) | meant, RATE_FAULT),
        Row(name, "LocalPipeline, with that rate of 0", theirs_too),
    ]


def _decisions(case: Case, recording: Recording) -> dict[str, Check]:
    schedule = _schedule(case)
    return {"decisions": compare_decisions(recording, schedule)} if schedule else {}


def _schedule(case: Case) -> Schedule | None:
    """Return the schedule that should decide as the authors' stages do.

    There is none for the flush: theirs runs whichever of forward and backward is ready, 1F1B one
    fixed order.
    """
    if case.schedule != "paci":
        return None
    return PACI(case.stages, case.accumulation, in_flight=case.in_flight)
