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
from paper_figures.format import COLUMN, current, formatted, narrow
from paper_figures.output import (
    METADATA,
    NotWritable,
    narrow_file,
    remove,
    save_figure,
    save_table,
)
from paper_figures.style import finish, partial_note


def needs_of(script: ModuleType) -> tuple[str, ...]:
    """Return the tasks of the runs that a script reads; none if it needs no runs."""
    said = script.NEEDS
    return (said,) if isinstance(said, str) else tuple(said or ())


def parameters_of(script: ModuleType) -> set[str]:
    """Return the names of the parameters of a script's functions."""
    made = [getattr(script, name) for name in ("draw", "table") if hasattr(script, name)]
    return {name for function in made for name in signature(function).parameters}


def make(
    script: ModuleType,
    read: Frames | NoRuns,
    out: Path,
    options: Mapping[str, object],
    former: Item | None = None,
    inputs: str = "",
) -> tuple[Item, pd.DataFrame | None]:
    """Write a script's figure and table into `out`; return what became of it, and the table.

    `read` holds the runs, or the reason why there are none. `options` go to those functions that
    have them. The figure is not drawn again if `former`, the item of an earlier call, has been
    drawn from the same `inputs`, a fingerprint. If the runs do not suffice, or the script fails,
    the files of an earlier call are removed.
    """
    name = script.__name__.rpartition(".")[2]
    item: dict[str, Any] = {
        "name": name,
        "title": (script.__doc__ or name).strip().partition("\n\n")[0].replace("\n", " "),
        "needs": needs_of(script),
    }
    try:
        table = _call(script, "table", read, options)
        item["note"] = _note(script, table, read)
        item |= _basis(item["needs"], read)
        files: list[str] = []
        if hasattr(script, "draw"):
            item["inputs"] = inputs
            drawn = _kept(former, inputs, out) or _draw(script, read, out, options)
            files += drawn.pop("files")
            item |= drawn
        if table is not None:
            files += [file.name for file in save_table(table, out, name, item["note"])]
        return Item(**item, state=MADE, files=tuple(files)), table
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


def _kept(former: Item | None, inputs: str, out: Path) -> dict[str, Any] | None:
    """Return what `_draw` returned when it drew the figure of `former`, if that is still there and
    would be the same."""
    if former is None or former.state != MADE or not inputs or former.inputs != inputs:
        return None
    files = [file for file in former.files if Path(file).suffix[1:] in METADATA]
    there = [*files, former.narrow] if former.narrow else files
    if not files or not all((out / file).is_file() for file in there):
        return None
    return {"files": files, "caption": former.caption, "narrow": former.narrow}


def _draw(
    script: ModuleType, read: Frames | NoRuns, out: Path, options: Mapping[str, object]
) -> dict[str, Any]:
    """Draw a script's figure, and once more in one column if it is wider than that."""
    name = script.__name__.rpartition(".")[2]
    figure = _call(script, "draw", read, options)
    caption, is_wide = finish(figure), figure.get_figwidth() > 1.2 * COLUMN
    files = [file.name for file in save_figure(figure, out, name)]
    narrowed = ""
    if is_wide:
        with formatted(narrow(current())):
            figure = _call(script, "draw", read, options)
            finish(figure)
            (out / narrow_file(name)).parent.mkdir(exist_ok=True)
            save_figure(figure, out, narrow_file(name).removesuffix(".png"), kinds=["png"])
        narrowed = narrow_file(name)
    return {"files": files, "caption": caption, "narrow": narrowed}


def _call(
    script: ModuleType, function: str, read: Frames | NoRuns, options: Mapping[str, object]
) -> Any:
    """Call a script's `draw` or `table` with those options that it has; None if it has none."""
    needs = needs_of(script)
    if needs and isinstance(read, NoRuns):
        raise CannotAnswer(str(read))
    if not hasattr(script, function):
        return None
    called = getattr(script, function)
    heeded = {key: value for key, value in options.items() if key in signature(called).parameters}
    return called(*((read,) if needs else ()), **heeded)


def _note(script: ModuleType, table: pd.DataFrame | None, read: Frames | NoRuns) -> str:
    """Return the sentences below a script's table."""
    needs = needs_of(script)
    notes = [script.note(table)] if hasattr(script, "note") else []
    if isinstance(read, Frames) and needs:
        notes.append(partial_note(read.of(*needs).partial))
    return "\n\n".join(filter(None, notes))


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
