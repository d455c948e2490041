"""Read csv and other delimited text."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrow import require, values_of
from .rows import Columns, Request, Rows, column_label, column_positions

__all__ = ["read_csv"]

_SAMPLE_LINES = 100


def read_csv(path: Path, request: Request) -> Rows:
    """Parse delimited text in blocks; the first lines decide delimiter, header and number of columns."""
    arrow = require("pyarrow", "csv files")
    require("pyarrow.csv", "csv files")
    head = _read_head(path, request.header)
    positions = column_positions(request.columns, head.n_columns, head.names)
    if head.names is not None:
        _refuse_unnamed(path.name, head.names, positions, request.columns)
    _refuse_text(path.name, head.rows, positions, head.names)
    dtype = np.dtype(np.float64) if request.dtype is None else request.dtype
    # float64 holds every other type, and lets the writer tell a value that does not fit from what is no number.
    parsed = arrow.from_numpy_dtype(dtype if dtype in (np.int64, np.uint64) else np.dtype(np.float64))
    chosen = None if head.names is None else [head.names[position] for position in positions]
    return Rows((len(positions),), dtype, _blocks(path, head, positions, parsed), names=chosen)


@dataclass(frozen=True)
class _Head:
    """What the first lines of a file tell."""

    delimiter: str
    n_columns: int
    names: list[str] | None
    rows: list[list[str]]  # fields of the first rows, without the header
    skipped: int  # lines before the rows: comments, blanks and the header
    longest_line: int


def _read_head(path: Path, header: bool | None) -> _Head:
    arrow = require("pyarrow", "csv files")
    with arrow.input_stream(str(path), compression="detect") as stream:
        sample, skipped = _sample_lines(stream)
    if not sample:
        raise ValueError(f"{path.name!r} holds no rows")
    delimiter = _delimiter(sample)
    fields = [row for row in csv.reader(sample, delimiter=delimiter) if row]
    if not fields:
        raise ValueError(f"{path.name!r} holds no rows")
    has_header = not any(_is_number(field) for field in fields[0]) if header is None else header
    count = len(fields[0])
    if len(fields) > 1 and has_header and len(fields[1]) == count + 1:
        raise ValueError(f"{path.name!r}: rows have {count + 1} fields, and the header names {count}")
    return _Head(
        delimiter,
        count,
        [field.strip() for field in fields[0]] if has_header else None,
        fields[int(has_header) :],
        skipped + int(has_header),
        max(len(line) for line in sample),
    )


def _blocks(path: Path, head: _Head, positions: list[int], parsed: Any) -> Iterator[NDArray[Any]]:
    """Yield the wanted columns of a file, parsed as one Arrow type."""
    arrow = require("pyarrow", "csv files")
    arrow_csv = require("pyarrow.csv", "csv files")
    labels = [f"c{position}" for position in range(head.n_columns)]  # a file's own names may repeat
    wanted = [labels[position] for position in positions]
    # Arrow reads up to 32 blocks ahead. A row must fit into one.
    block_bytes = max(2**20, 8 * head.longest_line)
    try:
        with arrow_csv.open_csv(
            str(path),
            read_options=arrow_csv.ReadOptions(column_names=labels, skip_rows=head.skipped, block_size=block_bytes),
            parse_options=arrow_csv.ParseOptions(delimiter=head.delimiter),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, parsed), include_columns=wanted
            ),
        ) as reader:
            for batch in reader:
                yield np.column_stack([values_of(column) for column in batch.columns])
    except arrow.ArrowInvalid as error:
        if "Empty CSV file" in str(error):
            return
        raise ValueError(_explain(path.name, str(error), head.names)) from error


def _sample_lines(stream: Any) -> tuple[list[str], int]:
    """Return the first lines of a text, and how many comments and blanks stand before them."""
    # A line is rarely longer than a megabyte; one that is, is cut, and parsing the file itself will tell.
    text = io.TextIOWrapper(io.BytesIO(stream.read(2**20)), encoding="utf-8-sig", errors="replace", newline="")
    lines = list(itertools.islice(text, _SAMPLE_LINES + 1))
    if len(lines) > 1 and not lines[-1].endswith("\n"):
        lines.pop()  # perhaps cut
    skipped = len(list(itertools.takewhile(lambda line: line.startswith("#") or not line.strip(), lines)))
    return [line for line in lines[skipped:] if line.strip()], skipped


def _delimiter(sample: list[str]) -> str:
    """Return the delimiter that splits every sampled line into as many fields, the most of all candidates."""
    best, most = ",", 1
    for delimiter in (",", "\t", ";", "|", " "):
        counts = {len(row) for row in csv.reader(sample, delimiter=delimiter) if row}
        if len(counts) == 1 and max(counts) > most:
            best, most = delimiter, max(counts)
    return best


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _refuse_unnamed(name: str, names: list[str], positions: list[int], columns: Columns | None) -> None:
    """Refuse to take a column without a name for a feature unasked: pandas writes the row index so."""
    unnamed = [position for position in positions if not names[position]]
    if unnamed and columns is None:
        raise ValueError(
            f"{name!r}: column {unnamed[0]} has no name in the header (a row index?); choose with columns="
        )


# What Arrow takes for a missing value, in lower case.
_MISSING = {
    "",
    "#n/a",
    "#n/a n/a",
    "#na",
    "-1.#ind",
    "-1.#qnan",
    "-nan",
    "1.#ind",
    "1.#qnan",
    "n/a",
    "na",
    "null",
    "nan",
}


def _refuse_text(name: str, rows: list[list[str]], positions: list[int], names: list[str] | None) -> None:
    """Refuse columns that hold text, by the first lines of a file."""
    for position in positions:
        for number, row in enumerate(rows):
            field = row[position].strip() if position < len(row) else ""
            if field.lower() not in _MISSING and not _is_number(field):
                raise ValueError(
                    f"{name!r}: column {column_label(position, names)} is not numeric: {field!r} in row {number}; "
                    "choose others with columns="
                )


def _explain(name: str, message: str, names: list[str] | None) -> str:
    """Put an error of Arrow's parser into the words of the file: its names, rows and columns."""
    match = re.match(r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to \w+: (.*)", message, re.DOTALL)
    if match is not None:
        return f"{name!r}: column {column_label(int(match[1]), names)} cannot be read as numbers: {match[2]}"
    return f"{name!r} is not a table: {message}"
