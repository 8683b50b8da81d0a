"""Run folders in; data frames, statistics and verdicts out.

In the order in which a number is made:

    logs configs states        the files of a run: its lines as columns, its settings, its state
    runfolder runs frames      one folder, all folders, and the data frames that they are read into
    variants cells             a method as a line of a table, and its runs, which differ by seed
    statistics steady_state    means, spreads and intervals; seconds per update in steady state
    efficiency comparison      what an update is worth; any runs by any settings
    studies tuning horizon     experiments beside the paper's plan: choices, rates, length
    counterparts               the number of the paper that stands beside ours
    q1/                        stability: drift of the weights, delay and inconsistency
    q2/                        time to a perplexity, and speed-ups
    q3/                        throughput, bubbles and memory
    extrapolation/             simulations, and published measurements of larger models
    claims/                    the paper's claims, and the rules that judge them
    manifest report            the figures and tables of a folder of runs, and why some are missing:
                               `python -m analysis.report`
"""

from importlib.util import find_spec

if find_spec("pandas") is None:
    raise ModuleNotFoundError(
        "analysis needs more packages than paci does: pip install 'paci-harness[harness]'"
    )

from analysis.cells import CannotAnswer, Cell, Setting, by_setting, cells, of_paper, planned
from analysis.frames import Frames
from analysis.runs import NoRuns, read_runs
from analysis.variants import Variant

__all__ = [
    "CannotAnswer",
    "Cell",
    "Frames",
    "NoRuns",
    "Setting",
    "Variant",
    "by_setting",
    "cells",
    "of_paper",
    "planned",
    "read_runs",
]
