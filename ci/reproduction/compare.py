"""One cell: what the paper prints, what our draws gave, and how far apart they are."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from ci.reproduction.records import Record, Records
from ci.reproduction.values import Published, Table

__all__ = ["MARKS", "Compared", "compare", "load_reasons"]

#: Mark of a cell, and what it says.
MARKS = {
    "=": "within two standard errors of ours",
    "+": "above",
    "-": "below",
    "1": "one draw: no standard error",
    "o": "ours only: the text of the paper gives no value",
    "x": "no labels: time or memory limit, or an error",
    "N": "the paper did not run it either, or could not",
    ".": "not run",
}


@dataclass(frozen=True)
class Compared:
    """A cell; values are in the unit of the paper."""

    system: str
    column: str
    published: Published | None
    draws: int
    ours: float | None
    spread: float | None
    errors: float | None  # (ours - published) in standard errors of ours; None where both print alike
    seconds: float | None
    paper_seconds: float | None
    also: Mapping[str, float]
    failed: str
    mark: str
    reason: str

    @property
    def tried(self) -> bool:
        """Whether there is a draw of it, be it one that failed."""
        return bool(self.draws or self.failed)


def load_reasons(path: Path) -> dict[str, dict[str, str]]:
    """Reasons by table, "PAPER/NUMBER", and cell, "SYSTEM | COLUMN"; each part of a cell may be "*".

    A section of the file may name several tables of a paper, "PAPER/4, 5".
    """
    with path.open("rb") as file:
        sections = tomllib.load(file)
    found: dict[str, dict[str, str]] = {}
    for section, cells in sections.items():
        paper, _, numbers = section.partition("/")
        for number in numbers.split(", "):
            found.setdefault(f"{paper}/{number}", {}).update(cells)
    return found


def find_reason(reasons: Mapping[str, str], system: str, column: str) -> str:
    """The reason of a cell of a table: its own, else that of its row, else that of its column."""
    for cell in (f"{system} | {column}", f"{system} | *", f"* | {column}"):
        if cell in reasons:
            return reasons[cell]
    return ""


def mark_of(
    ours: float | None, error: float | None, published: Published | None, failed: str, digits: int, none: bool = False
) -> str:
    """The mark of a cell, a key of `MARKS`. `digits` are those the paper prints, with `none` it has no value."""
    if ours is None:
        return "N" if none else ("x" if failed else ".")
    if published is None:
        return "o"
    if error is None:
        return "1"
    difference = ours - published.mean
    if prints_alike(ours, published, digits) or abs(difference) <= 2 * error:
        return "="
    return "+" if difference > 0 else "-"


def prints_alike(ours: float, published: Published, digits: int) -> bool:
    """Whether a value is within half a unit of the last printed digit."""
    return abs(ours - published.mean) <= 0.5 * 10.0**-digits


def compare(table: Table, records: Records, paper_sizes: bool, reasons: Mapping[str, str]) -> list[Compared]:
    """All cells of a table, row by row of the paper: a column's systems stand together."""
    return [
        _cell(table, system, column, records.of(system, column, paper_sizes), reasons)
        for column in table.columns
        for system in table.systems
    ]


def _cell(table: Table, system: str, column: str, records: Sequence[Record], reasons: Mapping[str, str]) -> Compared:
    runs = [record.metrics for record in records if not record.failed]
    failed = next((record.failed for record in records if record.failed), "") if not runs else ""
    values = [table.unit * metrics[table.metric] for metrics in runs if table.metric in metrics]
    seconds = [metrics["seconds"] for metrics in runs if "seconds" in metrics]
    ours = mean(values) if values else None
    spread = stdev(values) if len(values) > 1 else None
    error = None if spread is None else spread / len(values) ** 0.5
    published = table.published.get((system, column))
    mark = mark_of(ours, error, published, failed, table.digits, (system, column) in table.none)
    if not table.compared and ours is not None:
        mark = ""
    apart = None
    if ours is not None and published is not None and error and table.compared:
        apart = None if prints_alike(ours, published, table.digits) else (ours - published.mean) / error
    reason = (find_reason(reasons, system, column) or "not explained") if mark == "-" else ""
    return Compared(
        system,
        column,
        published,
        len(values),
        ours,
        spread,
        apart,
        mean(seconds) if seconds else None,
        table.paper_seconds.get((system, column)),
        {name: table.unit * mean(metrics[name] for metrics in runs) for name in table.also} if runs else {},
        failed,
        mark,
        reason,
    )
