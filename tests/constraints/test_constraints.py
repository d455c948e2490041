"""Constraints: what is accepted, what follows from them, and what they are as a matrix."""

from __future__ import annotations

import itertools
import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import daskcluster as dc
from daskcluster.io.inputs import check_rows

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] != pair[1]), max_size=12)


@pytest.fixture
def small_pieces(small_blocks, monkeypatch):
    """Small blocks of what is checked, and of what is counted."""
    monkeypatch.setattr("daskcluster.constraints.satisfaction.BLOCK_ROWS", 50)


def from_pairs(must=None, cannot=None, **more):
    return dc.Constraints.from_pairs(must, cannot, **more)


# -- pairs ---------------------------------------------------------------------------------------------------


def test_duplicates_and_both_orders_count_once_with_the_largest_weight():
    made = from_pairs([(3, 1), (1, 3), (0, 2), (1, 3)], must_link_weight=[0.2, 0.9, 1.0, 0.5])
    assert made.must_link.tolist() == [[0, 2], [1, 3]]
    assert made.must_link_weight.tolist() == [1.0, 0.9]
    assert made.cannot_link.shape == (0, 2)


@pytest.mark.parametrize("pairs", [None, [], (), np.empty((0, 2))], ids=str)
def test_no_pairs(pairs):
    made = from_pairs(pairs, pairs)
    assert made.must_link.shape == made.cannot_link.shape == (0, 2)
    assert made.contradictions() == []
    assert made.closure().must_link.shape == (0, 2)
    assert made.to_sparse(4).nnz == 0


def test_pairs_of_many_kinds():
    expected = [[0, 1], [2, 4]]
    for pairs in ([(1, 0), (4, 2)], np.array([[1, 0], [4, 2]], np.uint8), np.array([[1.0, 0.0], [4.0, 2.0]])):
        assert from_pairs(cannot=pairs).cannot_link.tolist() == expected
    assert from_pairs(da.from_array(np.array([[1, 0], [4, 2]]), chunks=1)).must_link.tolist() == expected
    assert from_pairs(pd.DataFrame({"a": [1, 4], "b": [0, 2]})).must_link.tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"must_link": [(2, 2)]}, r"must_link must not link a row to itself, got the pair \(2, 2\)"),
        ({"must_link": [(0, -1)]}, r"must_link must name rows from 0 up, got the pair \(0, -1\)"),
        ({"cannot_link": [(0, 9)], "n_samples": 9}, r"cannot_link must name rows 0 to 8, got the pair \(0, 9\)"),
        ({"cannot_link": [0, 1]}, r"cannot_link must be pairs of rows, shape \(m, 2\), got shape \(2,\)"),
        ({"must_link": [(0, 1, 2)]}, r"got shape \(1, 3\)"),
        ({"must_link": [(0, 1.5)]}, r"must_link must hold row numbers, got the pair \(0.0, 1.5\)"),
        ({"must_link": [(0, np.nan)]}, r"must_link must hold row numbers, got the pair \(0.0, nan\)"),
        ({"must_link": [("a", "b")]}, "must_link must hold row numbers, got dtype <U1"),
        ({"must_link": [(0, 1e300)]}, r"must_link must name rows below 2\*\*63, got the pair \(0.0, 1e\+300\)"),
        (
            {"must_link": np.array([(0, 2**64 - 1)], np.uint64)},
            r"must_link must name rows below 2\*\*63, got the pair \(0, 18446744073709551615\)",
        ),
        ({"must_link": [(0, 1), (2,)]}, r"must_link must be pairs of rows, shape \(m, 2\), got \[\(0, 1\), \(2,\)\]"),
        (
            {"must_link": np.ma.array([(0, 1)], mask=[(False, True)])},
            "must_link must .* without masked entries",
        ),
        ({"must_link": [(0, 1)], "must_link_weight": "a"}, "must_link_weight must hold numbers, got 'a'"),
        ({"must_link": [(0, 1)], "must_link_weight": [[1], [1, 2]]}, r"must_link_weight must be numbers, got \[\[1\]"),
        (
            {"must_link": [(0, 1)], "must_link_weight": [1e-50]},
            "must_link_weight must be at least 1.2e-38 and at most 1, got 1e-50 at place 0",
        ),
        ({"must_link": [(0, 1)], "must_link_weight": 0}, "must_link_weight must be above 0 and at most 1, got 0"),
        ({"cannot_link": [(0, 1)], "cannot_link_weight": [1.2]}, "cannot_link_weight .* got 1.2 at place 0"),
        ({"must_link": [(0, 1)], "must_link_weight": [np.nan]}, "must_link_weight .* got nan"),
        ({"must_link": [(0, 1)], "must_link_weight": [-0.5]}, "must_link_weight .* got -0.5"),
        (
            {"must_link": [(0, 1)], "must_link_weight": [1, 1]},
            r"must_link_weight must be one number or have shape \(1,",
        ),
        ({"must_link_weight": [1.0, 1.0]}, "must_link_weight must have one entry a pair, got 2 for no pairs"),
        ({"n_samples": 0}, "n_samples must be an integer >= 1, got 0"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_pairs_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        dc.Constraints.from_pairs(**arguments)


@pytest.mark.parametrize("n_samples", ["a", np.nan, np.inf, 5.0, True], ids=repr)
def test_numbers_of_rows_that_are_none(n_samples):
    with pytest.raises(TypeError, match="n_samples must be an integer >= 1, got"):
        from_pairs([(0, 1)], n_samples=n_samples)
    with pytest.raises(TypeError, match="n_samples must be an integer >= 1, got"):
        from_pairs([(0, 1)]).to_sparse(n_samples)


def test_pairs_for_another_number_of_rows():
    rows = check_rows(np.zeros((5, 1)))
    with pytest.raises(ValueError, match=r"must_link must name rows 0 to 4, got the pair \(0, 5\)"):
        from_pairs([(0, 5)]).on_rows(rows)
    with pytest.raises(ValueError, match="made for the 5 rows of X, got n_samples=6"):
        from_pairs([(0, 1)], n_samples=6).on_rows(rows)


# -- labels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y",
    [
        [7, -1, 300, 7],
        np.array([7, np.nan, 300, 7]),
        np.array([7, np.nan, 300, 7], np.float32),
        np.array([7, np.nan, 300, 7], np.float16),
        np.array([[7], [-1], [300], [7]]),
        pd.Series([7, -1, 300, 7], index=[3, 2, 1, 0]),
        da.from_array(np.array([7, -1, 300, 7]), chunks=((1, 0, 3),)),
        da.from_array(np.array([7, np.nan, 300, 7]), chunks=2),
    ],
    ids=lambda y: type(y).__name__,
)
def test_labels_of_many_kinds(y):
    made = dc.Constraints.from_labels(y)
    assert made.n_samples == 4
    on_rows = made.on_rows(check_rows(np.zeros((4, 2))))
    assert on_rows.codes.compute().tolist() == [0, -1, 1, 0]
    assert on_rows.n_classes == 2
    assert made.satisfaction([0, 0, 1, 0]).must_link == 1


@pytest.mark.parametrize("dtype", [np.int64, np.uint16, np.int8, np.float32], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("chunks", [None, 3, 1])
def test_masked_labels_are_unknown(dtype, chunks):
    y = np.ma.array([7, 8, 100, 7, 9], mask=[False, True, False, False, True], dtype=dtype)
    made = dc.Constraints.from_labels(y if chunks is None else da.from_array(y, chunks=chunks))
    assert made.on_rows(check_rows(np.zeros((5, 2)))).codes.compute().tolist() == [0, -1, 1, 0, -1]
    expected = dc.Constraints.from_labels([7, -1, 100, 7, -1])
    np.testing.assert_array_equal(made.to_sparse().todense(), expected.to_sparse().todense())
    assert made.satisfaction([0, 1, 1, 0, 0]) == expected.satisfaction([0, 1, 1, 0, 0])
    assert made.components()[0].tolist() == [0, 2, 3]


def test_labels_that_dask_masks_are_unknown():
    y = da.ma.masked_equal(da.from_array(np.array([0, 1, 0, 7]), chunks=2), 7)
    assert dc.Constraints.from_labels(y).to_sparse().todense()[3].tolist() == [0, 0, 0, 0]


def test_labels_from_a_store_and_of_unknown_length(tmp_path):
    stored = zarr.create_array(tmp_path / "y.zarr", data=np.array([1, -1, 0, 1], np.int8), chunks=(3,))
    table = zarr.create_array(tmp_path / "t.zarr", data=np.array([[1], [-1], [0], [1]]), chunks=(3, 1))
    unknown = da.from_array(np.arange(6), chunks=4)
    unknown = unknown[unknown < 4]
    rows = check_rows(np.zeros((4, 2)))
    for y in (stored, tmp_path / "y.zarr", str(tmp_path / "y.zarr"), table):
        assert dc.Constraints.from_labels(y).on_rows(rows).codes.compute().tolist() == [1, -1, 0, 1]
    assert dc.Constraints.from_labels(unknown).on_rows(rows).codes.compute().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, -2], "y must hold whole numbers from 0 up, and -1 or NaN for unknown, got -2 at row 1"),
        ([0.5, 1.0], "got 0.5 at row 0"),
        ([0.0, np.inf], "got inf at row 1"),
        (["a", "b"], "y must hold whole numbers, -1 for unknown, got dtype"),
        ([1j, 0], "got dtype complex128"),
        (np.array([0, np.nan, 0.5], np.float16), "got 0.5 at row 2"),
        (np.array([0, 2**63], np.uint64), "got 9223372036854775808 at row 1"),
        ([[0], [1, 2]], r"y must have one entry a row, shape \(n,\), got \[\[0\], \[1, 2\]\]"),
        ([[0, 1], [1, 0]], r"y must have one entry a row, shape \(n,\), got shape \(2, 2\)"),
    ],
    ids=str,
)
def test_what_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        dc.Constraints.from_labels(y)


def test_bad_labels_of_a_chunked_array_are_named_by_their_row(small_pieces):
    y = np.zeros(1000, int)
    y[777] = -3
    made = dc.Constraints.from_labels(da.from_array(y, chunks=130))
    with pytest.raises(ValueError, match="got -3 at row 777"):
        made.on_rows(check_rows(np.zeros((1000, 2))))
    with pytest.raises(ValueError, match="y must have one entry for each of the 999 rows of X, got 1000"):
        made.on_rows(check_rows(np.zeros((999, 2))))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (0, "above 0 and at most 1, got 0"),
        (1e-50, "at least 1.2e-38 and at most 1, got 1e-50"),
        (np.nan, "above 0 and at most 1, got nan"),
        ([1, 2], "above 0 and at most 1, got 2.0 at row 1"),
        ([1.0, 1e-50], "at least 1.2e-38 and at most 1, got 1e-50 at row 1"),
        (np.zeros(2, np.float16), "got 0.0 at row 0"),
        (np.ma.array([0.5, 0.5], mask=[False, True]), "got nan at row 1"),
        ([1.0], "for each of the 2 labels, got 1"),
        (["a", "b"], "hold numbers, got dtype <U1"),
        (1j, "hold numbers, got 1j"),
        ([[1], [1, 2]], r"have one entry a row, shape \(n,\), got \[\[1\], \[1, 2\]\]"),
    ],
    ids=str,
)
def test_what_weights_of_labels_are_refused(weight, message):
    with pytest.raises(ValueError, match=f"weight must .*{message}"):
        dc.Constraints.from_labels([0, 1], weight=weight)


USES = {
    "fit": lambda made, n: made.on_rows(check_rows(np.zeros((n, 2)))),
    "to_sparse": lambda made, n: made.to_sparse(),
    "satisfaction": lambda made, n: made.satisfaction(np.zeros(n, int)),
    "satisfaction of chunked labels": lambda made, n: made.satisfaction(da.zeros(n, dtype=int, chunks=17)),
}


@pytest.mark.parametrize("use", USES)
def test_chunked_content_is_checked_wherever_it_is_read(use, small_pieces):
    y, w = np.full(500, -1), np.ones(500)
    y[::10] = np.arange(50) % 3
    w[1::10] = np.nan  # of rows without a label
    w[2::10] = 9.0
    lazy = da.from_array(y, chunks=130)
    for labels, weight in ((lazy, da.from_array(w, chunks=99)), (y, da.from_array(w, chunks=99)), (lazy, w), (y, w)):
        USES[use](dc.Constraints.from_labels(labels, weight=weight), 500)
    w[360] = -5.0
    for labels, weight in ((lazy, da.from_array(w, chunks=99)), (y, da.from_array(w, chunks=99)), (lazy, w)):
        with pytest.raises(ValueError, match=r"weight must be above 0 and at most 1, got -5.0 at row 360"):
            USES[use](dc.Constraints.from_labels(labels, weight=weight), 500)
    with pytest.raises(ValueError, match=r"got -5.0 at row 360"):
        dc.Constraints.from_labels(y, weight=w)
    made = dc.Constraints.from_labels(da.from_array(np.where(np.arange(500) == 401, 0.5, y), chunks=130))
    with pytest.raises(ValueError, match=r"y must hold whole numbers from 0 up, .* got 0.5 at row 401"):
        USES[use](made, 500)


def test_weights_of_rows_without_a_label_are_not_looked_at():
    rows = check_rows(np.zeros((3, 2)))
    for weight in ([1.0, 0.5, np.nan], [1.0, 0.5, 1e300], np.ma.array([1.0, 0.5, 0.0], mask=[False, False, True])):
        made = dc.Constraints.from_labels([0, 1, -1], weight=weight)
        found = made.on_rows(rows, fingerprint=True)
        assert found.confidences.compute()[:2].tolist() == [1.0, 0.5]
        assert np.isfinite(found.confidences.compute()).all()
        assert (
            found.fingerprint
            == dc.Constraints.from_labels([0, 1, -1], weight=[1, 0.5, 1]).on_rows(rows, fingerprint=True).fingerprint
        )


def test_nothing_of_chunked_labels_is_computed_before_a_fit():
    def fail(block):
        raise AssertionError("computed")

    y = da.from_array(np.zeros(8, int), chunks=4).map_blocks(fail, dtype=int, meta=np.empty(0, int))
    made = dc.Constraints.from_labels(y)
    assert repr(made) == "Constraints.from_labels(<8 labels>)"
    with pytest.raises(AssertionError, match="computed"):
        made.on_rows(check_rows(np.zeros((8, 1))))


# -- closure -------------------------------------------------------------------------------------------------


def plain_closure(must, cannot, n_rows=10):
    """Floyd and Warshall with the weakest link of the strongest chain."""
    strength = np.eye(n_rows)
    for (i, j), weight in must.items():
        strength[i, j] = strength[j, i] = max(weight, strength[i, j])
    for k, i, j in itertools.product(range(n_rows), repeat=3):
        strength[i, j] = max(strength[i, j], min(strength[i, k], strength[k, j]))
    apart = np.zeros((n_rows, n_rows))
    for (i, j), weight in cannot.items():
        for a, b in itertools.product(range(n_rows), repeat=2):
            for left, right in ((i, j), (j, i)):
                apart[a, b] = max(apart[a, b], min(strength[a, left], weight, strength[right, b]))
    return strength, apart


@given(PAIRS, PAIRS, st.randoms(use_true_random=False))
def test_closure_against_all_chains(must, cannot, random):
    must_weights = [random.choice([0.25, 0.5, 0.75, 1.0]) for _ in must]
    cannot_weights = [random.choice([0.25, 0.5, 0.75, 1.0]) for _ in cannot]
    made = from_pairs(must, cannot, must_link_weight=must_weights, cannot_link_weight=cannot_weights)
    strength, apart = plain_closure(
        {tuple(pair): w for pair, w in zip(made.must_link.tolist(), made.must_link_weight, strict=True)},
        {tuple(pair): w for pair, w in zip(made.cannot_link.tolist(), made.cannot_link_weight, strict=True)},
    )
    contradicted = [(i, j) for i, j in made.cannot_link.tolist() if strength[i, j] > 0]
    found = made.contradictions(limit=100)
    assert [(found.chain[0], found.chain[-1]) for found in found] == contradicted
    linked = {tuple(pair) for pair in made.must_link.tolist()}
    for contradiction in found:
        assert all(tuple(sorted(link)) in linked for link in itertools.pairwise(contradiction.chain))
    if contradicted:
        with pytest.raises(ValueError, match="contradict each other"):
            made.closure()
        return
    closed = made.closure()
    upper = list(zip(*np.nonzero(np.triu(strength, 1)), strict=True))
    assert [tuple(pair) for pair in closed.must_link] == upper
    np.testing.assert_array_equal(closed.must_link_weight, [strength[pair] for pair in upper])
    upper = list(zip(*np.nonzero(np.triu(apart, 1)), strict=True))
    assert [tuple(pair) for pair in closed.cannot_link] == upper
    np.testing.assert_array_equal(closed.cannot_link_weight, [apart[pair] for pair in upper])
    again = closed.closure()  # idempotent
    np.testing.assert_array_equal(again.must_link, closed.must_link)
    np.testing.assert_array_equal(again.cannot_link_weight, closed.cannot_link_weight)


def test_the_chain_of_a_contradiction_is_named():
    made = from_pairs([(0, 5), (5, 2), (2, 9), (0, 7), (7, 9)], [(3, 4), (9, 0)])
    assert [found.chain for found in made.contradictions()] == [(0, 7, 9)]
    with pytest.raises(ValueError, match=r"rows 0 and 9 cannot link, but the chain of must-links 0 - 7 - 9 joins them"):
        made.check_consistent()
    assert from_pairs([(0, 1)], [(0, 2), (1, 2)]).check_consistent().contradictions() == []
    assert str(from_pairs([(0, 1)], [(1, 0)]).contradictions()[0]).endswith("must-links 0 - 1 joins them")
    both = from_pairs([(0, 1)], [(0, 1)])
    assert both.contradictions()[0].chain == (0, 1)


def test_the_text_of_a_long_chain_leaves_out_its_middle():
    rows = np.arange(10_001)
    found = from_pairs(np.stack([rows[:-1], rows[1:]], axis=1), [(0, 10_000)]).contradictions()[0]
    assert found.chain == tuple(rows)
    assert "must-links 0 - 1 - 2 - 3 - ... 9993 rows ... - 9997 - 9998 - 9999 - 10000 joins them" in str(found)
    nine = from_pairs([(i, i + 1) for i in range(8)], [(0, 8)]).contradictions()[0]
    assert "0 - 1 - 2 - 3 - 4 - 5 - 6 - 7 - 8 joins" in str(nine)


def test_components():
    rows, components = from_pairs([(8, 3), (3, 5), (1, 2)]).components()
    assert (rows.tolist(), components.tolist()) == ([1, 2, 3, 5, 8], [1, 1, 3, 3, 3])
    rows, components = dc.Constraints.from_labels([4, -1, 0, 4, 0]).components()
    assert (rows.tolist(), components.tolist()) == ([0, 2, 3, 4], [0, 2, 0, 2])


def test_labels_are_closed_and_consistent():
    made = dc.Constraints.from_labels([0, 1, -1, 0])
    assert made.closure() is made
    assert made.check_consistent().contradictions() == []


def test_a_closure_that_is_too_large_is_refused():
    chain = np.arange(20_000)
    with pytest.raises(ValueError, match="the closure of the constraints has 199990000 pairs, more than"):
        from_pairs(np.stack([chain[:-1], chain[1:]], axis=1)).closure()


# -- the matrix ----------------------------------------------------------------------------------------------


def test_matrix_of_labels():
    Q = dc.Constraints.from_labels([3, -1, 3, 0]).to_sparse()
    expected = [[0, 0, 1, -1], [0, 0, 0, 0], [1, 0, 0, -1], [-1, 0, -1, 0]]
    assert Q.shape == (4, 4)
    assert Q.todense().tolist() == expected
    weighted = dc.Constraints.from_labels([3, -1, 3, 0], weight=[0.5, 1.0, 0.5, 1.0]).to_sparse().todense()
    assert weighted[0].tolist() == [0, 0, 0.25, -0.5]


def test_matrix_of_pairs():
    made = from_pairs([(0, 1), (1, 2)], [(0, 1), (3, 0)], must_link_weight=0.9, cannot_link_weight=[0.4, 1.0])
    Q = made.to_sparse()
    assert Q.shape == (4, 4)
    np.testing.assert_allclose(Q.todense(), Q.todense().T)
    np.testing.assert_allclose(Q.todense()[0], [0, 0.5, 0, -1])
    assert made.to_sparse(7).shape == (7, 7)
    with pytest.raises(ValueError, match=r"must name rows 0 to 2, got the pair \(0, 3\)"):
        made.to_sparse(3)
    with pytest.raises(ValueError, match="n_samples must be an integer >= 1, got 0"):
        made.to_sparse(0)
    for known in (dc.Constraints.from_labels([0, 1, -1, 0]), from_pairs([(0, 1)], n_samples=4)):
        assert known.to_sparse(4).shape == (4, 4)
        for n in (3, 5):
            with pytest.raises(ValueError, match=f"n_samples must be 4, the rows .* made for, got {n}"):
                known.to_sparse(n)


def test_a_matrix_that_is_too_large_is_refused():
    with pytest.raises(ValueError, match="9000 labelled rows make 81000000 entries, more than"):
        dc.Constraints.from_labels(np.zeros(9000, int)).to_sparse()


def test_constraints_pickle():
    for made in (from_pairs([(0, 1)], [(1, 2)], n_samples=3), dc.Constraints.from_labels([0, -1, 1], weight=0.5)):
        copied = pickle.loads(pickle.dumps(made))
        np.testing.assert_array_equal(copied.to_sparse().todense(), made.to_sparse().todense())
