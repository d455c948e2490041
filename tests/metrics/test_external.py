"""Measures of agreement: laws, cases solved by hand, plain loops over pairs, and scikit-learn."""

import math
from collections.abc import Callable
from itertools import combinations, permutations

import dask.array as da
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from daskcluster import metrics
from daskcluster.metrics import (
    adjusted_rand_index,
    adjusted_rand_index_from_table,
    clustering_accuracy,
    clustering_accuracy_from_table,
    contingency_matrix,
    normalized_mutual_info,
    normalized_mutual_info_from_table,
    purity,
    purity_from_table,
    rand_index,
    rand_index_from_table,
)
from tests.strategies import pairs_of_labelings, rechunked, tables

Measure = Callable[..., float]
MEASURES: dict[Measure, Measure] = {
    normalized_mutual_info: normalized_mutual_info_from_table,
    clustering_accuracy: clustering_accuracy_from_table,
    purity: purity_from_table,
    rand_index: rand_index_from_table,
    adjusted_rand_index: adjusted_rand_index_from_table,
}
SYMMETRIC = [measure for measure in MEASURES if measure is not purity]
each_measure = pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.__name__)


def labels_of(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = np.indices(table.shape)
    return np.repeat(rows.ravel(), table.ravel()), np.repeat(columns.ravel(), table.ravel())


# -- laws -------------------------------------------------------------------------------------------------------------


@each_measure
@settings(max_examples=20)
@given(pair=pairs_of_labelings(min_rows=1))
def test_bounds(measure, pair):
    assert (-0.5 if measure is adjusted_rand_index else 0.0) <= measure(*pair) <= 1.0


@each_measure
@settings(max_examples=20)
@given(pair=pairs_of_labelings(), seed=st.integers(0, 2**16))
def test_label_names_do_not_matter(measure, pair, seed):
    rng = np.random.default_rng(seed)
    renamed = [(rng.permutation(8) * 1000 - 3)[labels + 1] for labels in pair]
    assert measure(*renamed) == measure(*pair)


@each_measure
@settings(max_examples=20)
@given(pair=pairs_of_labelings(), seed=st.integers(0, 2**16))
def test_the_order_of_the_rows_does_not_matter(measure, pair, seed):
    order = np.random.default_rng(seed).permutation(len(pair[0]))
    assert measure(pair[0][order], pair[1][order]) == measure(*pair)


@each_measure
@settings(max_examples=20)
@given(pair=pairs_of_labelings(), seed=st.integers(0, 2**16))
def test_a_partition_agrees_with_itself_exactly(measure, pair, seed):
    names = np.random.default_rng(seed).permutation(8)
    assert measure(pair[0], names[pair[0] + 1]) == 1.0


@pytest.mark.parametrize("measure", SYMMETRIC, ids=lambda measure: measure.__name__)
@given(pair=pairs_of_labelings())
def test_symmetry(measure, pair):
    assert measure(*pair) == measure(*pair[::-1])


@each_measure
@settings(max_examples=15)
@given(data=st.data(), pair=pairs_of_labelings(max_rows=20))
def test_the_same_for_any_chunking(measure, data, pair):
    true, pred = (data.draw(st.one_of(st.just(labels), rechunked(labels))) for labels in pair)
    assert measure(true, pred) == measure(*pair)


@each_measure
@given(table=tables())
def test_from_the_table(measure, table):
    """Empty rows and columns of a table change nothing."""
    assert MEASURES[measure](table) == measure(*labels_of(table))


@given(table=tables())
def test_accuracy_is_at_most_purity(table):
    assert clustering_accuracy_from_table(table) <= purity_from_table(table)


@given(pair=pairs_of_labelings(min_rows=1))
def test_splitting_clusters_never_lowers_purity(pair):
    finer = pair[1] * 50 + np.arange(len(pair[1])) % 3
    assert purity(pair[0], finer) >= purity(*pair)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
)
def test_independent_labelings_share_no_information(true_sizes, pred_sizes):
    assume(len(true_sizes) > 1 or len(pred_sizes) > 1)
    assert normalized_mutual_info_from_table(np.outer(true_sizes, pred_sizes)) == 0.0


# -- against plain loops ----------------------------------------------------------------------------------------------


@given(pairs_of_labelings(min_rows=2, max_rows=15))
def test_rand_indices_against_a_loop_over_pairs(pair):
    together = [
        (true_a == true_b, pred_a == pred_b)
        for (true_a, pred_a), (true_b, pred_b) in combinations(zip(*pair, strict=True), 2)
    ]
    n = len(together)
    both = sum(true and pred for true, pred in together)
    true = sum(true for true, _ in together)
    pred = sum(pred for _, pred in together)
    assert rand_index(*pair) == sum(t == p for t, p in together) / n
    expected, most = true * pred / n, (true + pred) / 2
    plain = (both - expected) / (most - expected) if most != expected else 1.0
    assert adjusted_rand_index(*pair) == pytest.approx(plain, abs=1e-12)


@given(tables(9))
def test_accuracy_against_all_matchings(table):
    assume(table.sum())
    wide = table if table.shape[0] <= table.shape[1] else table.T
    best = max(
        sum(wide[i, j] for i, j in enumerate(columns)) for columns in permutations(range(wide.shape[1]), len(wide))
    )
    assert clustering_accuracy_from_table(table) == best / table.sum()


@given(tables())
def test_information_against_its_definition(table):
    assume(np.count_nonzero(table.sum(axis=0)) > 1 and np.count_nonzero(table.sum(axis=1)) > 1)
    n = table.sum()
    sizes_true, sizes_pred = table.sum(axis=1), table.sum(axis=0)
    information = sum(
        table[i, j] / n * math.log(n * table[i, j] / (sizes_true[i] * sizes_pred[j])) for i, j in np.argwhere(table)
    )
    entropies = [-sum(size / n * math.log(size / n) for size in sizes if size) for sizes in (sizes_true, sizes_pred)]
    plain = information / math.sqrt(entropies[0] * entropies[1])
    assert normalized_mutual_info_from_table(table) == pytest.approx(plain, abs=1e-12)


# -- against scikit-learn ---------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(pairs_of_labelings())
def test_agrees_with_scikit_learn(pair):
    assert rand_index(*pair) == pytest.approx(sklearn_metrics.rand_score(*pair), abs=1e-12)
    assert adjusted_rand_index(*pair) == pytest.approx(sklearn_metrics.adjusted_rand_score(*pair), abs=1e-12)
    theirs = sklearn_metrics.normalized_mutual_info_score(*pair, average_method="geometric")
    assert normalized_mutual_info(*pair) == pytest.approx(theirs, abs=1e-7)


@pytest.mark.parametrize(
    "pair",
    [([], []), ([5], [1]), ([0, 0, 0], [1, 1, 1]), ([0, 0, 0], [0, 1, 2]), ([0, 1, 2], [2, 1, 0]), ([0, 1], [0, 0])],
)
def test_trivial_partitions_as_in_scikit_learn(pair):
    assert rand_index(*pair) == sklearn_metrics.rand_score(*pair)
    assert adjusted_rand_index(*pair) == sklearn_metrics.adjusted_rand_score(*pair)
    theirs = sklearn_metrics.normalized_mutual_info_score(*pair, average_method="geometric")
    assert normalized_mutual_info(*pair) == theirs


def test_empty_is_agreement():
    for measure in MEASURES:
        assert measure([], []) == 1.0


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_by_hand():
    true, pred = [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]
    assert clustering_accuracy(true, pred) == 4 / 6  # 0-0, 1-2
    assert purity(true, pred) == 5 / 6  # 2 + 1 + 2
    assert purity(pred, true) == 4 / 6  # 2 + 2
    assert rand_index(true, pred) == 10 / 15  # 2 pairs together in both, 8 apart in both
    assert adjusted_rand_index(true, pred) == pytest.approx((2 - 6 * 3 / 15) / (4.5 - 6 * 3 / 15))
    information = math.log(2) - 1 / 3 * math.log(2)
    assert normalized_mutual_info(true, pred) == pytest.approx(information / math.sqrt(math.log(2) * math.log(3)))


def test_missing_labels_count_as_a_cluster():
    assert clustering_accuracy([0, 0, 1], [0, -1, 1]) == 2 / 3
    assert purity([0, 0, 1], [0, -1, 1]) == 1.0


def test_identifiers_as_labels_need_no_dense_table():
    identifiers = np.arange(30_000)
    assert rand_index(identifiers, identifiers // 2) == pytest.approx(1.0, abs=1e-4)
    assert normalized_mutual_info(identifiers, identifiers) == 1.0
    with pytest.raises(ValueError, match="would take"):
        clustering_accuracy(identifiers, identifiers)


def test_ten_billion_rows():
    """Pairs of 1e10 rows are 5e19, beyond int64; two of them are apart in one labeling only."""
    n = 10**10
    table = np.array([[n // 2, 1], [0, n // 2 - 1]])
    pairs = n * (n - 1) // 2
    assert rand_index_from_table(table) == (pairs - (n // 2) - (n // 2 - 1)) / pairs
    assert 1 - adjusted_rand_index_from_table(table) == pytest.approx(4 / n, rel=1e-5)
    assert 0 < 1 - normalized_mutual_info_from_table(table) < 1e-8
    assert clustering_accuracy_from_table(table) == (n - 1) / n
    assert purity_from_table(table) == (n - 1) / n
    nearly_one = np.array([[n - 1, 0], [0, 1]])
    assert normalized_mutual_info_from_table(nearly_one) == 1.0
    assert adjusted_rand_index_from_table(nearly_one) == 1.0


# -- what is refused --------------------------------------------------------------------------------------------------


@each_measure
def test_rejects_labels(measure):
    with pytest.raises(ValueError, match="labels_true has 2, labels_pred has 3"):
        measure([0, 1], [0, 1, 2])
    with pytest.raises(ValueError, match="labels_true holds NaN"):
        measure([0, np.nan], [0, 1])
    with pytest.raises(ValueError, match="labels_pred must have 1 dimension"):
        measure(da.zeros(2, chunks=1, dtype=int), [[0, 1]])


@each_measure
@pytest.mark.parametrize("table", [[1, 2], [[-1, 2]], [[0.5]], [[np.nan]], [["a"]]])
def test_rejects_what_is_no_table(measure, table):
    with pytest.raises(ValueError, match="table must"):
        MEASURES[measure](table)


def test_every_public_name_exists():
    assert all(callable(getattr(metrics, name)) for name in metrics.__all__)
    assert contingency_matrix in {getattr(metrics, name) for name in metrics.__all__}
