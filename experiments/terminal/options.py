"""Options of the commands that compose conf/, which are those of Hydra's own commands.

--help, -h              the command, every setting with its comment, every group with its options
--cfg job [--resolve]   the composed configuration, with the values that interpolations refer to
--info [WHAT]           how it was composed: defaults-tree, defaults, config, searchpath, plugins
--multirun, -m          answered with the sweep that does the same
"""

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from omegaconf import OmegaConf

from experiments import CONF
from experiments.config import select
from experiments.config.compose import describe
from experiments.grid.multirun import sweep_command
from experiments.terminal.command_line import command
from experiments.terminal.settings import settings

INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


def overrides(documentation: str, folder: Path = CONF) -> list[str]:
    """Return the command line's overrides of the configuration in `folder`.

    If it has an option, print what that asks for and end the command instead. `documentation` is
    the command's own, for --help. Raises ValueError for an option that there is not.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("-c", "--cfg", choices=["job"])
    parser.add_argument("--resolve", action="store_true")
    parser.add_argument("-i", "--info", choices=INFO, nargs="?", const="all")
    parser.add_argument("-m", "--multirun", action="store_true")
    options, given = parser.parse_known_args(sys.argv[1:])
    if options.help:
        _print(f"{documentation.strip()}\n\n{OPTIONS}\n\n{settings(given, folder)}")
    if options.cfg:
        config = select(given, folder)
        _print(OmegaConf.to_yaml(config, resolve=options.resolve).rstrip())
    if options.info:
        _print(describe(options.info, given, folder))
    if options.multirun:
        raise ValueError(
            f"a command does one run, and a grid has its own command: {sweep_command(given)}"
        )
    return given


OPTIONS = """\
Options, as Hydra has them:
  --cfg job [--resolve]   print the composed configuration
  --info [WHAT]           print how it is composed: defaults-tree, defaults, config or searchpath
  --multirun, -m          print the command that runs the same grid"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _print(text: str) -> NoReturn:
    with command():
        print(text)
    raise SystemExit(0)
