"""Distinct rows of codes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskcluster.kernels.distinct import HASH_PRIME, find_rows, hash_rows, number_rows, place_rows

CODES = hnp.arrays(np.int8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(-1, 2))


@given(CODES)
def test_rows_are_numbered_by_their_first(codes):
    numbers, first = number_rows(codes)
    seen: dict[tuple[int, ...], int] = {}
    for row, number in zip(codes.tolist(), numbers, strict=True):
        if max(row) < 0:
            assert number == -1
        else:
            assert number == seen.setdefault(tuple(row), len(seen))
    assert [tuple(row) for row in codes[first].tolist()] == list(seen)


@given(CODES, CODES)
def test_known_rows_are_found(codes, others):
    n_columns = min(codes.shape[1], others.shape[1])
    known, asked = (np.ascontiguousarray(rows[:, :n_columns]) for rows in (codes, others))
    places = find_rows(asked, known, place_rows(known))
    rows = known.tolist()
    assert places.tolist() == [rows.index(row) if row in rows else -1 for row in asked.tolist()]


def test_plain_python(twin):
    codes = np.array([[1, 300], [-1, -1], [1, 300], [0, -1]], np.int16)
    numbers, first = twin(number_rows)(codes)
    assert numbers.tolist() == [0, -1, 0, 1]
    assert first.tolist() == [0, 3]
    table = twin(place_rows)(codes[first])
    assert twin(find_rows)(codes, codes[first], table).tolist() == [0, -1, 0, 1]
    assert twin(hash_rows)(codes)[0] == hash_rows(codes)[2]


def test_hashes_are_spread():
    codes = np.stack(np.meshgrid(np.arange(200), np.arange(100)), axis=-1).reshape(-1, 2).astype(np.int16)
    hashes = hash_rows(codes)
    assert len(np.unique(hashes)) > 19_990
    counts = np.histogram(hashes, bins=20, range=(0, HASH_PRIME))[0]
    assert counts.min() > 850
    assert counts.max() < 1150
