"""Pictures of labels, eigenvalues and tables; matplotlib is imported when one is drawn.

Every function takes the axes to draw on, or makes a figure, and returns the axes. Nothing is sampled: what
does not fit into a scatter plot is counted on a grid, chunk by chunk, and the title says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.contingency import PairCounts, contingency_chunk, contingency_combine
from ..metrics.contingency import (
    Opened,
    align_rows,
    check_labels,
    count_labels,
    count_pairs,
    dense_table,
    open_input,
    reduce_rows,
)
from ..runtime.execution import compute
from ..typing import Array, ArrayInput
from ..validation import check_integer
from .drawing import (
    BLOCK_ROWS,
    MOST_NAMED,
    PALETTE,
    add_legend,
    check_labels_given,
    colors_of,
    have_long_names,
    how_many,
    is_spectral,
    new_axes,
    short_count,
    stacked_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_cluster_sizes", "plot_contingency", "plot_eigenvalues", "plot_labels", "plot_n_clusters"]

#: Cells of a histogram along the longer side.
CELLS = 400
#: Eigenvalues below count as 0, and are drawn here on a logarithmic scale.
LEAST_DRAWN = 1e-8


def plot_labels(
    X: ArrayInput,
    labels: ArrayInput,
    *,
    ax: Axes | None = None,
    max_scatter_rows: int = 200_000,
    features: tuple[int, int] = (0, 1),
) -> Axes:
    """Draw the rows in the plane of two of their features, coloured by label.

    Parameters
    ----------
    X : array-like (n, d), dask array, zarr.Array, or path of a Zarr array
        Real numbers, d >= 2. The axes tell which features are drawn if there are more than two.
    labels : array-like (n,), dask array, zarr.Array, or path of a Zarr array
        As in `metrics.contingency_matrix`. Label -1, "no cluster", is grey.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    max_scatter_rows : int
        Up to so many rows each is a point. More are counted on a grid: the colour of a cell is the mean of
        its rows' colours, its strength grows with the logarithm of their number.
    features : pair of int
        Columns of X that are drawn, along x and along y.

    Returns
    -------
    matplotlib Axes
        The title says how many rows are shown, and how. Rows with NaN or infinity are left out, and counted
        there.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If shapes do not fit each other, d < 2 or `features` are not two columns, and for labels as
        `metrics.contingency_matrix`.
    TypeError
        If an estimator is given in place of labels.

    Notes
    -----
    On the active dask scheduler for chunked input. A scatter plot brings two columns of all rows into
    memory; the grid takes two passes (range, then counts), O(chunk + cells) a task. A label has the same
    colour in every picture if labels are small non-negative integers.
    """
    max_scatter_rows = check_integer("max_scatter_rows", max_scatter_rows, minimum=0)
    check_labels_given("plot_labels", labels=labels, X=X)
    rows, row_labels, n_features = _opened_rows(X, labels, features)
    axes = ax if ax is not None else new_axes(6.4, 5.6)
    n_samples = int(rows.shape[0])
    if n_samples <= max_scatter_rows:
        drawn, names = _scatter(axes, rows, row_labels)
        note = "every row a point"
    else:
        drawn, names, cells = _histogram(axes, rows, row_labels)
        note = f"counted on {cells[0]} x {cells[1]} cells"
    title = f"{drawn:,} rows in {how_many(names)}, {note}"
    if drawn < n_samples:
        title += f"\nrows with NaN or infinity, not drawn: {n_samples - drawn:,}"
    of = f" of {n_features}" if n_features > 2 else ""
    axes.set(title=title, xlabel=f"feature {features[0]}{of}", ylabel=f"feature {features[1]}{of}")
    axes.set_aspect("equal")
    add_legend(axes, names)
    return axes


def plot_eigenvalues(estimator_or_values: Any, ax: Axes | None = None, *, k_max: int = 30) -> Axes:
    """Draw eigenvalues in their order, and mark the largest relative gap between neighbours.

    Parameters
    ----------
    estimator_or_values : fitted estimator, Spectrum, or array-like (m,)
        An estimator that has a `spectrum` is drawn by its first `k_max` + 1 eigenvalues, with the gap after each; any
        other one by its `eigenvalues_`. Or the values, ascending as those of a Laplacian or descending as those of an
        affinity.
    ax : matplotlib Axes, optional
    k_max : int
        Of `spectrum`; fewer with few representatives.

    Returns
    -------
    matplotlib Axes
        The title names the number of eigenvalues before the gap, an estimate of the number of clusters. A
        dashed line stands after the estimator's own `n_clusters_`.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError
        If an estimator has no `eigenvalues_`.
    ValueError
        If there is no eigenvalue, or one is not finite.

    Notes
    -----
    The gap is relative to the eigenvalue above it, as in `Spectrum`; of values that are no spectrum eigenvalues below a
    hundred-thousandth of the largest count as 0.
    """
    spectrum = _spectrum_of(estimator_or_values, k_max)
    values = _eigenvalues_of(estimator_or_values) if spectrum is None else np.asarray(spectrum)
    axes = ax if ax is not None else new_axes(6.4, 4.0)
    from matplotlib.ticker import MaxNLocator

    order = np.arange(1, len(values) + 1)
    axes.plot(order, values, color="#9a9a9a", linewidth=1, zorder=1)
    axes.scatter(order, values, s=22, color=PALETTE[0], zorder=2)
    title = f"{len(values)} eigenvalue{'s' * (len(values) != 1)}"
    if len(values) > 1:
        before, gap, clear = _largest_gap(values, spectrum)
        axes.axvspan(before, before + 1, color=PALETTE[1], alpha=0.18, linewidth=0, zorder=0)
        title += f"; largest relative gap, {gap:.2f}, after the first {before}"
        title += "" if clear else ": not a clear one"
    n_clusters = getattr(estimator_or_values, "n_clusters_", None)
    if n_clusters is not None:
        axes.axvline(
            n_clusters + 0.5, color="#444444", linestyle="--", linewidth=1, label=f"n_clusters_ = {n_clusters}"
        )
        axes.legend(frameon=False)
    axes.set(title=title, xlabel="number of the eigenvalue", ylabel="eigenvalue")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def plot_n_clusters(found: Any, axes: Any = None) -> Any:
    """Draw what `select_n_clusters` found: eigenvalues, relative gaps and stability over the number of clusters.

    Parameters
    ----------
    found : ClusterNumber
    axes : sequence of 3 matplotlib Axes, optional
        A new figure by default.

    Returns
    -------
    sequence of 3 matplotlib Axes
        Their figure's title is the answer. A band marks the number, where there is a clear one.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError
        If `found` is something else.
    """
    if not all(hasattr(found, name) for name in ("relative_gaps", "stability", "eigenvalues")):
        way = "; plot_eigenvalues draws the model itself" if is_spectral(found) else ""
        raise TypeError(f"plot_n_clusters draws what select_n_clusters(X) gives, got a {type(found).__name__}{way}")
    if axes is None:
        axes = stacked_axes(3)
    from matplotlib.ticker import MaxNLocator

    numbers = np.arange(1, len(found.relative_gaps) + 1)
    for values in found.eigenvalues:
        axes[0].plot(np.arange(1, len(values) + 1), np.maximum(values, LEAST_DRAWN), color=PALETTE[0], alpha=0.6)
    axes[0].set(yscale="log", ylabel="eigenvalue")
    for place, values, name in ((1, found.relative_gaps, "relative gap"), (2, found.stability, "stability")):
        axes[place].plot(numbers, values, marker="o", markersize=4, color=PALETTE[0])
        axes[place].set(ylabel=name, ylim=(min(0.0, float(np.nanmin(values))) - 0.03, 1.05))
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        if found.n_clusters is not None:
            axis.axvspan(found.n_clusters - 0.4, found.n_clusters + 0.4, color=PALETTE[1], alpha=0.25, linewidth=0)
    axes[2].set_xlabel("number of clusters")
    axes[2].xaxis.set_major_locator(MaxNLocator(integer=True))
    answer = "no clear number of clusters" if found.n_clusters is None else f"{found.n_clusters} clusters"
    axes[0].set_title(f"{answer}; {len(found.spectra)} graphs")
    return axes


def plot_cluster_sizes(labels: ArrayInput, ax: Axes | None = None) -> Axes:
    """Draw how many rows every cluster has.

    Parameters
    ----------
    labels : array-like (n,), dask array, zarr.Array, or path of a Zarr array
        As in `metrics.contingency_matrix`; one pass. Label -1, "no cluster", is grey.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        One bar a label, in the order of the labels; more than 60 are drawn as one line, by descending size.
        The scale is logarithmic if the largest cluster is over 100 times the smallest.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If there are no labels, and as `metrics.contingency_matrix`.
    """
    check_labels_given("plot_cluster_sizes", labels=labels)
    values, counts = count_labels(labels)
    if not len(counts):
        raise ValueError("labels is empty: there is no cluster to draw")
    axes = ax if ax is not None else new_axes(min(12.0, max(4.8, 1.2 + 0.38 * min(len(counts), 60))), 4.0)
    if len(counts) <= 60:
        places = np.arange(len(counts))
        bars = axes.bar(places, counts, color=colors_of(values), width=0.8)
        axes.set_xticks(places, [str(value) for value in values], rotation=90 if have_long_names(values) else 0)
        axes.set_xlabel("label")
        if len(counts) <= MOST_NAMED:
            axes.bar_label(bars, [short_count(count) for count in counts], fontsize="small", padding=2)
            axes.margins(y=0.1)
    else:
        axes.plot(np.arange(1, len(counts) + 1), np.sort(counts)[::-1], color=PALETTE[0])
        axes.set_xlabel("clusters by descending size")
    if counts.max() > 100 * counts.min():
        axes.set_yscale("log")
    title = f"{counts.sum():,} rows in {how_many(values)}, sizes {counts.min():,} to {counts.max():,}"
    axes.set(title=title, ylabel="rows")
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def plot_contingency(labels_true: ArrayInput, labels_pred: ArrayInput, ax: Axes | None = None) -> Axes:
    """Draw the contingency table of two labelings, with the clusters in the order of the classes they match.

    Parameters
    ----------
    labels_true, labels_pred : array-like (n,), dask array, zarr.Array, or path of a Zarr array
        As in `metrics.contingency_matrix`; one pass.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Darkness is the share of the row's class, so that small classes show; the numbers, drawn in tables of
        up to 15 by 15, are rows. Columns are ordered by the best one-to-one matching
        (`metrics.clustering_accuracy`): agreement is on the diagonal.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If there are no rows, and as `metrics.contingency_matrix`.
    """
    check_labels_given("plot_contingency", labels_true=labels_true, labels_pred=labels_pred)
    pairs = count_pairs(labels_true, labels_pred)
    table = dense_table(pairs)
    if not table.size:
        raise ValueError("labels_true and labels_pred are empty: there is no table to draw")
    order = _matching_order(table)
    table, names_pred = table[:, order], pairs.values_pred[order]
    n_true, n_pred = table.shape
    axes = ax if ax is not None else new_axes(*(min(10.0, max(4.0, 2.0 + 0.45 * n)) for n in (n_pred, n_true)))
    shares = table / table.sum(axis=1, keepdims=True)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    axes.figure.colorbar(image, ax=axes, label="share of the class", fraction=0.05)
    if max(n_true, n_pred) <= 15:
        for i, j in np.argwhere(table > 0):
            color = "white" if shares[i, j] > 0.55 else "#222222"
            axes.text(j, i, short_count(table[i, j]), ha="center", va="center", fontsize="small", color=color)
    if n_true <= 40:
        axes.set_yticks(np.arange(n_true), [str(value) for value in pairs.values_true])
    if n_pred <= 40:
        rotation = 90 if have_long_names(names_pred) else 0
        axes.set_xticks(np.arange(n_pred), [str(value) for value in names_pred], rotation=rotation)
    axes.set(
        title=f"{table.sum():,} rows, {n_true} classes by {n_pred} clusters",
        xlabel="cluster (labels_pred)",
        ylabel="class (labels_true)",
    )
    return axes


# -- parts of pictures -------------------------------------------------------------------------------------


def _scatter(axes: Axes, rows: Opened, labels: Opened) -> tuple[int, Array]:
    """Draw every row; return how many are drawn, and the labels."""
    if isinstance(rows, da.Array) or isinstance(labels, da.Array):
        rows, labels = compute(rows[:, :2], labels)
    points = np.asarray(rows[:, :2], np.float64)  # (n, 2)
    named = check_labels("labels", np.asarray(labels))
    finite = np.isfinite(points).all(axis=1)
    points, named = points[finite], named[finite]
    names, codes = np.unique(named, return_inverse=True)
    # In row order a class that comes last would cover the others.
    shuffled = np.random.default_rng(0).permutation(len(points))
    axes.scatter(
        points[shuffled, 0],
        points[shuffled, 1],
        s=float(np.clip(2e4 / max(1, len(points)), 0.4, 14.0)),
        c=colors_of(names)[codes[shuffled]],
        linewidths=0,
        rasterized=True,  # a vector file would have one object a row
    )
    return len(points), names


def _histogram(axes: Axes, rows: Opened, labels: Opened) -> tuple[int, Array, tuple[int, int]]:
    """Count rows on a grid; return how many are drawn, the labels, and the cells along x and y."""
    low, high = _over_blocks(_range_chunk, _range_combine, rows, labels, name="dc-plot-range")
    if not (low <= high).all():
        raise ValueError("X has no row without NaN or infinity")
    side = np.where(high > low, high - low, 1.0)
    low, high = (low + high - 1.02 * side) / 2, (low + high + 1.02 * side) / 2
    cells = np.maximum(1, np.round(CELLS * (high - low) / (high - low).max())).astype(int)
    counted: PairCounts = _over_blocks(
        _cells_chunk, contingency_combine, rows, labels, name="dc-plot-cells", low=low, high=high, cells=cells
    )
    names = counted.values_pred
    pixels = counted.values_true[counted.rows]
    total = np.bincount(pixels, counted.counts, minlength=int(cells.prod()))
    image = np.zeros((total.size, 4))
    for channel in range(3):
        weighted = counted.counts * colors_of(names)[counted.columns, channel]
        image[:, channel] = np.bincount(pixels, weighted, minlength=total.size) / np.maximum(total, 1)
    image[:, 3] = np.where(total > 0, 0.25 + 0.75 * np.log1p(total) / np.log1p(total.max()), 0.0)
    axes.imshow(
        image.reshape(cells[1], cells[0], 4),
        origin="lower",
        extent=(low[0], high[0], low[1], high[1]),
        interpolation="nearest",
    )
    return int(counted.counts.sum()), names, (int(cells[0]), int(cells[1]))


# -- numbers -----------------------------------------------------------------------------------------------


def _opened_rows(X: ArrayInput, labels: ArrayInput, features: tuple[int, int]) -> tuple[Opened, Opened, int]:
    """Two columns of X and its labels, in memory or as aligned dask arrays; and the number of all columns."""
    rows, row_labels = open_input("X", X, n_axes=2), open_input("labels", labels, n_axes=1)
    if rows.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got dtype {rows.dtype}")
    if rows.shape[1] < 2:
        raise ValueError(f"X must have two features or more to be drawn in the plane, got shape {rows.shape}")
    n_features = int(rows.shape[1])
    columns = _two_columns(features, n_features)
    if isinstance(rows, np.ndarray) and isinstance(row_labels, np.ndarray) and len(rows) == len(row_labels):
        return rows[:, columns], row_labels, n_features
    blocks, block_labels = align_rows(("X", rows), ("labels", row_labels))
    return blocks[:, columns], block_labels, n_features


def _two_columns(features: tuple[int, int], n_features: int) -> slice:
    """The slice that takes two columns in their order: a view, not a copy."""
    if not isinstance(features, tuple | list) or len(features) != 2:
        raise ValueError(f"features must be two columns of X, got {features!r}")
    i, j = (check_integer("features", each, minimum=0) for each in features)
    if i == j or max(i, j) >= n_features:
        raise ValueError(f"features must be two columns of X, from 0 to {n_features - 1}, got {tuple(features)}")
    step = j - i
    stop = j + (1 if step > 0 else -1)
    return slice(i, None if stop < 0 else stop, step)


def _over_blocks(
    function: Callable[..., Any],
    combine: Callable[[list[Any]], Any],
    rows: Opened,
    labels: Opened,
    name: str,
    **kwargs: Any,
) -> Any:
    """Reduce the rows and labels block by block, where they are."""
    if isinstance(rows, da.Array) and isinstance(labels, da.Array):
        return reduce_rows(function, combine, rows[:, :2], labels, name=name, **kwargs)
    steps = (slice(start, start + BLOCK_ROWS) for start in range(0, max(1, rows.shape[0]), BLOCK_ROWS))
    parts = (function(np.asarray(rows[step]), np.asarray(labels[step]), **kwargs) for step in steps)
    return reduce(lambda total, part: combine([total, part]), parts)


def _range_chunk(block: Array, labels: Array) -> NDArray[np.float64]:
    """Lowest and highest of the first two features (2, 2) over rows without NaN or infinity."""
    columns, _ = _finite_columns(block)
    return np.array([[c.min(initial=np.inf) for c in columns], [c.max(initial=-np.inf) for c in columns]])


def _finite_columns(block: Array) -> tuple[list[NDArray[np.float64]], NDArray[np.bool_] | slice]:
    """The first two features of the rows without NaN or infinity, and which rows those are.

    Column by column: NumPy takes ten times as long along an axis of two.
    """
    columns = [np.ascontiguousarray(block[:, j], np.float64) for j in range(2)]
    finite = np.isfinite(columns[0]) & np.isfinite(columns[1])
    if finite.all():
        return columns, slice(None)
    return [column[finite] for column in columns], finite


def _range_combine(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    low, high = np.stack(parts, axis=1)
    return np.array([low.min(axis=0), high.max(axis=0)])


def _cells_chunk(
    block: Array,
    labels: Array,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    cells: NDArray[np.int64],
) -> PairCounts:
    """Rows in every cell with every label: the contingency table of cells and labels."""
    columns, finite = _finite_columns(block)
    x, y = (
        np.clip(((columns[j] - low[j]) / (high[j] - low[j]) * cells[j]).astype(np.int64), 0, cells[j] - 1)
        for j in range(2)
    )
    return contingency_chunk(y * cells[0] + x, check_labels("labels", labels[finite]))


def _spectrum_of(given: Any, k_max: int) -> Any:
    """A spectrum, or that of an estimator that has one; else None."""
    if hasattr(given, "relative_gaps") and hasattr(given, "largest_gap"):
        return given
    if not hasattr(given, "spectrum") or len(getattr(given, "_places", ())) == 0:
        return None
    most = given.representatives_.shape[0] - 1
    return given.spectrum(min(k_max, most)) if most > 1 else None


def _largest_gap(values: NDArray[np.float64], spectrum: Any) -> tuple[int, float, bool]:
    """Number of eigenvalues before the largest relative gap, that gap, and whether it is clear."""
    if spectrum is not None:
        return spectrum.largest_gap, float(spectrum.relative_gaps[spectrum.largest_gap - 1]), spectrum.is_clear
    ascending = values if values[-1] >= values[0] else values[0] - values
    gaps = np.diff(ascending) / (np.maximum(ascending[1:], 0.0) + max(1e-5 * ascending.max(), 1e-300))
    first = 1 if len(gaps) > 1 else 0  # the first eigenvalue is 0 in any data
    before = int(np.argmax(gaps[first:])) + first + 1
    return before, float(gaps[before - 1]), True


def _eigenvalues_of(estimator_or_values: Any) -> NDArray[np.float64]:
    found = estimator_or_values
    if hasattr(found, "get_params") or hasattr(found, "eigenvalues_"):
        if not hasattr(found, "eigenvalues_"):
            kind = type(found).__name__
            if is_spectral(found):
                raise TypeError(f"{kind} has no eigenvalues_ until it is fitted: call fit first")
            members = getattr(found, "estimators_", ())
            ways = ["plot_eigenvalues(model.estimators_[0]) draws those of its first graph"] * any(
                map(is_spectral, members)
            )
            ways.append("plot_cluster_sizes(model.labels_) and plot_profiles(X, model.labels_) draw its clusters")
            raise TypeError(f"{kind} has no eigenvalues_ of its own: {'; '.join(ways)}")
        found = found.eigenvalues_
    try:
        values = np.atleast_1d(np.asarray(found, np.float64))
    except (TypeError, ValueError) as error:
        raise TypeError(f"eigenvalues must be a list of finite numbers, got {found!r:.100}") from error
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"eigenvalues must be a list of finite numbers, got shape {values.shape}")
    return values


def _matching_order(table: NDArray[np.int64]) -> NDArray[np.intp]:
    """Columns in the order of the rows they match; those without a partner last, largest first."""
    from scipy.optimize import linear_sum_assignment

    _, matched = linear_sum_assignment(table, maximize=True)
    rest = np.setdiff1d(np.arange(table.shape[1]), matched)
    return np.concatenate([matched, rest[np.argsort(-table[:, rest].sum(axis=0), kind="stable")]])
