"""Maps: labels and agreement on the grid of a raster, counted strip by strip.

A picture has fewer pixels than a raster. What it shows of each of its cells is the most frequent label, or the mean
agreement, of all that lies in the cell; nothing is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.contingency import PairCounts, contingency_chunk, contingency_combine
from ..metrics.contingency import Opened, align_rows, check_labels, open_input, reduce_rows
from ..typing import Array, ArrayInput
from .drawing import BLOCK_ROWS, add_legend, check_labels_given, colors_of, how_many, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_agreement_map", "plot_label_map"]

#: Cells of a map along the longer side.
MAP_CELLS = 800


def plot_label_map(labels: ArrayInput, *, ax: Axes | None = None) -> Axes:
    """Draw the labels of a raster on its grid.

    Parameters
    ----------
    labels : array-like (height, width), dask array, zarr.Array, path of a Zarr array, or xarray.DataArray
        Labels as in `metrics.contingency_matrix`; -1, "no cluster", is grey. The axes of a DataArray have its names and
        coordinates.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Every cell has the colour of its most frequent label, of equally frequent ones the smallest. The title says how
        many pixels are in a cell.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError
        If an estimator is given in place of labels.
    ValueError
        If `labels` is empty or has not two dimensions, and as `metrics.contingency_matrix`.

    Notes
    -----
    One pass, on the active dask scheduler for chunked input; a task takes a strip over the whole width. A label has the
    same colour as in `plot_labels`.
    """
    check_labels_given("plot_label_map", labels=labels)
    opened, grid = _opened("labels", labels)
    pairs: PairCounts = _over_strips(_count_strip, contingency_combine, opened, "dc-map-labels", grid)
    # The most frequent label of each cell comes first, of equally frequent ones the smallest.
    order = np.lexsort((pairs.columns, -pairs.counts, pairs.rows))
    first = order[np.unique(pairs.rows[order], return_index=True)[1]]
    image = colors_of(pairs.values_pred)[pairs.columns[first]].reshape(*grid.cells, 3)
    axes = _draw(image, grid, ax)
    each = "every pixel drawn" if grid.step == 1 else f"the most frequent label of {grid.step} x {grid.step}"
    axes.set_title(f"{grid.height:,} x {grid.width:,} pixels in {how_many(pairs.values_pred)}\n{each}")
    add_legend(axes, pairs.values_pred)
    return axes


def plot_agreement_map(agreement: ArrayInput, *, ax: Axes | None = None) -> Axes:
    """Draw on the grid of a raster how far its base clusterings agree.

    Parameters
    ----------
    agreement : array-like (height, width), dask array, zarr.Array, path of a Zarr array, or xarray.DataArray
        Real numbers from 0 to 1: a consensus' `agreement_`, or `metrics.consensus_confidence`, in the raster's shape.
        NaN is left out, and grey where a cell has nothing else.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Every cell has the mean of its pixels. The scale is the same in all pictures, from 0 to 1.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError
        If an estimator is given in place of an array.
    ValueError
        If `agreement` is empty, has not two dimensions, or has values that are no share.

    Notes
    -----
    One pass, as in `plot_label_map`. The colours are those of cividis, which grow lighter evenly, in grey print too.
    """
    if hasattr(agreement, "get_params"):
        kind = type(agreement).__name__
        way = (
            "give its agreement_, in the raster's shape"
            if hasattr(agreement, "agreement_")
            else "give the agreement_ of a fitted consensus, such as USENC or EAC, in the raster's shape; "
            "plot_label_map draws labels_"
        )
        raise TypeError(f"agreement must be an array, got a {kind}: {way}")
    opened, grid = _opened("agreement", agreement)
    if opened.dtype.kind not in "biuf":
        raise ValueError(f"agreement must hold real numbers, got dtype {opened.dtype}")
    sums: _Sums = _over_strips(_sum_strip, _add_sums, opened, "dc-map-agreement", grid)
    counted = sums.counts > 0
    if not counted.any():
        raise ValueError("agreement holds nothing but NaN")
    means = np.full(grid.cells, np.nan)
    means[counted] = sums.totals[counted] / sums.counts[counted]
    from matplotlib import colormaps

    colors = colormaps["cividis"].with_extremes(bad="#d9d9d9")
    axes = _draw(means, grid, ax, cmap=colors, vmin=0.0, vmax=1.0)
    axes.figure.colorbar(axes.images[-1], ax=axes, label="agreement", fraction=0.05)
    mean = sums.totals.sum() / sums.counts.sum()
    each = "every pixel drawn" if grid.step == 1 else f"the mean of {grid.step} x {grid.step}"
    axes.set_title(f"{grid.height:,} x {grid.width:,} pixels, mean agreement {mean:.3f}\n{each}")
    return axes


class _Grid(NamedTuple):
    """How pixels lie in cells, and what is written at the axes."""

    height: int
    width: int
    step: int  # pixels along a side of a cell
    names: tuple[str, str]
    places: tuple[tuple[float, float], tuple[float, float]]  # of the first pixel and from each to the next, down, right

    @property
    def cells(self) -> tuple[int, int]:
        return -(-self.height // self.step), -(-self.width // self.step)


class _Sums(NamedTuple):
    """Sums over the cells of some rows of cells."""

    first: int
    totals: NDArray[np.float64]  # (r, cells of a row)
    counts: NDArray[np.int64]


def _opened(name: str, value: ArrayInput) -> tuple[Opened, _Grid]:
    names, places = ("row", "column"), ((0.0, 1.0), (0.0, 1.0))
    if hasattr(value, "dims") and hasattr(value, "coords") and len(value.dims) == 2:
        names = (str(value.dims[0]), str(value.dims[1]))
        places = (_places(value, 0), _places(value, 1))
    opened = open_input(name, value, n_axes=2)
    height, width = (int(length) for length in opened.shape)
    if not height * width:
        raise ValueError(f"{name} is empty, got shape {opened.shape}: there is no raster to draw")
    return opened, _Grid(height, width, -(-max(height, width) // MAP_CELLS), names, places)


def _places(value: Any, axis: int) -> tuple[float, float]:
    """Where the first pixel is, and how far the next: by the coordinate if it is evenly spaced, else by number."""
    coordinate = value.coords.get(value.dims[axis])
    if coordinate is not None and len(coordinate) > 1 and coordinate.dtype.kind in "iuf":
        along = np.asarray(coordinate, np.float64)
        step = (along[-1] - along[0]) / (len(along) - 1)
        if step and np.allclose(np.diff(along), step, rtol=1e-3, atol=0):
            return float(along[0]), float(step)
    return 0.0, 1.0


def _draw(image: NDArray[Any], grid: _Grid, ax: Axes | None, **kwargs: Any) -> Axes:
    shape = grid.height / grid.width
    axes = ax if ax is not None else new_axes(7.0, float(np.clip(5.4 * shape + 0.8, 2.6, 9.0)))
    (top, down), (left, right) = grid.places
    rows, columns = (count * grid.step for count in grid.cells)  # the last cells may reach beyond the raster
    box = (left - right / 2, left + (columns - 0.5) * right, top + (rows - 0.5) * down, top - down / 2)
    axes.imshow(image, extent=box, origin="upper", interpolation="nearest", aspect=abs(right / down), **kwargs)
    axes.set_xlim(left - right / 2, left + (grid.width - 0.5) * right)
    axes.set_ylim(top + (grid.height - 0.5) * down, top - down / 2)
    # A picture with north up and east right, whichever way coordinates run.
    if right < 0:
        axes.invert_xaxis()
    if down > 0 and grid.places != ((0.0, 1.0), (0.0, 1.0)):
        axes.invert_yaxis()
    if grid.places == ((0.0, 1.0), (0.0, 1.0)):
        axes.set_aspect("equal")
    axes.set(xlabel=grid.names[1], ylabel=grid.names[0])
    return axes


def _over_strips(
    function: Callable[..., Any], combine: Callable[[list[Any]], Any], opened: Opened, name: str, grid: _Grid
) -> Any:
    """Reduce an array strip by strip, each with the numbers of its rows."""
    if isinstance(opened, np.ndarray):
        rows = max(1, BLOCK_ROWS // grid.width)
        steps = (slice(start, start + rows) for start in range(0, grid.height, rows))
        numbers = np.arange(grid.height)
        parts = (function(opened[step], numbers[step], step=grid.step) for step in steps)
        return reduce(lambda total, part: combine([total, part]), parts)
    (strips,) = align_rows(("raster", opened))
    numbers = da.arange(grid.height, chunks=(strips.chunks[0],))
    return reduce_rows(function, combine, strips, numbers, name=name, step=grid.step)


def _count_strip(strip: Array, numbers: Array, step: int) -> PairCounts:
    """Pixels in every cell with every label: the contingency table of cells and labels."""
    columns = np.arange(strip.shape[1]) // step
    cells = (numbers // step)[:, None] * (columns[-1] + 1) + columns
    return contingency_chunk(cells.ravel(), check_labels("labels", np.asarray(strip).ravel()))


def _sum_strip(strip: Array, numbers: Array, step: int) -> _Sums:
    values = np.asarray(strip, np.float64)
    known = ~np.isnan(values)
    if ((values < 0) | (values > 1))[known].any():
        wrong = values[known & ((values < 0) | (values > 1))][0]
        raise ValueError(f"agreement must be shares from 0 to 1, got {wrong:g}")
    rights = np.arange(0, strip.shape[1], step)
    downs = np.flatnonzero(np.diff(numbers // step, prepend=-1))  # a strip may begin inside a cell

    def added(pixels: NDArray[Any]) -> NDArray[Any]:
        return np.add.reduceat(np.add.reduceat(pixels, rights, axis=1), downs, axis=0)

    return _Sums(int(numbers[0]) // step, added(np.where(known, values, 0.0)), added(known.astype(np.int64)))


def _add_sums(parts: list[_Sums]) -> _Sums:
    first = min(part.first for part in parts)
    last = max(part.first + len(part.totals) for part in parts)
    totals = np.zeros((last - first, parts[0].totals.shape[1]))
    counts = np.zeros(totals.shape, np.int64)
    for part in parts:
        rows = slice(part.first - first, part.first - first + len(part.totals))
        totals[rows] += part.totals
        counts[rows] += part.counts
    return _Sums(first, totals, counts)
