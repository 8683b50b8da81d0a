"""Run folders in; data frames, statistics and verdicts out.

What they go through, from the first to the last:

    jsonl logs configs         the files of a run: lines, columns of numbers, what it is a run of
    states                     what became of a run, and whether it is evidence
    runfolder runs frames      one folder, all folders, and the data frames that they are read into
    variants cells             a method as a line of a table, and its runs, which differ by seed
    statistics                 means, spreads and intervals, over seeds and repetitions
    drift control              Q1: how far weights moved, and what that costs
    thresholds speedup         Q2: time to a perplexity, and how much sooner PACI is there
    throughput                 Q3: tokens/s, bubbles and bytes
    simulations zero_bubble    beyond the paper: our simulations, and a published table beside them
    counterparts               which of the paper's figures stands beside ours
    verdicts claims/           rules that judge a measurement, and all claims, judged
    made report                what was made of the runs of a folder: `python -m analysis.report`
"""

from analysis.cells import CannotAnswer, Cell, Setting, by_setting, cells
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
    "read_runs",
]
