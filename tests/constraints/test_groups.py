"""Groups of rows of which no two may meet."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.datasets import make_blobs

import daskcluster as dc
from tests.slow import slowly

X, TRUTH = make_blobs(300, centers=[[0, 0], [3, 0], [0, 3]], cluster_std=1.0, random_state=0)
#: Forty groups of three rows, one of each cluster; the other rows have none, or one of their own.
GROUPS = np.full(300, -1)
for number in range(40):
    for cluster in range(3):
        GROUPS[np.flatnonzero(cluster == TRUTH)[number]] = 7 * number
GROUPS[np.flatnonzero(GROUPS < 0)[:20]] = 1000 + np.arange(20)
MAKE = {
    "FastCSC": lambda **more: dc.FastCSC(**{"n_clusters": 3, "n_representatives": 80, "random_state": 0} | more),
    "CSPML": lambda **more: dc.CSPML(**{"n_clusters": 3, "random_state": 0} | more),
    "FastCSPML": lambda **more: dc.FastCSPML(**{"n_clusters": 3, "n_landmarks": 90, "random_state": 0} | more),
}

#: One method by default, the others where there is time.
FAST = ["FastCSC", *slowly("CSPML", "FastCSPML")]


def pairs_of(groups: np.ndarray, weight: np.ndarray | None = None) -> dc.Constraints:
    """The same constraints, pair by pair."""
    first, second = np.triu_indices(len(groups), 1)
    there = (groups[first] == groups[second]) & (groups[first] >= 0)
    first, second = first[there], second[there]
    weights = None if weight is None else weight[first] * weight[second]
    return dc.Constraints.from_pairs(
        cannot_link=np.stack([first, second], axis=1), cannot_link_weight=weights, n_samples=len(groups)
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MAKE)
def test_groups_and_their_pairs_agree(name, weighted, small_blocks):
    weight = np.random.default_rng(0).uniform(0.2, 1.0, 300).astype(np.float32) if weighted else None
    groups = dc.Constraints.from_groups(GROUPS, weight=weight)
    pairs = pairs_of(GROUPS, None if weight is None else weight.astype(np.float64))
    one, other = (MAKE[name]().fit(X, constraints=known) for known in (groups, pairs))
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-8)
    assert dc.metrics.adjusted_rand_index(one.labels_, other.labels_) == 1
    np.testing.assert_allclose(groups.to_sparse().todense(), pairs.to_sparse().todense(), rtol=1e-6)
    kept, expected = groups.satisfaction(one.labels_), pairs.satisfaction(one.labels_)
    assert kept.n_cannot_link == expected.n_cannot_link == 120
    assert kept.cannot_link == pytest.approx(expected.cannot_link, rel=1e-6)
    assert (kept.must_link, kept.n_must_link) == (1.0, 0)


@pytest.mark.parametrize("name", FAST)
def test_one_result_for_any_form(name, small_blocks, tmp_path):
    zarr.create_array(tmp_path / "groups.zarr", data=GROUPS, chunks=(77,))
    expected = MAKE[name]().fit(X, constraints=dc.Constraints.from_groups(GROUPS))
    forms = (
        da.from_array(GROUPS, chunks=41),
        tmp_path / "groups.zarr",
        np.where(GROUPS < 0, np.nan, GROUPS),
        np.where(GROUPS < 0, -5, GROUPS).astype(np.int16),
        da.from_array(np.where(GROUPS < 0, -9.0, GROUPS), chunks=100),
    )
    for number, form in enumerate(forms):
        with dask.config.set(scheduler="threads" if number % 2 else "synchronous"):
            found = MAKE[name]().fit(da.from_array(X, chunks=(71, 2)), constraints=dc.Constraints.from_groups(form))
        np.testing.assert_array_equal(found.eigenvalues_, expected.eigenvalues_)
        np.testing.assert_array_equal(found.labels_, expected.labels_)


def test_groups_keep_apart_what_the_rows_do_not():
    """Two views of each of 3000 things: of no cluster by their features, of two by their groups."""
    rows = np.random.default_rng(0).random((6000, 2)) * [0.5, 1.0]
    rows[3000:, 0] += 0.5
    known = dc.Constraints.from_groups(np.tile(np.arange(3000), 2))
    plain = dc.FastCSC(2, n_representatives=100, random_state=0).fit(rows)
    model = dc.FastCSC(2, n_representatives=100, random_state=0).fit(rows, constraints=known)
    kept, before = (known.satisfaction(labels).cannot_link for labels in (model.labels_, plain.labels_))
    assert kept > max(0.8, before)


def test_many_small_groups(small_blocks):
    """As many groups as half the rows, in all blocks: their sums are sparse."""
    rows, truth = make_blobs(3000, centers=2, cluster_std=2.0, random_state=1)
    groups = np.empty(3000, int)
    for cluster in (0, 1):
        groups[truth == cluster] = np.arange(1500)
    known = dc.Constraints.from_groups(groups)
    model = dc.FastCSC(2, n_representatives=50, random_state=0).fit(rows, constraints=known)
    assert dc.metrics.adjusted_rand_index(truth, model.labels_) > 0.9
    assert known.satisfaction(model.labels_).n_cannot_link == 1500


@pytest.mark.parametrize("name", FAST)
def test_missing_rows_leave_their_groups(name, small_blocks):
    rows = X.copy()
    rows[GROUPS == 0] = np.nan
    fewer = np.where(GROUPS == 0, -1, GROUPS)
    one, other = (
        MAKE[name](missing="label").fit(rows, constraints=dc.Constraints.from_groups(groups)).labels_
        for groups in (GROUPS, fewer)
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("sample_rate", [*slowly(1.0), 0.7])
def test_groups_guide_an_ensemble(sample_rate):
    known = dc.Constraints.from_groups(GROUPS)
    base = dc.FastCSC(n_representatives=80)
    model = dc.Ensemble(3, base=base, n_base_clusterings=2, k_range=(3, 3), sample_rate=sample_rate, random_state=0)
    model.set_params(predict_unsampled=sample_rate < 1)
    labels = model.fit(X, constraints=known).labels_
    assert known.satisfaction(labels).cannot_link > 0.5
    if sample_rate == 1:
        one = dc.Constraints.from_groups(da.from_array(GROUPS, chunks=50))
        np.testing.assert_array_equal(model.fit(X, constraints=one).labels_, labels)
        assert not np.array_equal(model.fit(X).base_labels_, model.fit(X, constraints=known).base_labels_)


def test_groups_that_say_nothing():
    alone = dc.Constraints.from_groups(np.arange(300))
    with pytest.warns(UserWarning, match="no constraints; the result is that of the unconstrained method"):
        dc.FastCSC(3, n_representatives=80, random_state=0).fit(X, constraints=alone)


def test_what_groups_are():
    known = dc.Constraints.from_groups(GROUPS)
    assert repr(known) == "Constraints.from_groups(<300 rows>)"
    assert known.closure() is known
    assert known.check_consistent() is known
    assert len(known.components()[0]) == 0
    assert len(known.must_link) == len(known.cannot_link) == 0
    assert known.labels is None


@pytest.mark.parametrize(
    ("groups", "weight", "message"),
    [
        ([0.5, 1], None, "groups must hold whole numbers from 0 up, and -1 or NaN for none, got 0.5 at row 0"),
        ([-0.5, 1], None, "groups must hold whole numbers"),
        (["a", "b"], None, "groups must hold whole numbers, negative ones for none, got dtype"),
        ([[0, 1], [0, 1]], None, r"groups must have one entry a row, shape \(n,\), got shape \(2, 2\)"),
        ([0, 0], 0.0, "weight must be above 0 and at most 1, got 0.0"),
        ([0, 0], [1.0, 1.5], "weight must be above 0 and at most 1, got 1.5 at row 1"),
        ([0, 0], [1.0], "weight must be one number or have one entry for each of the 2 groups, got 1"),
    ],
    ids=str,
)
def test_what_is_refused(groups, weight, message):
    with pytest.raises(ValueError, match=message):
        dc.Constraints.from_groups(groups, weight=weight)


def test_what_a_fit_refuses():
    with pytest.raises(ValueError, match="groups must have one entry for each of the 300 rows of X, got 2"):
        dc.FastCSC(3).fit(X, constraints=dc.Constraints.from_groups([0, 0]))
    late = dc.Constraints.from_groups(da.from_array(np.where(np.arange(300) == 44, 0.5, 0), chunks=100))
    with pytest.raises(ValueError, match=r"groups must hold whole numbers .* got 0.5 at row 44"):
        dc.FastCSC(3).fit(X, constraints=late)


def test_another_grouping_is_other_data(tmp_path):
    model = dc.FastCSC(3, n_representatives=80, random_state=0, storage=tmp_path / "run")
    model.fit(X, constraints=dc.Constraints.from_groups(GROUPS))
    with pytest.raises(dc.StorageMismatchError, match="made from other data"):
        model.fit(X, GROUPS)  # the same numbers as labels
