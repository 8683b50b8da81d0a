"""One short script per figure and table; `python -m paper_figures RUNS` makes them all.

A module with a function `draw(frames) -> Figure`, `table(frames) -> DataFrame` or both is a figure
or table, and is found by that alone. Its `EXPERIMENT` names the runs it is about.
"""
