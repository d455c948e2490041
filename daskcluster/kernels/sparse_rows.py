"""Rows of which most numbers are 0, by compressed rows: what kernels do with a block of them.

A squared distance is the sum of the differences squared over the numbers of the row, and of the squares of the other
numbers of the point: abs(x - c)^2 = sum over x of (x_f - c_f)^2 + (abs(c)^2 - sum over x of c_f^2). Both sums over c
are taken in the same order, so a row at a point is exactly 0 away from it. Which point is nearest is told by
abs(c)^2 / 2 - x c, from the points by columns: a row meets the numbers of the points in its own columns only. All sums
are float64, in the order of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from .jit import jit

__all__ = [
    "SparsePoints",
    "SparseRows",
    "closest_sparse",
    "is_sparse",
    "row_keys",
    "sparse_byte_order",
    "sparse_distinct",
    "sparse_plus_plus",
    "sparse_sqdist",
    "unit_rows",
]


class SparseRows:
    """Rows (n, d) by compressed rows, in one form only: columns ascending, none twice, no zeros stored.

    Parameters
    ----------
    data : (z,)
        The numbers that are not 0; read-only, as all of it.
    indices : (z,) int32
        Their columns.
    indptr : (n + 1,) int64
        Where the rows begin.
    n_features : int

    Notes
    -----
    It behaves as an array where the code for dense rows needs no more: length, shape, dtype, rows by slice, places or
    mask. Slices are views.
    """

    ndim = 2

    def __init__(self, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], n_features: int) -> None:
        self.data, self.n_features = data, int(n_features)
        self.indices = np.asarray(indices, np.int32)
        self.indptr = np.asarray(indptr, np.int64)

    @classmethod
    def of(cls, matrix: Any, dtype: Any = None) -> SparseRows:
        """Rows of a SciPy matrix or a dense array, brought into the one form; the matrix stays as it is."""
        given = csr_array(matrix)
        data = given.data if dtype is None else given.data.astype(dtype)
        matrix = csr_array((data, given.indices, given.indptr), shape=given.shape, copy=False)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        if not matrix.data.all():
            matrix = matrix.copy()
            matrix.eliminate_zeros()
        return cls(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1])

    @classmethod
    def stack(cls, parts: Sequence[SparseRows]) -> SparseRows:
        """Rows of several blocks, one below the other."""
        if len(parts) == 1:
            return parts[0]
        ends = np.concatenate([[0], np.cumsum([part.n_entries for part in parts])])
        starts = [part.indptr[:-1] + end for part, end in zip(parts, ends, strict=False)]
        return cls(
            np.concatenate([part.data for part in parts]),
            np.concatenate([part.indices for part in parts]),
            np.concatenate([*starts, ends[-1:]]),
            parts[0].n_features,
        )

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), self.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self.data.dtype

    @property
    def size(self) -> int:
        """Numbers in all, zeros among them."""
        return len(self) * self.n_features

    @property
    def n_entries(self) -> int:
        """Numbers that are stored."""
        return len(self.data)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return int(self.data.nbytes + self.indices.nbytes + self.indptr.nbytes)

    def __sizeof__(self) -> int:
        return self.nbytes

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        raise TypeError("sparse rows are not made dense unasked")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return NotImplemented  # dask asks for it, to know that NumPy does not join them

    def __getitem__(self, key: Any) -> SparseRows:
        if isinstance(key, tuple):
            key = key[0]  # columns are taken whole
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                indptr = self.indptr[start : max(start, stop) + 1]
                inside = slice(int(indptr[0]), int(indptr[-1]))
                return SparseRows(self.data[inside], self.indices[inside], indptr - indptr[0], self.n_features)
            key = np.arange(start, stop, step)
        key = np.asarray(key)
        places = np.flatnonzero(key) if key.dtype == bool else np.atleast_1d(key)
        lengths = np.diff(self.indptr)[places]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        taken = np.repeat(self.indptr[places] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return SparseRows(self.data[taken], self.indices[taken], indptr, self.n_features)

    def __add__(self, other: SparseRows) -> SparseRows:
        return SparseRows.of(self.matrix + other.matrix)

    def astype(self, dtype: Any, copy: bool = False) -> SparseRows:
        """The same numbers in another type."""
        return self.with_data(self.data.astype(dtype, copy=False))

    def with_data(self, data: NDArray[Any]) -> SparseRows:
        """Other numbers at the same places; those that are 0 are left out."""
        made = SparseRows(data, self.indices, self.indptr, self.n_features)
        return made if data.all() else SparseRows.of(made.matrix)

    def any(self, axis: int = 1) -> NDArray[np.bool_]:
        """Whether each row has a number that is not 0."""
        return np.diff(self.indptr) > 0

    @property
    def matrix(self) -> csr_array:
        """The same as SciPy has it; shares memory."""
        indptr = self.indptr if self.n_entries > np.iinfo(np.int32).max else self.indptr.astype(np.int32)
        return csr_array((self.data, self.indices, indptr), shape=self.shape, copy=False)

    def toarray(self) -> NDArray[Any]:
        """The rows with all their zeros."""
        return np.asarray(self.matrix.toarray())

    @cached_property
    def sqlengths(self) -> NDArray[np.float64]:
        """Squared lengths (n,) of float64 rows, summed up in the order of the columns."""
        return _sqlengths(self.indptr, self.data)


def is_sparse(rows: Any) -> bool:
    """Whether rows are `SparseRows`."""
    return isinstance(rows, SparseRows)


@jit
def _sqlengths(indptr, data):
    out = np.zeros(len(indptr) - 1)
    for i in range(len(out)):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += data[e] * data[e]
        out[i] = total
    return out


@jit
def _unit(indptr, data):
    """Numbers of rows divided by the row's length, as `prepare_rows` does it for dense rows, to the last bit."""
    out = np.empty_like(data)
    for i in range(len(indptr) - 1):
        largest = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            largest = max(largest, abs(data[e]))
        if largest == 0:
            largest = 1.0
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = data[e] / largest
            total += out[e] * out[e]
        length = np.sqrt(total) if total > 0 else 1.0
        for e in range(indptr[i], indptr[i + 1]):
            out[e] /= length
    return out


def unit_rows(rows: SparseRows) -> SparseRows:
    """Rows of float64 at unit length; a row of zeros stays."""
    return rows.with_data(_unit(rows.indptr, rows.data))


# -- the nearest of some points ----------------------------------------------------------------------------------------


class SparsePoints:
    """Points (p, d) by columns and by rows, for the search of the nearest; of equally near ones the first.

    Parameters
    ----------
    points : SparseRows of float64

    Notes
    -----
    24 bytes a number that is not 0, and 8 a column. A row takes as many operations as its columns have numbers in
    all points, and 2 p.
    """

    def __init__(self, points: SparseRows) -> None:
        self.points = points
        columns = points.matrix.tocsc()
        self._columns = (columns.indptr.astype(np.int64), columns.indices.astype(np.int32), columns.data)

    def __len__(self) -> int:
        return len(self.points)

    def __reduce__(self) -> Any:
        return SparsePoints, (self.points,)

    def __call__(self, rows: SparseRows, n_neighbors: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """K nearest of each row (n, d): indices (n, K) and Euclidean distances (n, K), ascending."""
        indices = self.nearest(rows, n_neighbors)
        sqdist = sparse_sqdist(rows, self.points, indices)
        order = np.argsort(sqdist, axis=1, kind="stable")  # equal scores may have distances apart by rounding
        with np.errstate(over="ignore"):  # farther than float32 reaches is infinitely far
            distances = np.sqrt(np.take_along_axis(sqdist, order, axis=1)).astype(np.float32)
        return np.take_along_axis(indices, order, axis=1), distances

    def nearest(self, rows: SparseRows, n_neighbors: int) -> NDArray[np.int32]:
        """Indices (n, K) of the K nearest."""
        out = np.empty((len(rows), n_neighbors), np.int32)
        half = 0.5 * self.points.sqlengths
        _nearest_by_columns(rows.indptr, rows.indices, rows.data, *self._columns, half, out)
        return out


@jit
def _nearest_by_columns(indptr, indices, data, starts, places, values, half, out):
    n_points = len(half)
    n_neighbors = out.shape[1]
    products = np.empty(n_points)
    best = np.empty(n_neighbors)
    for i in range(len(indptr) - 1):
        products[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            x, f = data[e], indices[e]
            for t in range(starts[f], starts[f + 1]):
                products[places[t]] += x * values[t]
        best[:] = np.inf
        for q in range(n_neighbors):
            out[i, q] = q  # of numbers so large that no score is finite
        for j in range(n_points):
            score = half[j] - products[j]
            if score < best[n_neighbors - 1]:
                q = n_neighbors - 1
                while q > 0 and best[q - 1] > score:
                    best[q] = best[q - 1]
                    out[i, q] = out[i, q - 1]
                    q -= 1
                best[q] = score
                out[i, q] = j


def sparse_sqdist(rows: SparseRows, points: SparseRows, which: NDArray[np.int32]) -> NDArray[np.float64]:
    """Squared distances (n, K) of each row to some points, whose places are `which` (n, K)."""
    out = np.empty(which.shape)
    theirs = (points.indptr, points.indices, points.data, points.sqlengths)
    _sqdist_to_some(rows.indptr, rows.indices, rows.data, *theirs, which, out)
    return out


@jit
def _sqdist_to_some(indptr, indices, data, others, columns, values, sqlengths, which, out):
    for i in range(len(indptr) - 1):
        for q in range(which.shape[1]):
            j = which[i, q]
            at, end = others[j], others[j + 1]
            total = met = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                f = indices[e]
                low, high = at, end  # the first place whose column is f or behind it
                while low < high:
                    middle = (low + high) // 2
                    if columns[middle] < f:
                        low = middle + 1
                    else:
                        high = middle
                at = low
                value = 0.0
                if at < end and columns[at] == f:
                    value = values[at]
                difference = data[e] - value
                total += difference * difference
                met += value * value
            out[i, q] = total + max(0.0, sqlengths[j] - met)


@jit
def _lower_closest(indptr, indices, data, point, sqlength, closest):
    for i in range(len(indptr) - 1):
        total = met = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            value = point[indices[e]]
            difference = data[e] - value
            total += difference * difference
            met += value * value
        total += max(0.0, sqlength - met)
        if total < closest[i]:
            closest[i] = total


def closest_sparse(rows: SparseRows, points: SparseRows, number: int, closest: NDArray[np.float64]) -> None:
    """Lower `closest` (n,) to the squared distances to one more point, in place."""
    point = np.zeros(points.n_features)
    inside = slice(points.indptr[number], points.indptr[number + 1])
    point[points.indices[inside]] = points.data[inside]
    _lower_closest(rows.indptr, rows.indices, rows.data, point, points.sqlengths[number], closest)


def sparse_plus_plus(rows: SparseRows, weights: NDArray[np.float64], uniforms: NDArray[np.float64]) -> NDArray[np.intp]:
    """Greedy k-means++ on sparse rows: as `lloyd.plus_plus_rows`, sums in the same order."""
    n_clusters, n_trials = uniforms.shape
    mass = weights if len(weights) else np.ones(len(rows))
    closest = np.full(len(rows), np.inf)
    chosen: list[int] = []
    for step in range(n_clusters):
        cumulative = np.cumsum(mass if step == 0 else mass * closest)
        total = cumulative[-1]
        if total <= 0:
            break
        best, best_potential, best_row = closest, np.inf, -1
        for t in range(1 if step == 0 else n_trials):
            row = min(int(np.searchsorted(cumulative, uniforms[step, t] * total, side="right")), len(rows) - 1)
            while row > 0 and cumulative[row] == cumulative[row - 1]:
                row -= 1  # a row without weight or at a chosen place is never drawn
            trial = closest.copy()
            closest_sparse(rows, rows, row, trial)
            potential = np.cumsum(mass * trial)[-1]
            if t == 0 or potential < best_potential:
                best, best_potential, best_row = trial, potential, row
        chosen.append(best_row)
        closest = best
    return np.array(chosen, np.intp)


# -- rows as strings of bytes ------------------------------------------------------------------------------------------


def row_keys(rows: SparseRows) -> list[bytes]:
    """A string of bytes for each row, which sorts as the bytes of the dense row do; equal for equal rows only."""
    entry = np.dtype([("column", ">u4"), ("value", f"V{rows.dtype.itemsize}")])
    entries = np.empty(rows.n_entries, entry)
    entries["column"] = np.uint32(2**32 - 1) - rows.indices.astype(np.uint32)  # the first one that is not 0 is larger
    entries["value"] = np.ascontiguousarray(rows.data).view(f"V{rows.dtype.itemsize}")
    content, size = entries.tobytes(), entry.itemsize
    ends = (rows.indptr * size).tolist()
    return [content[low:high] for low, high in pairwise(ends)]


def sparse_byte_order(rows: SparseRows) -> NDArray[np.int32]:
    """The order of `lloyd.byte_order` for the same rows with all their zeros."""
    keys = row_keys(rows)
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int32)


def sparse_distinct(rows: SparseRows) -> NDArray[np.intp]:
    """Numbers of the rows that differ from every row before them, ascending."""
    first: dict[bytes, int] = {}
    for number, key in enumerate(row_keys(rows)):
        first.setdefault(key, number)
    return np.array(list(first.values()), np.intp)
