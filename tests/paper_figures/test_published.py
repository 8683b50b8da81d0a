"""Every number of the papers says where it is from."""

import pytest

from paper_figures.published import REFERENCE, published

SOURCES = {
    **dict.fromkeys(("claims", "q1", "q2", "q3"), r"arXiv 2606\.07881"),
    **dict.fromkeys(("zero_bubble", "zero_bubble_times"), r"Qi et al\..*: .*Table \d"),
    "methods": r"\d{4}|arXiv \d{4}\.\d{5}",
}
NUMBERS = {"q1": "value", "q2": "value", "q3": "value", "claims": "paper", "methods": "bubble"}


def test_every_file_is_looked_at():
    assert {file.stem for file in REFERENCE.iterdir()} == set(SOURCES)


@pytest.mark.parametrize("name", SOURCES)
def test_every_published_number_has_a_source(name):
    found = published(name)
    assert found["source"].str.contains(SOURCES[name]).all()
    numbers = found[NUMBERS[name]] if name in NUMBERS else found
    assert numbers.notna().all(axis=None)
    if "value" in found:
        assert found["unit"].notna().all()
