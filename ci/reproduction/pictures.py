"""Figures: one line a system over the columns, with the spread of our draws, and the paper's values as crosses.

Columns with two parameters, of one system, are a grid of colours and numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ci.reproduction.compare import Compared
from ci.reproduction.values import Paper, Table, set_of

__all__ = ["draw_figure"]


def draw_figure(folder: Path, paper: Paper, table: Table, cells: list[Compared]) -> bool:
    """Write PAPER-figure-NUMBER.svg; without a value in any cell there is none, and the result is False."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    path = folder / f"{paper.name}-{table.kind}-{table.number}.svg"
    if all(cell.ours is None for cell in cells):
        path.unlink(missing_ok=True)
        return False
    with mpl.rc_context({"svg.hashsalt": "daskcluster", "svg.fonttype": "none"}):  # the same bytes from the same draws
        sets = list(dict.fromkeys(_panel(cell.column) for cell in cells if cell.ours is not None))
        figure, every = plt.subplots(
            1, len(sets), figsize=(max(5.0, 3.2 * len(sets)), 3.4), layout="constrained", squeeze=False
        )
        metric = f"{table.metric} x {table.unit:g}" if table.unit != 1 else table.metric
        for name, axes in zip(sets, every[0], strict=True):
            of_set = [cell for cell in cells if _panel(cell.column) == name]
            if table.grid:
                _draw_grid(axes, [cell for cell in of_set if cell.ours is not None], table.grid)
                axes.set_title(f"{', '.join(table.systems)}, {name}: {metric}", fontsize=9)
            else:
                _draw_set(axes, table, of_set, name)
                every[0, 0].set_ylabel(metric)
        lines = {  # of every system once, in their order, whichever sets it has
            label: handle for axes in every[0] for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        named = [system for system in table.systems if system in lines]
        if named:
            figure.legend([lines[system] for system in named], named, loc="outside right upper", fontsize=7)
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
    return True


def _panel(column: str) -> str:
    """The set, if a column has a parameter too; sets without stand side by side in one panel."""
    return set_of(column) if " @ " in column else ""


def _parameter(column: str) -> str:
    """What a column has beside its set."""
    return column.partition(" @ ")[2]


def _draw_grid(axes: Any, cells: list[Compared], by: tuple[str, ...]) -> None:
    """Our values over two parameters with these names, the first downwards."""
    pairs = [tuple(_parameter(cell.column).split(", ")) for cell in cells]
    first, second = (list(dict.fromkeys(pair[axis] for pair in pairs)) for axis in (0, 1))
    grid = np.full((len(first), len(second)), np.nan)
    for (row, column), cell in zip(pairs, cells, strict=True):
        grid[first.index(row), second.index(column)] = cell.ours
    image = axes.imshow(grid, cmap="viridis")
    for (down, across), value in np.ndenumerate(grid):
        color = "black" if image.norm(value) > 0.5 else "white"
        axes.text(across, down, "" if np.isnan(value) else f"{value:.2f}", ha="center", va="center", color=color)
    axes.set_xticks(range(len(second)), second)
    axes.set_yticks(range(len(first)), first)
    axes.set_ylabel(by[0])
    axes.set_xlabel(by[1])


def _draw_set(axes: Any, table: Table, cells: list[Compared], name: str) -> None:
    """The systems' lines over the columns of one set that have a value."""
    run = [column for column in table.columns if any(c.column == column and c.ours is not None for c in cells)]
    for number, system in enumerate(table.systems):
        row = [cell for cell in cells if cell.system == system and cell.ours is not None]
        printed = [cell for cell in row if cell.published is not None]
        if printed:
            axes.plot(
                [run.index(cell.column) for cell in printed],
                [cell.published.mean for cell in printed if cell.published],
                "x",
                color=f"C{number}",
                markersize=4,
            )
        if row:
            axes.errorbar(
                [run.index(cell.column) for cell in row],
                np.array([cell.ours for cell in row], np.float64),
                [cell.spread or 0.0 for cell in row],
                color=f"C{number}",
                marker="o",
                linestyle="-" if name else "none",
                markersize=3,
                label=system,
            )
    axes.set_xticks(range(len(run)), [_parameter(column) or column for column in run], rotation=60, fontsize=7)
    axes.set_title(name, fontsize=9)
    if table.metric == "seconds":  # systems lie decades apart
        axes.set_yscale("log")
