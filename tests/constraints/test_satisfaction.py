"""Satisfaction: the closed form for labels against all pairs, chunked against unchunked."""

from __future__ import annotations

import tracemalloc

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import daskcluster as dc
from tests.strategies import chunkings, labelings


@st.composite
def knowledge(draw):
    n = draw(st.integers(1, 24))
    weight = draw(st.sampled_from([None, 0.5, "rows"]))
    if weight == "rows":
        weight = np.array(draw(st.lists(st.sampled_from([0.25, 0.5, 1.0]), min_size=n, max_size=n)))
    return draw(labelings(n)), weight, draw(labelings(n, 4)), draw(chunkings(n)), draw(chunkings(n))


def by_pairs(known, weight, labels):
    """Counts and weights of all pairs, one by one."""
    w = np.broadcast_to(1.0 if weight is None else weight, len(known))
    kept, total, number = [0.0, 0.0], [0.0, 0.0], [0, 0]
    for i in range(len(known)):
        for j in range(i):
            if -1 in (known[i], known[j], labels[i], labels[j]):
                continue
            kind = int(known[i] != known[j])
            number[kind] += 1
            total[kind] += w[i] * w[j]
            kept[kind] += w[i] * w[j] * ((labels[i] == labels[j]) == (kind == 0))
    return [k / t if t else 1.0 for k, t in zip(kept, total, strict=True)], number


@given(knowledge())
def test_labels_in_closed_form(drawn):
    known, weight, labels, chunks, others = drawn
    shares, number = by_pairs(known, weight, labels)
    lazy_weight = da.from_array(weight, chunks=(chunks,)) if isinstance(weight, np.ndarray) else weight
    for made in (
        dc.Constraints.from_labels(known, weight=weight),
        dc.Constraints.from_labels(da.from_array(known, chunks=(chunks,)), weight=weight),
        dc.Constraints.from_labels(known, weight=lazy_weight),
    ):
        for predicted in (labels, da.from_array(labels, chunks=(others,))):
            found = made.satisfaction(predicted)
            np.testing.assert_allclose([found.must_link, found.cannot_link], shares, atol=1e-12)
            assert [found.n_must_link, found.n_cannot_link] == number


@given(knowledge())
def test_pairs_agree_with_labels(drawn):
    known, weight, labels, _, others = drawn
    expected = dc.Constraints.from_labels(known, weight=weight).satisfaction(labels)
    Q = dc.Constraints.from_labels(known, weight=weight).to_sparse().todense()
    must, cannot = np.argwhere(np.triu(Q) > 0), np.argwhere(np.triu(Q) < 0)
    made = dc.Constraints.from_pairs(
        must,
        cannot,
        must_link_weight=Q[tuple(must.T)] if len(must) else None,
        cannot_link_weight=-Q[tuple(cannot.T)] if len(cannot) else None,
    )
    for predicted in (labels, da.from_array(labels, chunks=(others,))):
        found = made.satisfaction(predicted)
        np.testing.assert_allclose([found.must_link, found.cannot_link], [expected.must_link, expected.cannot_link])
        assert (found.n_must_link, found.n_cannot_link) == (expected.n_must_link, expected.n_cannot_link)


def test_no_constraints_are_kept():
    found = dc.Constraints.from_pairs().satisfaction([0, 1])
    assert (found.must_link, found.cannot_link, found.n_must_link, found.n_cannot_link) == (1.0, 1.0, 0, 0)
    found = dc.Constraints.from_labels([-1, -1]).satisfaction([0, 1])
    assert (found.must_link, found.cannot_link, found.n_must_link, found.n_cannot_link) == (1.0, 1.0, 0, 0)


def test_masked_rows_have_no_label():
    labels = np.ma.array([0, 0, 1, 0], mask=[False, False, False, True], dtype=np.uint8)
    for made in (dc.Constraints.from_labels([5, 5, 6, 6]), dc.Constraints.from_pairs([(0, 1), (2, 3)], [(0, 2)])):
        for given_labels in (labels, da.from_array(labels, chunks=3)):
            found = made.satisfaction(given_labels)
            assert (found.n_must_link, found.must_link, found.cannot_link) == (1, 1.0, 1.0)


def test_labels_from_a_store(tmp_path):
    zarr.create_array(tmp_path / "labels.zarr", data=np.array([0, 0, 1], np.int32))
    assert dc.Constraints.from_labels([5, 5, 6]).satisfaction(tmp_path / "labels.zarr").must_link == 1


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], "labels must have one entry for each of the 3 rows, got 2"),
        ([[0, 0], [1, 1], [2, 2]], r"labels must have one entry a row, shape \(n,\)"),
        ([0.0, 1.0, 2.0], "labels must be integers, got dtype float64"),
        ([[0], [1, 2], [0]], r"labels must have one entry a row, shape \(n,\), got \[\[0\]"),
    ],
)
def test_what_labels_are_refused(labels, message):
    for made in (dc.Constraints.from_labels([0, 1, 0]), dc.Constraints.from_pairs([(0, 2)], n_samples=3)):
        with pytest.raises(ValueError, match=message):
            made.satisfaction(labels)


def test_millions_of_labels_need_neither_pairs_nor_much_memory():
    rng = np.random.default_rng(0)
    known = rng.integers(-1, 11, 2_000_000)
    made = dc.Constraints.from_labels(known)
    tracemalloc.start()
    try:
        with dask.config.set(scheduler="synchronous"):
            found = made.satisfaction(known)
        assert tracemalloc.get_traced_memory()[1] < 60e6  # dask copies both arrays, 16 bytes a row; a block needs 20 MB
    finally:
        tracemalloc.stop()
    assert (found.must_link, found.cannot_link) == (1.0, 1.0)
    n = int((known >= 0).sum())
    assert found.n_must_link + found.n_cannot_link == n * (n - 1) // 2
