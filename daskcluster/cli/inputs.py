"""Inputs: here, and nowhere else on the command line, arrays are opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .failures import InputError

if TYPE_CHECKING:
    import dask.array as da

__all__ = ["open_array", "open_labels", "open_part", "open_rows_for", "open_table"]


def open_array(path: str, n_axes: int = 2, *, sparse: bool = False) -> Any:
    """Open an array, or a file of rows, to look at its shape; raises, and says what stands there, when it is none.

    `sparse` says that a matrix by compressed rows will do.
    """
    from ..io import open_rows
    from ..io.sparse import open_csr_group
    from ..io.tables import open_table

    table = open_table(path, sparse=sparse)
    if table is not None:
        return table.array
    found = open_rows(path, n_axes=n_axes, sparse=sparse)
    return found if hasattr(found, "dtype") else open_csr_group("X", found)


def open_rows_for(estimator: Any, path: str) -> Any:
    """Return rows as the `predict` of an estimator takes them: by path, or lazy for the steps of a pipeline."""
    from ..io import open_dask

    return open_dask(path) if hasattr(estimator, "steps") else path


def open_part(path: str, part: tuple[int, int]) -> tuple[int, da.Array]:
    """Return the first row of the i-th of n parts of stored rows, and the part; all parts together are all rows.

    Parts end where stored chunks do, so that none is read by two of them, unless there are fewer chunks than parts.
    """
    import numpy as np

    from ..io import open_dask

    rows = open_dask(path)
    index, parts = part
    if parts > rows.shape[0]:
        raise InputError(f"--part: {path!r} has {rows.shape[0]:,} rows, expected at most as many parts, got {parts:,}")
    ends = np.cumsum((0, *rows.chunks[0]))
    if parts >= len(ends):
        ends = np.arange(rows.shape[0] + 1)
    start, stop = (int(ends[i * (len(ends) - 1) // parts]) for i in (index, index + 1))
    return start, rows[start:stop]


def open_labels(path: str) -> Any:
    """Return labels as the metrics take them; a table of one column, as a csv file gives, is one."""
    from ..io import open_dask

    array = open_array(path, n_axes=1)
    return open_dask(array)[:, 0] if len(array.shape) == 2 and array.shape[1] == 1 else path


def open_table(path: str) -> da.Array:
    """Open a table of numbers as lazy float64 blocks.

    The size of a block depends on the number of features only, so that sums, and with them labels, do not depend on
    the chunks of the store. In float64 they do not depend on the type of the rows either.
    """
    import numpy as np

    from ..files import choose_chunk_rows
    from ..io import open_dask

    stored = open_dask(path)
    if stored.ndim != 2 or stored.dtype.kind not in "biuf":
        raise InputError(f"{path!r}: expected a table of numbers, got shape {stored.shape} and dtype {stored.dtype}")
    n_features = stored.shape[1]
    return stored.rechunk((choose_chunk_rows(64 * n_features), n_features), method="tasks").astype(np.float64)
