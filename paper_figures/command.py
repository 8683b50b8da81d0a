"""The command line that every script shares: read the runs, make what can be made, say the rest."""

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import paper_figures
from analysis import CannotAnswer, NoRuns, read_runs
from paper_figures.output import on_screen, save_figure, save_table
from paper_figures.style import partial_note

SHOWN = ("final_loss", "claims")
"""Tables that are also printed, the most important one last."""


def scripts() -> list[str]:
    """Names of the modules that draw a figure or make a table from runs."""
    names = [found.name for found in iter_modules(paper_figures.__path__)]
    modules = {name: import_module(f"paper_figures.{name}") for name in names if name[0] != "_"}
    return [name for name, it in modules.items() if hasattr(it, "EXPERIMENT")]


def main(names: list[str] | None = None, argv: list[str] | None = None) -> int:
    """Makes the named figures and tables, or all; returns the exit status.

    0 if anything was made, 1 if runs were found but nothing could be made of them, 2 if no run was
    found.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m paper_figures{'.' + names[0] if names else ''}",
        description="Makes the paper's figures and tables from run folders.",
    )
    parser.add_argument("runs", type=Path, help="folder of run folders, at any depth")
    parser.add_argument("--out", type=Path, help="where to write (default: RUNS/figures)")
    args = parser.parse_args(argv)
    out = args.out or args.runs / "figures"

    started = time.perf_counter()
    try:
        frames = read_runs(args.runs)
    except NoRuns as error:
        print(error, file=sys.stderr)
        return 2
    print(f"read {len(frames.runs)} runs in {time.perf_counter() - started:.1f} s", flush=True)

    made, tables, refused = [], {}, {}
    names = names or scripts()
    for count, name in enumerate(names, start=1):
        print(f"[{count}/{len(names)}] {name}", flush=True)
        module = import_module(f"paper_figures.{name}")
        try:
            if hasattr(module, "draw"):
                made += save_figure(module.draw(frames), out, name)
            if hasattr(module, "table"):
                tables[name] = module.table(frames)
                said = module.EXPERIMENT
                experiments = (said,) if isinstance(said, str) else said
                note = partial_note(frames.of(*experiments).partial)
                made += save_table(tables[name], out, name, note)
        except CannotAnswer as error:
            refused[name] = error

    for name in sorted(tables, key=lambda name: SHOWN.index(name) if name in SHOWN else -1):
        if name in SHOWN or len(names) == 1:
            print(f"\n{name.replace('_', ' ')}\n\n{on_screen(tables[name])}")
    if frames.notes:
        print("\nAbout the runs:", *frames.notes, sep="\n  ")
    if refused:
        print("\nNot made:", *(f"{n}: {why}." for n, why in refused.items()), sep="\n  ")
    print(f"\n{len(made)} files in {out}")
    return 0 if made else 1
