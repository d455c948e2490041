"""Read csv and other delimited text, one file or a folder of them."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrow import require, values_of
from .csv_header import MISSING, has_header, is_number
from .parts import part_files
from .rows import Columns, Request, Rows, column_label, column_positions, shorten

__all__ = ["read_csv"]

#: Files of a folder that hold rows; dask writes `.part`.
SUFFIXES = tuple(
    f".{kind}{packed}" for kind in ("csv", "tsv", "txt", "part") for packed in ("", ".gz", ".bz2", ".zst", ".lz4")
)

_SAMPLE_LINES = 100


def read_csv(path: Path, request: Request) -> Rows:
    """Parse delimited text in blocks; the first lines decide delimiter, header and number of columns."""
    arrow = require("pyarrow", "csv files")
    require("pyarrow.csv", "csv files")
    files = part_files(path, SUFFIXES)
    head = _read_head(files[0], request.header)
    heads = [head, *(_read_head_like(head, file) for file in files[1:])]
    positions = column_positions(request.columns, head.n_columns, head.names)
    if head.names is not None:
        _refuse_unnamed(path.name, head.names, positions, request.columns)
    _refuse_text(path.name, head.rows, positions, head.names)
    dtype = np.dtype(np.float64) if request.dtype is None else request.dtype
    # float64 holds every other type, and lets the writer tell a value that does not fit from what is no number.
    parsed = arrow.from_numpy_dtype(dtype if dtype in (np.int64, np.uint64) else np.dtype(np.float64))
    chosen = None if head.names is None else [head.names[position] for position in positions]
    blocks = itertools.chain.from_iterable(_blocks(each, positions, parsed) for each in heads)
    return Rows((len(positions),), dtype, blocks, names=chosen)


@dataclass(frozen=True)
class _Head:
    """What the first lines of a file tell."""

    path: Path
    delimiter: str
    n_columns: int
    names: list[str] | None
    rows: list[list[str]]  # fields of the first rows, without the header
    skipped: int  # lines before the rows: comments, blanks and the header
    longest_line: int


def _read_head(path: Path, header: bool | None) -> _Head:
    sample, skipped, delimiter, fields = _read_sample(path)
    named = has_header(fields) if header is None else header
    if named is None:
        raise ValueError(
            f"{path.name!r}: its first line, {sample[0].strip()!r:.60}, may name the columns or be a row; "
            "say which with header=True or header=False"
        )
    return _head(path, sample, skipped, delimiter, fields, named)


def _read_head_like(head: _Head, path: Path) -> _Head:
    """Read the head of a further file of a folder: it has the first one's columns, and its header again or none."""
    sample, skipped, _, fields = _read_sample(path, like=head)
    if not fields:
        return replace(head, path=path, rows=[], skipped=skipped)
    if len(fields[0]) != head.n_columns:
        raise ValueError(f"{path.name!r} has {len(fields[0])} columns, and {head.path.name!r} has {head.n_columns}")
    names = [field.strip() for field in fields[0]]
    again = names == head.names
    if not again and head.names is not None and not any(is_number(name) for name in names):
        raise ValueError(
            f"{path.name!r}: its columns are {shorten(names)}, and those of {head.path.name!r} {shorten(head.names)}"
        )
    return _head(path, sample, skipped, head.delimiter, fields, again)


def _read_sample(path: Path, like: _Head | None = None) -> tuple[list[str], int, str, list[list[str]]]:
    """Return the first lines of a file, the lines skipped before them, the delimiter, and their fields."""
    arrow = require("pyarrow", "csv files")
    with arrow.input_stream(str(path), compression="detect") as stream:
        sample, skipped = _sample_lines(stream)
    delimiter = _delimiter(sample) if like is None else like.delimiter
    fields = [row for row in csv.reader(sample, delimiter=delimiter) if row]
    if not fields and like is None:
        raise ValueError(f"{path.name!r} holds no rows")
    return sample, skipped, delimiter, fields


def _head(path: Path, sample: list[str], skipped: int, delimiter: str, fields: list[list[str]], named: bool) -> _Head:
    count = len(fields[0])
    if len(fields) > 1 and named and len(fields[1]) == count + 1:
        raise ValueError(f"{path.name!r}: rows have {count + 1} fields, and the header names {count}")
    return _Head(
        path,
        delimiter,
        count,
        [field.strip() for field in fields[0]] if named else None,
        fields[int(named) :],
        skipped + int(named),
        max(len(line) for line in sample),
    )


def _blocks(head: _Head, positions: list[int], parsed: Any) -> Iterator[NDArray[Any]]:
    """Yield the wanted columns of a file, parsed as one Arrow type."""
    arrow = require("pyarrow", "csv files")
    arrow_csv = require("pyarrow.csv", "csv files")
    labels = [f"c{position}" for position in range(head.n_columns)]  # a file's own names may repeat
    wanted = [labels[position] for position in positions]
    # Arrow reads up to 32 blocks ahead. A row must fit into one.
    block_bytes = max(2**20, 8 * head.longest_line)
    try:
        with arrow_csv.open_csv(
            str(head.path),
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
        raise ValueError(_explain(head.path.name, str(error), head.names)) from error


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


def _refuse_unnamed(name: str, names: list[str], positions: list[int], columns: Columns | None) -> None:
    """Refuse to take a column without a name for a feature unasked: pandas writes the row index so."""
    unnamed = [position for position in positions if not names[position]]
    if unnamed and columns is None:
        raise ValueError(
            f"{name!r}: column {unnamed[0]} has no name in the header (a row index?); choose with columns="
        )


def _refuse_text(name: str, rows: list[list[str]], positions: list[int], names: list[str] | None) -> None:
    """Refuse columns that hold text, by the first lines of a file."""
    for position in positions:
        for number, row in enumerate(rows):
            field = row[position].strip() if position < len(row) else ""
            if field.lower() not in MISSING and not is_number(field):
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
