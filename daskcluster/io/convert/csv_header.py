"""Whether the first line of delimited text names the columns, decided by evidence or not at all."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

__all__ = ["MISSING", "has_header", "is_number"]

# What Arrow takes for a missing value, in lower case.
MISSING = {
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

#: So many columns are numbered 0, 1, 2, ... by a row of whole numbers only if the numbers are names.
SURELY_NUMBERED = 8


def is_number(field: str) -> bool:
    """Whether a field is written as a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def has_header(fields: Sequence[list[str]]) -> bool | None:
    """Whether the first of some sampled lines names the columns; None when the lines do not tell.

    Notes
    -----
    Words are names where the lines below have numbers, or where no field is a number. Numbers are names, as pandas
    writes them for columns without names, when they count the columns and are written otherwise than the lines below:
    0,1,2 above 0.5,1.25,3.0. Where such a line could be a row it is left open, since a wrong guess would lose a row,
    or make one of the header, without a sign of it.
    """
    first, rest = [field.strip() for field in fields[0]], fields[1:]
    if not any(is_number(field) for field in first):
        return True
    for position, field in enumerate(first):
        if not is_number(field) and field.lower() not in MISSING and _are_numbers(_column(rest, position)):
            return True
    indexed = first[0] == "" and len(first) > 1
    numbers = _whole(first[indexed:])
    if numbers is None or not _count_up(numbers) or not rest:
        return False
    if indexed:  # pandas' index stands in the first column
        index = _whole(_column(rest, 0))
        return True if index is not None and len(index) > 1 and _count_up(index) else None
    return _counts_columns(numbers, rest)


def _counts_columns(numbers: list[int], rest: Sequence[list[str]]) -> bool | None:
    """Whether a first line of consecutive whole numbers counts the columns, or is a row; None when it may be both."""
    columns = [_column(rest, position) for position in range(len(numbers))]
    as_points = [column for column in columns if column and _whole(column, some=True) is None]
    many = len(numbers) >= 3
    if numbers[0] != 0:  # as of years: names perhaps where all columns are written otherwise
        return None if many and len(as_points) == len(columns) else False
    if as_points:
        return True if many or any(_never_written_whole(column) for column in as_points) else None
    rows = [_whole(row) for row in rest]
    if many and sum(row is not None and _count_up(row) for row in rows) * 2 > len(rows) and numbers not in rows:
        return False  # such rows are what the file holds
    return True if len(numbers) >= SURELY_NUMBERED and numbers not in rows else None


def _column(rows: Sequence[list[str]], position: int) -> list[str]:
    """The fields of a column that are not missing."""
    fields = (row[position].strip() for row in rows if position < len(row))
    return [field for field in fields if field.lower() not in MISSING]


def _are_numbers(fields: list[str]) -> bool:
    return bool(fields) and all(is_number(field) for field in fields)


def _whole(fields: Sequence[str], *, some: bool = False) -> list[int] | None:
    """The numbers of fields that are all written as whole ones, or of `some` of them; else None."""
    found = [int(field) for field in fields if re.fullmatch(r"[+-]?\d{1,18}", field.strip())]
    return found if found and (some or len(found) == len(fields)) else None


def _count_up(numbers: list[int]) -> bool:
    return all(later - former == 1 for former, later in itertools.pairwise(numbers))


def _never_written_whole(fields: list[str]) -> bool:
    """Whether what wrote these floating numbers writes 3 as 3.0: it did so, or it writes more than 15 digits."""
    mantissas = [re.split("[eE]", field)[0] for field in fields]
    return any(mantissa.endswith(".0") or len(re.sub(r"\D", "", mantissa).lstrip("0")) > 15 for mantissa in mantissas)
