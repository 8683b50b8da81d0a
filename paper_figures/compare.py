"""Compare any runs: python -m paper_figures.compare RUNS --by method.slack,optimizer.lr
[--metric loss]

The table has the mean over the runs of each combination of these settings (mostly over seeds), with
their standard deviation, and the figure has a line for each value of the second setting."""

import argparse
import sys
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis import CannotAnswer, NoRuns, read_runs
from analysis.comparison import METRICS, compare
from analysis.manifest import MADE, Item
from paper_figures import style
from paper_figures.output import (
    NotWritable,
    check_writable,
    on_screen,
    save_figure,
    save_manifest,
    save_table,
)
from runlog.terminal import tolerant_output


@tolerant_output()
def main(argv: list[str] | None = None) -> int:
    """Write and print the comparison; return 0, or 2 with a sentence if there is none."""
    args = _arguments().parse_args(argv)
    by, out = args.by.split(","), args.out or args.runs / "figures"
    try:
        frames = read_runs(args.runs)
        table = compare(frames, args.runs, by, args.metric)
        check_writable(out)
    except (CannotAnswer, NoRuns, NotWritable) as error:
        print(error, file=sys.stderr)
        return 2
    name = f"compare_{args.metric}"
    title = f"{METRICS[args.metric].label} by {' and '.join(by)}"
    figure = draw(table, by, args.metric)
    caption = style.finish(figure)
    files = [*save_figure(figure, out, name), *save_table(table, out, name)]
    used = tuple(frames.of(METRICS[args.metric].task).used.index)
    item = Item(
        name, title, (METRICS[args.metric].task,), MADE, files=tuple(it.name for it in files),
        caption=caption, runs=used, known=len(used), seeds=0,
    )  # fmt: skip
    save_manifest({name: item}, out)
    print(f"{title}\n\n{on_screen(table, out / f'{name}.md')}\n\n{out / f'{name}.png'}")
    return 0


def draw(table: pd.DataFrame, by: list[str], metric: str) -> Figure:
    """Draw the metric against the first setting, a line for each combination of the others."""
    first, *others = by
    fig, (ax,) = style.panels(1)
    places = _places(table[first])
    groups = list(table.groupby(others)) if others else [((), table)]
    for number, (values, rows) in enumerate(groups):
        names = values if isinstance(values, tuple) else (values,)
        label = ", ".join(f"{key} {value}" for key, value in zip(others, names, strict=False))
        look = style.distinct(number)
        spread = (number - (len(groups) - 1) / 2) * 0.08  # so that error bars stand side by side
        ax.errorbar(
            [places[value] + spread for value in rows[first]], rows[metric],
            yerr=rows[f"{metric} ±"].fillna(0), capsize=2, markersize=4, label=label, **look,
        )  # fmt: skip
    ax.set_xticks(list(places.values()), [f"{value}" for value in places])
    ax.set_xlabel(first)
    ax.set_ylabel(METRICS[metric].label)
    if others:
        ax.legend()
    return fig


def _places(values: pd.Series) -> dict[object, float]:
    """Return a place on the axis for each value, equally far apart."""
    return {value: float(place) for place, value in enumerate(dict.fromkeys(values))}


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m paper_figures.compare", description=(__doc__ or "").partition("\n\n")[2]
    )
    parser.add_argument("runs", type=Path, help="folder of run folders, at any depth")
    parser.add_argument(
        "--by", required=True, metavar="KEY,KEY", help="settings, as in config.yaml: optimizer.lr"
    )
    parser.add_argument("--metric", default="loss", help=", ".join(METRICS))
    parser.add_argument("--out", type=Path, help="where to write (default: RUNS/figures)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
