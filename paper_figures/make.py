"""One script's figure and table: both made, or neither and the reason why."""

import traceback
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd

from analysis import CannotAnswer, Frames, NoRuns
from analysis.manifest import BROKEN, MADE, REFUSED, Item
from paper_figures.output import NotWritable, remove, save_figure, save_table
from paper_figures.style import partial_note


def needs_of(script: ModuleType) -> tuple[str, ...]:
    """Return the tasks of the runs that a script reads; none if it needs no runs."""
    said = script.NEEDS
    return (said,) if isinstance(said, str) else tuple(said or ())


def parameters_of(script: ModuleType) -> set[str]:
    """Return the names of the parameters of a script's functions."""
    made = [getattr(script, name) for name in ("draw", "table") if hasattr(script, name)]
    return {name for function in made for name in signature(function).parameters}


def make(
    script: ModuleType, read: Frames | NoRuns, out: Path, options: Mapping[str, object]
) -> tuple[Item, pd.DataFrame | None]:
    """Write a script's figure and table into `out`; return what became of it, and the table.

    `read` holds the runs, or the reason why there are none. `options` go to those functions that
    have them. If the runs do not suffice, or the script fails, the files of an earlier call are
    removed.
    """
    name = script.__name__.rpartition(".")[2]
    item: dict[str, Any] = {
        "name": name,
        "title": (script.__doc__ or name).strip().partition("\n\n")[0].replace("\n", " "),
        "needs": needs_of(script),
    }
    try:
        figure, table, note = _results(script, read, options)
        item["note"] = note
        if figure is not None:
            item["caption"] = figure.get_supxlabel()
        item |= _basis(item["needs"], read)
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


def _results(script: ModuleType, read: Frames | NoRuns, options: Mapping[str, object]):
    """Return the figure and the table, if the script has them, and the sentences below the
    table."""
    needs = needs_of(script)
    if needs and isinstance(read, NoRuns):
        raise CannotAnswer(str(read))
    given = (read,) if needs else ()
    heeded = {key: value for key, value in options.items() if key in parameters_of(script)}
    table = script.table(*given, **heeded) if hasattr(script, "table") else None
    figure = script.draw(*given, **heeded) if hasattr(script, "draw") else None
    notes = [script.note(table)] if hasattr(script, "note") else []
    if isinstance(read, Frames) and needs:
        notes.append(partial_note(read.of(*needs).partial))
    return figure, table, "\n\n".join(filter(None, notes))


def _basis(needs: tuple[str, ...], read: Frames | NoRuns) -> dict[str, object]:
    """Return the runs that a script's results rest on, as `Item` has them."""
    if not needs or isinstance(read, NoRuns):
        return {}
    mine = read.of(*needs)
    return {
        "runs": tuple(mine.used.index),
        "known": len(mine.runs),
        "seeds": mine.used["seed"].nunique(),
    }
