"""Figures: one line a system over the columns, with the spread of our draws."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ci.reproduction.compare import Compared
from ci.reproduction.values import Paper, Table

__all__ = ["draw_figure"]


def draw_figure(folder: Path, paper: Paper, table: Table, cells: list[Compared]) -> bool:
    """Write PAPER-figure-NUMBER.svg; False if no cell has a value."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    if all(cell.ours is None for cell in cells):
        return False
    with mpl.rc_context({"svg.hashsalt": "daskcluster"}):  # the same bytes from the same draws
        figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
        for system in table.systems:
            row = [cell for cell in cells if cell.system == system and cell.ours is not None]
            axes.errorbar(
                [table.columns.index(cell.column) for cell in row],
                np.array([cell.ours for cell in row], np.float64),
                [cell.spread or 0.0 for cell in row],
                marker="o",
                markersize=3,
                capsize=2,
                label=system,
            )
        axes.set_xticks(range(len(table.columns)), table.columns, rotation=30, ha="right", fontsize=7)
        axes.set_ylabel(f"{table.metric} x {table.unit:g}" if table.unit != 1 else table.metric)
        axes.legend(fontsize=7)
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / f"{paper.name}-{table.kind}-{table.number}.svg", metadata={"Date": None})
        plt.close(figure)
    return True
