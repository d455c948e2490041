"""BipartiteCut, SEC and ISEC through their public interface."""

from __future__ import annotations

import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score as ari

import daskcluster as dc
import daskcluster.ensemble.sec as sec_module
from tests.estimators.cases import CASES
from tests.reference import ecpcs, ensemble, isec, kcc, sec
from tests.slow import slowly

BLOCK_ROWS = 64
#: The consensus functions of the list, and a variant.
MODELS = {case.id: case.make for case in CASES if case.consensus}
MODELS["EAC"] = lambda **more: dc.EAC(**{"n_clusters": 3} | more)
MODELS["ISEC-Z"] = lambda **more: MODELS["ISEC"](partition="Z", **more)
PREDICTING = [case.id for case in CASES if case.consensus and case.predicts]


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
    if getattr(model, "n_components", None) is None:  # else missing labels count as zeros, see below
        assert ari(truth[labelled], model.labels_[labelled]) > 0.85
    assert np.array_equal(model.labels_ < 0, ~labelled)
    assert model.agreement_ == pytest.approx(ensemble.agreement(labels, model.labels_), rel=1e-6, nan_ok=True)


def test_agreement_by_hand():
    # The base clusters are {0, 1, 2}, {3, 4} and {0, 1}, {2, 3, 4}; the consensus keeps the second pair whole.
    base = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1]])
    model = dc.SEC(2, random_state=0).fit(base)
    assert model.labels_.tolist() == [0, 0, 1, 1, 1]
    assert model.agreement_ == pytest.approx([(2 / 3 + 1) / 2, (2 / 3 + 1) / 2, (1 / 3 + 1) / 2, 1, 1])


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("theta", [0.2, 1.0])
def test_local_weights_agree_with_the_slow_version(missing, theta):
    labels, _ = draw(2, n_rows=120, n_columns=5, noise=0.4, missing=missing)
    labels[:, 4] = np.random.default_rng(0).integers(6, size=120)  # a base clustering of noise
    model = dc.BipartiteCut(3, weights="local", theta=theta, random_state=0).fit(labels)
    expected = ensemble.local_cut(labels, theta, 3)
    rows = model.transform(labels)
    assert rows @ rows.T == pytest.approx(expected @ expected.T, abs=1e-5)


def test_local_weights_outvote_base_clusterings_of_noise():
    """Three of truth, with a tenth of noise, against twelve of nothing but noise."""
    rng = np.random.default_rng(0)
    good, truth = draw(5, n_rows=600, n_columns=3, noise=0.1)
    labels = np.concatenate([good, rng.integers(6, size=(600, 12))], axis=1)
    plain, local = (
        ari(truth, dc.BipartiteCut(3, weights=weights, random_state=0).fit_predict(labels))
        for weights in ("none", "local")
    )
    assert local > max(0.9, plain)


def test_weights_of_the_cut_go_where_they_act():
    labels, _ = draw(6, missing=0.1)
    plain = fit(dc.BipartiteCut(3, random_state=0), labels)
    other = fit(dc.BipartiteCut(3, theta=7.0, random_state=0), labels)
    np.testing.assert_array_equal(plain.transform(labels), other.transform(labels))
    assert [stage.name for stage in plain.plan(labels).stages][1] == "transfer cut"
    local = dc.BipartiteCut(3, weights="local", random_state=0)
    assert [stage.name for stage in local.plan(labels).stages][1] == "local weights"


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


def cost(points: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> float:
    """Weighted sum of squared distances to the weighted means."""
    total = 0.0
    for k in set(labels.tolist()):
        inside = labels == k
        mean = np.average(points[inside], axis=0, weights=weights[inside])
        total += (weights[inside] * ((points[inside] - mean) ** 2).sum(axis=1)).sum()
    return total


@pytest.mark.parametrize("missing", [0.0, *slowly(0.3), 0.6])
@pytest.mark.parametrize(("n_components", "bound"), [(24, 1.06), (100, 1.02), (400, 1.005)])
def test_secrp_costs_little_more_than_the_rows_without_projection(n_components, bound, missing):
    """Against k-means on the dense rows of Algorithm 2, b/w with zeros for missing labels, with the weights w."""
    labels, _ = draw(1, n_columns=16, noise=0.4, missing=missing)
    w = sec.co_association(labels).sum(axis=1)
    assert (w > 0).all()
    points = sec.incidence(labels) / w[:, None]
    best = cost(points, w, KMeans(3, n_init=10, random_state=0).fit(points, sample_weight=w).labels_)
    assert cost(points, w, np.zeros(200, int)) > 1.1 * best
    for seed in range(3):
        model = dc.SEC(3, n_components=n_components, n_init=4, random_state=seed).fit(labels)
        assert cost(points, w, model.labels_) <= bound * best


def uneven(seed):
    """Base clusterings of clusters from large to small: the weights w differ by a factor of 3 and more."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, size=200, p=[0.6, 0.25, 0.1, 0.05])
    return np.stack([np.where(rng.random(200) < 0.35, rng.integers(4, size=200), truth) for _ in range(8)], axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_centers_of_secrp_are_weighted_means(seed):
    """By the distances to them: sum_i w_i (|p_i - m_j|^2 - |p_i - m_k|^2) = w(k) |m_k - m_j|^2 over a cluster k."""
    labels = uneven(seed)
    w = sec.co_association(labels).sum(axis=1)
    assert w.max() > 3 * w.min()
    model = dc.SEC(4, n_components=24, n_init=3, tol=1e-12, random_state=seed).fit(labels)
    sqdist = (w.mean() * model.transform(labels)) ** 2  # in units of the centres
    between = ((model.cluster_centers_[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    for k in range(4):
        inside = model.labels_ == k
        further = w[inside] @ (sqdist[inside] - sqdist[inside, k : k + 1])
        assert further == pytest.approx(w[inside].sum() * between[k], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_starts_of_secrp_have_weight(seed):
    """Where the sample is all rows, the start has come to rest under their weights: one pass finds nothing to do."""
    model = dc.SEC(4, n_components=24, n_init=3, tol=1e-9, random_state=seed).fit(uneven(seed))
    assert model.n_iter_ == 1


@pytest.mark.parametrize(("n_columns", "dtype"), [(8, np.int8), (130, np.int16)])
def test_secrp_keeps_its_projected_rows(tmp_path, monkeypatch, n_columns, dtype):
    """Rows of rd small integers, in a named store too: a fit that was stopped in its passes does not project again."""
    labels = np.tile(uneven(0), (1, 17))[:, :n_columns]
    plain = dc.SEC(4, n_components=24, n_init=3, random_state=0).fit(labels)
    again = {"n_components": 24, "n_init": 3, "storage": tmp_path / "store"}
    with monkeypatch.context() as stopped:
        stopped.setattr(sec_module, "lloyd_projected", lambda *given, **options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            dc.SEC(4, **again, random_state=0).fit(labels)
    kept = zarr.open_group(tmp_path / "store" / "projected", mode="r")
    (rows,) = (array for _, array in kept.arrays())
    assert (rows.shape, rows.dtype) == ((200, 24), dtype)
    monkeypatch.setattr(sec_module, "find_projected_start", lambda *given: 1 / 0)
    continued = dc.SEC(4, **again, random_state=0).fit(labels)
    assert np.array_equal(continued.labels_, plain.labels_)
    assert np.array_equal(continued.cluster_centers_, plain.cluster_centers_)


UTILITIES = pytest.mark.parametrize("utility", ["categorical", "entropy", "cosine", "lp"])


@UTILITIES
def test_kcc_says_its_objective_and_distances(utility):
    labels, _ = draw(3, noise=0.5, missing=0.3)
    labels[(labels < 0).all(axis=1), 0] = 0
    model = dc.KCC(4, utility=utility, p=3.0, random_state=0).fit(labels)
    assert model.objective_ == pytest.approx(kcc.objective(labels, model.labels_, utility, 3.0), rel=1e-9)
    assert model.objective_ <= model.history_[-1] * (1 + 1e-9)
    assert model.cluster_centers_ == pytest.approx(kcc.shares(labels, model.labels_, 4))
    expected = kcc.distances(labels, model.cluster_centers_, utility, 3.0)
    near = np.isfinite(expected)
    assert model.transform(labels)[near] == pytest.approx(expected[near], abs=1e-4)
    assert expected[np.arange(200), model.labels_] == pytest.approx(expected.min(axis=1), abs=1e-4)


def test_kcc_by_the_categorical_utility_is_k_means_on_the_dense_matrix():
    for seed in range(3):
        labels, _ = draw(seed, n_rows=150, n_columns=6, noise=0.7)
        model = dc.KCC(5, utility="categorical", n_init=60, random_state=seed).fit(labels)
        best = KMeans(5, n_init=10, random_state=seed).fit(sec.incidence(labels)).inertia_
        assert model.objective_ <= best * 1.01


def test_kcc_finds_the_best_of_all_partitions_in_two():
    labels, _ = draw(5, n_rows=9, n_columns=5, noise=0.5)
    for utility in ("categorical", "entropy", "cosine", "lp"):
        every = (np.array([0, *(number >> bit & 1 for bit in range(8))]) for number in range(1, 2**8))
        best = min(kcc.objective(labels, partition, utility, 5.0) for partition in every)
        assert dc.KCC(2, utility=utility, random_state=0).fit(labels).objective_ == pytest.approx(best)


def test_ecpcs_votes_as_the_slow_version():
    labels, _ = draw(4, noise=0.5, missing=0.2)
    labels[(labels < 0).all(axis=1), 0] = 0
    model = fit(dc.ECPCS(3, random_state=0), labels)
    expected = ecpcs.shares(labels, model.meta_clusters_)
    assert model.transform(labels) == pytest.approx(expected)
    chosen = np.take_along_axis(expected, model.labels_[:, None], axis=1)[:, 0]
    assert chosen == pytest.approx(expected.max(axis=1))


def test_ecpcs_leaves_out_meta_clusters_that_win_no_row():
    labels = np.repeat(np.arange(60)[:, None] // 20, 4, axis=1)
    model = fit(dc.ECPCS(7, random_state=0), labels)
    assert model.n_clusters_ == 3
    assert set(model.meta_clusters_) == {-1, 0, 1, 2}
    np.testing.assert_array_equal(model.labels_, labels[:, 0])
    assert model.transform(labels).shape == (60, 3)


@pytest.mark.parametrize("partition", ["H", "Z"])
def test_isec_agrees_with_the_slow_version(partition):
    labels, _ = draw(3, n_rows=60, n_columns=10, noise=0.4)
    outer, Z, errors = isec.solve(sec.co_association(labels) / 10, 3, 0.1, 0.01, 6)
    assert (Z < 0).mean() > 0.3
    rows = np.linalg.eigh(outer)[1][:, -3:]
    if partition == "Z":
        affinity = (np.abs(Z) + np.abs(Z.T)) / 2
        rows = isec.cut(affinity, affinity.sum(axis=1), 3)
    same = (labels[:, None] == labels).all(axis=2)
    rows = same @ rows  # rows with equal labels are one
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    model = dc.ISEC(3, partition=partition, max_iter=6, tol=0.0, random_state=0).fit(labels)
    assert model.history_ == pytest.approx(errors, rel=1e-5)
    assert model.embedding_ @ model.embedding_.T == pytest.approx(rows @ rows.T, abs=1e-6)


def test_isec_converges_as_in_figure_1():
    model = dc.ISEC(3, random_state=0).fit(draw()[0])
    assert model.n_iter_ == len(model.history_) <= 20
    assert model.history_[-1] < 1e-6
    assert model.embedding_.shape == (200, 3)


def test_isec_starts():
    """H stays near a spectral start; a random one depends on the seed, and on nothing else."""
    labels, truth = draw(n_rows=80)
    spectral = [dc.ISEC(3, random_state=seed).fit(labels) for seed in (0, 1)]
    np.testing.assert_array_equal(spectral[0].embedding_, spectral[1].embedding_)
    assert dc.metrics.adjusted_rand_index(truth, spectral[0].labels_) > 0.9
    one, again, other = (dc.ISEC(3, init="random", random_state=seed).fit(labels) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.embedding_, again.embedding_)
    assert np.abs(one.embedding_ @ one.embedding_.T - other.embedding_ @ other.embedding_.T).max() > 0.1
    assert one.history_[-1] < 1e-6
    with pytest.raises(ValueError, match="init must be one of"):
        dc.ISEC(3, init="S").fit(labels)


# -- forms of input ----------------------------------------------------------------------------------------------------


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
        model = make(n_clusters=5).fit(labels)
    assert model.n_clusters_ == 3
    assert ari(model.labels_, labels[:, 0]) == 1


def test_nothing_but_constant_base_clusterings(make):
    with pytest.warns(dc.FewerClustersWarning, match="found 1 clusters"):
        model = make(n_clusters=2).fit(np.full((70, 4), 3))
    assert set(model.labels_) == {0}
    assert (model.agreement_ == 1).all()


def test_one_cluster(make):
    model = make(n_clusters=1).fit(draw()[0])
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
        make(n_clusters=300).fit(labels)
    few = np.full((10, 2), -1)
    few[:2] = 0
    with pytest.raises(ValueError, match="n_clusters=3 and 2 such rows"):
        make(n_clusters=3).fit(few)
    with pytest.raises(ValueError, match="2D"):
        make().fit(labels[:, 0])
    with pytest.raises(ValueError, match="n_clusters"):
        make(n_clusters=0).fit(labels)


@pytest.mark.parametrize(
    ("model", "error", "match"),
    [
        (dc.SEC(2, n_components=0), ValueError, "n_components"),
        (dc.SEC(2, tol=-1), ValueError, "tol"),
        (dc.SEC(2).set_params(n_init=1.5), TypeError, "n_init"),
        (dc.BipartiteCut(2, max_iter=0), ValueError, "max_iter"),
        (dc.BipartiteCut(2, weights="global"), ValueError, "weights must be one of 'none', 'local', got 'global'"),
        (dc.BipartiteCut(2, theta=0), ValueError, "theta must be above 0, got 0"),
        (dc.BipartiteCut(2, theta=-1), ValueError, "theta"),
        (dc.BipartiteCut(2).set_params(theta="x"), TypeError, "theta"),
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
    few = np.full((1000, 3), -1)
    few[::100] = 0
    assert fit(dc.ISEC(1), few).n_clusters_ == 1  # rows without labels do not count
    few[::2] = 0
    with pytest.raises(MemoryError, match=r"ISEC on 500 rows needs .* GiB.*give n_representatives, at most \d+ here"):
        dc.ISEC(1).fit(few)
    labels = np.arange(800)[:, None] // 2 * np.array([[1, 1]])
    with pytest.raises(MemoryError, match="bipartite cut of 800 base clusters"):
        dc.BipartiteCut(3).fit(labels)
    with pytest.raises(MemoryError, match="local weights of 800 base clusters"):
        dc.BipartiteCut(3, weights="local").fit(labels)
    with pytest.raises(MemoryError, match="connected triples of 800 base clusters"):
        dc.EAC(3, weights="wct").fit(labels)
    with pytest.raises(MemoryError, match=r"ECPCS of 800 base clusters needs .* GiB, more than half"):
        dc.ECPCS(3).fit(labels)
    assert fit(dc.SEC(3, random_state=0, n_init=1), labels).n_clusters_ == 3  # without the cut's start


# -- new rows, saving --------------------------------------------------------------------------------------------------


def test_labels_that_the_fit_has_not_seen(make_predicting):
    labels, _ = draw(12, missing=0.1)
    model = fit(make_predicting(), labels)
    unknown = labels.copy()
    unknown[:, :2] = 77
    assert ari(model.predict(unknown), model.labels_) > 0.7
    assert set(model.predict(np.full((5, 8), 77))) == {-1}
    assert np.isnan(model.transform(np.full((5, 8), 77))).all()
    with pytest.raises(ValueError, match="expecting 8 features"):
        model.predict(labels[:, :5])


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
        getattr(make(n_clusters=5), method)(labels)
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


@pytest.mark.filterwarnings("ignore:BipartiteCut found")
def test_clusterings_in_rows_are_warned_of():
    labels = np.tile(np.arange(60) % 3, (8, 1))
    for X in (labels, da.from_array(labels, chunks=(4, 60))):
        with pytest.warns(UserWarning, match="X has 8 rows and 60 columns, a base clustering each: is it transposed"):
            dc.BipartiteCut(3, random_state=0).fit(X)
