"""One short script per figure and table; `python -m paper_figures RUNS` makes them all.

A module with a function `draw(frames) -> Figure`, `table(frames) -> DataFrame` or both is a figure
or table, and is found by its `EXPERIMENT`, which names the runs it is about. `zero_bubble` needs
no runs, and is a command of its own: `python -m paper_figures.zero_bubble`.
"""
