"""Put all figures, tables and claims on one page: python -m paper_figures.report RUNS

RUNS/figures/report.html contains all that it shows, and opens from disk without a network or a
script. It is made from the files that `python -m paper_figures RUNS` wrote into RUNS/figures, the
runs, and their `environment.json`.
"""

import argparse
import base64
import csv
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from PIL import Image

from analysis import Frames, NoRuns, read_runs
from analysis.claims import RULE
from analysis.claims.verdicts import FAILS, HOLDS
from analysis.manifest import MADE, Item, read_manifest
from analysis.report import by_state, not_results, outdated
from paper_figures.output import NotWritable, check_writable, readable, write
from runlog import ENVIRONMENT
from runlog.terminal import tolerant_output

QUESTIONS = {
    "q1": "Q1: stability",
    "q2": "Q2: time of training",
    "efficiency": "Update efficiency",
    "q3": "Q3: throughput and memory",
    "extrapolation": "Extrapolation",
}
"""Groups of claims in their order."""
NO_RUNS = "extrapolation"
"""The question whose claims are judged without any run."""
SECTIONS = {
    "claims": "Claims",
    "paper": "The paper's tables and figures",
    "beyond": "Beyond the paper",
}
"""Parts of the page in their order."""
CONTEXT = ("experiment", "scale", "clock")
"""Columns that are said once, above the table, if they are the same in all its rows."""
LONG = 16
"""A table of more rows is closed at first, if a figure shows what is in it."""
DOTS_PER_PIXEL = 3
"""Pixels of a figure's PNG to one of the page, so that its text of 8 pt is 11 pixels high."""


def page(root: Path, folder: Path, frames: Frames) -> str:
    """Return the page as HTML: the runs below `root`, and what `folder` holds of them."""
    items = read_manifest(folder)
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("report.html.j2").render(
        root=root,
        scales=sorted(frames.used["scale"].unique()),
        clocks=sorted(frames.used["clock"].dropna().unique()),
        used=len(frames.used),
        tallies=tallies(folder / "claims.csv"),
        questions=QUESTIONS,
        sections=sections(items.values(), folder),
        outdated=[item.name for item in outdated(items.values(), frames)],
        states=_cells(by_state(frames.runs)) if len(frames.runs) else None,
        runs=_cells(runs_by_cell(frames.used)) if len(frames.used) else None,
        left_out=_cells(left_out) if len(left_out := not_results(frames.runs)) else None,
        notes=frames.notes,
        machines=machines(root, frames.runs.index),
        kinds={HOLDS: "good", FAILS: "bad"},
    )


def sections(items: Iterable[Item], folder: Path) -> list[dict[str, Any]]:
    """Return the page's parts that have anything in them: their id, title and items."""
    parts: dict[str, list[Item]] = {key: [] for key in SECTIONS}
    for item in sorted(items, key=_place):
        parts[_section(item)].append(item)
    return [
        {"id": key, "title": SECTIONS[key], "items": shown}
        for key, part in parts.items()
        if (shown := [_show(item, folder) for item in part])
    ]


def _section(item: Item) -> str:
    if item.name == "claims":
        return "claims"
    return "paper" if item.name.startswith(("table_", "figure_")) else "beyond"


def _place(item: Item) -> tuple[bool, str]:
    """Return the sort key of an item: tables before figures, by number."""
    return item.name.startswith("figure_"), item.name


def _show(item: Item, folder: Path) -> dict:
    """Return what the template shows of an item, read from its files."""
    there = [folder / name for name in item.files if (folder / name).exists()]
    files = {file.suffix[1:]: file for file in there}
    caption = _unwrapped(item.caption)
    shown: dict[str, Any] = {
        "item": item,
        "made": item.state == MADE,
        "figure": None,
        "table": None,
        "claims": None,
        "caption": caption,
        "notes": [points for points in _paragraphs(item.note) if points[0] not in caption],
    }
    if "png" in files:
        with Image.open(files["png"]) as image:
            width, height = (round(pixels / DOTS_PER_PIXEL) for pixels in image.size)
        data = data_uri("image/png", files["png"])
        shown["figure"] = {"data": data, "width": width, "height": height}
        if item.narrow and (folder / item.narrow).exists():
            shown["figure"]["narrow"] = data_uri("image/png", folder / item.narrow)
    if "csv" in files:
        table = readable(read_table(files["csv"]))
        shown["table"] = _cells(table)
        if item.name == "claims":
            shown["claims"] = claims(table)
    kinds = {"csv": "text/csv", "tex": "application/x-tex", "pdf": "application/pdf"}
    shown["closed"] = "png" in files and "csv" in files and len(shown["table"]["rows"]) > LONG
    shown["downloads"] = [
        {"name": files[kind].name, "kind": kind.upper(), "data": data_uri(media, files[kind])}
        for kind, media in kinds.items()
        if kind in files
    ]
    return shown


def _paragraphs(note: str) -> list[list[str]]:
    """Split a note into paragraphs, and these into points, which begin with "- "."""
    return [
        [_unwrapped(point) for point in paragraph.removeprefix("- ").split("\n- ")]
        for paragraph in note.split("\n\n")
        if paragraph
    ]


def _unwrapped(text: str) -> str:
    return " ".join(text.split())


def read_table(file: Path) -> pd.DataFrame:
    """Read a table that `save_table` wrote, each cell as a number if it is one, else as text."""
    with file.open(newline="", encoding="utf-8") as text:
        header, *rows = csv.reader(text)
    cells = [[_number(cell) for cell in row] for row in rows]
    return pd.DataFrame(cells, columns=header, dtype=object)


def claims(table: pd.DataFrame) -> dict[str, list[dict]]:
    """Return the claims of each question, and with each the place where it was looked at."""
    rows = table.to_dict("records")
    for row in rows:
        batch = f"batch {row['batch']}" if row["batch"].isdecimal() else row["batch"]
        place = (batch, row["variant"], row["scale"], row["clock"])
        row["place"] = " · ".join(word for word in place if word not in ("–", "all"))
        row["rule"] = "" if row[RULE] == "–" else f"our rule says: {row[RULE]}"
    return {
        key: [row for row in rows if row["question"] == key] for key in table["question"].unique()
    }


def tallies(claims: Path) -> dict[str, dict[str, int]]:
    """Count claims by verdict: those judged from runs, and those judged without."""
    if not claims.exists():
        return {}
    table = read_table(claims)
    calculated = table["question"] == NO_RUNS
    parts = {
        "from the runs": table.loc[~calculated, "verdict"],
        "by calculation and simulation, from published figures": table.loc[calculated, "verdict"],
    }
    return {basis: count_verdicts(verdicts) for basis, verdicts in parts.items() if len(verdicts)}


def count_verdicts(verdicts: pd.Series) -> dict[str, int]:
    """Count verdicts: those that hold, those that do not, the others."""
    counts = verdicts.value_counts()
    order = [HOLDS, FAILS, *(verdict for verdict in counts.index if verdict not in (HOLDS, FAILS))]
    return {verdict: int(counts[verdict]) for verdict in order if verdict in counts}


def runs_by_cell(used: pd.DataFrame) -> pd.DataFrame:
    """List the runs behind each number: those that differ only in their seed, in one row."""
    labelled = used.assign(variant=[variant.label for variant in used["variant"]])
    labelled = labelled.rename_axis("run").reset_index()
    labelled["diverged"] = labelled["run"].where(labelled["state"] == "diverged")
    keys = ["experiment", "scale", "clock", "batch", "variant"]
    grouped = labelled.sort_values("seed").groupby(keys, sort=True, dropna=False)
    columns = {
        "seeds": ("seed", _listed),
        "runs": ("run", _listed),
        "diverged": ("diverged", _listed),
    }
    table = grouped.agg(**columns).reset_index()
    return table if table["diverged"].any() else table.drop(columns="diverged")


def machines(root: Path, runs: Iterable[str]) -> list[dict]:
    """List the machines and code that made the runs, and how many runs each made."""
    found: dict[str, dict] = {}
    for run in runs:
        file = root / run / ENVIRONMENT
        try:  # a root that is itself a run has its own name
            starts = json.loads((file if file.exists() else root / file.name).read_text())
            starts = starts if isinstance(starts, list) else [starts]
            facts = [_flat(start) for start in starts]
        except (OSError, ValueError, AttributeError):
            continue
        for fact in facts:
            for key in ("from update", "started", "ended", "wall seconds"):
                fact.pop(key, None)
        for key in {json.dumps(fact) for fact in facts}:
            found.setdefault(key, {"facts": json.loads(key), "runs": 0})["runs"] += 1
    return [found[key] for key in sorted(found)]


def _flat(facts: dict) -> dict[str, str]:
    flat = {}
    for key, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{name} {version}" for name, version in value.items())
        flat[key.replace("_", " ")] = "–" if value is None else str(value)
    return flat


def _cells(table: pd.DataFrame) -> dict:
    """Return a table's cells as text, its columns' kinds, and apart what all rows share."""
    table = table.astype(str)
    same = {name: table[name].iloc[0] for name in CONTEXT if name in table and _one(table[name])}
    table = table.drop(columns=list(same))
    kinds = [_kind(table[name]) for name in table]
    return {"head": list(table), "rows": table.to_numpy().tolist(), "kinds": kinds, "same": same}


def _one(column: pd.Series) -> bool:
    return column.nunique() == 1


def _kind(column: pd.Series) -> str:
    """Return how a column is set: "number" (or with its spread), "short", "long" or ""."""
    widest = column.map(len).max()
    if all(text and not text.strip("0123456789.,+-–±× e%") for text in column):
        return "number"
    return "short" if widest <= 22 else "long" if widest > 40 else ""


def _number(text: str) -> int | float | str | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text or None


def _listed(values: pd.Series) -> str:
    return ", ".join(map(str, values.dropna()))


def data_uri(media: str, file: Path) -> str:
    """Return a file as a link that holds its content."""
    return f"data:{media};base64,{base64.b64encode(file.read_bytes()).decode()}"


@tolerant_output()
def main(argv: list[str] | None = None) -> int:
    """Write the page; return the exit status, 2 if there is nothing to put on it."""
    parser = argparse.ArgumentParser(
        prog="python -m paper_figures.report",
        description="Put what was made of run folders on one page, RUNS/figures/report.html.",
    )
    parser.add_argument("runs", type=Path, help="folder of run folders, at any depth")
    parser.add_argument(
        *("--figures", "--out"),
        type=Path,
        help="where those are, and the page will be (default: RUNS/figures)",
    )
    args = parser.parse_args(argv)
    folder = args.figures or args.runs / "figures"
    try:
        frames = read_runs(args.runs)
        if read_manifest(folder):
            check_writable(folder)
    except (NoRuns, NotWritable) as error:
        print(error, file=sys.stderr)
        return 2
    if not read_manifest(folder):
        print(f"Nothing is made in {folder} yet: python -m paper_figures {args.runs}")
        return 2
    try:
        print(write(folder / "report.html", page(args.runs, folder, frames).encode()))
    except NotWritable as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
