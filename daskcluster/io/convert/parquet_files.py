"""Read parquet, one file or a folder of files with one schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrow import require, values_of
from .parts import part_files
from .rows import Columns, Request, Rows, block_rows, column_positions, shorten

__all__ = ["SUFFIXES", "read_parquet"]

#: Files of a folder that hold rows.
SUFFIXES = (".parquet", ".pq")


def read_parquet(path: Path, request: Request) -> Rows:
    """Read row groups in batches, from one file or from a folder of files with one schema."""
    arrow = require("pyarrow", "parquet files")
    files = _open_files(path, request.resources)
    schema = files[0].schema_arrow
    positions = column_positions(_features(schema, request.columns), len(schema), schema.names)
    names = [schema.names[position] for position in positions]
    types = [schema.field(position).type for position in positions]
    if len(set(names)) < len(names):
        raise ValueError(f"{path.name!r} has several columns of one name: {shorten(names)}")
    n_rows = sum(file.metadata.num_rows for file in files)
    if n_rows == 0:
        raise ValueError(f"{path.name!r} holds no rows")
    if len(types) == 1 and _is_list(arrow, types[0]):
        return _read_vectors(files, names[0], types[0], n_rows, request)
    for name, kind in zip(names, types, strict=True):
        if not _is_numeric(arrow, kind):
            raise ValueError(
                f"{path.name!r}: column {name!r} is not numeric, it holds {kind}; choose others with columns="
            )
    dtype = request.dtype
    if dtype is None:
        dtype = np.result_type(*(_numpy_dtype(arrow, kind) for kind in types))
        if dtype.kind in "iu" and any(_may_have_nulls(file.metadata, names) for file in files):
            dtype = np.dtype(np.float64)
    step = block_rows(8 * len(names))

    def blocks() -> Iterator[NDArray[Any]]:
        for file in files:
            for batch in file.iter_batches(batch_size=step, columns=names):
                yield np.column_stack([values_of(column) for column in batch.select(names).columns])

    return Rows((len(names),), dtype, blocks(), n_rows, names)


def _open_files(path: Path, resources: ExitStack) -> list[Any]:
    """Open one file, or those of a folder in their order; refuse files that differ in their columns."""
    arrow = require("pyarrow", "parquet files")
    parquet = require("pyarrow.parquet", "parquet files")
    paths = part_files(path, SUFFIXES)
    try:
        # Buffered in small pieces: a row group is not read into memory as a whole.
        files = [
            resources.enter_context(parquet.ParquetFile(file, buffer_size=2**16, pre_buffer=False)) for file in paths
        ]
    except arrow.ArrowInvalid as error:
        raise ValueError(f"{path.name!r} is not a parquet file: {error}") from error
    for file, other in zip(paths, files, strict=True):
        if not other.schema_arrow.equals(files[0].schema_arrow):
            raise ValueError(f"{file.name!r} has other columns or types than {paths[0].name!r}")
    return files


def _features(schema: Any, columns: Columns | None) -> Columns:
    """Return the wanted columns, by default all but those in which pandas keeps the index."""
    if columns is not None:
        return columns
    index = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
    return [number for number, name in enumerate(schema.names) if name not in index]


def _read_vectors(files: list[Any], name: str, kind: Any, n_rows: int, request: Request) -> Rows:
    """Read a column of equally long lists, as embeddings are stored: one list is one row."""
    arrow = require("pyarrow", "parquet files")
    compute = require("pyarrow.compute", "parquet files")
    if not _is_numeric(arrow, kind.value_type):
        raise ValueError(f"column {name!r} is not numeric, it holds {kind}")

    def matrices(rows: int) -> Iterator[NDArray[Any]]:
        for file in files:
            for batch in file.iter_batches(batch_size=rows, columns=[name]):
                column = batch.column(0)
                values = column.flatten()
                if column.null_count or len(values) % max(1, len(column)):
                    raise ValueError(f"column {name!r}: expected lists of one length, without gaps")
                matrix = values_of(values).reshape(len(column), -1)
                lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
                if (lengths != matrix.shape[1]).any():
                    raise ValueError(f"column {name!r}: expected lists of one length, without gaps")
                yield matrix

    width = next(matrices(1)).shape[1]
    if width == 0:
        raise ValueError(f"column {name!r}: its lists are empty")

    def blocks() -> Iterator[NDArray[Any]]:
        for matrix in matrices(block_rows(8 * width)):
            if matrix.shape[1] != width:
                raise ValueError(f"column {name!r}: lists of {width} and of {matrix.shape[1]} values")
            yield matrix

    dtype = request.dtype or _numpy_dtype(arrow, kind.value_type)
    return Rows((width,), dtype, blocks(), n_rows)


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
