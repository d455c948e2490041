"""What a paper is here: tables, and the experiments whose draws fill them.

An experiment runs one draw of one cell, (system, column), and gives the metrics of the labels it found. Several tables
may read the same draws: one the NMI, one the accuracy, one the seconds. A column is a data set, or a set and a
parameter, "MNIST @ p=200"; what stands before " @ " is the set. Figures are tables with a picture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

__all__ = ["FULL", "Cell", "Experiment", "Paper", "Published", "Table", "set_of"]

#: What is said behind a table, or its number, of which the synthetic sets have as many rows as the paper's.
FULL = " at the paper's sizes"
#: (system, column).
Cell = tuple[str, str]


@dataclass(frozen=True)
class Published:
    """A printed value, and its spread if one is printed."""

    mean: float
    spread: float | None = None


@dataclass(frozen=True)
class Experiment:
    """Draws of cells.

    `draw(system, column, number, paper_sizes)` gives the metrics by name; one of them is "seconds". `number` is the
    seed. With `paper_sizes` synthetic sets have as many rows as in the paper, else few. The limits are those of one
    draw.
    """

    name: str
    draw: Callable[[str, str, int, bool], Mapping[str, float]]
    seconds: float = 600.0
    gigabytes: float = 6.0


@dataclass(frozen=True)
class Table:
    """A table or figure: `metric` times `unit` is what the paper prints."""

    number: str
    title: str
    experiment: Experiment
    metric: str
    systems: tuple[str, ...]
    columns: tuple[str, ...]
    published: Mapping[Cell, Published] = field(default_factory=dict)
    paper_seconds: Mapping[Cell, float] = field(default_factory=dict)
    unit: float = 100.0
    digits: int = 2  # that the paper prints
    also: tuple[str, ...] = ()  # further metrics of the same draws, printed beside ours
    kind: str = "table"  # or "figure"
    note: str = ""
    grid: tuple[str, ...] = ()  # names of the two parameters that the columns of a figure are, drawn as a grid
    result: bool = True  # whether its cells count; the sizes of the sets do not
    full: bool = False  # what of another table was drawn at the paper's sizes
    none: frozenset[Cell] = frozenset()  # cells that the paper says it did not run, or could not

    @property
    def compared(self) -> bool:
        """Whether a difference to the paper means something: seconds are those of another machine."""
        return not self.metric.startswith("seconds")


@dataclass(frozen=True)
class Paper:
    """A paper, its tables in order, and the sets of it that nobody has here, with their public names."""

    name: str
    title: str
    tables: tuple[Table, ...]
    absent: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


def set_of(column: str) -> str:
    """Name of the data set of a column."""
    return column.split(" @ ")[0]
