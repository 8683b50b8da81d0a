"""From a configuration of conf/ to a run folder. Every command is `python -m experiments.NAME`.

    prepare       tokenise a text, once                  train        one run
    sweep         the runs of an experiment              status       what has become of them
    methods       the field's methods, simulated         extrapolate  simulations beyond the paper
    timeline      where the time of a run went           replay       a run again, bit by bit
    hours         expected GPU-hours of an experiment

What they are made of, in the order in which a run meets it:

    cli config/          what a user says: command lines, configurations, mistakes
    axes grid points     the points of a grid: of runs, of simulations
    dispatch slurm/      where runs happen: on this machine, on a cluster
    run folder identity  one run, the folder that the analysis reads, what the run depends on
    rank                 whether this process is one of several that somebody else started
    data/ models/        text in micro-batches, models in stages
    cache cut costs      what a folder of runs shares: the cut into stages, measured times
    stopwatch            what time it is, for what is measured
    stages optimizer     what a stage computes, and how it learns
    pipelines            the pipeline of a run, on one of the executors of `paci`
    training throughput  what a run does, by its task
    progress summary     what a terminal shows
    environment          on what machine, with what code
"""

from pathlib import Path

_PACKAGED = Path(__file__).resolve().parent / "conf"
CONF = _PACKAGED if _PACKAGED.is_dir() else _PACKAGED.parents[1] / "conf"
"""The folder with config.yaml and a folder for each group: the checkout's, or that of a wheel."""
