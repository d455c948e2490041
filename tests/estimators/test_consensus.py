"""BipartiteCut, SEC and ISEC through their public interface."""

from __future__ import annotations

import inspect
import pickle
import warnings
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score as ari

import daskcluster as dc
from tests.reference import ensemble, sec

BLOCK_ROWS = 32
MODELS = {
    "cut": lambda k=3, **more: dc.BipartiteCut(k, random_state=0, **more),
    "sec": lambda k=3, **more: dc.SEC(k, random_state=0, **more),
    "secrp": lambda k=3, **more: dc.SEC(k, n_components=24, random_state=0, **more),
    "isec": lambda k=3, **more: dc.ISEC(k, random_state=0, **more),
    "isec-z": lambda k=3, **more: dc.ISEC(k, partition="Z", random_state=0, **more),
    "anchored": lambda k=3, **more: dc.ISEC(k, n_representatives=60, random_state=0, **more),
}
PREDICTING = ["cut", "sec", "secrp", "anchored"]


@pytest.fixture(params=MODELS)
def make(request):
    return MODELS[request.param]


@pytest.fixture(params=PREDICTING)
def make_predicting(request):
    return MODELS[request.param]


def draw(seed=0, n_rows=200, n_columns=8, noise=0.2, missing=0.0):
    """Noisy copies of three clusters, each with its own names of them."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n_rows)
    labels = np.stack(
        [
            np.where(rng.random(n_rows) < noise, rng.integers(3, size=n_rows), rng.permutation(3)[truth])
            for _ in range(n_columns)
        ],
        axis=1,
    )
    labels[rng.random(labels.shape) < missing] = -1
    return labels, truth


def fit(model: Any, X: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X)


# -- what they find ----------------------------------------------------------------------------------------------------


def test_noise_is_outvoted(make):
    labels, truth = draw()
    model = make().fit(labels)
    assert ari(truth, model.labels_) > 0.95
    assert model.labels_.dtype == np.int32
    assert model.n_clusters_ == 3
    assert model.agreement_ == pytest.approx(ensemble.agreement(labels, model.labels_), rel=1e-6)


@pytest.mark.parametrize("missing", [0.3, 0.6])
def test_missing_labels(make, missing):
    labels, truth = draw(1, n_columns=16, missing=missing)
    model = fit(make(), labels)
    labelled = (labels >= 0).any(axis=1)
    projected = getattr(model, "n_components", None) is not None  # where missing labels count as zeros
    assert ari(truth[labelled], model.labels_[labelled]) > (0.3 if projected else 0.85)
    assert np.array_equal(model.labels_ < 0, ~labelled)
    assert model.agreement_ == pytest.approx(ensemble.agreement(labels, model.labels_), rel=1e-6, nan_ok=True)


def test_agreement_by_hand():
    # The base clusters are {0, 1, 2}, {3, 4} and {0, 1}, {2, 3, 4}; the consensus keeps the second pair whole.
    base = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1]])
    model = dc.SEC(2, random_state=0).fit(base)
    assert model.labels_.tolist() == [0, 0, 1, 1, 1]
    assert model.agreement_ == pytest.approx([(2 / 3 + 1) / 2, (2 / 3 + 1) / 2, (1 / 3 + 1) / 2, 1, 1])


def test_clusters_are_numbered_by_their_first_row(make):
    labels, _ = draw(2)
    found = make().fit_predict(labels)
    first = np.unique(found, return_index=True)[1]
    assert np.array_equal(first, np.sort(first))


def test_sec_is_at_least_as_good_as_k_means_on_the_dense_matrix():
    for seed in range(3):
        labels, _ = draw(seed, n_rows=150, n_columns=6, noise=0.7)
        model = dc.SEC(5, n_init=60, random_state=seed).fit(labels)
        w = sec.co_association(labels).sum(axis=1)
        dense = sec.incidence(labels) / w[:, None]
        best = min(KMeans(5, n_init=1, random_state=run).fit(dense, sample_weight=w).inertia_ for run in range(10))
        assert model.objective_ <= best * (1 + 1e-9)
        assert model.objective_ == pytest.approx(sec.objective(labels, model.labels_), rel=1e-9)
        assert model.objective_ <= model.history_[-1] * (1 + 1e-12)


def test_sec_objective_with_missing_labels_and_projection():
    labels, _ = draw(3, noise=0.5, missing=0.3)
    labels[(labels < 0).all(axis=1), 0] = 0
    for model in (dc.SEC(4, random_state=0), dc.SEC(4, n_components=12, random_state=0)):
        model.fit(labels)
        assert model.objective_ == pytest.approx(sec.objective(labels, model.labels_), rel=1e-9)
    assert model.cluster_centers_.shape == (4, 12)


def test_transform_of_sec_is_the_distance():
    labels, _ = draw(4)
    model = dc.SEC(3, random_state=0).fit(labels)
    w = sec.co_association(labels).sum(axis=1)
    expected = np.sqrt(sec.distances(labels, model.cluster_centers_) / w[:, None])
    assert model.transform(labels) == pytest.approx(expected, abs=1e-12)
    assert list(model.get_feature_names_out()) == ["sec0", "sec1", "sec2"]
    wide = dc.SEC(3, n_components=500, random_state=0).fit(labels)
    assert wide.transform(labels) == pytest.approx(expected, rel=0.4)


def test_isec_converges_as_in_figure_1():
    model = dc.ISEC(3, random_state=0).fit(draw()[0])
    assert model.n_iter_ == len(model.history_) <= 20
    assert model.history_[-1] < 1e-6
    assert model.embedding_.shape == (200, 3)


# -- forms of input ----------------------------------------------------------------------------------------------------


def test_bit_equal_for_any_form(make, small_blocks, tmp_path):
    labels, _ = draw(5, missing=0.2)
    expected = fit(make(), labels)
    zarr.create_array(str(tmp_path / "base.zarr"), data=labels.astype(np.int16), chunks=(50, 3))
    forms = [
        labels.astype(np.float32),
        np.asfortranarray(labels.astype(np.int8)),
        da.from_array(labels, chunks=(37, 3)),
        da.from_array(labels, chunks=(1, 8)),
        zarr.open_array(str(tmp_path / "base.zarr")),
        tmp_path / "base.zarr",
    ]
    for form in forms:
        model = fit(make(), form)
        assert isinstance(model.labels_, np.ndarray if isinstance(form, np.ndarray) else da.Array)
        assert isinstance(model.agreement_, type(model.labels_))
        np.testing.assert_array_equal(np.asarray(model.labels_), expected.labels_)
        np.testing.assert_array_equal(np.asarray(model.agreement_), expected.agreement_)


def test_bit_equal_for_any_scheduler(make, small_blocks, client_inprocess):
    labels, _ = draw(6, missing=0.2)
    chunked = da.from_array(labels, chunks=(60, 8))
    model = fit(make(), chunked)
    found, agreement = model.labels_.compute(), model.agreement_.compute()
    with dask.config.set(scheduler="synchronous"):
        expected = fit(make(), chunked)
        np.testing.assert_array_equal(found, expected.labels_.compute())
        np.testing.assert_array_equal(agreement, expected.agreement_.compute())


def test_names_of_the_labels_do_not_matter(make):
    labels, _ = draw(7)
    renamed = labels * np.array([1, 7, 2**40, 1, 3, 1, 1, 2]) + np.arange(8)
    np.testing.assert_array_equal(make().fit_predict(renamed), make().fit_predict(labels))


# -- bad and odd input -------------------------------------------------------------------------------------------------


def test_one_base_clustering_is_its_own_consensus(make):
    labels, _ = draw(8, n_columns=1)
    np.testing.assert_allclose(ari(make().fit_predict(labels), labels[:, 0]), 1.0)


def test_equal_base_clusterings_and_a_constant_one(make):
    labels, _ = draw(9, n_columns=1)
    ten = np.repeat(labels, 10, axis=1)
    ten[:, 3] = 5
    model = make().fit(ten)
    assert ari(model.labels_, labels[:, 0]) == 1
    assert model.agreement_.min() > 0.9


def test_more_clusters_than_the_base_clusterings_tell_apart(make):
    labels = np.repeat(draw(10, n_columns=1)[0], 3, axis=1)
    with pytest.warns(dc.FewerClustersWarning, match="found 3 clusters, not n_clusters=5"):
        model = make(5).fit(labels)
    assert model.n_clusters_ == 3
    assert ari(model.labels_, labels[:, 0]) == 1


def test_nothing_but_constant_base_clusterings(make):
    with pytest.warns(dc.FewerClustersWarning, match="found 1 clusters"):
        model = make(2).fit(np.full((70, 4), 3))
    assert set(model.labels_) == {0}
    assert (model.agreement_ == 1).all()


def test_one_cluster(make):
    model = make(1).fit(draw()[0])
    assert set(model.labels_) == {0}


def test_rows_without_labels_are_said_once(make):
    labels, truth = draw(11)
    labels[[3, 50]] = -1
    with pytest.warns(
        UserWarning, match="2 rows have no label in any base clustering; they get the label -1"
    ) as caught:
        model = make().fit(labels)
    assert len(caught) == 1
    assert np.flatnonzero(model.labels_ < 0).tolist() == [3, 50]
    assert np.flatnonzero(np.isnan(model.agreement_)).tolist() == [3, 50]
    rest = np.delete(np.arange(200), [3, 50])
    assert ari(truth[rest], model.labels_[rest]) > 0.9


def test_what_is_refused(make):
    labels, _ = draw()
    with pytest.raises(ValueError, match="whole numbers >= 0"):
        make().fit(labels + 0.25)
    with pytest.raises(ValueError, match="every label is -1"):
        make().fit(np.full((10, 2), -1))
    with pytest.raises(
        ValueError, match=r"n_clusters=300 and n_samples=200|n_representatives must be an integer >= 300"
    ):
        make(300).fit(labels)
    few = np.full((10, 2), -1)
    few[:2] = 0
    with pytest.raises(ValueError, match="n_clusters=3 and 2 such rows"):
        make(3).fit(few)
    with pytest.raises(ValueError, match="2D"):
        make().fit(labels[:, 0])
    with pytest.raises(ValueError, match="n_clusters"):
        make(0).fit(labels)


@pytest.mark.parametrize(
    ("model", "error", "match"),
    [
        (dc.SEC(2, n_components=0), ValueError, "n_components"),
        (dc.SEC(2, tol=-1), ValueError, "tol"),
        (dc.SEC(2).set_params(n_init=1.5), TypeError, "n_init"),
        (dc.BipartiteCut(2, max_iter=0), ValueError, "max_iter"),
        (dc.ISEC(2, partition="Q"), ValueError, "partition"),
        (dc.ISEC(5, n_representatives=4), ValueError, "n_representatives"),
        (dc.ISEC(2, lambda_1=-0.1), ValueError, "lambda_1"),
    ],
)
def test_parameters_are_checked(model, error, match):
    with pytest.raises(error, match=match):
        model.fit(np.zeros((10, 2), int))


def test_too_large_problems_are_refused(monkeypatch):
    for place in ("bipartite", "learned", "sec"):
        monkeypatch.setattr(f"daskcluster.ensemble.{place}.memory_limit", lambda: 2**20)
        monkeypatch.setattr(f"daskcluster.ensemble.{place}.SMALL_BYTES", 0)
    few = np.full((5000, 3), -1)
    few[::100] = 0
    assert fit(dc.ISEC(1), few).n_clusters_ == 1  # rows without labels do not count
    few[::2] = 0
    with pytest.raises(MemoryError, match=r"ISEC on 2500 rows needs .* GiB.*give n_representatives, at most \d+ here"):
        dc.ISEC(1).fit(few)
    labels = np.arange(2000)[:, None] // 2 * np.array([[1, 1]])
    with pytest.raises(MemoryError, match="bipartite cut of 2000 base clusters"):
        dc.BipartiteCut(3).fit(labels)
    assert fit(dc.SEC(3, random_state=0, n_init=1), labels).n_clusters_ == 3  # without the cut's start


# -- new rows, saving --------------------------------------------------------------------------------------------------


def test_predict_repeats_fit(make_predicting, small_blocks):
    labels, _ = draw(12, missing=0.1)
    model = fit(make_predicting(), labels)
    np.testing.assert_array_equal(model.predict(labels), model.labels_)
    lazy = model.predict(da.from_array(labels, chunks=(33, 4)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), model.labels_)
    assert model.transform(labels).shape == (200, model._n_features_out)
    unknown = labels.copy()
    unknown[:, :2] = 77
    assert ari(model.predict(unknown), model.labels_) > 0.7
    assert set(model.predict(np.full((5, 8), 77))) == {-1}
    with pytest.raises(ValueError, match="expecting 8 features"):
        model.predict(labels[:, :5])


def test_saved_models_predict_the_same(make, tmp_path):
    labels, _ = draw(13)
    model = make().fit(labels)
    model.save(tmp_path / "model.zarr")
    loaded = dc.load_model(tmp_path / "model.zarr")
    assert loaded.n_clusters_ == 3
    np.testing.assert_array_equal(loaded.base_cluster_sizes_, model.base_cluster_sizes_)
    pickled = pickle.loads(pickle.dumps(model))
    if model._predicts:
        for twin in (loaded, pickled):
            np.testing.assert_array_equal(twin.predict(labels), model.labels_)
    else:
        assert not hasattr(loaded, "predict")
        with pytest.raises(AttributeError, match="give n_representatives"):
            loaded.predict(labels)


def test_exact_isec_has_no_predict():
    labels, _ = draw(13)
    model = dc.ISEC(3, random_state=0)
    for _ in range(2):
        for name in ("predict", "transform", "fit_transform"):
            assert not hasattr(model, name)
            with pytest.raises(AttributeError, match=r"this ISEC learns on all rows .* give n_representatives"):
                getattr(model, name)
        model.fit(labels)
    for n_representatives in (40, 200, 1000):  # more than there are rows, too
        model = dc.ISEC(3, n_representatives=n_representatives, random_state=0).fit(labels)
        np.testing.assert_array_equal(model.predict(labels), model.labels_)
        assert model.fit_transform(labels).shape == (200, 3)
        assert "transform" in dir(dc.ISEC)


def test_isec_says_that_it_did_not_converge():
    labels, _ = draw(13)
    with pytest.warns(ConvergenceWarning, match=r"ISEC did not converge in max_iter=3 rounds: .* tol=1e-06") as caught:
        dc.ISEC(3, max_iter=3).fit(labels)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("name", ["lambda_1", "lambda_2"])
def test_extreme_weights_of_isec(name):
    labels, _ = draw(13)
    assert dc.ISEC(3, **{name: 1e300}).fit(labels).n_clusters_ == 3


@pytest.mark.parametrize("method", ["fit", "fit_predict"])
def test_warnings_point_at_the_caller(make, method):
    labels = np.repeat(draw(10, n_columns=1)[0], 3, axis=1)
    labels[7] = -1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(make(5), method)(labels)
    assert len(caught) == 2
    assert {warned.filename for warned in caught} == {__file__}


@pytest.mark.parametrize("chunked", [False, True])
def test_bad_labels_of_new_rows_are_named(make_predicting, chunked, small_blocks):
    labels, _ = draw()
    model = make_predicting().fit(labels)
    bad = labels.astype(float)
    bad[[137, 150], [2, 0]] = 0.5
    with pytest.raises(ValueError, match=r"got 0.5 at row 137, column 2"):
        np.asarray(model.predict(da.from_array(bad, chunks=(200, 8)) if chunked else bad))


def test_kinds_of_labels(make):
    labels, _ = draw()
    expected = make().fit_predict(labels)
    np.testing.assert_array_equal(make().fit_predict(labels.astype(np.float16)), expected)
    large = labels.astype(np.uint64)
    large[3, 1] = 2**63
    with pytest.raises(ValueError, match=r"below 2\*\*63, or -1 .* got 9223372036854775808 at row 3, column 1"):
        make().fit(large)
    for masked in (np.ma.masked_equal(labels, 0), da.ma.masked_equal(da.from_array(labels), 0)):
        with pytest.raises(ValueError, match=r"must not be a masked array: fill it with -1, .*dask.array.ma.filled$"):
            make().fit(masked)


def test_clone_and_parameters(make):
    model = make(4)
    assert clone(model).get_params() == model.get_params()
    assert "missing" not in model.get_params()
    parameters = list(inspect.signature(type(model)).parameters.values())
    assert parameters[0].default == 8
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters[1:])


# -- storage and forecast ----------------------------------------------------------------------------------------------


def test_named_store(make, tmp_path, small_blocks, monkeypatch):
    labels, _ = draw(14, missing=0.2)
    expected = fit(make(), labels).labels_
    store = tmp_path / "run"
    np.testing.assert_array_equal(fit(make(storage=store), labels).labels_, expected)

    def never(*arguments: Any, **more: Any) -> None:
        raise AssertionError("computed again")

    for place in (
        "pipeline.cut.transfer_cut",
        "pipeline.discretize.discretize",
        "ensemble.learned.low_rank_representation",
        "ensemble.agreement.agreement_shares",
        "ensemble.sec.lloyd_incidence",
    ):
        monkeypatch.setattr(f"daskcluster.{place}", never)
    again = fit(make(storage=store), da.from_array(labels, chunks=(19, 3)))
    np.testing.assert_array_equal(again.labels_.compute(), expected)
    labels[0, 0] += 1
    with pytest.raises(dc.StorageMismatchError, match="other data"):
        fit(make(storage=store), labels)
    with pytest.raises(dc.StorageMismatchError, match="n_clusters"):
        fit(make(4, storage=store), labels)


def test_plan(make):
    plan = make().plan(da.zeros((1_000_000, 20), chunks=100_000, dtype=np.int8))
    assert plan.n_samples == 1_000_000
    assert "base clusters" in str(plan)
    assert plan.tasks > 0
