"""Printed tables as text: one line a row of the paper, a name and its values."""

from __future__ import annotations

from collections.abc import Sequence

from ci.reproduction.values import Cell, Published

__all__ = ["printed", "printed_numbers"]


def printed(text: str, systems: Sequence[str]) -> dict[Cell, Published]:
    """Values of lines "SET 66.66±1.76 0.5 N/A ...", one value a system; N/A and — are no values."""
    found = {}
    for line in text.strip().splitlines():
        name, *values = line.split()
        for system, value in zip(systems, values, strict=True):
            if value not in ("N/A", "—"):
                mean, _, spread = value.partition("±")
                found[system, name] = Published(float(mean), float(spread) if spread else None)
    return found


def printed_numbers(text: str, systems: Sequence[str]) -> dict[Cell, float]:
    """The same without spreads: seconds."""
    return {cell: value.mean for cell, value in printed(text, systems).items()}
