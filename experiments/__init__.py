"""Commands that turn a configuration of conf/ into run folders: `python -m experiments.NAME`.

    prepare       tokenise a text, once                  train        one run
    sweep         the runs of an experiment              status       the state of each run
    methods       the field's methods, simulated         extrapolate  simulations beyond the paper
    timeline      where the time of a run went           replay       a run again, bit by bit
    gpu_hours     expected GPU-hours of an experiment
    export        runs to TensorBoard, Weights & Biases or MLflow

The folders behind them, in the order in which a run meets them:

    terminal/     command lines, progress bars, a line for each run
    config/       configurations: composed, checked, and what follows from them
    grid/         the points of a grid of runs or simulations, and runs on this machine
    slurm/        runs on a cluster
    run/          one run: its folder, identity, cut, costs, pipeline and task
    data/         text in micro-batches
    models/       models in stages
    optimizers/   optimizers and learning rates by name
    dashboards/   run folders in TensorBoard, Weights & Biases and MLflow
"""

from importlib.util import find_spec
from pathlib import Path

if find_spec("hydra") is None:
    raise ModuleNotFoundError(
        "experiments needs more packages than paci does: pip install 'paci-harness[harness]'"
    )

_PACKAGED = Path(__file__).resolve().parent / "conf"
CONF = _PACKAGED if _PACKAGED.is_dir() else _PACKAGED.parents[1] / "conf"
"""The folder conf/ of the checkout, or its copy in a wheel."""
