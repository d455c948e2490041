"""Read parquet, one file or a folder of files with one schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrow import require, values_of
from .parts import part_files
from .rows import Columns, Request, Rows, block_rows, column_positions, shorten

__all__ = ["SUFFIXES", "Head", "matrix_of", "open_files", "read_head", "read_parquet"]

#: Files of a folder that hold rows.
SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True)
class Head:
    """What the metadata of parquet files tell.

    Attributes
    ----------
    names : list of str
        The columns that make a row, in their order.
    width : int, optional
        Length of the vectors, where one column of lists makes the rows.
    dtype : dtype
        One that holds every column.
    n_rows : int
    """

    names: list[str]
    width: int | None
    dtype: np.dtype[Any]
    n_rows: int

    @property
    def n_features(self) -> int:
        """Length of a row."""
        return len(self.names) if self.width is None else self.width


def read_parquet(path: Path, request: Request) -> Rows:
    """Read row groups in batches, from one file or from a folder of files with one schema."""
    files = open_files(part_files(path, SUFFIXES), request.resources)
    head = read_head(path.name, files, request.columns, "choose others with columns=")
    step = block_rows(8 * head.n_features)

    def blocks() -> Iterator[NDArray[Any]]:
        for file in files:
            for batch in file.iter_batches(batch_size=step, columns=head.names):
                yield matrix_of(batch, head)

    dtype = head.dtype if request.dtype is None else request.dtype
    return Rows((head.n_features,), dtype, blocks(), head.n_rows, head.names if head.width is None else None)


def read_head(name: str, files: list[Any], columns: Columns | None, advice: str) -> Head:
    """Look at the schema of opened files; refuse, with some advice, what is no table of numbers."""
    arrow = require("pyarrow", "parquet files")
    schema = files[0].schema_arrow
    positions = column_positions(_features(schema, columns), len(schema), schema.names)
    names = [schema.names[position] for position in positions]
    types = [schema.field(position).type for position in positions]
    if len(set(names)) < len(names):
        raise ValueError(f"{name!r} has several columns of one name: {shorten(names)}")
    n_rows = sum(file.metadata.num_rows for file in files)
    if n_rows == 0:
        raise ValueError(f"{name!r} holds no rows")
    if len(types) == 1 and _is_list(arrow, types[0]):
        if not _is_numeric(arrow, types[0].value_type):
            raise ValueError(f"column {names[0]!r} is not numeric, it holds {types[0]}")
        return Head(names, _width(files, names[0], types[0]), _numpy_dtype(arrow, types[0].value_type), n_rows)
    for column, kind in zip(names, types, strict=True):
        if not _is_numeric(arrow, kind):
            raise ValueError(f"{name!r}: column {column!r} is not numeric, it holds {kind}; {advice}")
    dtype = np.result_type(*(_numpy_dtype(arrow, kind) for kind in types))
    if dtype.kind in "iu" and any(_may_have_nulls(file.metadata, names) for file in files):
        dtype = np.dtype(np.float64)
    return Head(names, None, dtype, n_rows)


def matrix_of(batch: Any, head: Head) -> NDArray[Any]:
    """The rows (n, d) of a batch of Arrow columns."""
    if head.width is None:
        return np.column_stack([values_of(column) for column in batch.select(head.names).columns])
    matrix = _vectors(batch.column(0), head.names[0])
    if matrix.shape[1] != head.width:
        raise ValueError(f"column {head.names[0]!r}: lists of {head.width} and of {matrix.shape[1]} values")
    return matrix


def open_files(paths: Sequence[Path], resources: ExitStack) -> list[Any]:
    """Open files, in their order; refuse files that differ in their columns."""
    arrow = require("pyarrow", "parquet files")
    parquet = require("pyarrow.parquet", "parquet files")
    files = []
    for path in paths:
        try:
            # Buffered in small pieces: a row group is not read into memory as a whole.
            file = parquet.ParquetFile(path, buffer_size=2**16, pre_buffer=False)
        except arrow.ArrowInvalid as error:
            raise ValueError(f"{path.name!r} is not a parquet file: {error}") from error
        files.append(resources.enter_context(file))
        if not file.schema_arrow.equals(files[0].schema_arrow):
            raise ValueError(f"{path.name!r} has other columns or types than {paths[0].name!r}")
    return files


def _features(schema: Any, columns: Columns | None) -> Columns:
    """Return the wanted columns, by default all but those in which pandas keeps the index."""
    if columns is not None:
        return columns
    index = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
    return [number for number, name in enumerate(schema.names) if name not in index]


def _width(files: list[Any], name: str, kind: Any) -> int:
    """Length of the lists of a column: that its type says, or that of the first one."""
    width = getattr(kind, "list_size", None)
    if width is None:
        holds_rows = next(file for file in files if file.metadata.num_rows)
        first = next(holds_rows.iter_batches(batch_size=1, columns=[name]))
        width = _vectors(first.column(0), name).shape[1]
    if width == 0:
        raise ValueError(f"column {name!r}: its lists are empty")
    return int(width)


def _vectors(column: Any, name: str) -> NDArray[Any]:
    """Equally long lists, as embeddings are stored, as rows."""
    compute = require("pyarrow.compute", "parquet files")
    values = column.flatten()
    if not len(column):
        raise ValueError(f"column {name!r} holds no rows")
    if column.null_count or len(values) % len(column):
        raise ValueError(f"column {name!r}: expected lists of one length, without gaps")
    matrix = values_of(values).reshape(len(column), -1)
    lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
    if (lengths != matrix.shape[1]).any():
        raise ValueError(f"column {name!r}: expected lists of one length, without gaps")
    return matrix


def _is_list(arrow: ModuleType, kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_numeric(arrow: ModuleType, kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _numpy_dtype(arrow: ModuleType, kind: Any) -> np.dtype[Any]:
    if arrow.types.is_boolean(kind):
        return np.dtype(np.uint8)
    if arrow.types.is_decimal(kind):
        return np.dtype(np.float64)
    dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
    return dtype


def _may_have_nulls(metadata: Any, names: list[str]) -> bool:
    """Tell from a parquet file's statistics whether a column may have missing values."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            if column.path_in_schema in names:
                statistics = column.statistics
                if statistics is None or not statistics.has_null_count or statistics.null_count:
                    return True
    return False
