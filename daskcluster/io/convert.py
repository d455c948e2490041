"""Turn npy, npz, csv and parquet files into Zarr arrays, in bounded memory.

Each format has a reader: it looks at the head of the file, checks all that can be checked there, and yields
blocks of rows in file order. One writer gathers the blocks into whole chunks. So the memory is a few chunks
for any file, and the file is read once.
"""

from __future__ import annotations

import csv
import importlib
import io
import itertools
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO, Any, TypeAlias

import dask
import numpy as np
import zarr
from numpy.typing import DTypeLike, NDArray

from ..typing import PathInput
from .zarr import atomic_path, check_output, choose_chunk_rows, create_array, local_path

__all__ = ["FORMATS", "convert"]

Columns: TypeAlias = Sequence[str | int]

# Bytes of rows that a reader yields at a time.
_BLOCK_BYTES = 8 * 2**20


def convert(
    source: PathInput,
    destination: PathInput,
    *,
    format: str | None = None,
    columns: Columns | None = None,
    member: str | None = None,
    header: bool | None = None,
    chunk_rows: int | None = None,
    dtype: DTypeLike | None = None,
    overwrite: bool = False,
) -> zarr.Array[Any]:
    """Store the rows of a file as a Zarr array.

    Parameters
    ----------
    source : str or os.PathLike
        A file; for parquet also a folder of files, read in the order of their names.
    destination : str or os.PathLike
        The Zarr array to be; it appears there when it is complete.
    format : {"npy", "npz", "csv", "parquet"}, optional
        By default from the file's name: ``.npy``, ``.npz``, ``.csv``, ``.tsv``, ``.txt`` (these three also
        compressed: ``.csv.gz``), ``.parquet``, ``.pq``.
    columns : sequence of str or int, optional
        Which columns, in which order: names, or numbers from 0, also as strings. By default all.
    member : str, optional
        Array of an npz file. By default its only two-dimensional array, or its only array.
    header : bool, optional
        Whether the first line of a csv file names the columns. By default it does when none of its fields is
        a number.
    chunk_rows : int, optional
        Rows of a stored chunk. By default a power of two that takes 16 to 32 MiB.
    dtype : dtype-like, optional
        Type of the stored values. By default the file's own for npy and npz; float64 for csv; the smallest
        type that holds every column for parquet, a floating one where values are missing.
    overwrite : bool
        Replace an existing Zarr array.

    Returns
    -------
    zarr.Array
        The stored array, opened read-only: (n, d), or (n,) from a one-dimensional npy or npz array. Names of
        columns are in its attribute ``columns``.

    Raises
    ------
    FileNotFoundError, FileExistsError
        If `source` does not exist, or `destination` does.
    ImportError
        If the file needs a package of the extra ``convert`` that is not installed.
    ValueError
        If the file is not what its format says, has no rows, or holds a value or column that is not numeric
        (the message names it), or that `dtype` cannot hold.

    Notes
    -----
    Missing values of csv and parquet become NaN. The work runs in this process, one block after the other:
    reading and parsing bound it, not the processor.
    """
    path = Path(os.fspath(source))
    if not path.exists():
        raise FileNotFoundError(f"no file at {os.fspath(source)!r}")
    check_output(destination, overwrite=overwrite)
    wanted = None if dtype is None else _numeric_dtype(dtype)
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"chunk_rows: expected at least 1, got {chunk_rows}")
    kind = _format_of(path) if format is None else format
    if kind not in _READERS:
        raise ValueError(f"format: expected one of {', '.join(FORMATS)}, got {format!r}")
    for argument, value, formats in (("member", member, ("npz",)), ("header", header, ("csv",))):
        if value is not None and kind not in formats:
            raise ValueError(f"{argument}: serves {', '.join(formats)} files only, and this one is {kind}")
    with ExitStack() as resources:
        rows = _READERS[kind](path, _Request(columns, member, header, wanted, resources))
        _store(rows, destination, path.name, chunk_rows, wanted or rows.dtype, overwrite)
    return zarr.open_array(str(local_path(destination)), mode="r")


@dataclass(frozen=True)
class _Request:
    """What the caller wants from a file, and what must be closed after reading it."""

    columns: Columns | None
    member: str | None
    header: bool | None
    dtype: np.dtype[Any] | None
    resources: ExitStack


@dataclass(frozen=True)
class _Rows:
    """Rows of a file: what is known before they are read, and the blocks in order."""

    shape: tuple[int, ...]  # of one row: (d,), or () for a one-dimensional array
    dtype: np.dtype[Any]
    blocks: Iterator[NDArray[Any]]
    n_rows: int | None = None  # None where only reading tells
    names: list[str] | None = None


def _store(
    rows: _Rows,
    destination: PathInput,
    source: str,
    chunk_rows: int | None,
    dtype: np.dtype[Any],
    overwrite: bool,
) -> None:
    """Write blocks of rows, gathered into whole chunks, as one Zarr array."""
    row_bytes = dtype.itemsize * int(np.prod(rows.shape, dtype=np.int64))
    chunk = chunk_rows or choose_chunk_rows(row_bytes, rows.n_rows)
    attributes: dict[str, Any] = {"source": source}
    if rows.names is not None:
        attributes["columns"] = rows.names
    with atomic_path(destination, overwrite=overwrite) as temporary:
        buffer = np.empty((chunk, *rows.shape), dtype=dtype)
        filled = written = 0
        target = None
        for block in rows.blocks:
            block = _cast(block, dtype, written + filled, rows.names)
            while len(block):
                taken = min(len(block), chunk - filled)
                buffer[filled : filled + taken] = block[:taken]
                filled, block = filled + taken, block[taken:]
                if filled == chunk:
                    target = _append(target, temporary, buffer, written, chunk, attributes)
                    written, filled = written + chunk, 0
        if filled:
            target = _append(target, temporary, buffer[:filled], written, chunk, attributes)
        if target is None:
            raise ValueError(f"{source!r} holds no rows")


def _append(
    target: zarr.Array[Any] | None,
    path: Path,
    block: NDArray[Any],
    start: int,
    chunk: int,
    attributes: dict[str, Any],
) -> zarr.Array[Any]:
    """Write the next chunk; the array grows with it, since a csv file does not say how long it is."""
    shape = (start + len(block), *block.shape[1:])
    if target is None:
        target = create_array(path, shape, block.dtype, chunks=chunk, attributes=attributes)
    else:
        target.resize(shape)
    target[start:] = block
    return target


def _cast(block: NDArray[Any], dtype: np.dtype[Any], start: int, names: list[str] | None) -> NDArray[Any]:
    """Convert a block; refuse values that the type cannot hold. Rounding a floating number is no loss."""
    if block.dtype == dtype:
        return block
    with np.errstate(over="ignore", invalid="ignore"):
        converted = block.astype(dtype)
        lost = np.isinf(converted) & ~np.isinf(block) if dtype.kind == "f" else converted != block
    if lost.any():
        where = tuple(int(index[0]) for index in np.nonzero(lost))
        column = "" if len(where) == 1 else f", column {_label(where[1], names)}"
        raise ValueError(f"dtype: {dtype} cannot hold {block[where].item()!r} (row {start + where[0]}{column})")
    return converted


def _numeric_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        numeric = np.dtype(dtype)
    except TypeError as error:
        raise ValueError(f"dtype: expected a numeric type such as float32, got {dtype!r}") from error
    if numeric.kind not in "iuf" or numeric.itemsize > 8:
        raise ValueError(f"dtype: expected integers or floating numbers of at most 64 bits, got {numeric}")
    return numeric.newbyteorder("=")


def _label(position: int, names: Sequence[str] | None) -> str:
    """Name a column in a message."""
    return str(position) if names is None else repr(names[position])


def _positions(columns: Columns | None, count: int, names: Sequence[str] | None) -> list[int]:
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
            known = "the columns have no names" if names is None else f"there are {_shorten(names)}"
            raise ValueError(f"columns: no column {column!r}; {known}")
        if not 0 <= position < count:
            raise ValueError(f"columns: expected numbers from 0 to {count - 1}, got {position}")
        positions.append(position)
    if not positions or len(set(positions)) < len(positions):
        raise ValueError(f"columns: expected different columns, got {list(columns)}")
    return positions


def _shorten(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"


def _require(module: str, what: str) -> ModuleType:
    """Import an optional package."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"reading {what} needs {package}, which is not installed: pip install 'daskcluster[convert]'"
        ) from error


# -- npy and npz ---------------------------------------------------------------------------------------------


def _read_npy(path: Path, request: _Request) -> _Rows:
    """Map an npy file block by block, so that pages already read do not count as memory of this process."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path.name!r} is not an npy file of numbers: {error}") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path.name!r} is not an npy file; is it npz?")
    shape, dtype = array.shape, array.dtype
    _check_array(path.name, shape, dtype)
    positions = _array_columns(request.columns, shape)
    step = _block_rows(shape, dtype)

    def blocks() -> Iterator[NDArray[Any]]:
        for start in range(0, shape[0], step):
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
            yield np.array(_take(mapped[start : start + step], positions))

    return _Rows(_row_shape(shape, positions), _stored_dtype(dtype), blocks(), shape[0])


def _read_npz(path: Path, request: _Request) -> _Rows:
    """Read one array of an npz file as its bytes come out of the archive."""
    try:
        archive = request.resources.enter_context(zipfile.ZipFile(path))
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path.name!r} is not an npz file: {error}") from error
    headers = {}
    for name in archive.namelist():
        if name.endswith(".npy"):
            with archive.open(name) as stream:
                headers[name.removesuffix(".npy")] = _npy_header(name, stream)
    member = _choose_member(path.name, headers, request.member)
    shape, fortran, dtype = headers[member]
    _check_array(f"{path.name}: {member}", shape, dtype)
    if fortran and len(shape) == 2:
        # Its rows are scattered over the whole stream: unpack it first, then map it like any npy file.
        folder = request.resources.enter_context(
            tempfile.TemporaryDirectory(dir=dask.config.get("temporary-directory", None))
        )
        return _read_npy(Path(archive.extract(f"{member}.npy", folder)), request)
    positions = _array_columns(request.columns, shape)
    step = _block_rows(shape, dtype)
    row_bytes = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))

    def blocks() -> Iterator[NDArray[Any]]:
        with archive.open(f"{member}.npy") as stream:
            _npy_header(member, stream)
            for start in range(0, shape[0], step):
                count = min(step, shape[0] - start)
                data = stream.read(count * row_bytes)
                if len(data) < count * row_bytes:
                    raise ValueError(f"{path.name!r} ends in the middle of {member!r}")
                yield _take(np.frombuffer(data, dtype).reshape(count, *shape[1:]), positions)

    return _Rows(_row_shape(shape, positions), _stored_dtype(dtype), blocks(), shape[0])


def _npy_header(name: str, stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read shape, Fortran order and dtype from the head of an npy stream."""
    try:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            header = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            header = np.lib.format.read_array_header_2_0(stream)
        else:  # (3, 0) exists for field names outside Latin-1
            raise ValueError("its array has named fields, which are not supported")
    except ValueError as error:
        raise ValueError(f"{name!r} is not an npy array: {error}") from error
    shape, fortran, dtype = header
    return shape, fortran, dtype


def _choose_member(
    name: str, headers: dict[str, tuple[tuple[int, ...], bool, np.dtype[Any]]], member: str | None
) -> str:
    listed = ", ".join(f"{key} {shape} {dtype}" for key, (shape, _, dtype) in headers.items()) or "no arrays"
    if member is not None:
        if member not in headers:
            raise ValueError(f"member: no array {member!r} in {name!r}; it holds {listed}")
        return member
    tables = [key for key, (shape, _, dtype) in headers.items() if len(shape) == 2 and dtype.kind in "biuf"]
    if len(tables) == 1:
        return tables[0]
    if len(headers) == 1:
        return next(iter(headers))
    raise ValueError(f"member: {name!r} holds {listed}; name one of them")


def _check_array(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ValueError(f"{name!r} holds {dtype}, not numbers that can be clustered")
    if len(shape) not in (1, 2):
        raise ValueError(f"{name!r} has shape {shape}; expected rows and columns")
    if 0 in shape:
        raise ValueError(f"{name!r} holds no rows: its shape is {shape}")


def _array_columns(columns: Columns | None, shape: tuple[int, ...]) -> list[int] | None:
    """Return the wanted columns of an array without column names, None for all."""
    if columns is None:
        return None
    if len(shape) == 1:
        raise ValueError("columns: the array has one dimension")
    return _positions(columns, shape[1], None)


def _take(block: NDArray[Any], positions: list[int] | None) -> NDArray[Any]:
    return block if positions is None else block[:, positions]


def _row_shape(shape: tuple[int, ...], positions: list[int] | None) -> tuple[int, ...]:
    return shape[1:] if positions is None else (len(positions),)


def _block_rows(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return max(1, _BLOCK_BYTES // (dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))))


def _stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type under which a file's values are stored: native byte order, and 0 and 1 for booleans."""
    return np.dtype(np.uint8) if dtype.kind == "b" else dtype.newbyteorder("=")


# -- csv -----------------------------------------------------------------------------------------------------

_SAMPLE_LINES = 100


def _read_csv(path: Path, request: _Request) -> _Rows:
    """Parse delimited text in blocks; the first lines decide delimiter, header and number of columns."""
    arrow = _require("pyarrow", "csv files")
    arrow_csv = _require("pyarrow.csv", "csv files")
    with arrow.input_stream(str(path), compression="detect") as stream:
        sample, skipped = _sample_lines(stream)
    if not sample:
        raise ValueError(f"{path.name!r} holds no rows")
    delimiter = _delimiter(sample)
    fields = [row for row in csv.reader(sample, delimiter=delimiter) if row]
    if not fields:
        raise ValueError(f"{path.name!r} holds no rows")
    has_header = not any(_is_number(field) for field in fields[0]) if request.header is None else request.header
    names = [field.strip() for field in fields[0]] if has_header else None
    count = len(fields[0])
    if len(fields) > 1 and has_header and len(fields[1]) == count + 1:
        raise ValueError(f"{path.name!r}: rows have {count + 1} fields, and the header names {count}")
    positions = _positions(request.columns, count, names)
    if names is not None:
        _refuse_unnamed(path.name, names, positions, request.columns)
    _refuse_text(path.name, fields[1:] if has_header else fields, positions, names)
    dtype = np.dtype(np.float64) if request.dtype is None else request.dtype
    # float64 holds every other type, and lets `_cast` tell a value that does not fit from what is no number.
    parsed = arrow.from_numpy_dtype(dtype if dtype in (np.int64, np.uint64) else np.dtype(np.float64))
    # Arrow reads up to 32 blocks ahead. A row must fit into one.
    block_bytes = max(2**20, 8 * max(len(line) for line in sample))
    labels = [f"c{position}" for position in range(count)]  # a file's own names may repeat
    wanted = [labels[position] for position in positions]

    def blocks() -> Iterator[NDArray[Any]]:
        try:
            with arrow_csv.open_csv(
                str(path),
                read_options=arrow_csv.ReadOptions(
                    column_names=labels, skip_rows=skipped + int(has_header), block_size=block_bytes
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(wanted, parsed), include_columns=wanted
                ),
            ) as reader:
                for batch in reader:
                    yield np.column_stack([_values(column) for column in batch.columns])
        except arrow.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                return
            raise ValueError(_explain(path.name, str(error), names)) from error

    chosen = None if names is None else [names[position] for position in positions]
    return _Rows((len(positions),), dtype, blocks(), names=chosen)


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
                    f"{name!r}: column {_label(position, names)} is not numeric: {field!r} in row {number}; "
                    "choose others with columns="
                )


def _explain(name: str, message: str, names: list[str] | None) -> str:
    """Put an error of Arrow's parser into the words of the file: its names, rows and columns."""
    match = re.match(r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to \w+: (.*)", message, re.DOTALL)
    if match is not None:
        return f"{name!r}: column {_label(int(match[1]), names)} cannot be read as numbers: {match[2]}"
    return f"{name!r} is not a table: {message}"


# -- parquet -------------------------------------------------------------------------------------------------


def _read_parquet(path: Path, request: _Request) -> _Rows:
    """Read row groups in batches, from one file or from a folder of files with one schema."""
    arrow = _require("pyarrow", "parquet files")
    parquet = _require("pyarrow.parquet", "parquet files")
    paths = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not paths:
        raise ValueError(f"{str(path)!r} is a folder without .parquet files")
    try:
        # Buffered in small pieces: a row group is not read into memory as a whole.
        files = [
            request.resources.enter_context(parquet.ParquetFile(file, buffer_size=2**16, pre_buffer=False))
            for file in paths
        ]
    except arrow.ArrowInvalid as error:
        raise ValueError(f"{path.name!r} is not a parquet file: {error}") from error
    schema = files[0].schema_arrow
    for file, other in zip(paths, files, strict=True):
        if not other.schema_arrow.equals(schema):
            raise ValueError(f"{file.name!r} has other columns or types than {paths[0].name!r}")
    columns = request.columns
    if columns is None:
        # Columns in which pandas keeps the index are no features.
        index = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
        columns = [number for number, name in enumerate(schema.names) if name not in index]
    positions = _positions(columns, len(schema), schema.names)
    names = [schema.names[position] for position in positions]
    types = [schema.field(position).type for position in positions]
    if len(set(names)) < len(names):
        raise ValueError(f"{path.name!r} has several columns of one name: {_shorten(names)}")
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
    step = max(1, _BLOCK_BYTES // (8 * len(names)))

    def blocks() -> Iterator[NDArray[Any]]:
        for file in files:
            for batch in file.iter_batches(batch_size=step, columns=names):
                yield np.column_stack([_values(column) for column in batch.select(names).columns])

    return _Rows((len(names),), dtype, blocks(), n_rows, names)


def _read_vectors(files: list[Any], name: str, kind: Any, n_rows: int, request: _Request) -> _Rows:
    """Read a column of equally long lists, as embeddings are stored: one list is one row."""
    arrow = _require("pyarrow", "parquet files")
    compute = _require("pyarrow.compute", "parquet files")
    if not _is_numeric(arrow, kind.value_type):
        raise ValueError(f"column {name!r} is not numeric, it holds {kind}")

    def matrices(rows: int) -> Iterator[NDArray[Any]]:
        for file in files:
            for batch in file.iter_batches(batch_size=rows, columns=[name]):
                column = batch.column(0)
                values = column.flatten()
                if column.null_count or len(values) % max(1, len(column)):
                    raise ValueError(f"column {name!r}: expected lists of one length, without gaps")
                matrix = _values(values).reshape(len(column), -1)
                lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
                if (lengths != matrix.shape[1]).any():
                    raise ValueError(f"column {name!r}: expected lists of one length, without gaps")
                yield matrix

    width = next(matrices(1)).shape[1]
    if width == 0:
        raise ValueError(f"column {name!r}: its lists are empty")

    def blocks() -> Iterator[NDArray[Any]]:
        for matrix in matrices(max(1, _BLOCK_BYTES // (8 * width))):
            if matrix.shape[1] != width:
                raise ValueError(f"column {name!r}: lists of {width} and of {matrix.shape[1]} values")
            yield matrix

    dtype = request.dtype or _numpy_dtype(arrow, kind.value_type)
    return _Rows((width,), dtype, blocks(), n_rows)


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


def _values(column: Any) -> NDArray[Any]:
    """Return the numbers of an Arrow array, NaN where they are missing."""
    kind = str(column.type)
    if kind.startswith("decimal") or kind == "bool" or column.null_count:
        column = column.cast("uint8" if kind == "bool" and not column.null_count else "float64")
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


_READERS: dict[str, Callable[[Path, _Request], _Rows]] = {
    "npy": _read_npy,
    "npz": _read_npz,
    "csv": _read_csv,
    "parquet": _read_parquet,
}
FORMATS = tuple(_READERS)

_SUFFIXES = {
    "npy": "npy",
    "npz": "npz",
    "csv": "csv",
    "tsv": "csv",
    "txt": "csv",
    "parquet": "parquet",
    "pq": "parquet",
}


def _format_of(path: Path) -> str:
    """Return the format that a file's name says."""
    if path.is_dir():
        return "parquet"
    suffixes = [suffix.lower().lstrip(".") for suffix in path.suffixes]
    if suffixes and suffixes[-1] in ("gz", "bz2", "zst", "lz4"):
        suffixes.pop()
        if suffixes and _SUFFIXES.get(suffixes[-1]) != "csv":
            suffixes.clear()
    if not suffixes or suffixes[-1] not in _SUFFIXES:
        raise ValueError(f"{path.name!r}: the name does not tell the format; give format= ({', '.join(FORMATS)})")
    return _SUFFIXES[suffixes[-1]]
