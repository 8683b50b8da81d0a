"""The verdicts of the table."""

from verification.authors.outcome import Check
from verification.authors.table import Failure, Row, render

EQUAL, DIFFERENT = {"losses": Check(True)}, {"losses": Check(False, "by up to 0.5")}


def test_a_known_difference_is_expected_and_must_appear():
    assert Row("c", "p", EQUAL).as_expected
    assert not Row("c", "p", DIFFERENT).as_expected
    assert Row("c", "p", DIFFERENT, known="why").as_expected
    assert not Row("c", "p", EQUAL, known="why").as_expected


def test_the_table_counts_checks_and_comparisons():
    rows = [Row("one", "p", EQUAL), Row("two", "p", DIFFERENT), Failure("three", "broke")]
    text = render(rows)
    assert "1 of 2 checks are equal bitwise; 1 of 3 comparisons came out as expected." in text
    assert "≠ by up to 0.5" in text
    assert "broke" in text
