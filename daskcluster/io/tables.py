"""Rows of files that are no Zarr arrays, opened by path where reading them again costs less than a copy would.

==========================================  ===========================================================================
parquet, a file or a folder                 by row groups, each read once a pass: numeric columns, or one of vectors
npy                                         a memory map
HDF5, h5ad, NetCDF 4: ``"file.h5/name"``    the dataset, or variable, of that name; without one, the only table inside;
                                            a csr_matrix of AnnData as sparse rows
==========================================  ===========================================================================

What has to be parsed or unpacked as a whole (csv, npz) is converted first: a fit takes several passes over its rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..files.chunks import file_mark
from ..files.places import expand
from ..files.urls import is_url
from ..runtime.blocks import as_declared
from ..runtime.pieces import read_pieces
from ..runtime.visibility import marks_differ, unseen
from .convert.hdf5_files import hdf5_at, only_table, opened_hdf5
from .convert.parquet_files import SUFFIXES, Head, matrix_of, open_files, read_head
from .convert.parts import part_files
from .sources import Hdf5Rows
from .sparse import is_csr, open_csr_group

__all__ = ["ParquetRows", "Table", "open_table"]

#: Row groups are read together up to so many bytes, as canonical blocks are.
PIECE_BYTES = 8 * 2**20
#: Rows that Arrow decodes at a time.
_BATCH_ROWS = 2**13


@dataclass(frozen=True)
class Table:
    """A file of rows, opened; nothing of them has been read.

    Attributes
    ----------
    array : dask array, memory map, Hdf5Rows or CsrGroup
    named : dataframe, optional
        An empty one with the names of the columns.
    attributes : mapping
        What declares no data.
    """

    array: Any
    named: Any = None
    attributes: Mapping[str, Any] | None = None

    @property
    def columns(self) -> list[str] | None:
        """Names of the columns."""
        return None if self.named is None else list(self.named.columns)


def open_table(source: Any, *, sparse: bool = False) -> Table | None:
    """Open the file of rows under a path; None where the path names none that is read in place.

    `sparse` says that a matrix by compressed rows will do.

    Raises
    ------
    ValueError
        If the file is not what its name says, or holds no table of numbers.
    FileNotFoundError
        If an HDF5 file has no such dataset.
    ImportError
        If a package is missing that reads it.
    """
    if not isinstance(source, str | os.PathLike) or is_url(os.fspath(source)):
        return None
    path = Path(os.path.abspath(expand(source)))
    if path.suffix.lower() == ".npy" and path.is_file():
        return Table(_mapped(path))
    if (found := hdf5_at(path)) is not None:
        return _hdf5(*found, sparse)
    return _parquet(path) if _holds_parquet(path) else None


def _mapped(path: Path) -> NDArray[Any]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{str(path)!r} is not an npy file of numbers: {error}") from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(f"{str(path)!r} is not an npy file: it holds several arrays, as npz files do")
    return array


def _hdf5(file: Path, name: str, sparse: bool) -> Table:
    with opened_hdf5(file) as opened:
        if sparse and name in opened and is_csr(opened[name]):
            return Table(open_csr_group("X", opened[name]))
        dataset = only_table(opened, file, name)
        attributes = dict(dataset.attrs)
        rows = Hdf5Rows("h5py", str(file), dataset.name, tuple(dataset.shape), dataset.dtype, dataset.chunks)
    return Table(rows, attributes=attributes)


# -- parquet -----------------------------------------------------------------------------------------------------------


def _holds_parquet(path: Path) -> bool:
    """Whether a path is a parquet file by its name, or a folder of such files and no Zarr node."""
    if path.is_file():
        return path.suffix.lower() in SUFFIXES
    if not path.is_dir() or any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")):
        return False
    return any(name.lower().endswith(SUFFIXES) and name[0] not in "._" for name in os.listdir(path))


def _parquet(path: Path) -> Table:
    paths = part_files(path, SUFFIXES)
    with ExitStack() as resources:
        files = open_files(paths, resources)
        advice = f"take some with dask.dataframe.read_parquet({str(path)!r}, columns=[...])"
        head = read_head(path.name, files, None, advice)
        lengths = [[file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)] for file in files]
    pieces, counts = _pieces(lengths, max(1, PIECE_BYTES // (8 * head.n_features)))
    rows = ParquetRows([str(each) for each in paths], head, pieces, counts)
    chunks = (tuple(counts), (head.n_features,))
    return Table(read_pieces(_read_piece, rows, chunks, head.dtype, name="read"), _named(head))


def _named(head: Head) -> Any:
    if head.width is not None:
        return None
    import pandas as pd

    return pd.DataFrame({name: np.empty(0, head.dtype) for name in head.names})


def _pieces(lengths: list[list[int]], most: int) -> tuple[list[tuple[int, list[int]]], list[int]]:
    """What one task reads: a file's number and row groups of it that follow each other; and the rows of these."""
    pieces: list[tuple[int, list[int]]] = []
    counts: list[int] = []
    for number, groups in enumerate(lengths):
        for group, rows in enumerate(groups):
            if not rows:
                continue
            if pieces and pieces[-1][0] == number and counts[-1] + rows <= most:
                pieces[-1][1].append(group)
                counts[-1] += rows
            else:
                pieces.append((number, [group]))
                counts.append(rows)
    return pieces, counts


class ParquetRows:
    """Rows of parquet files, which every process opens for itself.

    Parameters
    ----------
    paths : list of str
    head : Head
    pieces, counts : list
        As `_pieces` gives them.
    marks : list, optional
        Length and `file_mark` of each file in the process that opened them.
    """

    def __init__(
        self,
        paths: list[str],
        head: Head,
        pieces: list[tuple[int, list[int]]],
        counts: list[int],
        marks: list[tuple[int, str | None]] | None = None,
    ) -> None:
        self.paths, self.head, self.pieces, self.counts = paths, head, pieces, counts
        self.shape, self.dtype = (head.n_rows, head.n_features), head.dtype
        self._marks = marks or [(os.stat(path).st_size, file_mark(path)) for path in paths]
        self._proved: set[int] = set()

    def read(self, piece: int) -> NDArray[Any]:
        """Read one piece; raises UnseenStoreError."""
        number, groups = self.pieces[piece]
        self._prove(number)
        rows, filled = np.empty((self.counts[piece], self.shape[1]), self.dtype), 0
        with ExitStack() as resources:
            (file,) = open_files([Path(self.paths[number])], resources)
            for batch in file.iter_batches(
                batch_size=_BATCH_ROWS, row_groups=groups, columns=self.head.names, use_threads=False
            ):
                if len(batch):
                    rows[filled : filled + len(batch)] = matrix_of(batch, self.head)
                    filled += len(batch)
        what = f"what was read of {self.paths[number]!r}, row groups {groups[0]} to {groups[-1]},"
        return as_declared(what, rows[:filled], rows.shape, self.dtype)

    def _prove(self, number: int) -> None:
        if number in self._proved:
            return
        path, (size, mark) = self.paths[number], self._marks[number]
        try:
            found = os.stat(path).st_size
        except OSError as error:
            raise unseen(path, error) from error
        if found != size or marks_differ((mark,), (file_mark(path),)):
            raise unseen(path, "a file with other content is there")
        self._proved.add(number)

    def __reduce__(self) -> Any:
        return ParquetRows, (self.paths, self.head, self.pieces, self.counts, self._marks)


def _read_piece(source: ParquetRows, block_id: tuple[int, ...]) -> NDArray[Any]:
    return source.read(block_id[0])
