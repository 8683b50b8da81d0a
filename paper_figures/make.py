"""One script's figure and table: both made, or neither and the reason why."""

import traceback
from inspect import signature
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import pandas as pd

from analysis import CannotAnswer, Frames, NoRuns
from analysis.manifest import BROKEN, MADE, REFUSED, Item
from paper_figures.output import NotWritable, remove, save_figure, save_table
from paper_figures.style import partial_note


def experiments_of(script: ModuleType) -> tuple[str, ...]:
    """The experiments whose runs a script is about; none if it needs no runs."""
    said = script.EXPERIMENT
    return (said,) if isinstance(said, str) else tuple(said or ())


def parameters_of(script: ModuleType) -> set[str]:
    """What a script's functions take, all of them the same."""
    made = [getattr(script, name) for name in ("draw", "table") if hasattr(script, name)]
    return {name for function in made for name in signature(function).parameters}


def make(
    script: ModuleType, read: Frames | NoRuns, out: Path, options: dict[str, object]
) -> tuple[Item, pd.DataFrame | None]:
    """Writes a script's figure and table into `out`; returns what became of it, and the table.

    `read` is what was read of the runs, or why nothing was. `options` go to those functions that
    have them. If the runs do not suffice, or the script fails, files of an earlier call that the
    runs of today do not give are removed.
    """
    name = script.__name__.rpartition(".")[2]
    item = {
        "name": name,
        "title": (script.__doc__ or name).strip().partition("\n\n")[0].replace("\n", " "),
        "experiments": experiments_of(script),
    }
    try:
        figure, table, note = _results(script, read, options)
        item["note"] = note
        if figure is not None:
            item["caption"] = figure.get_supxlabel()
        item |= _basis(item["experiments"], read)
        files = save_figure(figure, out, name) if figure is not None else []
        files += save_table(table, out, name, note) if table is not None else []
        return Item(**item, state=MADE, files=tuple(file.name for file in files)), table
    except CannotAnswer as error:
        state, why = REFUSED, str(error)
    except NotWritable:
        raise
    except Exception as error:
        traceback.print_exc()
        state, why = BROKEN, traceback.format_exception_only(error)[-1].strip()
    plt.close("all")
    remove(out, name)
    return Item(**item, state=state, why=why.rstrip(".")), None


def _results(script: ModuleType, read: Frames | NoRuns, options: dict[str, object]):
    """The figure and the table, if the script has them, and the sentences below the table."""
    experiments = experiments_of(script)
    if experiments and isinstance(read, NoRuns):
        raise CannotAnswer(str(read))
    given = (read,) if experiments else ()
    heeded = {key: value for key, value in options.items() if key in parameters_of(script)}
    table = script.table(*given, **heeded) if hasattr(script, "table") else None
    figure = script.draw(*given, **heeded) if hasattr(script, "draw") else None
    notes = [script.note(table)] if hasattr(script, "note") else []
    if experiments:
        notes.append(partial_note(read.of(*experiments).partial))
    return figure, table, "\n\n".join(filter(None, notes))


def _basis(experiments: tuple[str, ...], read: Frames | NoRuns) -> dict:
    """The runs that a script's results rest on, as `Item` has them."""
    if not experiments:
        return {}
    mine = read.of(*experiments)
    return {
        "runs": tuple(mine.used.index),
        "known": len(mine.runs),
        "seeds": mine.used["seed"].nunique(),
    }
