"""paci against the authors' code; AUTHORS names a checkout of it."""

import pytest

from verification.authors.cases import CASES
from verification.authors.compare import compare_case
from verification.authors.outcome import compare
from verification.authors.recording import record
from verification.authors.replay import replay, train_in_own_order

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", CASES)
def test_paci_computes_what_the_authors_code_computes(checkout, name, tmp_path):
    rows = compare_case(checkout, name, tmp_path)
    assert rows
    for row in rows:
        assert row.as_expected, (row.against, {k: str(check) for k, check in row.checks.items()})


def test_another_order_is_noticed(checkout, tmp_path):
    """Bitwise equality means something: paci's own order leaves other weights."""
    name = "paci N=4 a=1"
    case = CASES[name]
    recording = record(checkout, name, tmp_path, 0, case.updates)
    assert compare(recording.outcome(), replay(case, recording.orders()))["weights"].equal
    assert not compare(recording.outcome(), train_in_own_order(case))["weights"].equal
