"""Constraints of a few rows do no harm, and widths of affinities follow the rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs

import daskcluster as dc
from daskcluster.constraints.cut import n_directions
from daskcluster.constraints.embed import UNLINKED
from tests.slow import slowly

nmi = dc.metrics.normalized_mutual_info
ari = dc.metrics.adjusted_rand_index


def labels_a_class(y: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Partial labels of so many rows of each class."""
    known, rng = np.full(len(y), -1), np.random.default_rng(seed)
    for number in np.unique(y):
        known[rng.permutation(np.flatnonzero(y == number))[:count]] = number
    return known


def overlapping(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes that overlap, whose cut is spread over the graph."""
    return make_blobs(900, 16, centers=12, cluster_std=5.0, random_state=seed)


def digits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    return load_digits(return_X_y=True)


# -- FastCSC ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [overlapping, *slowly(digits)])
def test_few_labels_do_no_harm(rows):
    plain, guided = [], []
    for seed in range(3):
        X, y = rows(seed)
        model = dc.FastCSC(len(np.unique(y)), n_representatives=120, random_state=seed)
        plain.append(nmi(y, model.fit(X).labels_))
        guided.append([nmi(y, model.fit(X, labels_a_class(y, count, seed)).labels_) for count in (1, 2, 5)])
    assert (np.mean(guided, axis=0) > np.mean(plain) - 0.01).all()


def test_a_few_labels_join_what_the_cut_leaves_open():
    """Where the graph all but falls apart in other ways, one label a class decides."""
    X, y = dc.datasets.make_circles_gaussians(4000, chunks=4000, random_state=1)
    X, y = X.compute(), y.compute()
    plain, guided = (
        nmi(y, dc.FastCSC(11, random_state=1).fit(X, known).labels_) for known in (None, labels_a_class(y, 2, 0))
    )
    assert guided > plain + 0.02
    assert guided > 0.97


@pytest.mark.parametrize(("count", "weighted"), [(1, False), (3, True), (20, False)])
def test_labels_and_their_pairs_give_equal_eigenvalues(count, weighted):
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600]
    known = labels_a_class(y, count, 0)
    weight = np.random.default_rng(1).uniform(0.3, 1.0, 600) if weighted else None
    labels = dc.Constraints.from_labels(known, weight=None if weight is None else weight.astype(np.float32))
    Q = labels.to_sparse().todense()
    must, cannot = np.argwhere(Q > 0), np.argwhere(Q < 0)
    pairs = dc.Constraints.from_pairs(must, cannot, np.abs(Q[tuple(must.T)]), np.abs(Q[tuple(cannot.T)]), len(X))
    one, other = (dc.FastCSC(10, n_representatives=100, random_state=0).fit(X, constraints=c) for c in (labels, pairs))
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-8)
    assert ari(one.labels_, other.labels_) > 0.999


def test_directions_that_constraints_may_choose():
    spectrum = np.r_[[1.0, 0.995, 0.985], np.full(97, 0.5)]  # three all but free, of a hundred
    n = 10_000
    assert n_directions(spectrum, 2, 0, n, 0.3) == 3
    assert n_directions(spectrum, 5, 0, n, 0.3) == 5
    assert n_directions(spectrum, 5, 20, n, 0.3) == 5  # four a cluster name them
    assert n_directions(spectrum, 5, 40, n, 0.3) == 11
    assert n_directions(spectrum, 5, 40, n, 0.0) == 5
    assert n_directions(spectrum, 5, 5000, n, 0.0) == 50  # as many of all as rows are constrained
    assert n_directions(spectrum, 5, 5000, n, 0.3) == 100


def test_all_directions_are_the_methods_of_the_paper():
    """Columns are eigenvectors then, not an orthonormal basis of them."""
    X, y = overlapping(0)
    known = labels_a_class(y, 2, 0)
    found = [
        dc.FastCSC(12, n_representatives=100, direction_factor=f, random_state=0).fit(X, known) for f in (None, 0.3)
    ]
    assert found[0].eigenvalues_[0] < found[1].eigenvalues_[0]  # more directions, cheaper cuts
    plain = [dc.FastCSC(12, n_representatives=100, direction_factor=f, random_state=0).fit(X) for f in (None, 0.3)]
    np.testing.assert_allclose(plain[0].eigenvalues_, plain[1].eigenvalues_, rtol=1e-8)
    assert ari(plain[0].labels_, plain[1].labels_) > 0.99


@pytest.mark.parametrize(("value", "error"), [(-0.1, ValueError), ("all", TypeError), (np.nan, ValueError)])
def test_direction_factors_that_are_none(value, error):
    with pytest.raises(error, match="direction_factor must be a"):
        dc.FastCSC(2, direction_factor=value).fit(np.zeros((5, 1)))


# -- CSPML and FastCSPML ----------------------------------------------------------------------------------------------

LAYERS = {"CSPML": dc.CSPML, "FastCSPML": dc.FastCSPML}


def apart(n: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Five blobs in 16 dimensions, nine standard deviations apart."""
    X, y = make_blobs(n, centers=np.eye(5, 16) * 9 / np.sqrt(2), random_state=0)
    return X * scale, y


@pytest.mark.parametrize("scale", [1e-3, 1e4])
@pytest.mark.parametrize("name", LAYERS)
def test_widths_follow_the_rows(name, scale):
    for n in (50, 250):
        X, y = apart(n, scale)
        for known in (None, labels_a_class(y, 2, 0)):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert ari(y, LAYERS[name](5, random_state=0).fit(X, known).labels_) > 0.99


def test_blobs_of_more_rows_than_landmarks():
    X, y = make_blobs([1000, 500, 1000], centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    for seed in range(1):
        assert ari(y, dc.FastCSPML(3, random_state=seed).fit(X, labels_a_class(y, 5, seed)).labels_) > 0.99


def test_the_papers_width_where_it_suits():
    X, _ = make_blobs(200, centers=[[0, 0], [9, 0]], random_state=0)
    assert dc.CSPML(2, random_state=0).fit(X).gamma_ == 0.5
    assert dc.CSPML(2, random_state=0).fit(100 * X).gamma_ < 1e-3
    assert dc.CSPML(2, gamma=0.7, random_state=0).fit(X).gamma_ == 0.7
    assert dc.CSPML(1, random_state=0).fit(np.ones((5, 2))).gamma_ == 0.5


@pytest.mark.parametrize(
    ("gamma", "message"), [(0.5, "all affinities vanish at gamma=0.5"), (1e-6, "affinities are 1")]
)
@pytest.mark.parametrize("name", LAYERS)
def test_a_width_that_does_not_suit_is_warned_of(name, gamma, message):
    X, _ = apart(100)
    with pytest.warns(UserWarning, match=f"{name}: nearly .*{message}.* gamma=None follows the data, here with 0.0"):
        LAYERS[name](5, gamma=gamma, random_state=0).fit(X)


@pytest.mark.parametrize("name", LAYERS)
def test_rows_without_must_links(name):
    """Penalized, the rows without labels lose their clusters to few labels where affinities are nearly equal."""
    X, y = make_blobs(150, 8, centers=3, center_box=(0, 3), random_state=3)
    known = labels_a_class(y, 3, 0)
    penalized, neutral = (
        ari(y, LAYERS[name](3, gamma=0.01, unlinked=how, random_state=0).fit(X, known).labels_) for how in UNLINKED
    )
    assert neutral > penalized + 0.3


@pytest.mark.parametrize("seed", range(4))
def test_neutral_rows_where_eigenvalues_are_small(seed):
    """As many clusters as eigenvalues of every size and sign."""
    X = np.random.default_rng(seed).normal(size=(8 + 3 * seed, 2))
    known = np.where(np.arange(len(X)) % 3, -1, np.arange(len(X)) % 2)
    exact, sampled = (make(5, unlinked="neutral", random_state=0).fit(X, known) for make in LAYERS.values())
    np.testing.assert_array_equal(sampled.labels_, exact.labels_)


def test_neutral_rows_by_sampled_columns_of_all():
    """With as many landmarks as rows the two methods agree, for labels and for pairs."""
    X, y = make_blobs(120, centers=3, random_state=1)
    known = labels_a_class(y, 8, 0)
    labels = dc.Constraints.from_labels(known)
    Q = labels.to_sparse().todense()
    pairs = dc.Constraints.from_pairs(np.argwhere(Q > 0), np.argwhere(Q < 0), n_samples=120)
    found = [
        make(3, unlinked="neutral", random_state=0).fit(X, constraints=given)
        for make in LAYERS.values()
        for given in (labels, pairs)
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other.eigenvalues_, found[0].eigenvalues_, rtol=1e-8)
        np.testing.assert_array_equal(other.labels_, found[0].labels_)


@pytest.mark.parametrize("name", LAYERS)
def test_readings_that_are_none(name):
    with pytest.raises(ValueError, match="unlinked must be one of"):
        LAYERS[name](2, unlinked="free").fit(np.zeros((5, 1)))
