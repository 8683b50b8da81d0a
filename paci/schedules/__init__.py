"""Pipeline schedules by name. One file holds one rule; `rule.py` defines what a rule is."""

import inspect
from typing import Any

from paci.schedules.dualpipev import DualPipeV
from paci.schedules.fixed_order import FixedOrder
from paci.schedules.gpipe import GPipe
from paci.schedules.interleaved import Interleaved1F1B
from paci.schedules.interleaved_zb_h1 import InterleavedZBH1
from paci.schedules.one_f_one_b import OneFOneBFlush
from paci.schedules.paci import PACI, Async1F1B
from paci.schedules.rule import Schedule, StageView
from paci.schedules.zb_2p import ZB1P, ZB2P
from paci.schedules.zb_h1 import ZBH1
from paci.schedules.zb_h2 import ZBH2
from paci.schedules.zbv import ZBV

SCHEDULES: dict[str, type[Schedule]] = {
    schedule.name: schedule
    for schedule in (
        GPipe,
        OneFOneBFlush,
        Interleaved1F1B,
        ZBH1,
        ZBH2,
        ZB1P,
        ZB2P,
        ZBV,
        InterleavedZBH1,
        DualPipeV,
        PACI,
        Async1F1B,
    )
}


def build(
    schedule: "str | Schedule",
    stages: int,
    accumulation: int | None = None,
    slack: int = 0,
    **options: Any,
) -> Schedule:
    """Return the rule called `schedule` for `stages` stages; return a `Schedule` as it is.

    `accumulation` None is the schedule's own default (4; 1 for async-1f1b). Raises ValueError for
    an unknown name, for an option that the schedule does not have, and for impossible values.
    """
    if isinstance(schedule, Schedule):
        if schedule.stages != stages:
            raise ValueError(f"the schedule is for {schedule.stages} stages, not for {stages}")
        if accumulation is not None or slack or options:
            raise ValueError("a schedule that is built already takes no accumulation or options")
        return schedule
    if schedule not in SCHEDULES:
        raise ValueError(f"unknown schedule {schedule!r}: choose from {', '.join(SCHEDULES)}")
    rule = SCHEDULES[schedule]
    if slack != 0:
        options["slack"] = slack
    known = list(inspect.signature(rule).parameters)[2:]
    for option in options:
        if option not in known:
            offer = f"its options are {', '.join(known)}" if known else "it has no options"
            raise ValueError(f"{schedule} has no option {option!r}: {offer}")
    return rule(stages, accumulation, **options)


__all__ = ["SCHEDULES", "FixedOrder", "Schedule", "StageView", "build"]
