"""Ensemble and USENC through their public interface."""

from __future__ import annotations

import inspect
import pickle
import warnings
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.cluster import KMeans as InMemoryKMeans
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score as ari
from sklearn.metrics import normalized_mutual_info_score as nmi
from sklearn.utils.estimator_checks import parametrize_with_checks

import daskcluster as dc
from daskcluster.ensemble import generation
from daskcluster.pipeline import rows as row_blocks
from tests.reference import ensemble as reference

BLOBS, TRUTH = make_blobs(600, centers=[[0, 0], [5, 5], [0, 6]], cluster_std=0.4, random_state=0)
CHUNKED = da.from_array(BLOBS, chunks=(77, 2))
IRIS, SPECIES = load_iris(return_X_y=True)


def usenc(**more: Any) -> dc.USENC:
    return dc.USENC(**{"n_clusters": 3, "n_base_clusterings": 5, "n_representatives": 60, "random_state": 0} | more)


def ensemble(**more: Any) -> dc.Ensemble:
    own: dict[str, Any] = {"n_clusters": 3, "base": dc.KMeans(), "n_base_clusterings": 5, "random_state": 0}
    return dc.Ensemble(**own | more)


@pytest.fixture(params=[usenc, ensemble], ids=["usenc", "ensemble"])
def make(request):
    return request.param


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(row_blocks, "MOST_BLOCK_ROWS", 64)
    monkeypatch.setattr(row_blocks, "LEAST_BLOCK_ROWS", 16)


@parametrize_with_checks(
    [
        dc.USENC(n_clusters=2, n_base_clusterings=3, n_representatives=30),
        dc.Ensemble(n_clusters=2, n_base_clusterings=3, base=dc.KMeans(), consensus=dc.SEC(n_init=2)),
    ]
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_pinned_signature():
    parameters = inspect.signature(dc.USENC).parameters
    found = {name: parameter.default for name, parameter in parameters.items()}
    spectral = {name: parameter.default for name, parameter in inspect.signature(dc.USPEC).parameters.items()}
    assert found == {"n_clusters": 8, "n_base_clusterings": 20, "k_range": (20, 60)} | spectral
    for cls in (dc.USENC, dc.Ensemble):
        kinds = [parameter.kind for parameter in inspect.signature(cls).parameters.values()]
        assert kinds[0] is inspect.Parameter.POSITIONAL_OR_KEYWORD
        assert set(kinds[1:]) == {inspect.Parameter.KEYWORD_ONLY}
    assert inspect.signature(dc.Ensemble).parameters["sample_rate"].default == 1.0


# -- what they find ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "k"), [("concentric_circles", 3), ("circles_gaussians", 11)])
def test_nonlinear_clusters_are_found(name, k):
    X, y = getattr(dc.datasets, f"make_{name}")(5000, chunks=1500, random_state=0)
    model = dc.USENC(k, n_base_clusterings=10, n_representatives=400, random_state=0).fit(X)
    assert nmi(y.compute(), model.labels_.compute()) > 0.97
    assert model.agreement_.mean().compute() > 0.9


def test_the_ensemble_is_better_than_its_members():
    digits = load_digits()
    model = dc.USENC(10, random_state=0).fit(digits.data)
    single = np.mean([nmi(digits.target, dc.USPEC(10, random_state=s).fit_predict(digits.data)) for s in range(3)])
    assert nmi(digits.target, model.labels_) > max(0.88, single - 0.01)
    assert len(model.estimators_) == len(model.base_n_clusters_) == 20
    assert model.base_labels_.shape == (1797, 20)
    expected = reference.agreement(model.base_labels_[::10], model.labels_[::10])
    assert np.corrcoef(expected, model.agreement_[::10])[0, 1] > 0.9


def test_attributes(make):
    model = make().fit(BLOBS)
    assert ari(TRUTH, model.labels_) == 1
    assert model.labels_.dtype == np.int32
    assert np.array_equal(
        np.unique(model.labels_, return_index=True)[1], np.sort(np.unique(model.labels_, return_index=True)[1])
    )
    assert model.agreement_.dtype == np.float32
    assert model.agreement_ == pytest.approx(reference.agreement(model.base_labels_, model.labels_), rel=1e-6)
    low, high = model.k_range_
    assert all(low <= number <= high for number in model.base_n_clusters_)
    assert model.n_features_in_ == 2
    assert model.consensus_.n_clusters_ == model.n_clusters_ == 3


def test_usenc_is_an_ensemble():
    model = usenc().fit(BLOBS)
    twin = dc.Ensemble(
        3,
        base=dc.USPEC(n_representatives=60),
        consensus=dc.BipartiteCut(),
        k_range=(20, 60),
        n_base_clusterings=5,
        random_state=0,
    ).fit(BLOBS)
    np.testing.assert_array_equal(twin.base_labels_, model.base_labels_)
    np.testing.assert_array_equal(twin.labels_, model.labels_)


def test_base_clusterings_are_models_of_their_own():
    model = usenc().fit(BLOBS)
    for number, member in enumerate(model.estimators_):
        np.testing.assert_array_equal(member.predict(BLOBS), model.base_labels_[:, number])
    assert len({member._seed for member in model.estimators_}) == 5


@pytest.mark.parametrize("selection", ["random", "kmeans"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_options_of_the_base_clusterings(selection, metric):
    model = usenc(selection=selection, metric=metric, neighbors="exact").fit(BLOBS + 3)
    assert ari(TRUTH, model.labels_) > (0.95 if metric == "euclidean" else 0.4)
    np.testing.assert_array_equal(model.predict(BLOBS + 3), model.labels_)


CONSENSUS = [None, dc.SEC(), dc.SEC(n_components=20), dc.ISEC(), dc.ISEC(n_representatives=100, partition="Z")]


@pytest.mark.parametrize("consensus", CONSENSUS, ids=str)
@pytest.mark.parametrize(
    "sampling", [{}, {"sample_rate": 0.6}, {"sample_rate": 0.6, "predict_unsampled": True}], ids=str
)
def test_every_consensus_with_every_sampling(consensus, sampling):
    model = ensemble(consensus=consensus, n_base_clusterings=12, **sampling).fit(IRIS)
    unseen = (model.base_labels_ < 0).mean()
    assert unseen == pytest.approx(0.4 if sampling == {"sample_rate": 0.6} else 0, abs=1e-9)
    projected = getattr(consensus, "n_components", None) is not None  # rough in so few components
    assert nmi(SPECIES, model.labels_) > (0.35 if projected else 0.5)
    if consensus is None or not isinstance(consensus, dc.ISEC) or consensus.n_representatives:
        assert nmi(model.predict(IRIS), model.labels_) > (0.99 if unseen == 0 else 0.6)
    else:
        with pytest.raises(AttributeError, match="cannot label new rows"):
            model.predict(IRIS)


# -- base clusterers ---------------------------------------------------------------------------------------------------


class Halves(ClusterMixin, BaseEstimator):
    """No `n_clusters`, no `random_state`, no `fit_predict` of its own, no `predict`."""

    def fit(self, X: Any, y: Any = None) -> Halves:
        self.labels_ = (np.asarray(X)[:, 0] > np.median(np.asarray(X)[:, 0])).astype(int)
        return self


@pytest.mark.parametrize(
    ("base", "predicts"),
    [(InMemoryKMeans(n_init=1), True), (AgglomerativeClustering(), False), (Halves(), False)],
    ids=str,
)
@pytest.mark.parametrize("X", [BLOBS, CHUNKED], ids=["numpy", "dask"])
def test_clusterers_of_others(base, predicts, X):
    model = dc.Ensemble(2, base=base, n_base_clusterings=4, random_state=0).fit(X)
    assert model.n_clusters_ == 2
    assert isinstance(model.labels_, type(X))
    assert len(model.estimators_) == (4 if predicts else 0)
    if predicts:
        np.testing.assert_array_equal(np.asarray(model.predict(X)), np.asarray(model.labels_))
        assert len({member.n_clusters for member in model.estimators_}) > 1
    else:
        with pytest.raises(AttributeError, match="cannot label new rows"):
            model.predict(X)


def test_noise_of_a_base_clusterer_is_no_label():
    X = np.vstack([BLOBS, [[100.0, 100.0]]])
    with pytest.warns(UserWarning, match="rows have no label in any base clustering"):
        model = dc.Ensemble(3, base=DBSCAN(eps=0.5), n_base_clusterings=2, random_state=0).fit(X)
    assert model.labels_[-1] == -1
    assert ari(TRUTH, model.labels_[:-1]) > 0.9


def test_labels_guide_constrained_base_clusterers():
    """CCSS-SE of fast_csc_and_secrp_2017."""
    y = np.full(600, -1)
    y[::20] = TRUTH[::20]
    model = dc.Ensemble(
        3, base=dc.FastCSC(n_representatives=60), consensus=dc.SEC(), n_base_clusterings=4, random_state=0
    )
    assert ari(TRUTH, model.fit(BLOBS, y).labels_) > 0.9
    constraints = dc.Constraints.from_labels(y)
    assert ari(TRUTH, model.fit(BLOBS, constraints=constraints).labels_) > 0.9


def test_which_parameters_are_whose():
    base = dc.KMeans(n_clusters=99, random_state=7, missing="raise")
    consensus = dc.SEC(n_clusters=99, random_state=7)
    model = ensemble(base=base, consensus=consensus, missing="label").fit(np.vstack([BLOBS, [[np.nan, 0]]]))
    assert (base.n_clusters, consensus.n_clusters) == (99, 99)
    assert not hasattr(base, "labels_")
    assert not hasattr(consensus, "labels_")
    assert model.n_clusters_ == 3
    assert model.labels_[-1] == -1


# -- numbers of clusters -----------------------------------------------------------------------------------------------


def test_k_range(caplog):
    model = ensemble(k_range=(4, 9), n_base_clusterings=40).fit(BLOBS)
    assert model.k_range_ == (4, 9)
    assert set(model.base_n_clusters_.tolist()) == {4, 5, 6, 7, 8, 9}
    assert ensemble().fit(BLOBS).k_range_ == (3, 24)  # from n_clusters to sqrt(n)
    with caplog.at_level("INFO", logger="daskcluster"):
        assert usenc().fit(BLOBS[:100]).k_range_ == (20, 20)  # 2 sqrt(n)
    assert "k_range (20, 60) is more than 100 rows allow: (20, 20) is used" in caplog.text
    assert usenc().fit(BLOBS[:16]).k_range_ == (8, 8)


def test_numbers_of_constrained_base_clusterings_are_near_k():
    """Section 5.3 of fast_csc_and_secrp_2017: from k - 5 to k + 4."""
    for k, expected in ((3, (2, 7)), (9, (4, 13)), (1, (1, 5))):
        model = dc.Ensemble(k, base=dc.FastCSC(n_representatives=60), n_base_clusterings=2, random_state=0)
        assert model.fit(BLOBS).k_range_ == expected


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"k_range": (5, 3)}, ValueError, "k_range"),
        ({"k_range": (0, 3)}, ValueError, "k_range"),
        ({"k_range": 5}, ValueError, "k_range must be a pair"),
        ({"n_base_clusterings": 0}, ValueError, "n_base_clusterings"),
        ({"n_clusters": 1000}, ValueError, "n_clusters=1000 and n_samples=600"),
        ({"missing": "drop"}, ValueError, "missing"),
    ],
)
def test_parameters_are_checked(make, parameters, error, match):
    with pytest.raises(error, match=match):
        make(**parameters).fit(BLOBS)


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"sample_rate": 0.0}, ValueError, "sample_rate"),
        ({"sample_rate": 1.5}, ValueError, "sample_rate"),
        ({"base": "kmeans"}, TypeError, "base must be a clusterer"),
        ({"base": dc.KMeans}, TypeError, "base must be a clusterer"),
        ({"consensus": dc.KMeans()}, TypeError, "consensus must be"),
        ({"base": DBSCAN(), "k_range": (2, 5)}, ValueError, "k_range must be None for a base without n_clusters"),
        ({"base": DBSCAN(), "predict_unsampled": True}, ValueError, "predict_unsampled"),
        ({"base": dc.KMeans(n_init=0)}, ValueError, "n_init"),
        ({"consensus": dc.SEC(n_init=0)}, ValueError, "n_init"),
    ],
)
def test_parameters_of_ensemble_are_checked(parameters, error, match):
    with pytest.raises(error, match=match):
        ensemble(**parameters).fit(BLOBS)


def test_constraints_need_a_base_that_takes_them():
    with pytest.raises(ValueError, match="constraints must be None for a base that takes none"):
        ensemble().fit(BLOBS, constraints=dc.Constraints.from_labels(TRUTH))


# -- forms of input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample_rate", [1.0, 0.7])
def test_bit_equal_for_any_chunking(make, sample_rate, small_blocks):
    more = {} if make is usenc else {"sample_rate": sample_rate, "predict_unsampled": True}
    expected = make(**more).fit(BLOBS)
    for X in (CHUNKED, da.from_array(BLOBS, chunks=(600, 1)), da.from_array(BLOBS, chunks=(150, 2))):
        model = make(**more).fit(X)
        assert isinstance(model.labels_, da.Array)
        np.testing.assert_array_equal(model.labels_.compute(), expected.labels_)
        np.testing.assert_array_equal(model.agreement_.compute(), expected.agreement_)
        np.testing.assert_array_equal(model.base_labels_.compute(), expected.base_labels_)


def test_bit_equal_for_any_group_size(small_blocks):
    expected = usenc().fit(BLOBS)
    for budget in ("1 kB", "60 kB"):
        with dask.config.set({"daskcluster.memory-budget": budget}):
            np.testing.assert_array_equal(usenc().fit(CHUNKED).base_labels_.compute(), expected.base_labels_)


def test_bit_equal_on_a_cluster(make, small_blocks, cluster_processes):
    model = make().fit(CHUNKED)
    found = model.labels_.compute()
    agreement = model.agreement_.compute()
    with dask.config.set(scheduler="synchronous"):
        expected = make().fit(BLOBS)
    np.testing.assert_array_equal(found, expected.labels_)
    np.testing.assert_array_equal(agreement, expected.agreement_)


def test_rows_with_nan(make, small_blocks):
    X = BLOBS.copy()
    X[[5, 300]] = np.nan
    with pytest.raises(ValueError, match="NaN at row 5, column 0"):
        make().fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make(missing="label").fit(X)
    assert np.flatnonzero(model.labels_ < 0).tolist() == [5, 300]
    assert np.isnan(model.agreement_[[5, 300]]).all()
    rest = np.delete(np.arange(600), [5, 300])
    assert ari(TRUTH[rest], model.labels_[rest]) == 1
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_one_base_clustering(make):
    model = make(n_base_clusterings=1, k_range=(3, 3)).fit(BLOBS)
    assert ari(model.labels_, model.base_labels_[:, 0]) == 1


# -- models ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("consensus", [dc.BipartiteCut(), dc.SEC(), dc.ISEC(n_representatives=100)], ids=str)
def test_predict_transform_save_and_pickle(consensus, tmp_path):
    model = ensemble(base=dc.USPEC(n_representatives=60), consensus=consensus).fit(CHUNKED)
    labels = model.labels_.compute()
    np.testing.assert_array_equal(model.predict(BLOBS), labels)
    points = model.transform(BLOBS)
    assert points.shape == (600, model._n_features_out)
    model.save(tmp_path / "model.zarr")
    for twin in (dc.load_model(tmp_path / "model.zarr"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.predict(BLOBS), labels)
        np.testing.assert_array_equal(twin.transform(BLOBS), points)
        np.testing.assert_array_equal(twin.predict(CHUNKED).compute(), labels)
    with pytest.raises(ValueError, match="features"):
        model.predict(BLOBS[:, :1])


def test_clone(make):
    model = make().fit(BLOBS)
    twin = clone(model)
    assert set(vars(twin)) == set(twin.get_params(deep=False))
    np.testing.assert_array_equal(twin.fit(BLOBS).labels_, model.labels_)


# -- storage and forecast ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", [0, 3, 6])
def test_a_killed_run_goes_on_at_the_first_unfinished_base_clustering(make, when, tmp_path, small_blocks, monkeypatch):
    expected = make().fit(BLOBS).labels_
    store = tmp_path / "run"
    real = generation.Boundary.rows
    held: list[str] = []

    def rows(self: Any, name: str, *arguments: Any) -> Any:
        if self.named and not (self.folder / name).exists():
            held.append(name)
            if len(held) == when + 1:
                raise KeyboardInterrupt
        return real(self, name, *arguments)

    monkeypatch.setattr(generation.Boundary, "rows", rows)
    with dask.config.set({"daskcluster.memory-budget": "1 kB"}), pytest.raises(KeyboardInterrupt):
        make(storage=store).fit(BLOBS)
    monkeypatch.setattr(generation.Boundary, "rows", real)
    made: list[Any] = []
    for name in ("_begin", "_fit_one"):
        function = getattr(generation, name)

        def counted(*arguments: Any, function: Any = function, **more: Any) -> Any:
            made.append(function)
            return function(*arguments, **more)

        monkeypatch.setattr(generation, name, counted)
    model = make(storage=store).fit(BLOBS)
    np.testing.assert_array_equal(model.labels_, expected)
    assert len(made) == max(0, 5 - when)
    made.clear()
    np.testing.assert_array_equal(make(storage=store).fit(CHUNKED).labels_.compute(), expected)
    assert not made
    with pytest.raises(dc.StorageMismatchError):
        make(storage=store, n_base_clusterings=6).fit(BLOBS)
    with pytest.raises(dc.StorageMismatchError):
        make(storage=store).fit(BLOBS + 1)


def test_plan(make):
    X = da.zeros((1_000_000, 4), chunks=(100_000, 4), dtype=np.float32)
    plan = make().plan(X)
    assert plan.input_passes >= 2
    assert plan.peak_bytes < 2 * 2**30
    assert "transfer cut" in str(plan)
    assert dc.Ensemble(base=InMemoryKMeans()).plan(X).tasks > 0


def test_nothing_runs_before_the_input_is_checked(make):
    lazy = da.zeros((100, 2), chunks=10).map_blocks(lambda block: 1 / 0, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match="n_clusters=101"):
        make(n_clusters=101).fit(lazy)
