"""How many draws a cell has if nobody says, and how long all of them take by what draws took."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from ci.reproduction.records import Records
from ci.reproduction.values import Paper, Table, set_of

__all__ = ["DRAWS", "Effort", "Plan", "draws_of", "efforts_of", "load_plan"]

#: Draws of a cell that the plan does not name: enough for a standard error, few enough for all papers in hours.
DRAWS = 3
#: Draws by experiment, "PAPER/EXPERIMENT", and cells, see `draws_of`.
Plan = Mapping[str, Mapping[str, int]]


def load_plan(path: Path) -> Plan:
    """The plan of a file."""
    with path.open("rb") as file:
        return tomllib.load(file)


def draws_of(plan: Plan, paper: str, experiment: str, system: str, column: str) -> int:
    """Draws of a cell: what stands for it, its system on the set, the set's column, the set, the system, all."""
    found = plan.get(f"{paper}/{experiment}", {})
    name = set_of(column)
    for key in (f"{system} | {column}", f"{system} | {name}", f"* | {column}", f"* | {name}", f"{system} | *", "*"):
        if key in found:
            return found[key]
    return DRAWS


@dataclass(frozen=True)
class Effort:
    """What the draws of an experiment take by default."""

    experiment: str
    tables: tuple[str, ...]
    cells: int  # with a draw by default
    left: int  # cells without
    seconds: float  # CPU, of the cells that have been drawn
    unmeasured: int  # cells that have not


def efforts_of(paper: Paper, plan: Plan, folder: Path) -> list[Effort]:
    """One `Effort` an experiment, without the sets that nobody has.

    A draw's cost counts the base clusterings that it was the first to need.
    """
    shared: dict[str, list[Table]] = {}
    for table in paper.tables:
        shared.setdefault(table.experiment.name, []).append(table)
    return [_effort(paper.name, plan, folder, tables, set(paper.absent)) for tables in shared.values()]


def _effort(paper: str, plan: Plan, folder: Path, tables: list[Table], absent: set[str]) -> Effort:
    name = tables[0].experiment.name
    records = Records(folder, paper, name)
    # Figures and tables of the same draws have most cells in common.
    every = dict.fromkeys(
        (system, column)
        for table in tables
        for column in table.columns
        if set_of(column) not in absent
        for system in table.systems
    )
    planned = {cell: draws_of(plan, paper, name, *cell) for cell in every}
    cells = [cell for cell in every if planned[cell]]
    seconds, unmeasured = 0.0, 0
    for cell in cells:
        costs = [found for record in records.of(*cell, False) if (found := _cost(record.metrics)) is not None]
        seconds += planned[cell] * mean(costs) if costs else 0.0
        unmeasured += not costs
    titles = tuple(f"{table.kind} {table.number}" for table in tables)
    return Effort(name, titles, len(cells), len(every) - len(cells), seconds, unmeasured)


def _cost(metrics: Mapping[str, float]) -> float | None:
    """CPU seconds of a draw; of one that has none those by the clock, which are more, or of the system alone."""
    return metrics.get("cost", metrics.get("wall seconds", metrics.get("seconds")))
