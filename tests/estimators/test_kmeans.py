"""KMeans through its public interface: against scikit-learn, weights, starts, prediction, saving."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans as Reference
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import euclidean_distances

import daskcluster as dc
from daskcluster.metrics import inertia
from daskcluster.pipeline import kmeans as starts

DIGITS = load_digits()
MANY, MANY_TRUTH = make_blobs(3000, centers=30, n_features=3, cluster_std=0.15, random_state=3)
CHUNKED = da.from_array(MANY, chunks=(700, 3))
WEIGHTS = np.random.default_rng(0).uniform(0.1, 5, size=3000)
INITS = ["k-means++", "k-means||", "random"]
BLOCK_ROWS = 256
pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.fixture
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts are chosen on fewer rows than there are."""
    monkeypatch.setattr(starts, "sample_size", lambda n_clusters: 200)
    monkeypatch.setattr("daskcluster.estimators.kmeans.sample_size", lambda n_clusters: 200)


def in_order(centers: np.ndarray) -> np.ndarray:
    return centers[np.lexsort(centers.T)]


# -- against scikit-learn ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("given", [MANY, CHUNKED], ids=["numpy", "dask"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_given_centers_converge_to_the_same(weights, given, dtype):
    init = MANY[:: 3000 // 12][:12]
    model = dc.KMeans(12, init=init, tol=0, max_iter=1000).fit(given.astype(dtype), sample_weight=weights)
    reference = Reference(12, init=init, n_init=1, tol=0, max_iter=1000).fit(MANY.astype(dtype), sample_weight=weights)
    np.testing.assert_allclose(in_order(model.cluster_centers_), in_order(reference.cluster_centers_), atol=2e-5)
    np.testing.assert_allclose(model.inertia_, reference.inertia_, rtol=1e-5)
    assert adjusted_rand_score(model.labels_, reference.labels_) == 1


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_clusters_that_are_apart_are_found(init, weights):
    model = dc.KMeans(30, init=init, n_init=10 if init == "random" else 2, random_state=0)
    model.fit(CHUNKED, sample_weight=weights)
    start = "random" if init == "random" else "k-means++"
    reference = Reference(30, init=start, n_init=10, random_state=0).fit(MANY, sample_weight=weights)
    assert model.inertia_ <= reference.inertia_ * (1.5 if init == "random" else 1.001)
    if init != "random":
        assert adjusted_rand_score(MANY_TRUTH, model.labels_) > 0.99


def test_inertia_on_digits_is_as_low():
    reference = Reference(10, n_init=5, random_state=0).fit(DIGITS.data)
    for init in INITS:
        model = dc.KMeans(10, init=init, n_init=3, random_state=0).fit(DIGITS.data)
        assert model.inertia_ <= 1.01 * reference.inertia_


def test_more_starts_are_never_worse_on_the_sample():
    found = [dc.KMeans(30, init="random", n_init=n, random_state=0).fit(MANY).inertia_ for n in (1, 3, 9, 27)]
    assert (np.diff(found) <= 1e-9 * found[0]).all()
    assert found[-1] < 0.9 * found[0]


def test_starts_on_a_sample_do_nearly_as_well(small_samples):
    for init in INITS[:2]:
        model = dc.KMeans(30, init=init, n_init=5, random_state=0).fit(CHUNKED)
        assert adjusted_rand_score(MANY_TRUTH, model.labels_) > 0.95


@pytest.mark.parametrize("seed", range(5))
def test_parallel_starts_draw_twice_as_many_rows_as_clusters_in_each_of_five_rounds(seed):
    """So of 1 + 5 * 2 * 6 rows all become candidates, and reclustering them comes to rest where k-means does."""
    X = np.random.default_rng(seed).normal(size=(61, 2))
    model = dc.KMeans(6, init="k-means||", max_iter=1, random_state=seed).fit(X)
    means = [X[model.labels_ == k].mean(axis=0) for k in range(6)]
    np.testing.assert_allclose(model.cluster_centers_, means, rtol=1e-6, atol=1e-9)


# -- weights -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["k-means++", "random", MANY[:12]], ids=["k-means++", "random", "given"])
def test_rows_of_weight_zero_count_as_absent(init):
    weights = np.where(np.arange(3000) % 3 == 0, 0.0, WEIGHTS)
    model = dc.KMeans(12, init=init, random_state=0).fit(CHUNKED, sample_weight=weights)
    present = weights > 0
    alone = dc.KMeans(12, init=init, random_state=0).fit(MANY[present], sample_weight=weights[present])
    np.testing.assert_allclose(in_order(model.cluster_centers_), in_order(alone.cluster_centers_))
    np.testing.assert_allclose(model.inertia_, alone.inertia_)
    assert adjusted_rand_score(model.labels_.compute()[present], alone.labels_) == 1
    np.testing.assert_array_equal(model.predict(MANY), model.labels_)  # rows without weight have labels as well


@pytest.mark.parametrize("init", INITS)
def test_rows_of_weight_zero_are_no_starts(init, small_samples):
    X = np.concatenate([MANY, MANY[:1000] + 1e4])
    weights = np.repeat([1.0, 0.0], [3000, 1000])
    model = dc.KMeans(30, init=init, random_state=0).fit(X, sample_weight=weights)
    assert np.abs(model.cluster_centers_).max() <= np.abs(MANY).max()


def test_whole_weights_are_repeated_rows():
    weights = np.random.default_rng(1).integers(1, 4, size=3000)
    init = MANY[:12]
    model = dc.KMeans(12, init=init, tol=0).fit(MANY, sample_weight=weights)
    repeated = dc.KMeans(12, init=init, tol=0).fit(np.repeat(MANY, weights, axis=0))
    np.testing.assert_allclose(model.cluster_centers_, repeated.cluster_centers_)
    np.testing.assert_allclose(model.inertia_, repeated.inertia_)
    np.testing.assert_array_equal(np.repeat(model.labels_, weights), repeated.labels_)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("factor", [2.0**-20, 2.0**60])
def test_the_unit_of_the_weights_does_not_matter(init, factor):
    model = dc.KMeans(12, init=init, random_state=0).fit(MANY, sample_weight=WEIGHTS)
    scaled = dc.KMeans(12, init=init, random_state=0).fit(MANY, sample_weight=WEIGHTS * factor)
    np.testing.assert_array_equal(scaled.labels_, model.labels_)
    np.testing.assert_allclose(scaled.inertia_, model.inertia_ * factor)


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_equal_weights_are_no_weights(init):
    model = dc.KMeans(12, init=init, random_state=0).fit(MANY)
    for weights in (np.ones(3000), 1, [1] * 3000, np.ones(3000, bool), da.ones(3000, chunks=999)):
        weighted = dc.KMeans(12, init=init, random_state=0).fit(MANY, sample_weight=weights)
        np.testing.assert_array_equal(weighted.labels_, model.labels_)
        np.testing.assert_allclose(weighted.inertia_, model.inertia_)


def test_every_kind_of_weights():
    expected = dc.KMeans(12, random_state=0).fit(MANY, sample_weight=WEIGHTS)
    for weights in (
        da.from_array(WEIGHTS, chunks=333),
        list(WEIGHTS),
        pd.Series(WEIGHTS),
        WEIGHTS.astype(">f8"),
        np.repeat(WEIGHTS, 2)[::2],
    ):
        for X in (MANY, CHUNKED):
            model = dc.KMeans(12, random_state=0).fit(X, sample_weight=weights)
            np.testing.assert_array_equal(model.labels_, expected.labels_)
            assert model.inertia_ == expected.inertia_
    labels = dc.KMeans(12, random_state=0).fit_predict(MANY, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(labels, expected.labels_)


def test_weights_with_missing_rows():
    X, weights = MANY.copy(), WEIGHTS.copy()
    X[256:600] = np.nan
    present = np.isfinite(X).all(axis=1)
    model = dc.KMeans(12, missing="label", random_state=0).fit(X, sample_weight=weights)
    alone = dc.KMeans(12, random_state=0).fit(X[present], sample_weight=weights[present])
    assert (model.labels_[~present] == -1).all()
    np.testing.assert_array_equal(model.labels_[present], alone.labels_)
    np.testing.assert_allclose(model.cluster_centers_, alone.cluster_centers_)


def test_fewer_distinct_rows_with_weight_than_clusters():
    weights = np.zeros(3000)
    weights[[5, 2000]] = 1
    with pytest.warns(dc.FewerClustersWarning, match="found 2 clusters, not n_clusters=3"):
        model = dc.KMeans(3, random_state=0).fit(MANY, sample_weight=weights)
    np.testing.assert_allclose(model.cluster_centers_[model.labels_[[5, 2000]]], MANY[[5, 2000]])
    assert model.inertia_ <= 1e-20


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(2999), r"sample_weight.shape must be \(3000,\), got \(2999,\)"),
        (np.ones((3000, 1)), r"sample_weight.shape must be \(3000,\), got \(3000, 1\)"),
        (np.full(3000, -1.0), "sample_weight must be finite and >= 0"),
        (np.r_[np.ones(2999), -1e-9], "sample_weight must be finite and >= 0"),
        (np.r_[np.ones(2999), np.nan], "sample_weight must be finite and >= 0"),
        (np.r_[np.inf, np.ones(2999)], "sample_weight must be finite and >= 0"),
        (np.zeros(3000), "sample_weight must be above zero for some row"),
        (np.ones(3000, complex), "sample_weight must hold real numbers, got dtype complex128"),
        (["1"] * 3000, "sample_weight must hold real numbers, got dtype <U1"),
    ],
    ids=["short", "2-D", "negative", "last negative", "last NaN", "infinite", "zeros", "complex", "strings"],
)
def test_bad_weights(weights, words):
    for given in (weights, da.from_array(np.asarray(weights), chunks=500)):
        for X in (MANY, CHUNKED):
            with pytest.raises(ValueError, match=words):
                dc.KMeans(3).fit(X, sample_weight=given)


# -- attributes, new rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint8])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_fitted_attributes_agree(dtype, weights):
    X = (MANY * 5 + 80).astype(dtype)
    model = dc.KMeans(12, random_state=0).fit(X, sample_weight=weights)
    assert (model.labels_.dtype, model.labels_.shape) == (np.int32, (3000,))
    shown = np.float32 if dtype == np.float32 else np.float64
    assert (model.cluster_centers_.shape, model.cluster_centers_.dtype) == ((12, 3), shown)
    assert (type(model.inertia_), type(model.n_iter_), type(model.n_clusters_)) == (float, int, int)
    assert (model.n_clusters_, model.n_features_in_) == (12, 3)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict(da.from_array(X, chunks=(111, 1))), model.labels_)
    distances = euclidean_distances(X.astype(np.float64), model.cluster_centers_)
    np.testing.assert_array_equal(distances.argmin(axis=1), model.labels_)
    plain = (distances.min(axis=1) ** 2 * (1 if weights is None else weights)).sum()
    np.testing.assert_allclose(model.inertia_, plain, rtol=1e-5)
    _, first = np.unique(model.labels_, return_index=True)
    assert (np.diff(first) > 0).all()


def test_inertia_is_that_of_the_metrics():
    model = dc.KMeans(12, random_state=0).fit(CHUNKED)
    np.testing.assert_allclose(inertia(CHUNKED, model.labels_, model.cluster_centers_), model.inertia_)


def test_transform_gives_distances():
    model = dc.KMeans(12, random_state=0).fit(MANY)
    distances = model.transform(MANY + 0.5)
    assert (distances.shape, distances.dtype) == ((3000, 12), np.float64)
    np.testing.assert_allclose(distances, euclidean_distances(MANY + 0.5, model.cluster_centers_), atol=1e-7)
    lazy = model.transform(CHUNKED + 0.5)
    assert isinstance(lazy, da.Array)
    assert (lazy.shape, lazy.dtype) == ((3000, 12), np.float64)
    np.testing.assert_array_equal(lazy, distances)


def test_new_rows():
    model = dc.KMeans(30, n_init=5, random_state=0).fit(MANY[:1500])
    assert adjusted_rand_score(MANY_TRUTH[1500:], model.predict(MANY[1500:])) > 0.99
    np.testing.assert_array_equal(model.predict(model.cluster_centers_), np.arange(30))


def test_passes_are_counted_and_results_lazy():
    reads: list[int] = []

    def touch(block: np.ndarray) -> np.ndarray:
        reads.append(len(block))
        return block

    X = CHUNKED.map_blocks(touch, dtype=float, meta=np.empty((0, 0)))
    model = dc.KMeans(12, init=MANY[:12], max_iter=4, tol=0)
    assert model.plan(X).input_passes == 6
    assert reads == []
    model.fit(X)
    assert model.n_iter_ == 4
    assert sum(reads) == 3000 * (1 + 4 + 1)
    reads.clear()
    labels, points = model.predict(X), model.transform(X)
    assert reads == []
    assert labels.dtype == np.int32
    labels[:1].compute()
    points[:1].compute()
    # A chunk of an output has the rows of a chunk of X, whose blocks end in the next one.
    assert sum(reads) <= 2 * 2 * 700
    reads.clear()
    assert len(model.labels_.compute()) == 3000
    assert reads == []


def test_tolerance_and_passes():
    def fit(**parameters: Any) -> dc.KMeans:
        return dc.KMeans(12, init=MANY[:12], **parameters).fit(MANY)

    assert fit(max_iter=1).n_iter_ == 1
    np.testing.assert_array_equal(
        fit(max_iter=1).labels_,
        dc.KMeans(12, init=fit(max_iter=1).cluster_centers_, max_iter=1).fit_predict(MANY),
    )
    found = [fit(max_iter=n, tol=0).inertia_ for n in range(1, 8)]
    assert (np.diff(found) <= 0).all()
    assert fit(tol=1e9).n_iter_ < fit(tol=1e-3).n_iter_ <= fit(tol=0, max_iter=1000).n_iter_ < 1000


def test_given_centers_without_rows_go_to_far_rows():
    init = np.concatenate([MANY[:5], [[1e6, 1e6, 1e6]]])
    model = dc.KMeans(6, init=init).fit(MANY)
    assert model.n_clusters_ == 6
    assert np.abs(model.cluster_centers_).max() <= np.abs(MANY).max()
    chunked = dc.KMeans(6, init=init).fit(da.from_array(MANY, chunks=(37, 1)))
    assert np.array_equal(chunked.labels_.compute(), model.labels_)
    assert dc.KMeans(2, init=[[-1], [10]]).fit([[-1.0], [1.0]], sample_weight=[1.9, 0.1]).n_clusters_ == 2


@pytest.mark.parametrize("init", [*INITS, MANY[:12]], ids=[*INITS, "given"])
def test_a_loaded_model_predicts_the_same(init, tmp_path):
    model = dc.KMeans(12, init=init, random_state=0).fit(CHUNKED)
    model.save(tmp_path / "model.zarr")
    loaded = dc.load_model(tmp_path / "model.zarr")
    assert type(loaded) is dc.KMeans
    np.testing.assert_array_equal(loaded.predict(MANY), model.labels_)
    np.testing.assert_array_equal(loaded.transform(MANY), model.transform(MANY))
    np.testing.assert_array_equal(loaded.cluster_centers_, model.cluster_centers_)
    assert (loaded.inertia_, loaded.n_iter_, loaded.n_clusters_) == (model.inertia_, model.n_iter_, 12)
    np.testing.assert_array_equal(loaded.init, init)


# -- scikit-learn's conventions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("given", [MANY, CHUNKED], ids=["numpy", "dask"])
def test_score_is_minus_the_inertia(weights, given):
    model = dc.KMeans(12, random_state=0).fit(given, sample_weight=weights)
    np.testing.assert_allclose(model.score(given, sample_weight=weights), -model.inertia_, rtol=1e-12)
    reference = Reference(12, init=model.cluster_centers_, n_init=1, max_iter=1).fit(MANY)
    reference.cluster_centers_ = model.cluster_centers_
    expected = reference.score(MANY[:77], sample_weight=None if weights is None else WEIGHTS[:77])
    found = model.score(MANY[:77], sample_weight=None if weights is None else WEIGHTS[:77])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_missing_rows_count_nothing_in_the_score():
    X = MANY.copy()
    X[::9, 0] = np.nan
    model = dc.KMeans(12, missing="label", random_state=0).fit(X)
    np.testing.assert_allclose(model.score(X), -model.inertia_, rtol=1e-12)


def test_a_function_gives_the_starts(tmp_path):
    seen = []

    def first_rows(X, n_clusters, random_state):
        seen.append((X.shape, random_state.randint(1000)))
        return X[:n_clusters]

    one, other = (dc.KMeans(12, init=first_rows, random_state=0).fit(given) for given in (MANY, CHUNKED))
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    assert seen[0] == seen[1]
    assert seen[0][0][1] == MANY.shape[1]
    with pytest.raises(ValueError, match=r"init must be one of .* or a function that gives one, got 7"):
        dc.KMeans(12, init=lambda X, n_clusters, random_state: 7).fit(MANY)
    with pytest.raises(ValueError, match="init must not be a function with storage="):
        dc.KMeans(12, init=first_rows, storage=tmp_path / "run").fit(MANY)


def test_fewer_clusters_are_told_as_scikit_learn_does():
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="found 2 clusters"):
        dc.KMeans(5).fit(np.array([[0.0], [0.0], [1.0], [1.0], [1.0], [1.0]]))


# -- by directions ---------------------------------------------------------------------------------------------------


def directions() -> tuple[np.ndarray, np.ndarray]:
    """Rows around three directions, of any length, some of them zeros or missing; and their direction, -1 for none."""
    rng = np.random.default_rng(5)
    truth = np.arange(900) % 3
    X = (np.eye(3)[truth] + rng.normal(0, 0.05, (900, 3))) * rng.uniform(0.01, 100, (900, 1))
    X[::50], truth[::50] = 0, -1
    X[7], truth[7] = np.nan, -1
    return X, truth


@pytest.mark.parametrize("init", [*INITS, "given"])
def test_directions_of_rows(init):
    X, truth = directions()
    given = np.eye(3) * 7 if init == "given" else init
    model = dc.KMeans(3, metric="cosine", init=given, n_init="auto", missing="label", random_state=0).fit(X)
    able = truth >= 0
    assert adjusted_rand_score(truth[able], model.labels_[able]) == 1
    assert model.labels_[7] == -1
    assert not model.labels_[::50].any()  # no direction: the first cluster, which is that of the first other row
    assert model.labels_[1] == 0
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1, rtol=1e-12)
    means = [X[truth == k] / np.linalg.norm(X[truth == k], axis=1, keepdims=True) for k in (1, 2, 0)]
    means = np.array([rows.sum(axis=0) / np.linalg.norm(rows.sum(axis=0)) for rows in means])
    np.testing.assert_allclose(model.cluster_centers_, means, atol=1e-12)
    away = 1 - X[able] @ means.T / np.linalg.norm(X[able], axis=1, keepdims=True)
    np.testing.assert_allclose(model.transform(X)[able], away, atol=1e-12)
    assert (model.transform(X)[::50] == 1).all()
    assert np.isnan(model.transform(X)[7]).all()
    assert model.inertia_ == pytest.approx(away.min(axis=1).sum())
    assert model.score(X) == pytest.approx(-model.inertia_)
    assert model.score(X, sample_weight=able * 2.0) == pytest.approx(-2 * model.inertia_)
    assert (model.predict(X) == model.labels_).all()


def test_directions_with_weights_and_in_chunks(tmp_path):
    X, truth = directions()
    X[7] = 1
    weights = np.where(truth == 2, 0.0, 1.0)
    make = lambda: dc.KMeans(2, metric="cosine", random_state=0)  # noqa: E731
    model = make().fit(X, sample_weight=weights)
    lazy = make().fit(da.from_array(X, chunks=(70, 3)), sample_weight=weights)
    assert (np.asarray(lazy.labels_) == model.labels_).all()
    assert model.cluster_centers_.tobytes() == lazy.cluster_centers_.tobytes()
    assert (model.cluster_centers_.argmax(axis=1) == [1, 0]).all()  # no weight, no centre
    model.save(tmp_path / "m.zarr")
    assert (dc.load_model(tmp_path / "m.zarr").predict(X) == model.labels_).all()


def test_what_has_no_direction_is_said():
    with pytest.raises(ValueError, match="no row of zeros with metric='cosine', which has no direction; row 1 is"):
        dc.KMeans(2, metric="cosine", init=[[1, 0], [0, 0]]).fit(np.eye(2))
    with pytest.raises(ValueError, match=r"rows that are not all 0, .* got none among 40 sampled ones"):
        dc.KMeans(2, metric="cosine").fit(np.zeros((40, 2)))
    with pytest.raises(ValueError, match="metric must be"):
        dc.KMeans(2, metric="cos").fit(np.eye(2))
    with pytest.warns(dc.errors.FewerClustersWarning):
        model = dc.KMeans(3, metric="cosine", random_state=0).fit([[1, 0], [2, 0], [0, 1], [0, 0]])
    assert model.labels_.tolist() == [0, 0, 1, 0]


def test_a_mean_without_direction_stays_where_it_is():
    X = np.array([[1.0, 0.0], [-1.0, 0.0]])
    model = dc.KMeans(1, metric="cosine", init=[[0.0, 1.0]]).fit(X)
    assert model.cluster_centers_.tolist() == [[0, 1]]
    import scipy.sparse as sp

    model = dc.KMeans(1, metric="cosine", init=[[0.0, 1.0]]).fit(sp.csr_array(X))
    assert model.cluster_centers_.tolist() == [[0, 1]]
