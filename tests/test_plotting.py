"""Pictures: what they show, that nothing is sampled, and what they say."""

import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

from daskcluster import plotting
from daskcluster.plotting import (
    drawing,
    maps,
    plot_agreement_map,
    plot_cluster_sizes,
    plot_contingency,
    plot_eigenvalues,
    plot_label_map,
    plot_labels,
    plot_profiles,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  # the backend comes first

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(0, 1, (300, 2)), RNG.normal(8, 1, (200, 2))]).astype(np.float32)
LABELS = np.repeat([0, 1], [300, 200]).astype(np.int32)


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def drawn(axes) -> np.ndarray:
    """The picture that the axes give, so that drawing itself is tested."""
    axes.figure.canvas.draw()
    return np.asarray(axes.figure.canvas.buffer_rgba())


def legend_texts(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def offsets(axes: Any) -> np.ndarray:
    return np.asarray(axes.collections[0].get_offsets())


# -- labels -----------------------------------------------------------------------------------------------------------


def test_few_rows_are_points():
    axes = plot_labels(X, LABELS)
    assert axes.get_title() == "500 rows in 2 clusters, every row a point"
    points = offsets(axes)
    np.testing.assert_array_equal(points[np.lexsort(points.T)], X[np.lexsort(X.T)])
    assert legend_texts(axes) == ["0", "1"]
    assert axes.get_aspect() == 1.0
    assert len(np.unique(drawn(axes).reshape(-1, 4), axis=0)) > 10


def test_points_have_the_colours_of_their_labels():
    axes = plot_labels(X, LABELS)
    colors = {
        tuple(point): tuple(color[:3])
        for point, color in zip(offsets(axes), axes.collections[0].get_facecolor(), strict=True)
    }
    first, second = (colors[tuple(X[i])] for i in (0, 499))
    assert first == pytest.approx(matplotlib.colors.to_rgb(plotting.PALETTE[0]))
    assert second == pytest.approx(matplotlib.colors.to_rgb(plotting.PALETTE[1]))


@pytest.mark.parametrize("kind", ["numpy", "dask", "zarr", "mixed"])
def test_many_rows_are_counted_not_sampled(kind, tmp_path):
    rows = X
    labels = LABELS
    if kind == "dask":
        rows, labels = da.from_array(X, chunks=(77, 1)), da.from_array(LABELS, chunks=50)
    elif kind == "zarr":
        rows = zarr.create_array(str(tmp_path / "X"), shape=X.shape, dtype=X.dtype, chunks=(64, 2))
        rows[...] = X
    elif kind == "mixed":
        labels = da.from_array(LABELS, chunks=50)
    axes = plot_labels(rows, labels, max_scatter_rows=499)
    height, width = np.asarray(axes.images[0].get_array()).shape[:2]
    assert axes.get_title() == f"500 rows in 2 clusters, counted on {width} x {height} cells"
    assert max(width, height) == 400
    assert not axes.collections
    image = np.asarray(axes.images[0].get_array())
    expected = expected_image(axes)
    np.testing.assert_allclose(image, expected, atol=1e-6)
    drawn(axes)


def expected_image(axes) -> np.ndarray:
    """The cells counted with plain loops."""
    left, right, bottom, top = axes.images[0].get_extent()
    height, width = np.asarray(axes.images[0].get_array()).shape[:2]
    counts = np.zeros((2, height, width))
    for (x, y), label in zip(X.astype(float), LABELS, strict=True):
        counts[label, int((y - bottom) / (top - bottom) * height), int((x - left) / (right - left) * width)] += 1
    total = counts.sum(axis=0)
    assert total.sum() == 500
    rgb = [matplotlib.colors.to_rgb(plotting.PALETTE[i]) for i in range(2)]
    image = np.zeros((height, width, 4))
    image[..., :3] = np.tensordot(counts / np.maximum(total, 1), rgb, axes=(0, 0))
    image[..., 3] = np.where(total > 0, 0.25 + 0.75 * np.log1p(total) / np.log1p(total.max()), 0)
    return image


def test_the_grid_lies_where_the_rows_are():
    axes = plot_labels(X, LABELS, max_scatter_rows=0)
    left, right, bottom, top = axes.images[0].get_extent()
    assert left < X[:, 0].min() < X[:, 0].max() < right
    assert bottom < X[:, 1].min() < X[:, 1].max() < top
    # The first row of the image is the lowest.
    image = np.asarray(axes.images[0].get_array())
    assert axes.images[0].origin == "lower"
    assert image[: len(image) // 3, : len(image) // 3, 3].sum() > image[: len(image) // 3, -len(image) // 3 :, 3].sum()


@pytest.mark.parametrize("most", [0, 1000])
def test_rows_that_cannot_be_drawn_are_counted(most):
    rows = X.copy()
    rows[[3, 7]] = np.nan, np.inf
    axes = plot_labels(rows, LABELS, max_scatter_rows=most)
    assert axes.get_title().startswith("498 rows in 2 clusters")
    assert axes.get_title().endswith("rows with NaN or infinity, not drawn: 2")


@pytest.mark.parametrize("most", [0, 1000])
def test_more_features_are_named(most):
    axes = plot_labels(np.hstack([X, X, X]), LABELS, max_scatter_rows=most)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("feature 0 of 6", "feature 1 of 6")


def test_labels_without_a_cluster_are_grey_and_no_cluster():
    axes = plot_labels(X, LABELS - 1)
    assert axes.get_title().startswith("500 rows in 1 cluster and -1,")
    assert axes.get_legend().legend_handles[0].get_color() == pytest.approx(
        matplotlib.colors.to_rgb(plotting.UNLABELED)
    )


@pytest.mark.parametrize("most", [0, 1000])
def test_many_clusters_have_no_legend(most):
    axes = plot_labels(X, np.arange(500) % 60, max_scatter_rows=most)
    assert axes.get_legend() is None
    drawn(axes)


def test_words_and_degenerate_rows():
    axes = plot_labels(np.ones((5, 2)), list("aabbb"), max_scatter_rows=0)
    assert legend_texts(axes) == ["a", "b"]
    drawn(axes)
    drawn(plot_labels(np.ones((5, 2)), list("aabbb")))
    drawn(plot_labels(np.empty((0, 2)), []))


def test_on_a_distributed_client(client_inprocess):
    rows, labels = da.from_array(X, chunks=(200, 2)), da.from_array(LABELS, chunks=200)
    assert plot_labels(rows, labels, max_scatter_rows=0).images
    assert len(offsets(plot_labels(rows, labels))) == 500


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (X[:, :1], LABELS, "X must have two features or more"),
        (X[:, 0], LABELS, "X must have 2 dimensions"),
        (X.astype(complex), LABELS, "X must hold real numbers"),
        (X, LABELS[:9], "X has 500, labels has 9"),
        (X, LABELS + 0.5, "labels must hold whole numbers"),
    ],
)
@pytest.mark.parametrize("most", [0, 1000])
def test_rejects_rows(rows, labels, message, most):
    with pytest.raises(ValueError, match=message):
        plot_labels(rows, labels, max_scatter_rows=most)


def test_rejects_rows_that_are_all_missing():
    with pytest.raises(ValueError, match="no row without NaN"):
        plot_labels(np.full((3, 2), np.nan), [0, 1, 2], max_scatter_rows=0)
    with pytest.raises(ValueError, match="max_scatter_rows must be an integer >= 0"):
        plot_labels(X, LABELS, max_scatter_rows=-1)


# -- colours ----------------------------------------------------------------------------------------------------------


def test_a_label_keeps_its_colour_when_others_are_absent():
    every = drawing.colors_of(np.arange(24))
    np.testing.assert_array_equal(drawing.colors_of(np.array([3, 20])), every[[3, 20]])
    assert len(np.unique(every, axis=0)) == 24


def test_colours_beyond_the_palette_are_new():
    colors = drawing.colors_of(np.arange(72))
    assert len(np.unique(colors, axis=0)) == 72
    assert ((colors >= 0) & (colors <= 1)).all()


@pytest.mark.parametrize("names", [np.array([-5, 2**62]), np.array(["a", "b"]), np.array([2**64 - 1, 4], np.uint64)])
def test_other_labels_are_coloured_by_rank(names):
    np.testing.assert_array_equal(drawing.colors_of(names), drawing.colors_of(np.arange(2)))


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (999, "999"), (1000, "1k"), (1234, "1.23k"), (999_600, "1M"), (45_678_901, "45.7M"), (10**10, "10G")],
)
def test_short_counts(count, text):
    assert drawing.short_count(count) == text


# -- eigenvalues ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[0, 0.01, 0.02, 0.5, 0.6], [1, 0.99, 0.98, 0.5, 0.4]])
def test_eigengap(values):
    axes = plot_eigenvalues(values)
    assert axes.get_title() == "5 eigenvalues; largest relative gap, 0.96, after the first 3"
    np.testing.assert_array_equal(offsets(axes), np.column_stack([np.arange(1, 6), values]))
    drawn(axes)


def test_eigenvalues_of_an_estimator():
    axes = plot_eigenvalues(SimpleNamespace(eigenvalues_=np.array([0, 0.1, 0.9]), n_clusters_=2))
    assert legend_texts(axes) == ["n_clusters_ = 2"]
    drawn(axes)


def test_a_single_eigenvalue():
    assert plot_eigenvalues([0.0]).get_title() == "1 eigenvalue"


def test_rejects_eigenvalues():
    from sklearn.cluster import KMeans

    with pytest.raises(TypeError, match="KMeans has no eigenvalues_"):
        plot_eigenvalues(KMeans())
    for values in ([], [0, np.nan], [[0, 1]]):
        with pytest.raises(ValueError, match="eigenvalues must be"):
            plot_eigenvalues(values)


# -- sizes and tables -------------------------------------------------------------------------------------------------


def test_cluster_sizes():
    axes = plot_cluster_sizes(da.from_array(LABELS, chunks=70))
    assert axes.get_title() == "500 rows in 2 clusters, sizes 200 to 300"
    assert [bar.get_height() for bar in axes.patches] == [300, 200]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "1"]
    assert axes.get_yscale() == "linear"
    drawn(axes)


def test_many_or_unequal_cluster_sizes():
    many = plot_cluster_sizes(np.repeat(np.arange(100), np.arange(1, 101)))
    assert not many.patches
    np.testing.assert_array_equal(many.lines[0].get_ydata(), np.arange(100, 0, -1))
    unequal = plot_cluster_sizes(np.repeat(["small", "large"], [1, 1000]))
    assert unequal.get_yscale() == "log"
    drawn(unequal)
    with pytest.raises(ValueError, match="labels is empty"):
        plot_cluster_sizes([])


def test_contingency_has_agreement_on_the_diagonal():
    true = np.repeat([0, 1, 2], [10, 20, 30])
    pred = np.repeat([5, 3, 4, 9], [10, 20, 25, 5])
    axes = plot_contingency(true, da.from_array(pred, chunks=7))
    assert axes.get_title() == "60 rows, 3 classes by 4 clusters"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["5", "3", "4", "9"]
    shares = np.array([[30, 0, 0, 0], [0, 30, 0, 0], [0, 0, 25, 5]]) / 30
    np.testing.assert_allclose(axes.images[0].get_array(), shares)
    assert [text.get_text() for text in axes.texts] == ["10", "20", "25", "5"]
    drawn(axes)


def test_contingency_of_many_labels_and_of_none():
    axes = plot_contingency(np.arange(200) % 50, np.arange(200) % 20)
    assert not axes.texts
    drawn(axes)
    with pytest.raises(ValueError, match="empty"):
        plot_contingency([], [])


def test_fewer_clusters_than_classes():
    axes = plot_contingency([0, 1, 2, 2], [7, 7, 8, 8])
    assert np.asarray(axes.images[0].get_array()).shape == (3, 2)


# -- matplotlib -------------------------------------------------------------------------------------------------------


def test_draws_on_the_axes_that_are_given():
    _, axes = plt.subplots(2, 3)
    assert plot_labels(X, LABELS, ax=axes[0, 0]) is axes[0, 0]
    assert plot_labels(X, LABELS, ax=axes[0, 1], max_scatter_rows=0) is axes[0, 1]
    assert plot_eigenvalues([0, 1], ax=axes[0, 2]) is axes[0, 2]
    assert plot_cluster_sizes(LABELS, ax=axes[1, 0]) is axes[1, 0]
    assert plot_contingency(LABELS, LABELS, ax=axes[1, 1]) is axes[1, 1]
    assert len(plt.get_fignums()) == 1


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"daskcluster\[plot\]"):
        plot_labels(X, LABELS)


def test_matplotlib_is_imported_when_a_picture_is_drawn():
    code = "import daskcluster.plotting, sys; raise SystemExit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- maps and profiles ------------------------------------------------------------------------------------------------

RASTER = np.random.default_rng(1).integers(-1, 3, (37, 53))


def as_kind(array: np.ndarray, kind: str, tmp_path) -> Any:
    if kind == "zarr":
        stored = zarr.create_array(str(tmp_path / "A"), shape=array.shape, dtype=array.dtype, chunks=(8, 10))
        stored[...] = array
        return stored
    return da.from_array(array, chunks=(7, 11)) if kind == "dask" else array


def cells_of(array: np.ndarray, step: int) -> list[list[np.ndarray]]:
    """The values in each cell, by slicing."""
    height, width = array.shape
    return [[array[i : i + step, j : j + step].ravel() for j in range(0, width, step)] for i in range(0, height, step)]


@pytest.mark.parametrize("kind", ["numpy", "dask", "zarr"])
def test_a_cell_has_its_most_frequent_label(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "MAP_CELLS", 18)  # 3 x 3 pixels a cell, the last ones smaller
    monkeypatch.setattr(maps, "BLOCK_ROWS", 500)  # strips that end inside a cell
    axes = plot_label_map(as_kind(RASTER, kind, tmp_path))
    winners = [[np.bincount(cell + 1).argmax() - 1 for cell in row] for row in cells_of(RASTER, 3)]
    colors = drawing.colors_of(np.arange(-1, 3))
    np.testing.assert_allclose(axes.images[0].get_array(), colors[np.array(winners) + 1])
    assert axes.get_title() == "37 x 53 pixels in 3 clusters and -1\nthe most frequent label of 3 x 3"
    assert (axes.get_xlim(), axes.get_ylim()) == ((-0.5, 52.5), (36.5, -0.5))
    assert legend_texts(axes) == ["-1", "0", "1", "2"]
    assert len(np.unique(drawn(axes).reshape(-1, 4), axis=0)) > 4


@pytest.mark.parametrize("kind", ["numpy", "dask", "zarr"])
def test_a_cell_has_the_mean_agreement(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "MAP_CELLS", 18)
    monkeypatch.setattr(maps, "BLOCK_ROWS", 500)
    shares = np.random.default_rng(2).random((37, 53))
    shares[:3, :6] = np.nan
    shares[5, 7] = np.nan
    axes = plot_agreement_map(as_kind(shares, kind, tmp_path))
    expected = [[np.nan if np.isnan(c).all() else np.nanmean(c) for c in row] for row in cells_of(shares, 3)]
    np.testing.assert_allclose(np.ma.filled(axes.images[0].get_array(), np.nan), expected)
    assert axes.images[0].get_clim() == (0.0, 1.0)


def test_a_map_has_the_coordinates_of_its_raster():
    xarray = pytest.importorskip("xarray")
    coords = {"north": 900.0 - 30 * np.arange(4), "east": 100.0 + 30 * np.arange(5)}
    labels = xarray.DataArray(np.arange(20).reshape(4, 5) % 3, dims=("north", "east"), coords=coords)
    axes = plot_label_map(labels)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("east", "north")
    assert (axes.get_xlim(), axes.get_ylim()) == ((85.0, 235.0), (795.0, 915.0))
    turned = plot_label_map(labels[::-1])  # south first: north is up all the same
    assert turned.get_ylim() == (795.0, 915.0)
    assert turned.images[0].get_extent()[2:] == [915.0, 795.0]


@pytest.mark.parametrize("kind", ["numpy", "dask"])
def test_profiles_are_means_and_spreads(kind, monkeypatch):
    from daskcluster.plotting import profiles

    monkeypatch.setattr(profiles, "BLOCK_ROWS", 60)
    rows = np.concatenate([X, X[:, :1] * 3 + 1e6], axis=1).astype(np.float64)
    rows[3, 1] = np.nan
    given = (
        (da.from_array(rows, chunks=(77, 2)), da.from_array(LABELS, chunks=50)) if kind == "dask" else (rows, LABELS)
    )
    axes = plot_profiles(*given, names=["a", "b", "c"])
    groups = [rows[:300], rows[300:]]
    unit = np.nanstd(rows, axis=0)
    means = np.array([np.nanmean(group, axis=0) for group in groups])
    np.testing.assert_allclose(axes.images[0].get_array(), ((means - np.nanmean(rows, axis=0)) / unit).T, rtol=1e-6)
    bars = np.array([np.ptp(segment[:, 0]) for segment in axes.collections[0].get_segments()]).reshape(3, 2)
    spreads = np.array([np.nanstd(group, axis=0) for group in groups]) / unit
    np.testing.assert_allclose(bars, 0.9 * spreads.T, rtol=1e-6)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b", "c"]


def test_any_two_features():
    rows = np.concatenate([X, X[:, ::-1] * 2], axis=1)
    for features in ((0, 2), (3, 1), (1, 0)):
        for most in (1000, 10):
            axes = plot_labels(da.from_array(rows, chunks=(99, 4)), LABELS, features=features, max_scatter_rows=most)
            assert (axes.get_xlabel(), axes.get_ylabel()) == tuple(f"feature {i} of 4" for i in features)
            assert axes.dataLim is not None
        points = offsets(plot_labels(rows, LABELS, features=features))
        wanted = rows[:, list(features)]
        np.testing.assert_array_equal(points[np.lexsort(points.T)], wanted[np.lexsort(wanted.T)])
    for features in ((0, 0), (0, 4), 3):
        with pytest.raises(ValueError, match="features must be two columns of X"):
            plot_labels(rows, LABELS, features=features)


def test_a_picture_of_a_wrong_estimator_names_the_right_one():
    import daskcluster as dc

    kmeans, uspec = dc.KMeans(2), dc.USPEC(2)
    with pytest.raises(TypeError, match=r"KMeans has no eigenvalues_ of its own: .*plot_profiles\(X, model.labels_\)"):
        plot_eigenvalues(kmeans)
    with pytest.raises(TypeError, match="USPEC has no eigenvalues_ until it is fitted"):
        plot_eigenvalues(uspec)
    with pytest.raises(
        TypeError, match=r"plot_n_clusters draws what select_n_clusters.*plot_eigenvalues draws the model"
    ):
        dc.plotting.plot_n_clusters(uspec)
    for draw in (plot_labels, dc.plotting.plot_profiles):
        with pytest.raises(TypeError, match=f"X of {draw.__name__} must be rows, got a KMeans: give the rows"):
            draw(kmeans, LABELS)
    for draw in (plot_cluster_sizes, plot_label_map, lambda model: plot_labels(X, model)):
        with pytest.raises(TypeError, match=r"got a USPEC: give plot_.* labels_ .* plot_eigenvalues draws the model"):
            draw(uspec)
    with pytest.raises(TypeError, match="got a KMeans: give the agreement_ of a fitted consensus"):
        plot_agreement_map(kmeans)


def test_maps_and_profiles_reject():
    with pytest.raises(ValueError, match="labels must have 2 dimensions"):
        plot_label_map(LABELS)
    with pytest.raises(ValueError, match="labels is empty"):
        plot_label_map(np.zeros((0, 3), int))
    with pytest.raises(ValueError, match="shares from 0 to 1, got 7"):
        plot_agreement_map(np.full((3, 3), 7.0))
    with pytest.raises(ValueError, match="names must have one name for each of 2"):
        plot_profiles(X, LABELS, names=["a"])


def test_the_first_colours_differ_in_deuteranopia_and_protanopia():
    deutan = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    protan = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    linear = drawing.colors_of(np.arange(8)) ** 2.2
    for seen in (deutan, protan):
        colors = np.clip(linear @ np.transpose(seen), 0, 1) ** (1 / 2.2)
        apart = np.linalg.norm(colors[:, None] - colors, axis=2)[np.triu_indices(8, 1)]
        assert apart.min() > 0.1
