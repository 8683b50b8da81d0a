from itertools import combinations

import matplotlib.pyplot as plt
import pytest

from analysis import Variant
from paper_figures import style

METHODS = [
    ("1f1b-flush", 8, {}),
    ("1f1b-flush", 12, {}),
    ("gpipe", 8, {}),
    ("paci", 8, {}),
    ("paci", 4, {}),
    ("paci", 4, {"slack": 2}),
    ("paci", 4, {"slack": 4}),
    ("paci", 4, {"weights": "stashed"}),
    ("pipedream", 1, {"weights": "stashed"}),
    ("async-1f1b", 1, {}),
    ("pipemare", 1, {"weights": "corrected"}),
    ("pipedream-2bw", 8, {"weights": "double-buffered"}),
]


def variant(name, accumulation, options):
    schedule = name if name in ("1f1b-flush", "gpipe", "async-1f1b") else "paci"
    return Variant(name, schedule, accumulation, **options, stages=8)


def test_no_two_methods_look_alike():
    shown = style.looks(variant(*method) for method in METHODS)
    assert len(shown) == len(METHODS)
    for one, other in combinations(shown.values(), 2):
        assert one != other


def test_a_method_keeps_its_colour_in_every_figure():
    paci = variant("paci", 8, {})
    alone, among = (style.looks(these)[paci.label] for these in ([paci], map(_of, METHODS)))
    assert alone == among


def _of(method):
    return variant(*method)


@pytest.mark.parametrize(
    ("low", "scale", "marks"), [(0, "linear", 0), (2, "linear", 1), (2, "log", 0)]
)
def test_an_axis_that_does_not_start_at_0_says_so(low, scale, marks):
    fig, (ax,) = style.panels(1)
    ax.plot([0, 1], [low, 5])
    ax.set_yscale(scale)
    ax.set_ylim(bottom=low or None)
    if not low:
        ax.set_ylim(bottom=0)
    caption = style.finish(fig)
    assert len(ax.lines) == 1 + marks
    assert (style.BREAK in caption) == bool(marks)
    plt.close(fig)
