"""Send runs to a dashboard: python -m experiments.export RUNS --to tensorboard [--follow]

Sends losses, learning rates, validation, throughput, and each stage's drift, memory and busy time,
by update, of all run folders below RUNS, to tensorboard, wandb (Weights & Biases) or mlflow. Given
again, it sends only what is new. With --follow it goes on until all runs have ended.

Nothing leaves the machine unless WANDB_MODE=online, or MLFLOW_TRACKING_URI names a server: event
files, runs and a database are written into RUNS/.dashboards, or the folder of --into. Each
dashboard is an extra of the package: pip install 'paci-harness[wandb]'.
"""

import argparse
import time
from importlib import import_module
from pathlib import Path

from experiments.dashboards.dashboard import Dashboard
from experiments.dashboards.export import Export, Round
from experiments.terminal.command_line import command, user_errors

EVERY = 10.0  # seconds between two looks at the run folders
DASHBOARDS = {"tensorboard": "TensorBoard", "wandb": "WandB", "mlflow": "MLflow"}


@command()
def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.export",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", type=Path, help="a folder with run folders at any depth")
    parser.add_argument("--to", choices=DASHBOARDS, required=True, help="the dashboard")
    parser.add_argument("--into", type=Path, help="its folder; default: RUNS/.dashboards/NAME")
    parser.add_argument("--follow", action="store_true", help="repeat until all runs have ended")
    given = parser.parse_intermixed_args()
    with user_errors():
        if not given.runs.is_dir():
            raise ValueError(f"there is no folder {given.runs}")
        into = given.into or given.runs / ".dashboards" / given.to
        export = Export(given.runs, dashboard(given.to, into))
    try:
        said = follow(export) if given.follow else report(export.round())
    finally:
        export.close()
    if not said:
        print(f"nothing new in {given.runs}")
    print(f"Look: {export.dashboard.how_to_look()}")


def dashboard(name: str, folder: Path) -> Dashboard:
    """Return the dashboard `name`. Raises ValueError if its package is not installed."""
    module = import_module(f"experiments.dashboards.{name}")
    try:
        made: Dashboard = getattr(module, DASHBOARDS[name])(folder)
    except ImportError as error:
        raise ValueError(
            f"--to {name} needs a package that is not installed ({error}): "
            f"pip install 'paci-harness[{name}]'"
        ) from None
    return made


def follow(export: Export) -> bool:
    """Send what is new until all runs have ended, or until Ctrl-C; return whether there was any."""
    said = False
    try:
        while True:
            sent = export.round()
            said |= report(sent)
            if not sent.unended:
                return said
            time.sleep(EVERY)
    except KeyboardInterrupt:
        return said


def report(sent: Round) -> bool:
    """Say how many steps were sent, and return whether there were any."""
    if sent.steps:
        plural = "s" * (sent.runs != 1)
        print(f"{sent.steps} steps of {sent.runs} run{plural} sent", flush=True)
    return sent.steps > 0


if __name__ == "__main__":
    main()
