"""The table of all comparisons."""

from collections.abc import Sequence
from dataclasses import dataclass

from tabulate import tabulate

from verification.authors.outcome import Check

COLUMNS = {
    "decisions": "decisions",
    "losses": "losses",
    "weights": "weights",
    "adam": "Adam's state",
    "drift": "drift",
    "in_flight": "in flight",
    "rates": "rates",
    "evaluations": "evaluation",
}


@dataclass(frozen=True)
class Row:
    """One comparison: what was trained, by which part of paci, the checks by quantity, and the
    `known` reason for which they differ, if they should."""

    case: str
    against: str
    checks: dict[str, Check]
    known: str | None = None

    @property
    def as_expected(self) -> bool:
        """True if all is equal, or if something differs and is known to."""
        return self.equal if self.known is None else not self.equal

    @property
    def equal(self) -> bool:
        return all(check.equal for check in self.checks.values())

    @property
    def verdict(self) -> str:
        if not self.as_expected:
            return "differs" if self.known is None else f"equal, against expectation: {self.known}"
        return "equal" if self.known is None else f"differs ({self.known})"


@dataclass(frozen=True)
class Failure:
    """A case that could not be compared."""

    case: str
    verdict: str
    as_expected: bool = False
    against: str = "–"


def render(rows: Sequence[Row | Failure]) -> str:
    """Return the table as Markdown, with a line that counts below it."""
    lines = []
    for row in rows:
        checks = row.checks if isinstance(row, Row) else {}
        cells = (str(checks.get(name, "–")) for name in COLUMNS)
        lines.append([row.case, row.against, *cells, row.verdict])
    headers = ["case", "paci's side", *COLUMNS.values(), "verdict"]
    table = tabulate(lines, headers, tablefmt="github", disable_numparse=True)
    return f"{table}\n\n{_count(rows)}\n"


def _count(rows: Sequence[Row | Failure]) -> str:
    checks = [check for row in rows if isinstance(row, Row) for check in row.checks.values()]
    equal = sum(check.equal for check in checks)
    expected = sum(row.as_expected for row in rows)
    return (
        f"{equal} of {len(checks)} checks are equal bitwise; "
        f"{expected} of {len(rows)} comparisons came out as expected."
    )
