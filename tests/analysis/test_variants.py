import pytest

from analysis import Variant


def variant(method="paci", schedule="paci", a=4, slack=0, weights="live", stages=8):
    return Variant(method, schedule, a, slack, weights, stages=stages)


@pytest.mark.parametrize(
    ("made", "label"),
    [
        (variant("1f1b-flush", "1f1b-flush", 8), "1f1b-flush m=8"),
        (variant(), "paci a=4"),
        (variant(slack=7), "paci a=4 slack=7"),
        (variant(weights="stashed"), "paci a=4 stashed"),
        (variant("async-1f1b", "paci", 1), "async-1f1b"),
        (variant("async-1f1b", "async-1f1b", 1), "async-1f1b"),
        (variant("pipedream", "paci", 1, weights="stashed"), "pipedream"),
        (
            Variant("zb-2p", "zb-2p", 8, options={"limit": 9}, stages=8),
            "zb-2p m=8 limit=9",
        ),
    ],
)
def test_labels(made, label):
    assert made.label == label


@pytest.mark.parametrize(
    ("made", "bounds"),
    [
        (variant(a=8), [1, 1, 1, 1, 1, 1, 1, 0]),
        (variant(a=4), [2, 2, 2, 1, 1, 1, 1, 0]),
        (variant(a=1), [7, 6, 5, 4, 3, 2, 1, 0]),
        (variant(a=4, slack=7), [4, 4, 3, 3, 3, 3, 2, 0]),
        (variant("gpipe", "gpipe", 8), [0] * 8),
        (variant(weights="stashed"), [0] * 8),
    ],
)
def test_drift_bounds_are_the_ceiling(made, bounds):
    assert [made.drift_bound(stage) for stage in range(8)] == bounds
    assert made.max_drift == bounds[0]


def test_flush_leads_and_drift_grows_down_a_table():
    order = ["1f1b-flush m=8", "paci a=16", "paci a=8", "paci a=4", "paci a=4 stashed", "paci a=1"]
    made = [variant(a=a) for a in (1, 8, 4, 16)] + [variant("1f1b-flush", "1f1b-flush", 8)]
    made.append(variant(weights="stashed"))
    assert [one.label for one in sorted(made, key=lambda one: one.order)] == order
