"""Our simulation of the published zero-bubble configurations, against what the paper computed."""

import pandas as pd
import pytest

from analysis.claims.extrapolation import above, extrapolation_claims, near
from analysis.claims.verdicts import FAILS, HOLDS
from analysis.extrapolation.zero_bubble import SCHEDULES, compared, extrapolated, settings
from paper_figures.published import published


@pytest.fixture(scope="module")
def made():
    return compared(published("zero_bubble"), published("zero_bubble_times"))


def test_simulated_bubble_rates_are_the_published_ones(made):
    """1F1B and ZB-1p to the last digit that is printed; the others as near as the orders are."""
    assert len(made) == 12 * len(SCHEDULES)
    difference = made["simulated bubble"] - made["published bubble"]
    assert difference[made["schedule"].isin(["1F1B", "ZB-1p"])].abs().max() < 0.00005
    assert difference[made["schedule"] == "1F1B-I"].between(0, 0.004).all()
    assert difference[made["schedule"] == "ZB-2p"].between(0, 0.045).all()


def test_published_throughput_is_a_little_below_the_simulated(made):
    ratio = made["published"] / made["simulated"]
    assert ratio[made["schedule"] != "1F1B-I"].between(0.91, 0.97).all()
    assert ratio[made["schedule"] == "1F1B-I"].between(0.85, 0.93).all()


def test_simulated_paci_waits_for_messages_only(made):
    """N micro-batches are in flight, and each is sent up and down once: 2 (N-1) messages."""
    for it in settings(published("zero_bubble_times")):
        N = it.ranks
        idle = 2 * (N - 1) * it.transfer_us / (N * it.work)
        mine = made[(made.model == it.model) & (made.m == it.microbatches)]
        rate = mine["simulated bubble"][mine["schedule"] == "PACI"].item()
        assert rate / (1 - rate) == pytest.approx(idle, rel=0.01)


def test_paci_is_extrapolated_by_the_papers_method():
    made = extrapolated(published("zero_bubble")).set_index("variant").query("ranks == 32")
    paci = made.loc["PACI"].set_index("microbatches")
    assert paci.loc[96, "samples_per_gpu_per_second"] == pytest.approx(0.76 * (96 + 31) / 96)
    assert set(paci["memory_gb"]) == {43}


def test_the_claims_are_judged_at_every_m():
    rates = pd.DataFrame({"PACI": [1.0, 0.96], "ZB": [0.9, 1.0]}, index=[96, 128])
    assert above(rates, "ZB")[1:] == (FAILS, "not above at m = 128")
    assert near(rates, "ZB").verdict == HOLDS
    assert near(rates * [0.9, 1], "ZB").verdict == FAILS
    assert above(rates, "ZB").ours == "1.000, 0.960 vs 0.900, 1.000 samples per GPU and second"


def test_the_claims_hold_by_the_papers_method_and_by_simulation():
    claims = extrapolation_claims(published("zero_bubble"), published("zero_bubble_times"))
    assert claims["clock"].str.startswith("published").sum() == 3
    assert set(claims["verdict"]) == {HOLDS}
    assert "32 micro-batches in flight vs 32" in claims["ours"].iloc[-1]
