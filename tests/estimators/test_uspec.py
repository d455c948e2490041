"""USPEC through its public interface: quality, options, prediction, embedding, fitted attributes, saving."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.linalg
import zarr
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import normalized_mutual_info_score as nmi

import daskcluster as dc

BLOCK_ROWS = 512
DIGITS = load_digits()
SETS = {
    "two_bananas": 2,
    "smiling_face": 4,
    "concentric_circles": 3,
    "circles_gaussians": 11,
    "flower": 13,
}


def make_set(name: str, n_samples: int, chunks: Any = 1500) -> tuple[da.Array, np.ndarray]:
    X, y = getattr(dc.datasets, f"make_{name}")(n_samples, chunks=chunks, random_state=0)
    return X, y.compute()


# -- quality -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "seed"), list(zip(SETS, range(5), strict=True)))
def test_nonlinear_clusters_are_found(name, seed):
    X, y = make_set(name, 10_000)
    model = dc.USPEC(SETS[name], random_state=seed).fit(X)
    assert model.n_clusters_ == SETS[name]
    assert nmi(y, model.labels_) >= 0.99
    assert nmi(y, dc.KMeans(SETS[name], random_state=seed).fit(X).labels_) < 0.8


@pytest.mark.parametrize(
    ("parameters", "least"),
    [
        ({}, 0.87),
        ({"metric": "cosine"}, 0.87),
        ({"neighbors": "exact", "selection": "kmeans"}, 0.85),
        ({"selection": "random"}, 0.84),
    ],
    ids=str,
)
def test_digits(parameters, least):
    scores = [
        nmi(DIGITS.target, dc.USPEC(10, random_state=seed, **parameters).fit_predict(DIGITS.data)) for seed in range(3)
    ]
    assert np.mean(scores) >= least


def test_float32_and_float64_agree():
    X, _ = make_set("circles_gaussians", 5000)
    X = X.compute()
    model, double = (dc.USPEC(11, n_representatives=300, random_state=0).fit(X.astype(t)) for t in ("f4", "f8"))
    assert nmi(model.labels_, double.labels_) >= 0.99
    np.testing.assert_allclose(model.representatives_, double.representatives_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.bandwidth_, double.bandwidth_, rtol=1e-4)


# -- options -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["hybrid", "random", "kmeans"])
@pytest.mark.parametrize("neighbors", ["approximate", "exact"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_every_combination_of_options(selection, neighbors, metric, small_blocks):
    X, y = make_set("concentric_circles", 4000)
    if metric == "cosine":  # the same rings on a sphere
        X = da.concatenate([X, 5 * da.ones_like(X[:, :1])], axis=1).rechunk((1500, 3)) * (1 + da.fabs(X[:, :1]))
    model = dc.USPEC(
        3, n_representatives=500, selection=selection, neighbors=neighbors, metric=metric, random_state=0
    ).fit(X)
    assert nmi(y, model.labels_) >= 0.99
    assert model.representatives_.shape == (500, X.shape[1])
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_random_representatives_are_rows():
    X, _ = make_set("flower", 3000)
    X = X.compute()
    model = dc.USPEC(13, n_representatives=200, selection="random", random_state=0).fit(X)
    distance = np.abs(model.representatives_[:, None] - X).max(axis=2).min(axis=1)
    assert distance.max() <= 1e-6
    assert len(np.unique(model.representatives_, axis=0)) == 200


def test_selections_represent_the_rows_ever_better():
    X, _ = make_set("circles_gaussians", 20_000)
    X = X.compute()
    errors = {}
    for selection in ("random", "hybrid", "kmeans"):
        model = dc.USPEC(11, n_representatives=150, selection=selection, random_state=0).fit(X)
        errors[selection] = ((X[::7, None] - model.representatives_) ** 2).sum(axis=2).min(axis=1).mean()
    assert errors["kmeans"] < errors["hybrid"] < 0.75 * errors["random"]


def test_more_candidates_represent_the_rows_better():
    X, _ = make_set("circles_gaussians", 20_000)
    X = X.compute()
    errors = []
    for factor in (1, 4, 40):
        model = dc.USPEC(11, n_representatives=100, candidate_factor=factor, random_state=0).fit(X)
        errors.append(((X[::7, None] - model.representatives_) ** 2).sum(axis=2).min(axis=1).mean())
    assert errors[0] > errors[1] > errors[2]


def test_neighborhood_size():
    X, _ = make_set("flower", 4000)

    def size(**parameters: Any) -> int:
        return dc.USPEC(13, n_representatives=400, random_state=0, **parameters).fit(X).neighborhood_size_

    assert size() == 50  # neighbor_factor * n_neighbors: enough in the plane
    assert size(neighbor_factor=20) == 100
    assert size(neighbors="exact") == 399
    assert size(neighbor_factor=100) == 399
    noise = np.random.default_rng(0).normal(size=(4000, 40))
    model = dc.USPEC(2, n_representatives=1500, neighbor_factor=1, random_state=0).fit(noise)
    assert model.neighborhood_size_ > 5  # enlarged: noise in many dimensions has no neighbourhoods


def test_candidates_are_all_rows_when_there_are_few():
    X, _ = make_blobs(40, random_state=0)
    model = dc.USPEC(3, random_state=0).fit(X)
    np.testing.assert_allclose(np.sort(model.representatives_, axis=0), np.sort(X, axis=0))


def test_one_lloyd_pass():
    X, _ = make_set("flower", 3000)
    model = dc.USPEC(13, n_representatives=200, max_iter=1, random_state=0).fit(X)
    assert model.n_iter_ == 1
    np.testing.assert_array_equal(model.predict(X), model.labels_)


# -- against plain computations ------------------------------------------------------------------------------


def exact_neighbors(model: dc.USPEC, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices and distances (n, K) of the nearest representatives, compared one by one."""
    R = np.asarray(model.representatives_, np.float64)
    X = np.asarray(X, np.float64)
    if model.metric == "cosine":
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
        R = R / np.linalg.norm(R, axis=1, keepdims=True)
        distances = 1 - X @ R.T
    else:
        distances = np.sqrt(((X[:, None] - R) ** 2).sum(axis=2))
    nearest = np.argsort(distances, axis=1)[:, : model.n_neighbors]
    return nearest, np.take_along_axis(distances, nearest, axis=1)


def plain_uspec(model: dc.USPEC, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Eigenvalues, embedding (n, k) and bandwidth of the bipartite graph, dense and as the paper writes them."""
    nearest, distances = exact_neighbors(model, X)
    sigma = distances.mean()  # eq. (6)
    n, p = len(X), len(model.representatives_)
    B = np.zeros((n, p))
    B[np.arange(n)[:, None], nearest] = np.exp(-(distances**2) / (2 * sigma**2))  # eq. (5)
    degrees = B.sum(axis=1)
    linked = B.sum(axis=0) > 0
    E = B[:, linked].T @ (B[:, linked] / degrees[:, None])  # eq. (9)
    D = np.diag(E.sum(axis=1))
    eigenvalues, V = scipy.linalg.eigh(D - E, D, subset_by_index=[0, model.n_clusters - 1])
    gamma = 1 - np.sqrt(1 - eigenvalues)  # eq. (10)
    H = (B[:, linked] / degrees[:, None]) @ V / (1 - gamma)  # eq. (12)
    return eigenvalues, H / np.linalg.norm(H, axis=1, keepdims=True), sigma


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_exact_graph_against_plain_numpy(metric, small_blocks):
    X = DIGITS.data[:1200] + 1.0
    model = dc.USPEC(10, n_representatives=200, neighbors="exact", metric=metric, random_state=0).fit(X)
    eigenvalues, embedding, sigma = plain_uspec(model, X)
    np.testing.assert_allclose(model.bandwidth_, sigma, rtol=1e-6)
    np.testing.assert_allclose(model.eigenvalues_, eigenvalues, atol=1e-6)
    # One eigenvector more or less rotated: angles between rows do not show it.
    points = model.transform(X).astype(np.float64)
    np.testing.assert_allclose(points @ points.T, embedding @ embedding.T, atol=1e-4)
    centers = model.cluster_centers_
    plain = ((points[:, None] - centers) ** 2).sum(axis=2)
    nearest_two = np.sort(plain, axis=1)[:, :2]
    clear = nearest_two[:, 1] - nearest_two[:, 0] > 1e-5
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(plain.argmin(axis=1)[clear], model.labels_[clear])


def test_cosine_counts_directions_only():
    X = DIGITS.data + 1.0
    lengths = np.random.default_rng(0).uniform(0.1, 1000, size=(len(X), 1))
    model = dc.USPEC(10, metric="cosine", random_state=0).fit(X)
    np.testing.assert_allclose(np.linalg.norm(model.representatives_, axis=1), 1)
    stretched = dc.USPEC(10, metric="cosine", random_state=0).fit(X * lengths)
    assert nmi(model.labels_, stretched.labels_) >= 0.97
    assert np.mean(model.predict(X * lengths) == model.labels_) >= 0.995


def test_cosine_with_rows_of_zeros():
    X, _ = make_blobs(300, centers=[[9, 0, 1], [0, 9, 1], [0, 1, 9]], random_state=0)
    X[::50] = 0
    model = dc.USPEC(3, n_representatives=50, metric="cosine", random_state=0).fit(X)
    assert np.isfinite(model.representatives_).all()
    assert np.isfinite(model.transform(X)).all()
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("n_neighbors", [1, 5, 12])
def test_bandwidth_is_the_mean_distance_of_the_exact_neighbors(n_neighbors, small_blocks):
    X, _ = make_set("circles_gaussians", 5000)
    model = dc.USPEC(11, n_representatives=250, n_neighbors=n_neighbors, neighbors="exact", random_state=0).fit(X)
    np.testing.assert_allclose(model.bandwidth_, exact_neighbors(model, X.compute())[1].mean(), rtol=1e-6)


def test_bandwidth_of_the_default_search_is_close_to_it():
    X, _ = make_set("circles_gaussians", 5000)
    model = dc.USPEC(11, random_state=0).fit(X)
    np.testing.assert_allclose(model.bandwidth_, exact_neighbors(model, X.compute())[1].mean(), rtol=5e-3)


# -- fitted attributes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fitted_attributes(chunked, dtype):
    X, _ = make_set("circles_gaussians", 6000)
    X = X.astype(dtype)
    model = dc.USPEC(11, n_representatives=300, random_state=0).fit(X if chunked else X.compute())
    assert isinstance(model.labels_, da.Array if chunked else np.ndarray)
    assert (model.labels_.shape, model.labels_.dtype) == ((6000,), np.int32)
    assert (model.representatives_.shape, model.representatives_.dtype) == ((300, 2), np.float64)
    assert type(model.bandwidth_) is float
    assert model.bandwidth_ > 0
    q = len(model.eigenvalues_)
    assert model.eigenvalues_.dtype == np.float64
    assert q == 11
    assert (model.cluster_centers_.shape, model.cluster_centers_.dtype) == ((11, q), np.float64)
    assert {type(getattr(model, f"{name}_")) for name in ("n_clusters", "n_iter", "neighborhood_size")} == {int}
    assert (model.n_clusters_, model.n_features_in_) == (11, 2)
    low, high = X.min(axis=0).compute(), X.max(axis=0).compute()
    assert (model.representatives_ >= low - 1e-5).all()
    assert (model.representatives_ <= high + 1e-5).all()


@pytest.mark.parametrize("name", SETS)
def test_eigenvalues_ascend_from_zero(name):
    X, _ = make_set(name, 4000)
    eigenvalues = dc.USPEC(SETS[name] + 1, random_state=0).fit(X).eigenvalues_
    assert abs(eigenvalues[0]) <= 1e-9
    assert (np.diff(eigenvalues) >= 0).all()
    assert (eigenvalues <= 1).all()
    if name != "two_bananas":  # the classes of the others are apart: an eigenvalue near 0 each, and no more
        assert eigenvalues[SETS[name] - 1] < 0.5 * eigenvalues[SETS[name]]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_clusters_are_numbered_by_their_first_row(seed, small_blocks):
    X, _ = make_set("flower", 5000)
    labels = dc.USPEC(13, n_representatives=300, random_state=seed).fit(X).labels_.compute()
    _, first = np.unique(labels, return_index=True)
    assert first[0] == 0
    assert (np.diff(first) > 0).all()


# -- new rows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "dtype"),
    [({}, np.float32), ({}, np.uint8), ({"neighbors": "exact"}, np.float64), ({"metric": "cosine"}, np.float32)],
    ids=str,
)
def test_predict_of_the_same_rows_is_labels(dtype, parameters, small_blocks):
    X = (DIGITS.data + 1).astype(dtype)
    model = dc.USPEC(10, n_representatives=300, random_state=0, **parameters).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict(da.from_array(X, chunks=(100, 64))), model.labels_)
    np.testing.assert_array_equal(model.predict(X[500:900]), model.labels_[500:900])
    np.testing.assert_array_equal(np.concatenate([model.predict(row[None]) for row in X[:20]]), model.labels_[:20])


def test_predict_of_new_rows():
    X, y = make_set("smiling_face", 12_000)
    X = X.compute()
    model = dc.USPEC(4, random_state=0).fit(X[:6000])
    labels = model.predict(X[6000:])
    assert isinstance(labels, np.ndarray)
    assert labels.dtype == np.int32
    assert nmi(y[6000:], labels) >= 0.99
    assert nmi(y, np.concatenate([model.labels_, labels])) >= 0.99  # the same names for the same clusters
    lazy = model.predict(da.from_array(X[6000:], chunks=((1000, 0, 4999, 1), (1, 1))))
    assert isinstance(lazy, da.Array)
    assert (lazy.dtype, lazy.shape) == (np.int32, (6000,))
    np.testing.assert_array_equal(lazy, labels)


def reading(X: np.ndarray, reads: list[int]) -> da.Array:
    """Rows that note when they are read."""

    def touch(block: np.ndarray) -> np.ndarray:
        reads.append(len(block))
        return block

    return da.from_array(X, chunks=(500, X.shape[1])).map_blocks(touch, dtype=X.dtype, meta=np.empty((0, 0), X.dtype))


def test_predict_and_transform_are_lazy(small_blocks):
    reads: list[int] = []
    X = make_set("flower", 2000)[0].compute()
    model = dc.USPEC(13, n_representatives=200, random_state=0).fit(X)
    lazy = reading(X, reads)
    labels, points = model.predict(lazy), model.transform(lazy)
    assert reads == []
    part = labels[:10].compute()
    assert sum(reads) <= 1000
    np.testing.assert_array_equal(part, model.labels_[:10])
    reads.clear()
    np.testing.assert_array_equal(points, model.transform(X))
    assert sum(reads) == 2000


@pytest.mark.parametrize("selection", ["hybrid", "random"])
def test_fit_reads_the_input_twice_and_labels_do_not_read_it_again(selection, small_blocks):
    reads: list[int] = []
    X = make_set("flower", 2000)[0].compute()
    model = dc.USPEC(13, n_representatives=200, selection=selection, random_state=0)
    lazy = reading(X, reads)
    assert model.plan(lazy).input_passes == 2
    model.fit(lazy)
    assert sum(reads) == 4000
    assert len(model.labels_.compute()) == 2000
    assert sum(reads) == 4000


def test_transform_is_the_space_of_the_clusters():
    X, _ = make_set("circles_gaussians", 4000)
    model = dc.USPEC(11, random_state=0).fit(X)
    points = model.transform(X)
    assert isinstance(points, da.Array)
    assert points.shape == (4000, 11)
    assert points.dtype == model.transform(X.compute()).dtype
    points = points.compute()
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, rtol=1e-5)
    labels = model.labels_.compute()
    sqdist = ((points[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    assert (sqdist[np.arange(4000), labels] <= sqdist.min(axis=1) + 1e-5).all()
    assert len(model.get_feature_names_out()) == 11


# -- saving --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters", [{}, {"metric": "cosine"}, {"missing": "label"}, {"neighbors": "exact"}], ids=str
)
@pytest.mark.parametrize("chunked", [False, True])
def test_a_loaded_model_predicts_the_same(parameters, chunked, tmp_path):
    X = DIGITS.data + 1
    given = da.from_array(X, chunks=(400, 64)) if chunked else X
    model = dc.USPEC(10, n_representatives=300, random_state=0, **parameters).fit(given)
    model.save(tmp_path / "model.zarr")
    loaded = dc.load_model(tmp_path / "model.zarr")
    assert type(loaded) is dc.USPEC
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(X), np.asarray(model.labels_))
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    for name in ("representatives_", "eigenvalues_", "cluster_centers_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    for name in ("bandwidth_", "n_clusters_", "n_iter_", "n_features_in_", "neighborhood_size_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert set(vars(model)) - set(vars(loaded)) == {"labels_", "_record"}


def test_a_saved_model_is_plain_zarr_and_json(tmp_path):
    model = dc.USPEC(10, n_representatives=300, random_state=0).fit(DIGITS.data)
    model.save(str(tmp_path / "model.zarr"))
    group = zarr.open_group(tmp_path / "model.zarr", mode="r")
    np.testing.assert_array_equal(group["representatives_"][:], model.representatives_)
    for path in Path(tmp_path / "model.zarr").rglob("*"):
        if path.is_file() and path.name == "zarr.json":
            json.loads(path.read_text())
        elif path.is_file():
            assert "c" in path.relative_to(tmp_path).parts  # a chunk of an array
            assert b"daskcluster" not in path.read_bytes()
    with pytest.raises(FileExistsError, match="exists; pass overwrite=True"):
        model.save(tmp_path / "model.zarr")
    model.save(tmp_path / "model.zarr", overwrite=True)
    dc.load_model(tmp_path / "model.zarr").save(tmp_path / "again.zarr")
    np.testing.assert_array_equal(dc.load_model(tmp_path / "again.zarr").predict(DIGITS.data), model.labels_)
