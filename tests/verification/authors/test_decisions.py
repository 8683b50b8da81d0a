"""paci's rule is held against every decision of a recording."""

import pytest

from paci.schedules.paci import PACI
from verification.authors.decisions import compare_decisions

LAST = "F0 B0 send0 F1 B1 send1"


def test_a_stage_that_follows_the_rule_agrees(recorded):
    check = compare_decisions(recorded("F0 F1 refuse2 B0 F2 B1 B2", LAST), PACI(2, 1))
    assert check.equal
    assert check.detail == "11 of 11"


@pytest.mark.parametrize(
    "first",
    [
        "F0 F1 F2 B0 B1 B2",  # three in flight where two are admitted
        "F0 refuse1 B0 F1 B1",  # refuses what the rule admits
    ],
)
def test_a_stage_that_does_not_is_noticed(recorded, first):
    assert not compare_decisions(recorded(first, LAST), PACI(2, 1)).equal
