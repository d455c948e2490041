"""Profiles: what the features of each cluster are, and how far they spread."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..metrics.contingency import align_rows, check_labels, open_input, reduce_rows
from ..typing import Array, ArrayInput
from .drawing import BLOCK_ROWS, check_labels_given, have_long_names, how_many, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_profiles"]

#: Numbers stand in the cells of tables up to so many clusters and features.
MOST_WRITTEN = 15, 20
#: Deviations from the mean of all rows that have the darkest colour.
DARKEST = 2.0


def plot_profiles(
    X: ArrayInput, labels: ArrayInput, *, ax: Axes | None = None, names: Sequence[str] | None = None
) -> Axes:
    """Draw mean and spread of every feature in every cluster.

    Parameters
    ----------
    X : array-like (n, d), dask array, zarr.Array, or path of a Zarr array
        Real numbers. NaN and infinity are left out, feature by feature.
    labels : array-like (n,), dask array, zarr.Array, or path of a Zarr array
        As in `metrics.contingency_matrix`. Label -1, "no cluster", has a column as well.
    ax : matplotlib Axes, optional
    names : sequence of str, optional
        Of the d features; their numbers by default.

    Returns
    -------
    matplotlib Axes
        A row a feature, a column a label. The colour is the cluster's mean, less that of all rows, in standard
        deviations of all rows, orange above and purple below; the number, in tables of up to 15 labels by 20 features,
        is the mean itself. The bar below is the cluster's own standard deviation: a bar as wide as the cell is that of
        all rows, so a short one means a tight cluster.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError
        If an estimator is given in place of labels.
    ValueError
        If shapes do not fit each other, and for labels as `metrics.contingency_matrix`.

    Notes
    -----
    One pass, on the active dask scheduler for chunked input. Means and squared deviations of blocks are combined by the
    update of Chan, Golub and LeVeque (The American Statistician 37, 1983), exact for values far from 0 too.
    """
    check_labels_given("plot_profiles", labels=labels, X=X)
    found = _moments(X, labels)
    n_features, n_labels = found.means.shape[1], len(found.labels)
    if names is not None and len(names) != n_features:
        raise ValueError(f"names must have one name for each of {n_features} features, got {len(names)}")
    every = reduce(lambda total, part: _add_moments([total, part]), (_of_all(found, i) for i in range(n_labels)))
    mean, spread = every.means[0], np.sqrt(every.squares[0] / np.maximum(every.counts[0], 1))
    unit = np.where(spread > 0, spread, 1.0)
    known = found.counts > 0
    shown = np.where(known, (found.means - mean) / unit, np.nan).T  # (d, k)
    widths = np.sqrt(found.squares / np.maximum(found.counts, 1)).T / unit[:, None]
    size = (float(np.clip(2.6 + 0.55 * n_labels, 4.6, 12.0)), float(np.clip(1.6 + 0.42 * n_features, 3.0, 12.0)))
    axes = ax if ax is not None else new_axes(*size)
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection

    colors = colormaps["PuOr_r"].with_extremes(bad="#d9d9d9")
    image = axes.imshow(shown, cmap=colors, vmin=-DARKEST, vmax=DARKEST, interpolation="nearest", aspect="auto")
    axes.figure.colorbar(image, ax=axes, label="mean, in deviations of all rows", fraction=0.05, extend="both")
    down, right = np.nonzero(known.T)
    half = np.minimum(widths[down, right], 1.0) * 0.45
    ends = np.stack([right - half, down + 0.36, right + half, down + 0.36], axis=1).reshape(-1, 2, 2)
    # Dark on white, so that the bar is seen on every colour.
    axes.add_collection(LineCollection(list(ends), colors="white", linewidths=4.0, capstyle="butt"))
    axes.add_collection(LineCollection(list(ends), colors="#222222", linewidths=2.0, capstyle="butt"))
    if n_labels <= MOST_WRITTEN[0] and n_features <= MOST_WRITTEN[1]:
        for i, j in zip(down.tolist(), right.tolist(), strict=True):
            dark = "white" if abs(shown[i, j]) > 1.3 else "#222222"
            text = f"{found.means[j, i]:.3g}"
            axes.text(j, i - 0.08, text, ha="center", va="center", fontsize="small", color=dark)
    _write_sides(axes, found.labels, [str(i) for i in range(n_features)] if names is None else list(map(str, names)))
    rows = int(found.rows.sum())
    axes.set(
        title=f"{rows:,} rows in {how_many(found.labels)}: mean, and spread as a bar",
        xlabel="label",
        ylabel="feature",
    )
    return axes


def _write_sides(axes: Axes, labels: Array, names: list[str]) -> None:
    if len(labels) <= 40:
        axes.set_xticks(
            np.arange(len(labels)), [str(label) for label in labels], rotation=90 if have_long_names(labels) else 0
        )
    if len(names) <= 40:
        axes.set_yticks(np.arange(len(names)), names)


class _Moments(NamedTuple):
    """Sums of the rows of each label."""

    labels: Array  # (k,) ascending
    rows: NDArray[np.int64]  # (k,)
    counts: NDArray[np.int64]  # (k, d) of finite values
    means: NDArray[np.float64]  # (k, d)
    squares: NDArray[np.float64]  # (k, d) sums of squared deviations from the means


def _moments(X: ArrayInput, labels: ArrayInput) -> _Moments:
    rows, row_labels = open_input("X", X, n_axes=2), open_input("labels", labels, n_axes=1)
    if rows.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got dtype {rows.dtype}")
    if isinstance(rows, np.ndarray) and isinstance(row_labels, np.ndarray) and len(rows) == len(row_labels):
        steps = (slice(start, start + BLOCK_ROWS) for start in range(0, max(1, len(rows)), BLOCK_ROWS))
        parts = (_block_moments(rows[step], row_labels[step]) for step in steps)
        found = reduce(lambda total, part: _add_moments([total, part]), parts)
    else:
        blocks, block_labels = align_rows(("X", rows), ("labels", row_labels))
        assert isinstance(blocks, da.Array)
        found = reduce_rows(_block_moments, _add_moments, blocks, block_labels, name="dc-profiles")
    if not len(found.labels):
        raise ValueError("labels is empty: there is no cluster to draw")
    return found


def _block_moments(block: Array, labels: Array) -> _Moments:
    names, codes = np.unique(check_labels("labels", labels), return_inverse=True)
    k, d = len(names), block.shape[1]
    counts, means, squares = np.zeros((k, d), np.int64), np.zeros((k, d)), np.zeros((k, d))
    for j in range(d):
        values = np.asarray(block[:, j], np.float64)
        finite = np.isfinite(values)
        values, of = (values, codes) if finite.all() else (values[finite], codes[finite])
        counts[:, j] = np.bincount(of, minlength=k)
        means[:, j] = np.bincount(of, values, minlength=k) / np.maximum(counts[:, j], 1)
        squares[:, j] = np.bincount(of, (values - means[of, j]) ** 2, minlength=k)
    return _Moments(names, np.bincount(codes, minlength=k), counts, means, squares)


def _add_moments(parts: list[_Moments]) -> _Moments:
    parts = [part for part in parts if len(part.labels)] or parts[:1]
    names = np.unique(np.concatenate([part.labels for part in parts]))
    shape = len(names), parts[0].means.shape[1]
    rows, counts = np.zeros(shape[0], np.int64), np.zeros(shape, np.int64)
    means, squares = np.zeros(shape), np.zeros(shape)
    for part in parts:
        at = np.searchsorted(names, part.labels)
        total = np.maximum(counts[at] + part.counts, 1)
        apart = part.means - means[at]
        squares[at] += part.squares + apart**2 * counts[at] * part.counts / total
        means[at] += apart * part.counts / total
        counts[at] += part.counts
        rows[at] += part.rows
    return _Moments(names, rows, counts, means, squares)


def _of_all(found: _Moments, i: int) -> _Moments:
    """The i-th label's sums, under a name that all share."""
    one = slice(i, i + 1)
    return _Moments(np.zeros(1, np.int8), found.rows[one], found.counts[one], found.means[one], found.squares[one])
