"""What is asked of a reader and what it answers, and the choice of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Columns", "Request", "Rows", "block_rows", "column_label", "column_positions", "shorten"]

Columns: TypeAlias = Sequence[str | int]

#: Bytes of rows that a reader yields at a time.
BLOCK_BYTES = 8 * 2**20


@dataclass(frozen=True)
class Request:
    """What the caller wants from a file, and what must be closed after reading it."""

    columns: Columns | None
    member: str | None
    header: bool | None
    dtype: np.dtype[Any] | None
    resources: ExitStack


@dataclass(frozen=True)
class Rows:
    """Rows of a file: what is known before they are read, and the blocks in order."""

    shape: tuple[int, ...]  # of one row: (d,), or () for a one-dimensional array
    dtype: np.dtype[Any]
    blocks: Iterator[NDArray[Any]]
    n_rows: int | None = None  # None where only reading tells
    names: list[str] | None = None


def block_rows(row_bytes: int) -> int:
    """Return how many rows a reader yields at a time."""
    return max(1, BLOCK_BYTES // row_bytes)


def column_label(position: int, names: Sequence[str] | None) -> str:
    """Name a column in a message."""
    return str(position) if names is None else repr(names[position])


def column_positions(columns: Columns | None, count: int, names: Sequence[str] | None) -> list[int]:
    """Return the positions of the wanted columns, each an existing one and wanted once."""
    if columns is None:
        return list(range(count))
    positions = []
    for column in columns:
        if names is not None and column in names:
            if list(names).count(str(column)) > 1:
                raise ValueError(f"columns: {column!r} names several columns; give their numbers")
            position = list(names).index(str(column))
        elif isinstance(column, int | np.integer) or column.isdecimal():
            position = int(column)
        else:
            known = "the columns have no names" if names is None else f"there are {shorten(names)}"
            raise ValueError(f"columns: no column {column!r}; {known}")
        if not 0 <= position < count:
            raise ValueError(f"columns: expected numbers from 0 to {count - 1}, got {position}")
        positions.append(position)
    if not positions or len(set(positions)) < len(positions):
        raise ValueError(f"columns: expected different columns, got {list(columns)}")
    return positions


def shorten(names: Sequence[str]) -> str:
    """List names in a message, the first ten of many."""
    shown = ", ".join(repr(name) for name in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
