"""Table 4: total time of training, final perplexity, and speed-ups over flush."""

import sys

import pandas as pd

from analysis import CannotAnswer, Frames, by_setting
from analysis.counterparts import papers_batch, papers_row
from analysis.q2.speedup import ratio
from analysis.q2.timing import Timed, Timings
from analysis.statistics import mean_and_std
from paper_figures import style
from paper_figures.command import main
from paper_figures.published import published

NEEDS = "training"


def table(frames: Frames) -> pd.DataFrame:
    """Return, per method and batch, time of all tokens, final perplexity ± std over seeds, and
    flush's time over the method's: at the same m (match) and of the fastest flush (best)."""
    timings = Timings.of_paper(frames)
    reference = published("table_4")
    rows = []
    for setting, group in by_setting(timings.made).items():
        found = timings.everything(group)
        flushes = {it.m: it for it in found if it.cell.variant.is_flush}
        best = min(flushes.values(), key=lambda it: it.total.mean(), default=None)
        unit, name = style.time_unit(max(it.total.mean() for it in found))
        batch = papers_batch(group[0], timings.made, reference)
        for it in found:
            theirs = papers_row(reference, batch=batch, method=it.label)
            perplexity, std = mean_and_std(it.final_perplexity)
            rows.append(
                setting.columns
                | {
                    "variant": it.label,
                    "time is": it.basis,
                    "unit": name,
                    "time": it.total.mean() / unit,
                    "perplexity": perplexity,
                    "perplexity ±": std,
                    "match": _over(flushes.get(it.m), it),
                    "best": _over(best, it),
                    "paper's batch": batch,
                    "paper's hours": theirs.get("hours"),
                    "paper's perplexity": theirs.get("perplexity"),
                    "paper's perplexity ±": theirs.get("perplexity_std"),
                    "paper's match": theirs.get("match"),
                    "paper's best": theirs.get("best"),
                }
            )
    if not rows:
        raise CannotAnswer("no completed training run on a clock that was measured")
    return pd.DataFrame(rows).astype({"paper's batch": object})


def note(made: pd.DataFrame) -> str:
    return (
        "Time of all training tokens, without evaluations and checkpoints. Match: time of the "
        "flush with as many micro-batches over the method's; best: time of the fastest flush over "
        "the method's. Mapped: flush is trained at one m, as in the paper, and its time at another "
        "follows from the steady-state throughput of both. Times on different machines and "
        "perplexities on different data cannot be compared; ratios can."
    )


def _over(flush: Timed | None, it: Timed) -> float:
    return float(ratio(flush, it).mean(skipna=False))


if __name__ == "__main__":
    sys.exit(main(["table_4_runtime"]))
