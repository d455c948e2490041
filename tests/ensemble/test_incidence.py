"""Base clusterings in any form -> the same codes, base clusters and graph."""

import re

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcluster.ensemble import incidence
from daskcluster.ensemble.incidence import (
    LabelCoder,
    check_base_clusterings,
    check_label_block,
    code_labels,
    draw_labelled,
    incidence_graph,
    row_weights,
    scan_labels,
)
from tests.reference import ensemble, sec
from tests.strategies import labelings, rechunked

BLOCK_ROWS = 16


def draw(seed=0, n_rows=100, n_columns=4, missing=0.2):
    rng = np.random.default_rng(seed)
    labels = rng.integers(5, size=(n_rows, n_columns)) * np.array([1, 7, 1, 1000])[:n_columns]
    labels[rng.random(labels.shape) < missing] = -1
    labels[::9] = -1
    return labels


def coded(labels):
    rows = check_base_clusterings(labels)
    found = scan_labels(rows)
    return found, code_labels(rows, found.book)


@given(st.data())
def test_codes_and_sizes_for_any_chunking(data):
    columns = [data.draw(labelings(23)) for _ in range(3)]
    labels = np.stack(columns, axis=1)
    if (labels < 0).all():
        return
    found, codes = coded(data.draw(rechunked(labels)))
    codes = codes.compute(scheduler="synchronous")
    assert codes.dtype == np.int8
    for j in range(3):
        values, sizes = np.unique(labels[:, j][labels[:, j] >= 0], return_counts=True)
        part = slice(found.book.offsets[j], found.book.offsets[j + 1])
        assert np.array_equal(found.book.values[part], values)
        assert np.array_equal(found.book.sizes[part], sizes)
        assert np.array_equal(codes[:, j] < 0, labels[:, j] < 0)
        there = labels[:, j] >= 0
        assert np.array_equal(values[codes[there, j]], labels[there, j])
    assert found.n_labelled == (labels >= 0).any(axis=1).sum()


FORMS = {
    "int8": lambda labels: labels.astype(np.int8),
    "int64": lambda labels: labels.astype(np.int64),
    "float32": lambda labels: labels.astype(np.float32),
    "float64": lambda labels: labels.astype(np.float64),
    "fortran": np.asfortranarray,
    "gaps": lambda labels: np.where(labels >= 0, labels * 3 + 11, -1),
    "huge": lambda labels: np.where(labels >= 0, labels * (2**61) + 5, -1),
    "far": lambda labels: np.where(labels >= 0, labels + 2**62, -1),
}


@pytest.mark.parametrize("form", FORMS)
def test_any_form_of_labels_gives_the_same_codes(form, small_blocks):
    labels = np.random.default_rng(0).integers(-1, 3, size=(100, 3))
    expected, codes = coded(labels)
    found, other = coded(FORMS[form](labels))
    assert np.array_equal(codes.compute(), other.compute())
    assert np.array_equal(expected.book.sizes, found.book.sizes)
    assert codes.chunks == other.chunks


def test_unsigned_and_bool_labels():
    labels = np.random.default_rng(0).integers(2, size=(50, 2))
    expected = coded(labels)[1].compute()
    for dtype in (bool, np.uint8, np.uint64):
        assert np.array_equal(coded(labels.astype(dtype))[1].compute(), expected)


@pytest.mark.parametrize(
    ("value", "shown"), [(-2, "-2.0"), (0.5, "0.5"), (np.nan, "nan"), (np.inf, "inf"), (1e300, "1e+300")]
)
def test_what_is_no_label_is_named(value, shown, small_blocks):
    labels = draw().astype(np.float64)
    labels[37, 2] = value
    labels[55, 1] = value
    with pytest.raises(ValueError, match=re.escape(f"got {shown} at row 37, column 2")):
        coded(labels)
    with pytest.raises(ValueError, match=re.escape(f"got {shown} at row 137, column 2")):
        check_label_block(labels, 100)


def test_too_large_unsigned_labels():
    with pytest.raises(ValueError, match="at row 1, column 0"):
        coded(np.array([[0], [2**63]], np.uint64))


def test_nothing_but_missing_labels():
    found = scan_labels(check_base_clusterings(np.full((9, 2), -1)))
    assert found.n_labelled == found.book.n_base_clusters == 0


def test_row_numbers_are_refused(monkeypatch):
    monkeypatch.setattr(incidence, "MOST_CLUSTERS", 50)
    labels = np.stack([np.arange(100) // 2, np.arange(100)], axis=1)
    with pytest.raises(ValueError, match="at most 50 clusters, got more in column 1"):
        coded(labels)
    assert coded(labels[:, :1])[0].book.n_base_clusters == 50


@pytest.mark.parametrize("stretch", [1, 10**15])
def test_unknown_labels_get_no_code(stretch):
    found, _ = coded(np.array([[3 * stretch], [5 * stretch], [-1]]))
    new = np.array([[5], [4], [0], [6], [-1], [3]]) * stretch
    new[4] = -1
    assert LabelCoder(found.book)(new)[:, 0].tolist() == [1, -1, -1, -1, -1, 0]


def test_dtype_of_the_codes():
    for n_labels, dtype in ((128, np.int8), (129, np.int16), (32768, np.int16), (32769, np.int32)):
        labels = np.arange(n_labels)[:, None]
        found, codes = coded(labels)
        assert codes.dtype == found.book.dtype == dtype
        assert np.array_equal(codes.compute(), labels)


def test_fingerprint_knows_the_labels_and_nothing_else(small_blocks):
    labels = np.random.default_rng(0).integers(-1, 5, size=(100, 4))

    def fingerprint(given):
        return scan_labels(check_base_clusterings(given), fingerprint=True).fingerprint

    expected = fingerprint(labels)
    assert fingerprint(labels.astype(np.float32)) == expected
    assert fingerprint(da.from_array(labels, chunks=(7, 3))) == expected
    labels[50, 2] += 1
    assert fingerprint(labels) != expected


def test_the_graph_is_that_of_equations_17_to_19(small_blocks):
    labels = draw()
    found, codes = coded(labels)
    graph = incidence_graph(codes, found.book)
    assert np.array_equal(graph.to_sparse().todense(), ensemble.bipartite(labels))
    assert np.array_equal(row_weights(codes, found.book).compute(), sec.co_association(labels).sum(axis=1))


def test_sample_of_rows_with_labels(small_blocks):
    labels = draw()
    found, codes = coded(labels)
    there = (labels >= 0).any(axis=1)
    every = draw_labelled(codes, found.labelled, 1000, np.random.default_rng(0))
    assert np.array_equal(every, codes.compute()[there])
    some = draw_labelled(codes, found.labelled, 20, np.random.default_rng(0))
    assert some.shape == (20, 4)
    assert (some >= 0).any(axis=1).all()
