"""The command line that every script shares: read the runs, make what can be made, say the rest."""

import argparse
import sys
import time
import traceback
from collections.abc import Mapping
from importlib import import_module
from inspect import signature
from math import inf
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType, ModuleType

import pandas as pd

import paper_figures
from analysis import CannotAnswer, Frames, NoRuns, read_runs
from analysis.made import BROKEN, MADE, REFUSED, Item, read_made
from paper_figures.output import on_screen, save_figure, save_made, save_table
from paper_figures.style import partial_note

SHOWN = ("final_loss", "speedup", "claims")
"""Tables that are also printed, the most important one last."""


def scripts() -> list[str]:
    """Names of the modules that draw a figure or make a table."""
    names = [found.name for found in iter_modules(paper_figures.__path__)]
    modules = {name: import_module(f"paper_figures.{name}") for name in names if name[0] != "_"}
    return [name for name, it in modules.items() if hasattr(it, "EXPERIMENT")]


def experiments_of(module: ModuleType) -> tuple[str, ...]:
    """The experiments whose runs a script is about; none if it needs no runs."""
    said = module.EXPERIMENT
    return (said,) if isinstance(said, str) else tuple(said or ())


def main(names: list[str] | None = None, argv: list[str] | None = None) -> int:
    """Makes the named figures and tables, or all; returns the exit status.

    0 if anything was made of the runs (or at all, of scripts that need none) and no script broke;
    2 if there are no runs where some are needed; else 1.
    """
    modules = {name: import_module(f"paper_figures.{name}") for name in names or scripts()}
    needy = any(experiments_of(module) for module in modules.values())
    steps = any("thresholds" in _parameters(module) for module in modules.values())
    args = _arguments(names, needy, steps).parse_args(argv)
    options = {"thresholds": args.thresholds} if steps else {}
    out = args.out or args.runs / "figures"

    frames, missing = None, "it was not asked for"
    if needy:
        started = time.perf_counter()
        try:
            frames = read_runs(args.runs)
        except NoRuns as error:
            missing = str(error).rstrip(".")
            print(error, file=sys.stderr)
            if names or not args.runs.is_dir():
                return 2
        else:
            print(f"read {len(frames.runs)} runs in {time.perf_counter() - started:.1f} s")

    items, tables = {}, {}
    for count, (name, module) in enumerate(modules.items(), start=1):
        print(f"[{count}/{len(modules)}] {name}", flush=True)
        items[name], tables[name] = make(name, module, frames, missing, out, options)
    save_made(items, out)

    for name in sorted(tables, key=lambda name: SHOWN.index(name) if name in SHOWN else -1):
        if tables[name] is not None and (name in SHOWN or len(modules) == 1):
            note = f"\n\n{items[name].note}" if items[name].note else ""
            print(f"\n{name.replace('_', ' ')}\n\n{on_screen(tables[name])}{note}")
    if frames and frames.notes:
        print("\nAbout the runs:", *frames.notes, sep="\n  ")
    for state, heading in ((REFUSED, "Not made"), (BROKEN, "Broken, which is a bug")):
        if those := [item for item in items.values() if item.state == state]:
            print(f"\n{heading}:", *(f"{item.name}: {item.why}." for item in those), sep="\n  ")
    made = [item for item in items.values() if item.state == MADE]
    print(f"\n{sum(len(item.files) for item in made)} files in {out}")
    if needy and frames is None:
        return 2
    broken = any(item.state == BROKEN for item in items.values())
    return 0 if not broken and any(item.experiments for item in made) >= needy and made else 1


def make(
    name: str,
    module: ModuleType,
    frames: Frames | None,
    missing: str,
    out: Path,
    options: Mapping[str, object] = MappingProxyType({}),
) -> tuple[Item, pd.DataFrame | None]:
    """Makes one script's figure and table, both or neither, and returns what became of it.

    Files that an earlier call made, and that the runs no longer allow, are removed. `missing`
    says why there are no frames, if there are none; `options` go to the functions that have them.
    """
    experiments = experiments_of(module)
    title = (module.__doc__ or name).strip().partition("\n\n")[0].replace("\n", " ")
    item = {"name": name, "title": title, "experiments": experiments}
    try:
        if experiments and frames is None:
            raise CannotAnswer(missing)
        given = (frames,) if experiments else ()
        heeded = {key: value for key, value in options.items() if key in _parameters(module)}
        table = module.table(*given, **heeded) if hasattr(module, "table") else None
        figure = module.draw(*given, **heeded) if hasattr(module, "draw") else None
        note = [module.note(table)] if hasattr(module, "note") else []
    except CannotAnswer as error:
        item |= {"state": REFUSED, "why": str(error).rstrip(".")}
    except Exception as error:
        traceback.print_exc()
        why = traceback.format_exception_only(error)[-1].strip().rstrip(".")
        item |= {"state": BROKEN, "why": why}
    if "state" in item:
        for file in read_made(out).get(name, Item(**item)).files:
            (out / file).unlink(missing_ok=True)
        return Item(**item), None

    files = []
    if experiments:
        mine = frames.of(*experiments)
        note += [partial_note(mine.partial)] if mine.partial else []
        item |= {
            "runs": tuple(mine.used.index),
            "known": len(mine.runs),
            "seeds": mine.used["seed"].nunique(),
        }
    item["note"] = "\n\n".join(note)
    if figure is not None:
        item["caption"] = figure.get_supxlabel()
        files += save_figure(figure, out, name)
    if table is not None:
        files += save_table(table, out, name, item["note"])
    return Item(state=MADE, files=tuple(file.name for file in files), **item), table


def _parameters(module: ModuleType) -> set[str]:
    """What a script's functions take, all of them the same."""
    made = [getattr(module, name) for name in ("draw", "table") if hasattr(module, name)]
    return {name for function in made for name in signature(function).parameters}


def _perplexities(text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(1 < each < inf for each in found):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no list of perplexities above 1, like 18,17,16"
        )
    return found


def _arguments(names: list[str] | None, needy: bool, steps: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m paper_figures{'.' + names[0] if names else ''}",
        description="Makes the paper's figures and tables from run folders.",
    )
    runs = parser.add_argument("runs", type=Path, help="folder of run folders, at any depth")
    if not needy:
        runs.nargs, runs.default = "?", Path("runs")
        runs.help = "folder whose folder figures is written to (default: runs); none is read"
    if steps:
        parser.add_argument(
            "--thresholds",
            type=_perplexities,
            metavar="18,17,16",
            help="perplexities to time training to (default: round ones that all runs pass)",
        )
    parser.add_argument("--out", type=Path, help="where to write (default: RUNS/figures)")
    return parser
