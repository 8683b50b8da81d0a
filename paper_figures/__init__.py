"""One short script per figure and table; `python -m paper_figures RUNS` makes them all.

They lie in RUNS/figures, with `manifest.json`, which says of each what it was made of or why it was
not. `python -m paper_figures.report RUNS` puts all of it on one page.

A module is a figure or table, and is found, if it has

    EXPERIMENT = "q1"        the runs it is about; ("q1", "q2") if those of several experiments;
                             None if it needs no runs
    draw(frames) -> Figure, table(frames) -> DataFrame, or both: of `analysis.read_runs`, all of
                             the runs there are; without the argument if EXPERIMENT is None
    note(table) -> str       if the table has to say something below itself

and ends in `sys.exit(main(["its_name"]))`, so that `python -m paper_figures.its_name RUNS` makes
it alone. The first sentence of its docstring is its title. It raises `CannotAnswer` with a sentence
if the runs do not suffice.
"""
