"""xarray's grids as rows: pixels in C order of their sample dimensions, and columns of numbers back on the grid."""

from __future__ import annotations

import logging
import os
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from .inputs import block_rows
from .nodata import declared

__all__ = ["Grid", "GridRows", "cut_stored", "feature_dims", "grid_columns", "grid_rows"]

logger = logging.getLogger("daskcluster")

#: Names of a dimension that holds features, in lower case.
FEATURE_NAMES = ("band", "bands", "channel", "channels", "component", "feature", "features", "variable", "wavelength")

#: Dimensions of an image, in lower case: none of them holds features.
PLANES = ({"y", "x"}, {"lat", "lon"}, {"latitude", "longitude"})

#: Attributes that speak of the numbers of the input, and would be wrong beside labels.
_OF_NUMBERS = frozenset(
    [
        "_FillValue",
        "_Unsigned",
        "actual_range",
        "add_offset",
        "cell_methods",
        "flag_masks",
        "flag_meanings",
        "flag_values",
        "long_name",
        "missing_value",
        "scale_factor",
        "standard_name",
        "units",
        "valid_max",
        "valid_min",
        "valid_range",
    ]
)


#: Bytes of a variable in a file above which it is not read as a whole, and of the pieces that it is read in.
WHOLE_BYTES = 64 * 2**20
PIECE_BYTES = 8 * 2**20


def cut_stored(variable: Any) -> Any:
    """A variable that xarray has opened and not read, in lazy pieces if it is large; any other as it is.

    What a file holds in one piece, as NetCDF does by default, would be read into memory as one piece.
    """
    if variable.chunks is not None or variable.nbytes <= WHOLE_BYTES or getattr(variable.variable, "_in_memory", True):
        return variable
    chunks = variable.encoding.get("preferred_chunks") or dict(zip(variable.dims, _piece(variable), strict=True))
    source = str(variable.encoding.get("source", ""))
    token = None
    if os.path.isfile(source):  # the same file has the same name in every program, which a named store looks at
        found = os.stat(source)
        token = tokenize(source, found.st_mtime_ns, found.st_size, variable.name, variable.shape)
    return variable.chunk(chunks, token=token)


def _piece(variable: Any) -> list[int]:
    """Lengths of a piece: whole in the last dimensions, which follow each other in a file."""
    left, lengths = PIECE_BYTES // variable.dtype.itemsize, []
    for length in reversed(variable.shape):
        lengths.append(max(1, min(length, left)))
        left //= max(1, length)
    return lengths[::-1]


@dataclass(frozen=True)
class Grid:
    """The sample dimensions of an xarray object, and what lies along them.

    Attributes
    ----------
    dims : tuple
        In the order in which rows run through them.
    shape : tuple of int
    coords : mapping
        Coordinates along these dimensions, and scalar ones.
    attributes, encoding : dict
        What is true of the grid whatever stands on it.
    chunks : tuple of tuples of int, or None
        Of the input, where it is chunked.
    """

    dims: tuple[Hashable, ...]
    shape: tuple[int, ...]
    coords: Any
    attributes: dict[str, Any]
    encoding: dict[str, Any]
    chunks: tuple[tuple[int, ...], ...] | None

    def labels(self, labels: Any, n_clusters: int, missing: str) -> Any:
        """Labels (n,) on the grid, with the flags of CF: a number and a meaning for every cluster.

        No ``_FillValue`` is said: xarray would turn the integers into floats when it opens them again.
        """
        values = list(range(-1 if missing == "label" else 0, n_clusters))
        meanings = " ".join("no_data" if value < 0 else f"cluster_{value}" for value in values)
        found = self._put(labels, self.dims, self.coords, "labels")
        found.attrs.update(long_name="cluster", flag_values=np.array(values, np.int32), flag_meanings=meanings)
        return found

    def numbers(self, values: Any, name: str) -> Any:
        """One number a row (n,) on the grid."""
        return self._put(values, self.dims, self.coords, name)

    def points(self, points: Any, names: Sequence[str]) -> Any:
        """Transformed rows (n, q) on the grid, components last."""
        return self._put(points, (*self.dims, "component"), {**self.coords, "component": list(names)}, "points")

    def _put(self, values: Any, dims: tuple[Hashable, ...], coords: Any, name: str) -> Any:
        import xarray

        beside = values.shape[1:]
        values = values.reshape(self.shape + beside)
        if isinstance(values, da.Array) and self.chunks is not None:
            values = values.rechunk((*self.chunks, *beside))
        found = xarray.DataArray(values, coords=coords, dims=dims, name=name, attrs=dict(self.attributes))
        found.encoding.update(self.encoding)
        return found

    def column(self, name: str, values: Any) -> Any:
        """An xarray object with one number a pixel as a column (n,) in the order of the rows.

        Raises
        ------
        ValueError
            If it has other dimensions, lengths or coordinates.
        """
        if set(values.dims) != set(self.dims):
            raise ValueError(f"{name} must have the dimensions {self.dims} of the pixels, got {values.dims}")
        values = values.transpose(*self.dims)
        if values.shape != self.shape:
            raise ValueError(f"{name} must have the shape {self.shape} of the pixels, got {values.shape}")
        for dim in self.dims:
            if (
                dim in values.indexes
                and dim in self.coords
                and not values.indexes[dim].equals(self.coords[dim].to_index())
            ):
                raise ValueError(f"{name} must have the coordinates of X along {dim!r}; align it with xarray first")
        flat = _flat(values.data[..., None], self.dims, block_rows(1, np.dtype(np.float64)))[:, 0]
        found = declared(name, flat.dtype, values.attrs, values.encoding, label=True)
        return flat if found is None else _decoded(flat, found)


def grid_columns(**labelings: Any) -> list[Any]:
    """Labelings by their argument: those on a grid become columns (n,), in the order of the first one's pixels.

    Raises
    ------
    ValueError
        If two of them lie on different grids.
    """
    on_grid = {name: values for name, values in labelings.items() if _is_grid_of_labels(values)}
    if not on_grid:
        return list(labelings.values())
    first = next(iter(on_grid.values()))
    coords = {dim: first.coords[dim] for dim in first.dims if dim in first.coords}
    grid = Grid(first.dims, first.shape, coords, {}, {}, None)
    return [grid.column(name, values) if name in on_grid else values for name, values in labelings.items()]


def _is_grid_of_labels(values: Any) -> bool:
    return type(values).__module__.startswith("xarray") and len(getattr(values, "shape", ())) > 1


@dataclass(frozen=True)
class GridRows:
    """An xarray object as rows.

    Attributes
    ----------
    rows : dask array or NumPy array (n, d), or a dataframe of it where columns have names
    names : tuple of str, or None
        Of the features: variables, or text along the feature dimension.
    grid : Grid
    """

    rows: Any
    names: tuple[str, ...] | None
    grid: Grid

    def named(self) -> Any:
        """An empty dataframe with the names of the features; None where they have none."""
        import pandas

        return None if self.names is None else pandas.DataFrame(columns=list(self.names), dtype=float)


def grid_rows(X: Any, sample_dims: Any = None, feature_dim: Any = None, *, label: bool = False) -> GridRows | None:
    """An xarray object as rows, pixels in C order of the sample dimensions; None for what is a table already.

    Parameters
    ----------
    X : DataArray, Dataset, or anything else
        Of a Dataset the variables are the features. A DataArray (n, d) without keywords is a table, unless its first
        dimension has a name of features.
    sample_dims : str or sequence of str, optional
        Dimensions of the samples, in the order in which rows run through them.
    feature_dim : str, optional
        Dimension of the features. The one that `sample_dims` leaves, or one with a name such as "band".
    label : bool
        Whether no data is -1 there.

    Raises
    ------
    ValueError
        If dimensions are not there, or it is not clear which ones are meant.
    TypeError
        If dimensions are named for something that has none.

    Notes
    -----
    Lazy for dask: pieces of a few whole lines are put together straight from the raster's chunks, each of which is
    read once for all pieces that lie in it. A raster in memory whose features come first or last is not copied.
    """
    kind = type(X).__name__ if type(X).__module__.startswith("xarray") else None
    if kind not in ("DataArray", "Dataset"):
        if sample_dims is not None or feature_dim is not None:
            raise TypeError(
                "sample_dims and feature_dim name dimensions of an xarray DataArray or Dataset, got X of type "
                f"{type(X).__name__}; leave them out, or give the DataArray itself"
            )
        return None
    samples = (sample_dims,) if isinstance(sample_dims, str) else None if sample_dims is None else tuple(sample_dims)
    if kind == "Dataset":
        return _of_variables(X, samples, feature_dim, label)
    if X.ndim <= 2 and samples is None and feature_dim is None and not (X.ndim == 2 and feature_dims(X.dims[:1])):
        if {str(dim).lower() for dim in X.dims} in PLANES:
            raise ValueError(
                f"X has the dimensions {X.dims} of an image, and none of features: give it as a Dataset of one "
                "variable, da.to_dataset(name='value'), or say feature_dim=... where one of them is that"
            )
        return None
    return _of_array(cut_stored(X), samples, feature_dim, label)


def feature_dims(dims: Iterable[Hashable]) -> list[Hashable]:
    """Those dimensions that have a name of features."""
    return [dim for dim in dims if str(dim).lower() in FEATURE_NAMES]


def _check_there(dims: Iterable[Hashable], asked: Sequence[Hashable], keyword: str) -> None:
    dims = tuple(dims)
    lost = [dim for dim in asked if dim not in dims]
    if lost or len(set(asked)) < len(asked):
        said = f"no dimension {lost[0]!r}" if lost else "one dimension twice"
        raise ValueError(f"{keyword} must name dimensions of X, {dims}, each once, got {tuple(asked)}: {said}")


def _of_array(X: Any, samples: tuple[Hashable, ...] | None, feature: Hashable | None, label: bool) -> GridRows:
    if samples is not None:
        _check_there(X.dims, samples, "sample_dims")
    if feature is not None:
        _check_there(X.dims, (feature,), "feature_dim")
    left = [dim for dim in X.dims if dim not in (samples or ())]
    guessed = feature is None
    if guessed:
        choices = left if samples is not None else feature_dims(X.dims)
        if len(choices) != 1:
            raise ValueError(
                f"X has the dimensions {X.dims}, of which it is not clear which one holds the features; say "
                f"feature_dim={str(X.dims[0])!r}, for example, or sample_dims=(...) with all others"
            )
        feature = choices[0]
    if samples is None:
        samples = tuple(dim for dim in X.dims if dim != feature)
    if {*samples, feature} != set(X.dims) or feature in samples:
        raise ValueError(
            f"sample_dims and feature_dim together must name each dimension of X, {X.dims}, once, got "
            f"sample_dims={samples} and feature_dim={feature!r}"
        )
    if guessed:
        logger.info("X: features along %r, samples along %s", feature, samples)
    names = None
    if feature in X.coords and X.coords[feature].dtype.kind in "UOTiuf":
        found = X.coords[feature].values.tolist()
        # Numbers of bands are names, too: another order of them would be other features.
        names = tuple(map(str, found)) if all(isinstance(name, str | int | float) for name in found) else None
    ordered = X.transpose(*samples, feature)
    grid = _grid(X, ordered, samples)
    values = _values(ordered, label)
    return GridRows(_framed(_flat(values, samples, _rows_of(values)), names), names, grid)


def _of_variables(X: Any, samples: tuple[Hashable, ...] | None, feature: Hashable | None, label: bool) -> GridRows:
    if feature is not None:
        raise ValueError(f"feature_dim={feature!r}: the features of a Dataset are its variables; leave it out")
    names = [name for name, variable in X.data_vars.items() if variable.ndim]
    if not names:
        raise ValueError("X must have a variable with dimensions, got a Dataset without one")
    first = X[names[0]]
    if samples is None and feature_dims(first.dims):
        raise ValueError(
            f"X is a Dataset whose variable {names[0]!r} has a dimension of features, {feature_dims(first.dims)[0]!r}: "
            f"give ds[{names[0]!r}], or say sample_dims=(...) where it is one of samples"
        )
    samples = tuple(first.dims) if samples is None else samples
    for name in names:
        if set(X[name].dims) != set(samples):
            raise ValueError(
                f"X must have variables along the same dimensions {samples}, got {name!r} along {X[name].dims}; "
                "choose variables, as with ds[['red', 'nir']], or say sample_dims=(...)"
            )
        if X[name].dtype.kind not in "biuf":
            raise ValueError(f"X must have variables of numbers, got {name!r} of dtype {X[name].dtype}; leave it out")
    parts = [cut_stored(X[name]).transpose(*samples) for name in names]
    grid = _grid(first, parts[0], samples)
    chosen = [_values(part, label) for part in parts]
    lazy = any(isinstance(part, da.Array) for part in chosen)
    values = (da if lazy else np).stack(chosen, axis=-1)
    texts = tuple(map(str, names))
    return GridRows(_framed(_flat(values, samples, _rows_of(values)), texts), texts, grid)


#: What of a coordinate's encoding says how its numbers are meant.
_OF_TIMES = ("units", "calendar", "grid_mapping")


def _grid(X: Any, ordered: Any, samples: tuple[Hashable, ...]) -> Grid:
    shape = tuple(ordered.sizes[dim] for dim in samples)
    coords = {name: coord.copy() for name, coord in X.coords.items() if set(coord.dims) <= set(samples)}
    for coord in coords.values():  # not the codecs and chunks of the store that it was read from
        coord.encoding = {key: value for key, value in coord.encoding.items() if key in _OF_TIMES}
    attributes = {name: value for name, value in X.attrs.items() if name not in _OF_NUMBERS}
    encoding = {name: X.encoding[name] for name in ("grid_mapping",) if name in X.encoding}
    chunks = None if ordered.chunks is None else tuple(ordered.chunks[: len(samples)])
    return Grid(samples, shape, coords, attributes, encoding, chunks)


def _values(X: Any, label: bool) -> Any:
    """The numbers as values, lazy where they are; see `nodata`."""
    found = declared("X", X.dtype, X.attrs, X.encoding, label=label)
    return X.data if found is None else _decoded(X.data, found)


def _decoded(values: Any, found: Any) -> Any:
    if not isinstance(values, da.Array):
        return found(np.asarray(values))
    dtype = found.dtype(values.dtype)
    return values.map_blocks(found, token="dc-decode", dtype=dtype, meta=np.empty((0,) * values.ndim, dtype))


def _rows_of(values: Any) -> int:
    return block_rows(max(1, values.shape[-1]), values.dtype)


def _framed(rows: Any, names: tuple[str, ...] | None) -> Any:
    """Rows in memory as a dataframe, which carries their names; nothing is copied."""
    if names is None or isinstance(rows, da.Array):
        return rows
    import pandas

    return pandas.DataFrame(rows, columns=list(names), copy=False)


def _flat(values: Any, samples: tuple[Hashable, ...], size: int) -> Any:
    """Values (..., d) as rows (n, d)."""
    *shape, d = values.shape
    if isinstance(values, da.Array):
        return _flat_pieces(values, size)
    values = np.asarray(values)
    first: NDArray[Any] = np.moveaxis(values, -1, 0)
    if first.flags.c_contiguous:  # features first: their columns follow each other, and stay where they are
        return first.reshape(d, prod(shape)).T
    return values.reshape(prod(shape), d)


def _flat_pieces(values: da.Array, size: int) -> da.Array:
    """Lazy rows in pieces of about so many, each a few whole lines that lie in one row of the raster's chunks."""
    *shape, _ = values.shape
    axis = len(shape) - 1
    while axis > 0 and prod(shape[axis:]) <= size:
        axis -= 1
    if axis == len(shape) - 1 and axis > 0:
        axis -= 1  # a whole line at least
    lines = max(1, size // max(1, prod(shape[axis + 1 :])))
    cuts = [(1,) * length for length in shape[:axis]]
    cuts.append(tuple(part for length in values.chunks[axis] for part in _parts(length, lines)))
    cuts += [(length,) for length in shape[axis + 1 :]]
    # In one step: an intermediate one would hold strips of the raster a second time.
    pieces = values.rechunk((*cuts, values.shape[-1:]), method="tasks", threshold=2**62, block_size_limit=2**62)
    return da.reshape(pieces, (prod(shape), values.shape[-1]), merge_chunks=False)


def _parts(length: int, most: int) -> list[int]:
    return [min(most, length - start) for start in range(0, length, most)]
