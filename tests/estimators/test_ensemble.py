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
import zarr
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.cluster import KMeans as InMemoryKMeans
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score as ari
from sklearn.metrics import normalized_mutual_info_score as nmi
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import daskcluster as dc
from daskcluster.ensemble import fitted_members, learned, spectral_members
from daskcluster.pipeline import neighbors
from daskcluster.runtime.products import Products
from tests.reference import ensemble as reference
from tests.slow import slowly

BLOBS, TRUTH = make_blobs(600, centers=[[0, 0], [5, 5], [0, 6]], cluster_std=0.4, random_state=0)
CHUNKED = da.from_array(BLOBS, chunks=(77, 2))
IRIS, SPECIES = load_iris(return_X_y=True)


def usenc(**more: Any) -> dc.USENC:
    return dc.USENC(**{"n_clusters": 3, "n_base_clusterings": 5, "n_representatives": 60, "random_state": 0} | more)


def ensemble(**more: Any) -> dc.Ensemble:
    own: dict[str, Any] = {"n_clusters": 3, "base": dc.KMeans(), "n_base_clusterings": 5, "random_state": 0}
    return dc.Ensemble(**own | more)


def guided(**more: Any) -> dc.Ensemble:
    return ensemble(**{"base": dc.FastCSC(n_representatives=60), "n_base_clusterings": 4} | more)


@pytest.fixture(params=[usenc, ensemble], ids=["usenc", "ensemble"])
def make(request):
    return request.param


@pytest.mark.slow
@parametrize_with_checks(
    [
        dc.Ensemble(n_clusters=2, n_base_clusterings=2, base=dc.KMeans()),
        dc.USENC(n_clusters=2, n_base_clusterings=2, n_graphs=2, n_representatives=30),
        dc.Ensemble(n_clusters=2, n_base_clusterings=2, base=dc.KMeans(), consensus=dc.SEC(n_init=2)),
    ]
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_pinned_signature():
    parameters = inspect.signature(dc.USENC).parameters
    found = {name: parameter.default for name, parameter in parameters.items()}
    spectral = {name: parameter.default for name, parameter in inspect.signature(dc.USPEC).parameters.items()}
    own = {"n_clusters": 8, "n_base_clusterings": 20, "n_graphs": 4, "k_range": (20, 60)}
    assert found == own | spectral | {"affinity": "adaptive"}
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


@pytest.mark.slow
def test_the_ensemble_is_better_than_its_members():
    digits = load_digits()
    models = [dc.USENC(10, random_state=seed).fit(digits.data) for seed in range(3)]
    model = models[0]
    p = len(model.estimators_[0].representatives_)
    single = [dc.USPEC(10, n_representatives=p, random_state=s).fit_predict(digits.data) for s in range(3)]
    score = np.mean([nmi(digits.target, other.labels_) for other in models])
    assert score > max(0.89, np.mean([nmi(digits.target, labels) for labels in single]))
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
    model = usenc(n_graphs=5).fit(BLOBS)  # the paper's scheme: a graph each
    twin = dc.Ensemble(
        3,
        base=dc.USPEC(n_representatives=60, affinity="adaptive"),
        consensus=dc.BipartiteCut(n_init=3),
        k_range=(20, 60),
        n_base_clusterings=5,
        random_state=0,
    ).fit(BLOBS)
    np.testing.assert_array_equal(twin.base_labels_, model.base_labels_)
    np.testing.assert_array_equal(twin.labels_, model.labels_)


@pytest.mark.parametrize(("n_graphs", "n_made"), [(1, 1), (2, 2), (4, 4), (5, 5), (9, 5)])
@pytest.mark.parametrize("affinity", ["gaussian", "adaptive"])
def test_base_clusterings_are_models_of_their_own(n_graphs, n_made, affinity):
    model = usenc(n_graphs=n_graphs, affinity=affinity).fit(BLOBS)
    for number, member in enumerate(model.estimators_):
        np.testing.assert_array_equal(member.predict(BLOBS), model.base_labels_[:, number])
    assert len({member.representatives_.tobytes() for member in model.estimators_}) == n_made
    assert len({member.random_state for member in model.estimators_}) == 5
    np.testing.assert_array_equal(model.predict(BLOBS), model.labels_)


def test_graphs_are_searched_once_by_predict(monkeypatch):
    model = usenc(n_graphs=2).fit(BLOBS)
    searched: list[int] = []
    real = neighbors.RepresentativeIndex.search

    def search(self: Any, *arguments: Any) -> Any:
        searched.append(1)
        return real(self, *arguments)

    for fitted in (model, pickle.loads(pickle.dumps(model))):
        searched.clear()
        with monkeypatch.context() as patched:
            patched.setattr(neighbors.RepresentativeIndex, "search", search)
            np.testing.assert_array_equal(fitted.predict(BLOBS), model.labels_)
        assert len(searched) == 2


def test_base_clusterings_of_a_graph_are_the_first_eigenvectors():
    model = usenc(n_graphs=1, k_range=(3, 12)).fit(BLOBS)
    widest = max(model.estimators_, key=lambda member: member._vectors.shape[1])
    for member in model.estimators_:
        q = member._vectors.shape[1]
        assert q == max(member.n_clusters, 3)  # the three blobs are parts of their own
        np.testing.assert_array_equal(member._vectors, widest._vectors[:, :q])
        np.testing.assert_array_equal(member.eigenvalues_, widest.eigenvalues_[:q])


def test_n_graphs_is_checked():
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"n_graphs must be an integer >= 1, got {wrong}"):
            usenc(n_graphs=wrong).fit(BLOBS)
    with pytest.raises(TypeError, match=r"n_graphs must be an integer >= 1, got 2.5"):
        usenc(n_graphs=2.5).fit(BLOBS)
    with pytest.raises(ValueError, match="affinity must be one of"):
        usenc(affinity="cosine").fit(BLOBS)


@pytest.mark.parametrize("selection", ["random", "kmeans"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_options_of_the_base_clusterings(selection, metric):
    rng = np.random.default_rng(0)
    angles = TRUTH + 0.05 * rng.normal(size=600)
    rays = rng.uniform(1, 9, 600)[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    X = BLOBS + 3 if metric == "euclidean" else rays
    model = usenc(selection=selection, metric=metric, neighbors="exact").fit(X)
    assert ari(TRUTH, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(X), model.labels_)


CONSENSUS = [None, dc.SEC(), dc.SEC(n_components=20), dc.ISEC(), dc.ISEC(n_representatives=100, partition="Z")]


@pytest.mark.parametrize("consensus", CONSENSUS, ids=str)
@pytest.mark.parametrize(
    "sampling", [*slowly({}), {"sample_rate": 0.6}, *slowly({"sample_rate": 0.6, "predict_unsampled": True})], ids=str
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


@pytest.mark.parametrize("consensus", [dc.KCC(), dc.ECPCS(), dc.EAC(weights="local"), dc.PTGP()], ids=str)
def test_every_other_consensus(consensus, tmp_path):
    model = ensemble(base=dc.KMeans(), consensus=consensus, n_base_clusterings=4).fit(IRIS)
    assert nmi(SPECIES, model.labels_) > 0.5
    assert model.n_iter_ >= 1
    model.save(tmp_path / "model.zarr")
    np.testing.assert_array_equal(dc.load_model(tmp_path / "model.zarr").predict(IRIS), model.labels_)


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


def test_fit_predict_takes_what_fit_takes():
    X = np.random.default_rng(0).random((600, 2))  # no clusters: the labels decide
    y = np.where(np.arange(600) % 10 == 0, X.sum(axis=1) > 1, -1)
    constraints = dc.Constraints.from_labels(y)

    def model():
        return dc.Ensemble(2, base=dc.FastCSC(n_representatives=60), n_base_clusterings=3, random_state=0)

    guided = model().fit(X, y).labels_
    assert not np.array_equal(guided, model().fit(X).labels_)
    np.testing.assert_array_equal(model().fit_predict(X, y), guided)
    np.testing.assert_array_equal(model().fit_predict(X, constraints=constraints), guided)


def test_which_parameters_are_whose():
    base = dc.KMeans(n_clusters=99, random_state=7, missing="raise")
    consensus = dc.SEC(n_clusters=99, random_state=7)
    model = ensemble(base=base, consensus=consensus, missing="label").fit(np.vstack([BLOBS, [[np.nan, 0]]]))
    assert (base.n_clusters, consensus.n_clusters) == (99, 99)
    assert not hasattr(base, "labels_")
    assert not hasattr(consensus, "labels_")
    assert model.n_clusters_ == 3
    assert model.labels_[-1] == -1


@pytest.mark.filterwarnings("ignore:.* rows have no label")
@pytest.mark.parametrize("sample_rate", [*slowly(1.0), 0.5])
def test_labels_in_any_form_guide_alike(sample_rate, tmp_path):
    y = np.full(600, -1)
    y[::20] = TRUTH[::20] * 7
    zarr.create_array(str(tmp_path / "y.zarr"), data=y, chunks=(70,))
    model = guided(sample_rate=sample_rate)
    expected = model.fit(BLOBS, y).base_labels_
    lazy = da.from_array(y, chunks=70)
    for given in ({"y": lazy}, {"y": str(tmp_path / "y.zarr")}, {"constraints": dc.Constraints.from_labels(lazy)}):
        np.testing.assert_array_equal(model.fit(BLOBS, **given).base_labels_, expected)
    np.testing.assert_array_equal(model.fit(CHUNKED, y).base_labels_.compute(), expected)


@pytest.mark.parametrize("sample_rate", [1.0, 0.5])
@pytest.mark.parametrize("size", [599, 601])
def test_labels_of_another_number_of_rows_are_refused(sample_rate, size):
    model = guided(sample_rate=sample_rate)
    with pytest.raises(ValueError, match=f"y must have one entry for each of the 600 rows of X, got {size}"):
        model.fit(BLOBS, np.zeros(size, int))


def test_pairs_and_samples_do_not_go_together():
    with pytest.raises(ValueError, match="constraints must be from labels with sample_rate < 1"):
        guided(sample_rate=0.5).fit(BLOBS, constraints=dc.Constraints.from_pairs([(0, 1)]))


def test_mixture_models():
    """Their private `_check_parameters` is another one than that of this package."""
    for base in (GaussianMixture(4), BayesianGaussianMixture(n_components=3)):
        model = dc.Ensemble(3, base=base, n_base_clusterings=2, random_state=0)
        assert model.plan(BLOBS).tasks > 0
        np.testing.assert_array_equal(model.fit(BLOBS).labels_, model.predict(BLOBS))


class OnlyFitPredict(BaseEstimator):
    """No `fit`, no `y`, and what it gives is large."""

    def __init__(self, factor=1, dtype="int64"):
        self.factor = factor
        self.dtype = dtype

    def fit_predict(self, X):
        return np.floor(X[:, 1] / 4).astype(self.dtype) * np.array(self.factor, self.dtype)


@pytest.mark.filterwarnings("ignore:.* rows have no label")
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("sample_rate", [1.0, 0.7])
def test_large_labels_are_kept_apart(chunked, sample_rate):
    X = np.abs(CHUNKED if chunked else BLOBS)
    own = {"n_base_clusterings": 3, "sample_rate": sample_rate, "random_state": 0}
    expected = dc.Ensemble(2, base=OnlyFitPredict(), **own).fit(X)
    model = dc.Ensemble(2, base=OnlyFitPredict(2**32 + 7), **own).fit(X)
    assert expected.base_labels_.dtype == np.int32
    found = np.asarray(model.base_labels_)
    np.testing.assert_array_equal(
        found, np.where(found < 0, -1, np.asarray(expected.base_labels_) * np.int64(2**32 + 7))
    )
    np.testing.assert_array_equal(np.asarray(model.labels_), np.asarray(expected.labels_))


def test_labels_of_base_clusterers_are_checked():
    model = dc.Ensemble(2, base=OnlyFitPredict(2**63, "uint64"), n_base_clusterings=2)
    with pytest.raises(ValueError, match=r"labels below 2\*\*63, got \d+ from OnlyFitPredict"):
        model.fit(np.abs(BLOBS))
    with pytest.raises(TypeError, match=r"base must give one whole number a row, got shape .* and dtype float64"):
        model.set_params(base=OnlyFitPredict(dtype="float64")).fit(BLOBS)
    with pytest.raises(ValueError, match="no label for any row in any of 2 base clusterings by DBSCAN"):
        model.set_params(base=DBSCAN(1e-9)).fit(BLOBS)


# -- what base clusterers say ------------------------------------------------------------------------------------------


def warnings_of(model: Any, *arguments: Any, method: str = "fit") -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(model, method)(*arguments)
    return caught


@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
def test_warnings_point_at_the_caller(method):
    sampled = ensemble(sample_rate=0.2, n_base_clusterings=2)
    few = usenc(n_clusters=40, n_base_clusterings=1, k_range=(5, 5))
    for model, words in ((sampled, "; they get the label -1: raise n_base_clusterings"), (few, "not n_clusters=40")):
        (warned,) = warnings_of(model, BLOBS, method=method)
        assert words in str(warned.message)
        assert warned.filename == __file__


def test_advice_only_where_it_helps():
    model = dc.Ensemble(3, base=DBSCAN(eps=0.5), n_base_clusterings=2)
    (warned,) = warnings_of(model, np.vstack([BLOBS, [[100.0, 100.0]]]))
    assert str(warned.message) == "2 rows have no label in any base clustering; they get the label -1"


def test_what_base_clusterers_say_is_said_once():
    unknown = np.full(600, -1)
    (warned,) = warnings_of(guided(n_base_clusterings=3), BLOBS, unknown)
    assert "in 3 of 3 base clusterings: FastCSC: no constraints" in str(warned.message)
    assert warned.filename == __file__
    (warned,) = warnings_of(ensemble(base=GaussianMixture(5, max_iter=1)), BLOBS)
    assert "of 5 base clusterings: Best performing initialization did not converge" in str(warned.message)
    assert warned.category is ConvergenceWarning


# -- numbers of clusters -----------------------------------------------------------------------------------------------


def test_k_range(caplog):
    model = ensemble(k_range=(4, 9), n_base_clusterings=40).fit(BLOBS)
    assert model.k_range_ == (4, 9)
    assert set(model.base_n_clusters_.tolist()) == {4, 5, 6, 7, 8, 9}
    assert ensemble().fit(BLOBS).k_range_ == (3, 24)  # from n_clusters to sqrt(n)
    with caplog.at_level("INFO", logger="daskcluster"):
        assert usenc().fit(BLOBS).k_range_ == (4, 12)  # 50 rows a base cluster, and a third of that
    assert "k_range (20, 60) is more than 600 rows allow: (4, 12) is used" in caplog.text
    assert usenc().fit(BLOBS[:400]).k_range_ == (3, 3)  # not worth while
    assert usenc(k_range=(2, 3)).fit(BLOBS[:16]).k_range_ == (2, 3)


def test_numbers_of_base_clusterings_on_a_sample():
    model = dc.Ensemble(4, base=dc.KMeans(), n_base_clusterings=6, sample_rate=0.02, random_state=0)
    with pytest.warns(UserWarning, match="rows have no label"):
        assert model.fit(BLOBS).k_range_ == (4, 4)  # of 12 rows
    assert (model.base_n_clusters_ <= 4).all()


@pytest.mark.parametrize("base", [dc.KMeans(), InMemoryKMeans(n_init=1)], ids=["own", "foreign"])
def test_samples_that_are_too_small_are_refused(base, monkeypatch):
    monkeypatch.setattr(fitted_members, "_fit_one", None)
    with pytest.raises(ValueError, match=r"sample_rate=0.005: 3 rows .* and n_clusters=4"):
        dc.Ensemble(4, base=base, sample_rate=0.005).fit(BLOBS)
    holes = np.where(np.arange(600)[:, None] % 2, BLOBS, np.nan)  # 8 rows a sample, about half of them whole
    with pytest.raises(ValueError, match=r"sample_rate=0.0133: [0-3] rows without NaN or infinity"):
        dc.Ensemble(4, base=base, sample_rate=0.0133, missing="label", random_state=0).fit(holes)
    with pytest.raises(ValueError, match=r"sample_rate must leave each base clusterer 1 rows at least"):
        dc.Ensemble(1, base=DBSCAN(), sample_rate=0.0005).fit(BLOBS)


def test_a_consensus_that_does_not_fit_is_refused_before_any_base_clustering(monkeypatch):
    monkeypatch.setattr(fitted_members, "_fit_one", None)
    monkeypatch.setattr(learned, "memory_limit", lambda: 2**20)
    monkeypatch.setattr(learned, "SMALL_BYTES", 0)
    with pytest.raises(MemoryError, match="ISEC on 600 rows needs"):
        ensemble(consensus=dc.ISEC()).fit(BLOBS)
    with pytest.raises(MemoryError, match="ISEC on 536 rows needs"):
        ensemble(consensus=dc.ISEC(), sample_rate=0.362, n_base_clusterings=5).fit(BLOBS)


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
        ({"base": StandardScaler()}, TypeError, "base must be a clusterer"),
        ({"base": LogisticRegression()}, TypeError, "base must be a clusterer"),
        ({"base": dc.SEC()}, TypeError, "base must be a clusterer"),
        ({"predict_unsampled": "no"}, TypeError, "predict_unsampled must be True or False"),
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


def test_bit_equal_for_any_group_size(small_blocks):
    expected = usenc().fit(BLOBS)
    for budget in ("1 kB", "60 kB"):
        with dask.config.set({"daskcluster.memory-budget": budget}):
            np.testing.assert_array_equal(usenc().fit(CHUNKED).base_labels_.compute(), expected.base_labels_)


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


@pytest.mark.parametrize("when", [3, *slowly(0, 6)])
def test_a_killed_run_goes_on_at_the_first_unfinished_base_clustering(make, when, tmp_path, small_blocks, monkeypatch):
    expected = make().fit(BLOBS).labels_
    store = tmp_path / "run"
    real = Products.rows
    held: list[str] = []

    def rows(self: Any, name: str, *arguments: Any) -> Any:
        if self.named and name.endswith("-labels") and not (store / name).exists():
            held.append(name)
            if len(held) == when + 1:
                raise KeyboardInterrupt
        return real(self, name, *arguments)

    monkeypatch.setattr(Products, "rows", rows)
    with dask.config.set({"daskcluster.memory-budget": "1 kB"}), pytest.raises(KeyboardInterrupt):
        make(storage=store).fit(BLOBS)
    monkeypatch.setattr(Products, "rows", real)
    made: list[Any] = []
    for module, name in ((spectral_members, "_begin"), (fitted_members, "_fit_one")):
        function = getattr(module, name)

        def counted(*arguments: Any, function: Any = function, **more: Any) -> Any:
            made.append(function)
            return function(*arguments, **more)

        monkeypatch.setattr(module, name, counted)
    # With the same budget: graphs whose labels were made together, are made together again.
    with dask.config.set({"daskcluster.memory-budget": "1 kB"}):
        model = make(storage=store).fit(BLOBS)
    np.testing.assert_array_equal(model.labels_, expected)
    assert len(made) == max(0, (4 if make is usenc else 5) - when)  # graphs, or clusterings
    made.clear()
    # Killed once more, after the labels and before what they were made from was removed.
    for left in (".edges-000", "..edges-001.growing", ".group-000.parts", ".base-000.inner"):
        (store / left).mkdir()
    np.testing.assert_array_equal(make(storage=store).fit(CHUNKED).labels_.compute(), expected)
    assert not made
    assert (
        not list(store.glob(".*edges*")) + list(store.glob(".group*"))
        if make is usenc
        else not list(store.glob(".base*"))
    )
    with pytest.raises(dc.StorageMismatchError):
        make(storage=store, n_base_clusterings=6).fit(BLOBS)
    with pytest.raises(dc.StorageMismatchError):
        make(storage=store).fit(BLOBS + 1)


def partial_labels() -> np.ndarray:
    y = np.full(600, -1)
    y[::20] = TRUTH[::20]
    return y


def test_products_of_other_constraints_are_refused(tmp_path):
    y, other = partial_labels(), partial_labels()
    other[0] = other[0] + 1
    model = guided(base=dc.FastCSC(n_representatives=40), n_base_clusterings=1, storage=tmp_path / "run")
    model.fit(BLOBS, y)
    path = str(tmp_path / "y.zarr")
    array = zarr.create_array(path, data=y, chunks=(70,))
    same = (y.astype(np.int32), np.where(y < 0, np.nan, y), da.from_array(y, chunks=70), path)
    for given in same:
        model.fit(BLOBS, given)
        model.fit(BLOBS, constraints=dc.Constraints.from_labels(given))
    array[:] = other
    changed = (other, da.from_array(other, chunks=70), path, None)
    for given in changed:
        with pytest.raises(dc.StorageMismatchError, match="other data"):
            model.fit(BLOBS, given)
    for constraints in (
        *(dc.Constraints.from_labels(given) for given in changed[:3]),
        dc.Constraints.from_labels(y, weight=0.5),
        dc.Constraints.from_pairs([(0, 1)]),
    ):
        with pytest.raises(dc.StorageMismatchError, match="other data"):
            model.fit(BLOBS, constraints=constraints)


def test_labels_that_the_base_ignores_do_not_count(tmp_path):
    model = ensemble(n_base_clusterings=2, storage=tmp_path / "run")
    expected = model.fit(BLOBS).labels_
    for y in (TRUTH, np.zeros(3), "no such path"):
        np.testing.assert_array_equal(model.fit(BLOBS, y).labels_, expected)


def test_products_of_another_base_are_refused(tmp_path):
    init = np.random.default_rng(0).normal(size=(3, 500))  # too large for its text to show all of it
    other = init.copy()
    other[1, 250] += 1

    def model(base: Any, **more: Any) -> dc.Ensemble:
        return ensemble(base=base, n_base_clusterings=1, k_range=(3, 3), storage=tmp_path / "run", **more)

    X = np.repeat(BLOBS, 250, axis=1)
    model(InMemoryKMeans(init=init, n_init=1)).fit(X)
    model(InMemoryKMeans(init=init.copy(), n_init=1, n_clusters=5, random_state=7)).fit(X)  # these are the ensemble's
    for base in (InMemoryKMeans(init=other, n_init=1), InMemoryKMeans(init=init, n_init=2), dc.KMeans(init=init)):
        with pytest.raises(dc.StorageMismatchError, match=r"other parameters .base="):
            model(base).fit(X)
    with pytest.raises(dc.StorageMismatchError, match=r"other parameters .consensus="):
        model(InMemoryKMeans(init=init, n_init=1), consensus=dc.BipartiteCut(n_init=5)).fit(X)


BASES = [dc.KMeans(), dc.FastCSC(n_representatives=40), dc.USPEC(n_representatives=40)]


@pytest.mark.parametrize("base", BASES, ids=str)
@pytest.mark.parametrize(
    "unsampled", [*slowly({}), {"sample_rate": 0.5, "predict_unsampled": True}], ids=["all", "sampled"]
)
def test_a_resumed_ensemble_labels_new_rows(base, unsampled, tmp_path):
    model = ensemble(base=base, n_base_clusterings=2, storage=tmp_path / "run", **unsampled)
    labels = model.fit(BLOBS).labels_
    points = model.transform(BLOBS[::7])
    for _ in range(2):
        model = clone(model).fit(BLOBS)
        np.testing.assert_array_equal(model.predict(BLOBS), labels)
        np.testing.assert_array_equal(model.transform(BLOBS[::7]), points)
    model.save(tmp_path / "model.zarr")
    np.testing.assert_array_equal(dc.load_model(tmp_path / "model.zarr").predict(BLOBS), labels)


def test_models_of_other_packages_are_not_kept(tmp_path):
    model = ensemble(base=InMemoryKMeans(n_init=1), n_base_clusterings=2, storage=tmp_path / "run").fit(BLOBS)
    np.testing.assert_array_equal(model.predict(BLOBS), model.labels_)
    model = clone(model).fit(BLOBS)
    for twin in (model, pickle.loads(pickle.dumps(model))):
        assert not hasattr(twin, "predict")
        with pytest.raises(AttributeError, match="keeps only the labels of a KMeans; its fitted models were not kept"):
            twin.predict(BLOBS)


def test_stored_base_labels_are_small(tmp_path):
    for number, base in enumerate((dc.KMeans(), InMemoryKMeans(n_init=1))):
        model = ensemble(base=base, n_base_clusterings=1, storage=tmp_path / str(number)).fit(BLOBS)
        assert zarr.open_group(tmp_path / str(number) / "base-000-labels")["rows"].dtype == np.int8
        assert model.base_labels_.dtype == np.int32


@pytest.mark.parametrize(
    ("base", "consensus"),
    [(dc.KMeans(), dc.ISEC()), (dc.FastCSPML(), None), (AgglomerativeClustering(), None)],
    ids=["consensus", "own", "foreign"],
)
def test_where_nothing_predicts_there_is_no_predict(base, consensus):
    model = ensemble(base=base, consensus=consensus, n_base_clusterings=1)
    for _ in range(2):
        assert not any(hasattr(model, name) for name in ("predict", "transform", "fit_transform"))
        with pytest.raises(AttributeError, match=r"this Ensemble cannot label new rows: its (base|consensus)"):
            model.fit_transform(BLOBS)
        assert hasattr(model, "fit_predict")
        model.fit(BLOBS)


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
