"""One short script per figure and table; `python -m paper_figures RUNS` makes them all.

The paper's, by its numbers:

    table_1_methods                 Tables 1 and 5
    table_2_extrapolation           Table 2
    table_3_stability               Table 3
    table_4_runtime                 Table 4
    table_6_time_to_perplexity      Table 6
    figure_1_perplexity_vs_hours    Figure 1, and so on to
    figure_9_throughput             Figure 9

Beyond the paper:

    claims                          every claim, and whether it holds
    drift                           the drift of every stage against its bound
    delay_or_inconsistency          what PACI's distance from flush is made of
    final_loss                      final loss, perplexity and drift of every training run
    memory_parts                    peak memory rank by rank, split into what it is for
    update_efficiency               how many updates of flush an update is worth
    utilisation                     jitter, late messages and depth, and what slack buys
    precision, recompute, clipping  studies of computation, each of the experiment of its name
    rates, horizon, optimizers      studies of training, likewise
    throughput_of_methods           tokens per second of every method
    training_loss                   Figure 5 with every training run, whatever its method
    validation_perplexity           Figure 6 with every training run
    zero_bubble                     the simulator against published bubble rates

`python -m paper_figures.compare RUNS --by KEY,KEY --metric NAME` compares any runs by any settings.

The files are written to RUNS/figures. Its `manifest.json` names the runs behind each, or the reason
why it was not made. `python -m paper_figures.report RUNS` puts all of them on one page.

A module is found as a figure or table if it has

    NEEDS = "training"          the tasks of the runs that it reads: "training", "throughput" or
                                "simulations", several in a tuple; None if it needs no runs
    draw(frames) -> Figure      and `table(frames) -> DataFrame`, or one of the two. `frames` are
                                those of `analysis.read_runs`; no argument if NEEDS is None
    note(table) -> str          the text below the table, if there is any

It ends in `sys.exit(main(["its_name"]))`, so that `python -m paper_figures.its_name RUNS` makes it
alone. The first paragraph of its docstring is its title. It raises `CannotAnswer` with a sentence
if the runs do not suffice.
"""
