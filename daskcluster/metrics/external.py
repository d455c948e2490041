"""How well one labeling agrees with another: every figure comes from their contingency table.

Each measure has two forms: one takes two labelings, in memory or chunked, and makes one pass over them; the
other takes a table that `contingency_matrix` has made, so that several measures cost one pass.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..kernels.contingency import PairCounts
from ..typing import ArrayInput
from .contingency import count_pairs, dense_table

__all__ = [
    "adjusted_rand_index",
    "adjusted_rand_index_from_table",
    "clustering_accuracy",
    "clustering_accuracy_from_table",
    "normalized_mutual_info",
    "normalized_mutual_info_from_table",
    "purity",
    "purity_from_table",
    "rand_index",
    "rand_index_from_table",
]


def normalized_mutual_info(labels_true: ArrayInput, labels_pred: ArrayInput) -> float:
    """Mutual information of two labelings, divided by the geometric mean of their entropies.

    Parameters
    ----------
    labels_true, labels_pred : array-like (n,), dask array, zarr.Array, or path of a Zarr array
        As in `contingency_matrix`; -1 is an ordinary label.

    Returns
    -------
    float
        From 0 (independent) to 1 (the same partition, under any names). 1 if both labelings have one cluster
        or are empty, 0 if only one of them has a single cluster, as in scikit-learn.

    Raises
    ------
    ValueError, FileNotFoundError
        As `contingency_matrix`.

    See Also
    --------
    normalized_mutual_info_from_table : The same from a contingency table.

    Notes
    -----
    MI(C, L) / sqrt(H(C) H(L)): eq. (35) of fast_csc_and_secrp_2017, eq. (19) of isec_2020; the same as
    scikit-learn's ``normalized_mutual_info_score(average_method="geometric")``. MI is taken as H(C) + H(L) -
    H(C, L) from exactly rounded sums, so the value does not depend on names, on the order of the clusters or
    on which argument comes first, and equal partitions give 1 exactly. MI below its rounding error, 1e-15 of
    the entropies, counts as 0.

    Examples
    --------
    >>> normalized_mutual_info([0, 0, 1, 1], [5, 5, 2, 2])
    1.0
    """
    return _normalized_mutual_info(count_pairs(labels_true, labels_pred))


def normalized_mutual_info_from_table(table: ArrayInput) -> float:
    """`normalized_mutual_info` of the labelings whose contingency table this is.

    Parameters
    ----------
    table : array-like (r, s) of non-negative integers

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `table` is no table of counts.
    """
    return _normalized_mutual_info(_pairs_of(table))


def clustering_accuracy(labels_true: ArrayInput, labels_pred: ArrayInput) -> float:
    """Share of the rows that agree under the best one-to-one matching of clusters with classes.

    Parameters
    ----------
    labels_true, labels_pred : array-like (n,), dask array, zarr.Array, or path of a Zarr array
        As in `contingency_matrix`; -1 is an ordinary label.

    Returns
    -------
    float
        From 1 / max(r, s) to 1, for r classes and s clusters; 1 for empty input. Classes or clusters that
        have no partner count as wrong.

    Raises
    ------
    ValueError, FileNotFoundError
        As `contingency_matrix`; also if the table is too large to be dense.

    See Also
    --------
    purity : Several clusters may stand for one class.
    clustering_accuracy_from_table : The same from a contingency table.

    Notes
    -----
    The matching is the assignment problem, solved by ``scipy.optimize.linear_sum_assignment`` (a Hungarian
    method, O(max(r, s)**3)). It is what isec_2020 calls ACC; fast_csc_and_secrp_2017 calls `purity`
    accuracy.

    Examples
    --------
    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 2])
    0.75
    """
    return _clustering_accuracy(count_pairs(labels_true, labels_pred))


def clustering_accuracy_from_table(table: ArrayInput) -> float:
    """`clustering_accuracy` of the labelings whose contingency table this is.

    Parameters
    ----------
    table : array-like (r, s) of non-negative integers
        Rows are classes, columns clusters.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `table` is no table of counts.
    """
    return _clustering_accuracy(_pairs_of(table))


def purity(labels_true: ArrayInput, labels_pred: ArrayInput) -> float:
    """Share of the rows that belong to the most frequent class of their cluster.

    Parameters
    ----------
    labels_true, labels_pred : array-like (n,), dask array, zarr.Array, or path of a Zarr array
        Classes and clusters, as in `contingency_matrix`; -1 is an ordinary label. The measure is not
        symmetric.

    Returns
    -------
    float
        From the share of the largest class to 1; 1 for empty input. More clusters never lower it.

    Raises
    ------
    ValueError, FileNotFoundError
        As `contingency_matrix`.

    See Also
    --------
    clustering_accuracy : One cluster for each class.
    purity_from_table : The same from a contingency table.

    Notes
    -----
    Sum over clusters of max(cluster_i | label) / n: eq. (34) of fast_csc_and_secrp_2017, there called
    cluster accuracy.

    Examples
    --------
    >>> purity([0, 0, 1, 1], [1, 1, 0, 2])
    1.0
    """
    return _purity(count_pairs(labels_true, labels_pred))


def purity_from_table(table: ArrayInput) -> float:
    """`purity` of the labelings whose contingency table this is.

    Parameters
    ----------
    table : array-like (r, s) of non-negative integers
        Rows are classes, columns clusters.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `table` is no table of counts.
    """
    return _purity(_pairs_of(table))


def rand_index(labels_true: ArrayInput, labels_pred: ArrayInput) -> float:
    """Share of the pairs of rows on which two labelings agree: together in both, or apart in both.

    Parameters
    ----------
    labels_true, labels_pred : array-like (n,), dask array, zarr.Array, or path of a Zarr array
        As in `contingency_matrix`; -1 is an ordinary label.

    Returns
    -------
    float
        From 0 to 1; 1 for fewer than two rows, as in scikit-learn.

    Raises
    ------
    ValueError, FileNotFoundError
        As `contingency_matrix`.

    See Also
    --------
    adjusted_rand_index : Corrected for chance.
    rand_index_from_table : The same from a contingency table.

    Notes
    -----
    Pairs are counted in exact integers and divided once, so the value is correctly rounded for any number of
    rows. It is the measure of Table 2 of csp_ml_and_fast_csp_ml_2019. Source: Rand, JASA 66 (1971), 846-850.

    Examples
    --------
    >>> rand_index([0, 0, 1], [0, 0, 0])
    0.3333333333333333
    """
    return _rand_index(count_pairs(labels_true, labels_pred))


def rand_index_from_table(table: ArrayInput) -> float:
    """`rand_index` of the labelings whose contingency table this is.

    Parameters
    ----------
    table : array-like (r, s) of non-negative integers

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `table` is no table of counts.
    """
    return _rand_index(_pairs_of(table))


def adjusted_rand_index(labels_true: ArrayInput, labels_pred: ArrayInput) -> float:
    """Rand index corrected for chance: 0 is expected of random labelings of the same sizes, 1 is agreement.

    Parameters
    ----------
    labels_true, labels_pred : array-like (n,), dask array, zarr.Array, or path of a Zarr array
        As in `contingency_matrix`; -1 is an ordinary label.

    Returns
    -------
    float
        From -0.5 to 1; 1 for equal partitions and for fewer than two rows, as in scikit-learn.

    Raises
    ------
    ValueError, FileNotFoundError
        As `contingency_matrix`.

    See Also
    --------
    adjusted_rand_index_from_table : The same from a contingency table.

    Notes
    -----
    (index - expected) / (maximum - expected) over pairs of rows, Hubert and Arabie, Journal of
    Classification 2 (1985), 193-218, as one quotient of exact integers: correctly rounded for any number of
    rows.

    Examples
    --------
    >>> adjusted_rand_index([0, 0, 1, 1], [0, 0, 1, 2])
    0.5714285714285714
    """
    return _adjusted_rand_index(count_pairs(labels_true, labels_pred))


def adjusted_rand_index_from_table(table: ArrayInput) -> float:
    """`adjusted_rand_index` of the labelings whose contingency table this is.

    Parameters
    ----------
    table : array-like (r, s) of non-negative integers

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `table` is no table of counts.
    """
    return _adjusted_rand_index(_pairs_of(table))


# -- from the nonzero entries of the table -----------------------------------------------------------------


def _normalized_mutual_info(pairs: PairCounts) -> float:
    sizes_true, sizes_pred = _sizes(pairs)
    if np.count_nonzero(sizes_true) <= 1 and np.count_nonzero(sizes_pred) <= 1:
        return 1.0
    entropy_true, entropy_pred = _entropy(sizes_true), _entropy(sizes_pred)
    information = (entropy_true + entropy_pred) - _entropy(pairs.counts)
    if information <= 4 * np.finfo(np.float64).eps * (entropy_true + entropy_pred):
        return 0.0
    return min(1.0, information / math.sqrt(entropy_true * entropy_pred))


def _entropy(sizes: NDArray[np.int64]) -> float:
    """Entropy in nats of parts of these sizes; the sum is exactly rounded, so their order does not matter."""
    sizes = sizes[sizes > 0]
    total = int(sizes.sum())
    shares = sizes / total
    # The logarithm of a share near 1 takes its digits from what is missing to 1.
    logarithms = np.where(2 * sizes > total, np.log1p(-(total - sizes) / total), np.log(shares))
    return math.fsum((-shares * logarithms).tolist())


def _clustering_accuracy(pairs: PairCounts) -> float:
    from scipy.optimize import linear_sum_assignment

    total = int(pairs.counts.sum())
    if total == 0:
        return 1.0
    table = dense_table(pairs)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return int(table[rows, columns].sum()) / total


def _purity(pairs: PairCounts) -> float:
    total = int(pairs.counts.sum())
    if total == 0:
        return 1.0
    largest = np.zeros(len(pairs.values_pred), np.int64)
    np.maximum.at(largest, pairs.columns, pairs.counts)
    return int(largest.sum()) / total


def _rand_index(pairs: PairCounts) -> float:
    both, true, pred, every = _pairs_of_rows(pairs)
    return 1.0 if every == 0 else (every + 2 * both - true - pred) / every


def _adjusted_rand_index(pairs: PairCounts) -> float:
    both, true, pred, every = _pairs_of_rows(pairs)
    # Hubert and Arabie's fraction, numerator and denominator times 2 * every.
    above_expected = 2 * (both * every - true * pred)
    most_above = (true + pred) * every - 2 * true * pred
    return 1.0 if most_above == 0 else above_expected / most_above


def _pairs_of_rows(pairs: PairCounts) -> tuple[int, int, int, int]:
    """Pairs of rows that are together in both labelings, in the first, in the second; all pairs. Exact."""
    sizes_true, sizes_pred = _sizes(pairs)
    return (
        _choose_two(pairs.counts),
        _choose_two(sizes_true),
        _choose_two(sizes_pred),
        _choose_two(pairs.counts.sum(keepdims=True)),
    )


def _choose_two(sizes: NDArray[np.int64]) -> int:
    """Sum of n (n - 1) / 2, in Python integers: 64 bits hold the squares of 3e9 rows, not their sum."""
    return sum(size * (size - 1) for size in sizes.tolist()) // 2


def _sizes(pairs: PairCounts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the data in every row (r,) and in every column (s,) of the table."""
    sizes_true = np.zeros(len(pairs.values_true), np.int64)
    sizes_pred = np.zeros(len(pairs.values_pred), np.int64)
    np.add.at(sizes_true, pairs.rows, pairs.counts)
    np.add.at(sizes_pred, pairs.columns, pairs.counts)
    return sizes_true, sizes_pred


def _pairs_of(table: ArrayInput) -> PairCounts:
    counts = np.asarray(table)
    if counts.ndim != 2:
        raise ValueError(f"table must have 2 dimensions, classes by clusters, got shape {counts.shape}")
    if (
        counts.dtype.kind not in "biuf"
        or not (np.isfinite(counts) & (counts >= 0) & (counts == np.trunc(counts))).all()
    ):
        raise ValueError(f"table must hold counts, non-negative whole numbers, got dtype {counts.dtype}")
    counts = counts.astype(np.int64)
    rows, columns = np.nonzero(counts)
    return PairCounts(
        np.arange(counts.shape[0]),
        np.arange(counts.shape[1]),
        rows.astype(np.int64),
        columns.astype(np.int64),
        counts[rows, columns],
    )
