"""Printed tables as text: one line a row of the paper, a name and its values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci.reproduction.values import Cell, Published

__all__ = ["printed", "printed_numbers", "unprinted"]

#: What stands where a paper has no value.
NO_VALUE = ("N/A", "—")


def printed(text: str, systems: Sequence[str]) -> dict[Cell, Published]:
    """Values of lines "SET 66.66±1.76 0.5 N/A ...", one value a system; N/A and — are no values."""
    found = {}
    for cell, value in _values(text, systems):
        if value not in NO_VALUE:
            mean, _, spread = value.partition("±")
            found[cell] = Published(float(mean), float(spread) if spread else None)
    return found


def unprinted(text: str, systems: Sequence[str]) -> frozenset[Cell]:
    """Cells of such lines that have no value."""
    return frozenset(cell for cell, value in _values(text, systems) if value in NO_VALUE)


def printed_numbers(text: str, systems: Sequence[str]) -> dict[Cell, float]:
    """The same without spreads: seconds."""
    return {cell: value.mean for cell, value in printed(text, systems).items()}


def _values(text: str, systems: Sequence[str]) -> Iterator[tuple[Cell, str]]:
    for line in text.strip().splitlines():
        name, *values = line.split()
        for system, value in zip(systems, values, strict=True):
            yield (system, name), value
