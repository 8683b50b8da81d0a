"""Run folders in; data frames, statistics and verdicts out."""

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
