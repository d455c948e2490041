"""FastCSC, CSPML and FastCSPML through their public interface."""

from __future__ import annotations

import inspect
import logging
import pickle
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine, make_blobs
from sklearn.metrics import normalized_mutual_info_score as nmi
from sklearn.preprocessing import StandardScaler

import daskcluster as dc

BLOCK_ROWS = 512
BLOBS, TRUTH = make_blobs(600, centers=[[0, 0], [5, 5], [0, 6]], cluster_std=0.4, random_state=0)
DIGITS = load_digits()


def partial_labels(y: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    known = np.full(len(y), -1)
    rows = np.random.default_rng(seed).choice(len(y), count, replace=False)
    known[rows] = y[rows]
    return known


def rings(n: int = 4000, chunks: int = 700) -> tuple[da.Array, np.ndarray]:
    X, y = dc.datasets.make_concentric_circles(n, chunks=chunks, random_state=0)
    return X, y.compute()


# -- FastCSC: quality ----------------------------------------------------------------------------------------


def test_more_labels_are_better():
    scores = []
    for count in (0, 50, 200, 800):
        found = []
        for seed in range(3):
            model = dc.FastCSC(10, n_representatives=200, random_state=seed)
            known = partial_labels(DIGITS.target, count, seed)
            found.append(nmi(DIGITS.target, model.fit(DIGITS.data, known if count else None).labels_))
        scores.append(np.mean(found))
    assert scores[0] > 0.7
    assert scores == sorted(scores)
    assert scores[-1] > 0.9


def test_labels_decide_what_the_features_leave_open():
    """A uniform square has no clusters; labels cut it either way."""
    X = np.random.default_rng(0).random((3000, 2))
    for column in (0, 1):
        y = (X[:, column] > 0.5).astype(int)
        model = dc.FastCSC(2, n_representatives=100, random_state=0).fit(X, partial_labels(y, 200))
        assert nmi(y, model.labels_) > 0.7


def test_pairs_decide_too():
    X = np.random.default_rng(0).random((3000, 2))
    y = (X[:, 0] > 0.5).astype(int)
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, 3000, (2000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    known = dc.Constraints.from_pairs(pairs[same], pairs[~same])
    model = dc.FastCSC(2, n_representatives=100, random_state=0).fit(X, constraints=known)
    assert nmi(y, model.labels_) > 0.7
    kept = known.satisfaction(model.labels_)
    assert min(kept.must_link, kept.cannot_link) > 0.85


def test_soft_weights_are_weighed_up():
    X = np.random.default_rng(0).random((2000, 2))
    across, along = (partial_labels((X[:, column] > 0.5).astype(int), 300, column) for column in (0, 1))
    scores = []
    for weight in (0.1, 1.0):
        Q = [dc.Constraints.from_labels(known).to_sparse().todense() for known in (across, along)]
        must, cannot = ([np.argwhere(np.triu(sign * q) > 0) for q in Q] for sign in (1, -1))
        weights = [
            np.concatenate([np.full(len(links[0]), weight), np.full(len(links[1]), 0.3)]) for links in (must, cannot)
        ]
        known = dc.Constraints.from_pairs(
            np.concatenate(must), np.concatenate(cannot), must_link_weight=weights[0], cannot_link_weight=weights[1]
        )
        labels = dc.FastCSC(2, n_representatives=100, random_state=0).fit(X, constraints=known).labels_
        scores.append(nmi((X[:, 0] > 0.5).astype(int), labels) - nmi((X[:, 1] > 0.5).astype(int), labels))
    assert scores[0] < -0.3
    assert scores[1] > 0.3


def test_without_constraints_it_is_landmark_spectral_clustering(caplog):
    X, y = DIGITS.data, DIGITS.target
    with caplog.at_level(logging.INFO, logger="daskcluster"):
        plain = dc.FastCSC(10, random_state=0).fit(X)
    assert "no constraints" in caplog.text
    assert nmi(y, plain.labels_) > 0.7
    with pytest.warns(UserWarning, match="FastCSC: no constraints; the result is that of the unconstrained method"):
        none = dc.FastCSC(10, random_state=0).fit(X, np.full(len(X), -1))
    np.testing.assert_array_equal(plain.labels_, none.labels_)
    with pytest.warns(UserWarning, match="no constraints"):
        none = dc.FastCSC(10, random_state=0).fit(X, constraints=dc.Constraints.from_pairs())
    np.testing.assert_array_equal(plain.labels_, none.labels_)


def test_alpha_and_sample_rate():
    X, y = rings(40_000, 7000)
    known = partial_labels(y, 100)
    whole = dc.FastCSC(3, sample_rate=1.0, random_state=0).fit(X, known)
    sampled = dc.FastCSC(3, sample_rate=0.05, random_state=0).fit(X, known)
    assert nmi(whole.labels_, sampled.labels_) > 0.99
    np.testing.assert_array_equal(whole.eigenvalues_, sampled.eigenvalues_)
    np.testing.assert_array_equal(np.unique(np.asarray(sampled.labels_), return_index=True)[1].argsort(), [0, 1, 2])
    trusting = dc.FastCSC(3, alpha=100.0, random_state=0).fit(X, known)
    assert (trusting.eigenvalues_ > whole.eigenvalues_).all()


# -- FastCSC: one result for any form of the input -----------------------------------------------------------


def test_labels_and_their_pairs_agree(small_blocks):
    X, y = rings()
    known = dc.Constraints.from_labels(partial_labels(y, 60))
    Q = known.to_sparse().todense()
    pairs = dc.Constraints.from_pairs(np.argwhere(Q > 0), np.argwhere(Q < 0), n_samples=len(X))
    one, other = (dc.FastCSC(3, n_representatives=150, random_state=0).fit(X, constraints=c) for c in (known, pairs))
    # The rings are components of the graph: two eigenvalues are 0 but for rounding, the third has all its digits.
    np.testing.assert_allclose(one.eigenvalues_[:2], 0, atol=1e-10)
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-8, atol=1e-10)
    assert dc.metrics.adjusted_rand_index(one.labels_, other.labels_) > 0.999


def test_names_of_labels_do_not_matter():
    X, y = rings()
    known = partial_labels(y, 60)
    renamed = np.where(known < 0, -1, 1000 - 7 * known)
    one, other = (dc.FastCSC(3, random_state=0).fit(X, labels) for labels in (known, renamed))
    np.testing.assert_array_equal(one.labels_, other.labels_)


# -- FastCSC: what odd input gets ----------------------------------------------------------------------------


def test_three_rows():
    known = dc.Constraints.from_pairs(cannot_link=[(0, 2), (1, 2)])
    model = dc.FastCSC(2, random_state=0).fit([[0.0], [1.0], [2.0]], constraints=known)
    assert model.labels_.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("must", "cannot"),
    [
        ([(0, 1), (2, 300), (5, 400)], []),
        ([], [(0, 1), (2, 300), (5, 400)]),
        ([(0, 1), (1, 2)], [(0, 2)]),
        ([(0, 1)], [(0, 1)]),
    ],
    ids=["only must-links", "only cannot-links", "a contradictory chain", "a pair of both kinds"],
)
def test_odd_pairs_get_an_answer(must, cannot):
    model = dc.FastCSC(3, n_representatives=60, random_state=0)
    model.fit(BLOBS, constraints=dc.Constraints.from_pairs(must, cannot))
    assert set(model.labels_) == {0, 1, 2}
    assert np.isfinite(model.transform(BLOBS)).all()


def test_odd_labels_get_an_answer():
    model = dc.FastCSC(3, n_representatives=60, random_state=0)
    one = np.full(600, -1)
    one[5] = 0
    for known in (one, np.zeros(600, int), np.arange(600) % 50, 10**9 * TRUTH, TRUTH, np.where(TRUTH == 1, 0, -1)):
        assert set(model.fit(BLOBS, known).labels_) <= {0, 1, 2}
    assert nmi(TRUTH, model.fit(BLOBS, TRUTH).labels_) == 1
    assert nmi(TRUTH, model.fit(BLOBS, TRUTH.astype(float)).labels_) == 1
    plain = dc.FastCSC(3, n_representatives=60, random_state=0).fit(BLOBS)
    np.testing.assert_array_equal(model.fit(BLOBS, one).labels_, plain.labels_)  # one label makes no pair


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"y": TRUTH[:-1]}, ValueError, "y must have one entry for each of the 600 rows of X, got 599"),
        ({"y": np.where(TRUTH == 0, -7, 1)}, ValueError, "got -7 at row"),
        ({"y": TRUTH + 0.5}, ValueError, "y must hold whole numbers"),
        ({"y": TRUTH.astype(str)}, ValueError, "y must hold whole numbers"),
        ({"constraints": dc.Constraints.from_pairs([(0, 600)])}, ValueError, r"rows 0 to 599, got the pair \(0, 600\)"),
        (
            {"constraints": dc.Constraints.from_pairs([(0, 1)], n_samples=599)},
            ValueError,
            "constraints must have been made for the 600 rows of X, got n_samples=599",
        ),
        (
            {"y": dc.Constraints.from_pairs([(0, 1)])},
            TypeError,
            r"y must be partial labels, got Constraints: give them by name, fit\(X, constraints=...\)",
        ),
        ({"constraints": [(0, 1)]}, TypeError, "constraints must be made by Constraints.from_labels or from_pairs"),
        ({"y": TRUTH, "constraints": dc.Constraints.from_pairs([(0, 1)])}, ValueError, "give one of them"),
    ],
    ids=lambda value: str(value)[:40],
)
@pytest.mark.parametrize("name", ["FastCSC", "CSPML", "FastCSPML"])
def test_constraints_that_do_not_fit_are_refused(name, arguments, error, message):
    with pytest.raises(error, match=message):
        getattr(dc, name)(3).fit(BLOBS, **arguments)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"alpha": -1.0}, ValueError, "alpha must be a number >= 0"),
        ({"alpha": "5"}, TypeError, "alpha must be a number"),
        ({"sample_rate": 0.0}, ValueError, "sample_rate must be above 0 and at most 1, got 0.0"),
        ({"sample_rate": 1.5}, ValueError, "sample_rate must be above 0 and at most 1, got 1.5"),
        ({"n_representatives": 0}, ValueError, "n_representatives must be an integer >= 1"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be an integer >= 1"),
        ({"selection": "best"}, ValueError, "selection must be one of"),
        ({"neighbors": "some"}, ValueError, "neighbors must be one of"),
        ({"metric": "manhattan"}, ValueError, "metric must be one of"),
        ({"n_clusters": 601}, ValueError, "n_clusters must be at most the number of rows"),
    ],
    ids=str,
)
def test_parameters_are_checked(parameters, error, message):
    with pytest.raises(error, match=message):
        dc.FastCSC(**{"n_clusters": 3} | parameters).fit(BLOBS)


def test_missing_rows_have_no_say(small_blocks):
    X, y = rings()
    X = X.compute()
    X[::10] = np.nan
    known = partial_labels(y, 500)
    wrong = known.copy()
    wrong[::10] = 2 - wrong[::10].clip(0)  # labels of rows that are missing
    model = dc.FastCSC(3, n_representatives=150, missing="label", random_state=0)
    labels = model.fit(X, known).labels_
    assert ((labels == -1) == (np.arange(len(X)) % 10 == 0)).all()
    np.testing.assert_array_equal(clone(model).fit(X, wrong).labels_, labels)
    pairs = dc.Constraints.from_pairs([(0, 1), (10, 11), (1, 2)], [(20, 5)])
    fewer = dc.Constraints.from_pairs([(1, 2)])
    one, other = (clone(model).fit(X, constraints=c).labels_ for c in (pairs, fewer))
    np.testing.assert_array_equal(one, other)
    kept = dc.Constraints.from_labels(known).satisfaction(labels)
    assert kept.n_must_link + kept.n_cannot_link < 500 * 499 // 2


def test_fewer_clusters_than_asked_for():
    with pytest.warns(dc.FewerClustersWarning, match="FastCSC found 2 clusters, not n_clusters=4"):
        model = dc.FastCSC(4, random_state=0).fit(np.repeat([[0.0], [1.0]], 20, axis=0), np.repeat([0, 1], 20))
    assert model.n_clusters_ == 2
    assert dc.FastCSC(1, random_state=0).fit(BLOBS, TRUTH).labels_.max() == 0
    with pytest.warns(dc.FewerClustersWarning):
        assert set(dc.FastCSC(2, random_state=0).fit(np.ones((5, 2)), [0, 0, 1, 1, -1]).labels_) == {0}


def test_every_row_labelled_many_times_over():
    X, y = rings(20_000)
    model = dc.FastCSC(3, random_state=0).fit(X, y)
    kept = dc.Constraints.from_labels(y).satisfaction(model.labels_)
    assert min(kept.must_link, kept.cannot_link) > 0.999


# -- FastCSC: an estimator -----------------------------------------------------------------------------------


def test_the_pinned_signature():
    parameters = inspect.signature(dc.FastCSC).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    pinned = {"n_clusters": 8, "n_representatives": 500, "n_neighbors": 3, "alpha": 5.0, "selection": "random"}
    assert defaults.items() >= pinned.items()
    assert [p.kind for p in parameters.values()][1:] == [inspect.Parameter.KEYWORD_ONLY] * (len(parameters) - 1)
    assert list(inspect.signature(dc.FastCSC.fit).parameters) == ["self", "X", "y", "constraints"]


def test_four_ways_to_the_labels():
    known = partial_labels(TRUTH, 50)
    model = dc.FastCSC(3, n_representatives=60, random_state=0)
    labels = model.fit(BLOBS, known).labels_
    again = clone(model)
    np.testing.assert_array_equal(again.fit_predict(BLOBS, known), labels)
    np.testing.assert_array_equal(again.fit_predict(BLOBS, constraints=dc.Constraints.from_labels(known)), labels)
    np.testing.assert_array_equal(model.predict(BLOBS), labels)
    np.testing.assert_array_equal(again.fit_transform(BLOBS, known), model.transform(BLOBS))
    np.testing.assert_allclose(np.linalg.norm(model.transform(BLOBS), axis=1), 1, rtol=1e-5)


def test_save_load_and_pickle(tmp_path):
    X, y = rings()
    model = dc.FastCSC(3, n_representatives=150, random_state=0).fit(X, da.from_array(partial_labels(y, 60), chunks=99))
    model.save(tmp_path / "model.zarr")
    new, _ = rings(1000)
    for twin in (dc.load_model(tmp_path / "model.zarr"), pickle.loads(pickle.dumps(model))):
        assert repr(twin) == repr(model)
        np.testing.assert_array_equal(twin.predict(new), model.predict(new))
        np.testing.assert_array_equal(twin.predict(X), model.labels_)


def test_a_named_store_continues_and_knows_its_constraints(tmp_path, monkeypatch):
    X, y = rings()
    known = partial_labels(y, 60)
    parameters = {"n_representatives": 150, "random_state": 0, "storage": tmp_path / "run"}
    first = dc.FastCSC(3, **parameters).fit(X, known)
    monkeypatch.setattr("daskcluster.constraints.cut.project_constraints", None)  # nothing is made again
    again = dc.FastCSC(3, **parameters).fit(X, da.from_array(known.astype(float), chunks=123))
    np.testing.assert_array_equal(again.labels_, first.labels_)
    other = known.copy()
    other[known >= 0] = 0
    for changed in ({"y": other}, {}, {"constraints": dc.Constraints.from_pairs([(0, 1)])}):
        with pytest.raises(
            dc.StorageMismatchError, match=r"made from other data.*the data are X, and y or constraints"
        ):
            dc.FastCSC(3, **parameters).fit(X, **changed)


def test_plan(small_blocks):
    X, _ = rings(20_000)
    plan = dc.FastCSC(3, n_representatives=150).plan(X)
    assert plan.method == "FastCSC"
    assert plan.input_passes == 2
    assert [stage.name for stage in plan.stages][3] == "constrained cut"
    assert plan.peak_bytes > 0


def test_stages_show(caplog):
    with caplog.at_level(logging.INFO, logger="daskcluster"):
        dc.FastCSC(3, n_representatives=60, random_state=0).fit(BLOBS, TRUTH)
    text = caplog.text
    for stage in (
        "check and sample",
        "representatives",
        "nearest representatives",
        "constrained cut",
        "discretize",
        "labels",
    ):
        assert f"{stage}: " in text


# -- FastCSC, CSPML and FastCSPML: what is said when constraints do nothing -----------------------------------


@pytest.mark.parametrize("name", ["FastCSC", "CSPML", "FastCSPML"])
@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
def test_the_warning_of_no_constraints_points_to_the_caller(name, method):
    model = getattr(dc, name)(3, random_state=0)
    if not hasattr(model, method):
        return
    with pytest.warns(UserWarning, match=f"{name}: no constraints") as said:
        getattr(model, method)(BLOBS, np.full(600, -1))
    assert [warning.filename for warning in said] == [__file__]


@pytest.mark.parametrize("name", ["FastCSC", "CSPML", "FastCSPML"])
@pytest.mark.parametrize("chunks", [None, 100])
def test_constraints_on_missing_rows_only_are_none(name, chunks, small_blocks):
    X = BLOBS.copy()
    X[:40] = np.inf
    rows = X if chunks is None else da.from_array(X, chunks=(chunks, 2))
    known = np.full(600, -1)
    known[:40] = TRUTH[:40]
    model = getattr(dc, name)(3, missing="label", random_state=0)
    plain = np.asarray(clone(model).fit(rows).labels_)
    for arguments in (
        {"y": known},
        {"constraints": dc.Constraints.from_pairs([(0, 1), (2, 300)], [(3, 5), (400, 7)])},
    ):
        with pytest.warns(UserWarning, match=f"{name}: no constraints; the result is that of the unconstrained method"):
            labels = clone(model).fit(rows, **arguments).labels_
        np.testing.assert_array_equal(labels, plain)
    known[100] = 0
    clone(model).set_params(n_clusters=2).fit(rows, np.where(np.arange(600) % 7 == 0, TRUTH, known))  # says nothing


def test_constraints_on_no_sampled_row():
    model = dc.FastCSPML(3, n_landmarks=20, random_state=0)
    plain = model.fit(BLOBS).labels_
    one = np.full(600, -1)
    one[[3, 9]] = [0, 1]
    for arguments in ({"y": one}, {"constraints": dc.Constraints.from_pairs([(3, 9)], [(10, 12)])}):
        with pytest.warns(UserWarning, match="FastCSPML: 0 of 20 sampled rows are constrained") as said:
            labels = model.fit_predict(BLOBS, **arguments)
        assert [warning.filename for warning in said] == [__file__]
        np.testing.assert_array_equal(labels, plain)
    model.fit(BLOBS, np.where(np.arange(600) % 3 == 0, TRUTH, -1))  # says nothing


def test_too_many_classes_are_refused_before_the_work(monkeypatch):
    monkeypatch.setattr("daskcluster.pipeline.scan.scan", None)
    X = np.random.default_rng(0).random((5000, 2))
    with pytest.raises(ValueError, match="y has 5000 classes, at most 4194 with 500 representatives"):
        dc.FastCSC(3).fit(X, np.arange(5000))


@pytest.mark.parametrize("name", ["FastCSC", "CSPML", "FastCSPML"])
def test_masked_labels_are_unknown(name):
    known = partial_labels(TRUTH, 200)
    masked = np.ma.array(np.where(known < 0, 7, known), mask=known < 0)
    expected = getattr(dc, name)(3, random_state=0).fit(BLOBS, known).labels_
    for y in (masked, da.from_array(masked, chunks=77)):
        np.testing.assert_array_equal(getattr(dc, name)(3, random_state=0).fit(BLOBS, y).labels_, expected)


# -- CSPML and FastCSPML -------------------------------------------------------------------------------------

LAYERED = {
    "CSPML": lambda **parameters: dc.CSPML(**{"n_clusters": 3, "random_state": 0} | parameters),
    "FastCSPML": lambda **parameters: dc.FastCSPML(
        **{"n_clusters": 3, "n_landmarks": 60, "random_state": 0} | parameters
    ),
}


@pytest.fixture(params=LAYERED)
def make(request: pytest.FixtureRequest) -> Any:
    return LAYERED[request.param]


def wine() -> tuple[np.ndarray, np.ndarray]:
    data = load_wine()
    return StandardScaler().fit_transform(data.data), data.target


def test_more_labels_are_better_in_layers(make):
    X, y = wine()
    scores = []
    for count in (0, 40, 100, 178):
        found = [
            dc.metrics.rand_index(
                y, make(random_state=seed, gamma=0.1).fit(X, partial_labels(y, count, seed) if count else None).labels_
            )
            for seed in range(3)
        ]
        scores.append(np.mean(found))
    assert scores[1] > 0.85
    assert scores[-1] > 0.97
    assert scores[3] > scores[1]


def test_layers_with_all_columns_agree():
    X, y = wine()
    known = partial_labels(y, 40)
    exact = dc.CSPML(3, gamma=0.1, random_state=0).fit(X, known)
    fast = dc.FastCSPML(3, n_landmarks=500, gamma=0.1, random_state=0).fit(X, known)
    np.testing.assert_allclose(fast.eigenvalues_, exact.eigenvalues_, rtol=1e-6)
    np.testing.assert_array_equal(fast.labels_, exact.labels_)
    np.testing.assert_array_equal(fast.landmarks_, X)


def test_layers_of_labels_and_of_their_pairs(make):
    X, y = wine()
    known = dc.Constraints.from_labels(partial_labels(y, 40))
    Q = known.to_sparse().todense()
    pairs = dc.Constraints.from_pairs(np.argwhere(Q > 0), np.argwhere(Q < 0))
    one, other = (make(gamma=0.1).fit(X, constraints=c) for c in (known, pairs))
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-7)
    np.testing.assert_array_equal(one.labels_, other.labels_)


def test_missing_rows_have_no_say_in_layers(make, small_blocks):
    X, y = rings(1000)
    X = 3 * X.compute()
    X[::10] = np.nan
    known = partial_labels(y, 300)
    wrong = known.copy()
    wrong[::10] = 2 - wrong[::10].clip(0)
    present = np.arange(1000) % 10 != 0
    labels = make(missing="label").fit(X, known).labels_
    np.testing.assert_array_equal(labels == -1, ~present)
    np.testing.assert_array_equal(make(missing="label").fit(X, wrong).labels_, labels)
    links = [(i, i + 1) for i in range(0, 999, 3)]
    fewer = [(i, j) for i, j in links if i % 10 and j % 10]
    one, other = (
        make(missing="label").fit(X, constraints=dc.Constraints.from_pairs(c, [(5, 6)])).labels_ for c in (links, fewer)
    )
    np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="X contains NaN at row 0, column 0"):
        make().fit(X)


@pytest.mark.filterwarnings("ignore:FastCSPML. 0 of 60 sampled rows are constrained:UserWarning")
def test_odd_constraints_get_an_answer_from_layers(make):
    one = np.full(600, -1)
    one[5] = 0
    for known in (one, np.zeros(600, int), np.arange(600) % 50, 10**9 * TRUTH, TRUTH, np.where(TRUTH == 1, 0, -1)):
        labels = make().fit(BLOBS, known).labels_
        assert set(labels) <= {0, 1, 2}
    for must, cannot in (([(0, 1)], []), ([], [(0, 1)]), ([(0, 1), (1, 2)], [(0, 2)]), ([(0, 1)], [(0, 1)])):
        made = dc.Constraints.from_pairs(must, cannot)
        assert set(make().fit(BLOBS, constraints=made).labels_) <= {0, 1, 2}
    with pytest.warns(UserWarning, match="no constraints; the result is that of the unconstrained method"):
        none = make().fit(BLOBS, np.full(600, -1)).labels_
    np.testing.assert_array_equal(none, make().fit(BLOBS).labels_)
    assert nmi(TRUTH, none) == 1
    assert nmi(TRUTH, make().fit(BLOBS, TRUTH).labels_) == 1
    known = dc.Constraints.from_pairs(cannot_link=[(0, 2), (1, 2)])
    assert make(n_clusters=2).fit([[0.0], [1.0], [2.0]], constraints=known).labels_.tolist() == [0, 0, 1]
    assert make(n_clusters=1).fit(BLOBS, TRUTH).labels_.max() == 0
    assert set(make(n_clusters=2).fit(np.ones((4, 2)), [0, 0, -1, 1]).labels_) <= {0, 1}


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"alpha": -1.0}, ValueError, "alpha must be a number >= 0"),
        ({"gamma": 0}, ValueError, "gamma must be above 0, got 0"),
        ({"gamma": "auto"}, TypeError, "gamma must be a number"),
        ({"n_init": 0}, ValueError, "n_init must be an integer >= 1"),
        ({"missing": "drop"}, ValueError, "missing must be one of"),
        ({"random_state": -1}, ValueError, "random_state must be an integer >= 0"),
        ({"n_clusters": 601}, ValueError, "n_clusters must be at most the number of rows"),
    ],
    ids=str,
)
def test_parameters_of_layers_are_checked(make, parameters, error, message):
    with pytest.raises(error, match=message):
        make(**parameters).fit(BLOBS)


def test_sizes_of_layers():
    with pytest.raises(ValueError, match="takes at most 12000 rows, got 12001; use FastCSPML"):
        dc.CSPML(2).fit(np.zeros((12_001, 1)))
    with pytest.raises(ValueError, match="n_landmarks must be an integer >= 1"):
        dc.FastCSPML(2, n_landmarks=0).fit(BLOBS)


def test_layers_are_saved_and_pickled(make, tmp_path):
    model = make().fit(da.from_array(BLOBS, chunks=(77, 2)), TRUTH)
    model.save(tmp_path / "model.zarr")
    for twin in (dc.load_model(tmp_path / "model.zarr"), pickle.loads(pickle.dumps(model))):
        assert repr(twin) == repr(model)
        assert not hasattr(twin, "labels_")
        np.testing.assert_array_equal(twin.cluster_centers_, model.cluster_centers_)
    np.testing.assert_array_equal(make().fit_predict(BLOBS, TRUTH), model.labels_)


def test_a_named_store_of_layers(make, tmp_path):
    first = make(storage=tmp_path / "run").fit(BLOBS, TRUTH)
    again = make(storage=tmp_path / "run").fit(da.from_array(BLOBS, chunks=(77, 2)), TRUTH)
    np.testing.assert_array_equal(again.labels_, first.labels_)
    np.testing.assert_array_equal(again.eigenvalues_, first.eigenvalues_)
    with pytest.raises(dc.StorageMismatchError, match="made from other data"):
        make(storage=tmp_path / "run").fit(BLOBS, TRUTH[::-1])


def test_plans_of_layers(make):
    plan = make().plan(BLOBS)
    assert [stage.name for stage in plan.stages] == ["check and sample", "embedding", "discretize", "labels"]
    assert plan.method in ("CSPML", "FastCSPML")
