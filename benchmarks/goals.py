"""The goals of figures, each on the end of its interval that is hardest to reach."""

from benchmarks.rounds import Estimate

AT_LEAST = {
    "local_vs_plain": 0.95,
    "local_vs_plain_8_sequences": 0.95,
    "emulated_flush_vs_theory": 0.96,
    "emulated_paci_vs_theory": 0.96,
    "emulated_paci_slack2_vs_theory": 0.975,
    "paci_vs_torch_1f1b": 1.15,
}
AT_MOST = {
    "stashed_vs_live": 1.03,
    "double_buffered_vs_live": 1.03,
    "empty_stage_vs_bare": 1.3,
    "empty_stage_512k_vs_bare": 1.15,
}


def verdict(key: str, estimate: Estimate) -> str:
    """Say whether the whole interval of the figure reaches its goal; empty if it has none."""
    if key in AT_LEAST:
        goal, worst, best = AT_LEAST[key], estimate.low, estimate.high
        text, reached, possible = f"goal >= {goal:g}", worst >= goal, best >= goal
    elif key in AT_MOST:
        goal, worst, best = AT_MOST[key], estimate.high, estimate.low
        text, reached, possible = f"goal <= {goal:g}", worst <= goal, best <= goal
    else:
        return ""
    return f"{text}: {'reached' if reached else 'undecided' if possible else 'missed'}"
