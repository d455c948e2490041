"""Disjoint sets against plain sets of rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskcluster.kernels.disjoint_set import component_roots, merge_in_order

PAIRS = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20)


def columns(pairs):
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return np.ascontiguousarray(array[:, 0]), np.ascontiguousarray(array[:, 1])


def plain_components(pairs, n_rows):
    sets = [{row} for row in range(n_rows)]
    for a, b in pairs:
        left = next(s for s in sets if a in s)
        right = next(s for s in sets if b in s)
        if left is not right:
            sets.remove(right)
            left |= right
    return sets


@given(PAIRS)
def test_roots_are_the_smallest_rows_of_the_components(pairs):
    roots = component_roots(*columns(pairs), 12)
    for members in plain_components(pairs, 12):
        assert {int(roots[row]) for row in members} == {min(members)}


@given(PAIRS, st.randoms(use_true_random=False))
def test_the_order_of_the_pairs_does_not_matter(pairs, random):
    shuffled = [pair[::-1] if random.random() < 0.5 else pair for pair in random.sample(pairs, len(pairs))]
    np.testing.assert_array_equal(component_roots(*columns(shuffled), 12), component_roots(*columns(pairs), 12))


@given(PAIRS)
def test_merging_pairs_make_a_spanning_forest(pairs):
    merges = merge_in_order(*columns(pairs), 12)
    kept = [pair for pair, merge in zip(pairs, merges, strict=True) if merge]
    assert len(kept) == 12 - len(plain_components(pairs, 12))
    np.testing.assert_array_equal(component_roots(*columns(kept), 12), component_roots(*columns(pairs), 12))


def test_long_chains_and_none():
    n = 200_000
    chain = np.arange(n)
    assert (component_roots(chain[:-1], chain[1:], n) == 0).all()
    assert (component_roots(chain[1:][::-1].copy(), chain[:-1][::-1].copy(), n) == 0).all()
    none = np.empty(0, np.int64)
    np.testing.assert_array_equal(component_roots(none, none, 3), [0, 1, 2])
    assert len(component_roots(none, none, 0)) == 0
    assert len(merge_in_order(none, none, 0)) == 0


def test_the_plain_functions_stay_beside_the_compiled_ones():
    pairs = columns([(3, 1), (1, 2), (3, 2), (5, 4)])
    np.testing.assert_array_equal(component_roots.py_func(*pairs, 6), [0, 1, 1, 1, 4, 4])
    np.testing.assert_array_equal(merge_in_order.py_func(*pairs, 6), [True, True, False, True])
