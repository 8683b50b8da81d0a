"""paci's schedule, asked at every decision of the authors' stages what it would have done.

A stage of theirs looks for a gradient, and else for an input, which it may refuse. The schedule is
shown the same: counts of what is finished, and what is there to be taken.

    their stage 1:   F0   refuses   B0   F1     what the schedule is shown, and should answer
                     │       │       │    └──   no gradient, an input   F
                     │       │       └───────   a gradient, an input    B (backward first)
                     │       └───────────────   no gradient, an input   nothing: too many in flight
                     └───────────────────────   no gradient, an input   F
"""

from paci.actions import BACKWARD, FORWARD
from paci.schedules import Schedule, StageView
from verification.authors.outcome import Check
from verification.authors.recording import Event, Recording


def compare_decisions(recording: Recording, schedule: Schedule) -> Check:
    """Return whether `schedule` decides as the recorded stages did, every time."""
    answers = [
        answer
        for stage, events in enumerate(recording.events)
        for answer in _answers(schedule, stage, events)
    ]
    same = sum(answers)
    return Check(same == len(answers), f"{same} of {len(answers)}")


def _answers(schedule: Schedule, stage: int, events: list[Event]) -> list[bool]:
    """Return, for every decision of a stage, whether `schedule` makes it, too."""
    view = StageView(stage, is_last=stage == schedule.stages - 1)
    same = []
    for event in events:
        if event.kind not in (FORWARD, BACKWARD, "refuse"):
            continue
        view.inputs = view.forwards + 1
        if event.kind == BACKWARD:
            view.gradients = view.backwards + 1
        choice = schedule.next((view,))
        expected = None if event.kind == "refuse" else event.kind
        same.append((choice and choice[1]) == expected)
        if expected:
            view.finish(expected)
    return same
