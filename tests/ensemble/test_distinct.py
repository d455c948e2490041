"""Distinct rows of the codes, over blocks, and the limit of their number."""

from __future__ import annotations

import re

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcluster.ensemble.distinct import distinct_rows
from tests.kernels.test_distinct import CODES


@given(CODES.filter(lambda codes: (codes >= 0).any()), st.integers(1, 9))
def test_blocks_do_not_matter(codes, chunks):
    found = distinct_rows(da.from_array(codes, chunks=(chunks, -1)), 99)
    rows = [row for row in codes.tolist() if max(row) >= 0]
    expected = list(dict.fromkeys(map(tuple, rows)))
    assert list(map(tuple, found.codes.tolist())) == expected
    assert found.counts.tolist() == [rows.count(list(row)) for row in expected]
    assert found.codes.dtype == codes.dtype


@pytest.mark.parametrize("n_distinct", [101, 1000, 5000, 60_000])
def test_too_many_are_refused_with_their_number(n_distinct):
    numbers = np.random.default_rng(0).permutation(np.arange(2 * n_distinct) % n_distinct)
    codes = np.stack([numbers % 64, numbers // 64 % 64, numbers // 4096], axis=1).astype(np.int8)
    lazy = da.from_array(codes, chunks=(len(codes) // 7, -1))
    with pytest.raises(ValueError, match="more than max_distinct=100: use fewer or coarser base clusterings") as caught:
        distinct_rows(lazy, 100)
    named = re.search(r"about ([\d,]+) distinct rows", str(caught.value))
    assert named is not None
    number = int(named[1].replace(",", ""))
    assert number == n_distinct if n_distinct < 1000 else number == pytest.approx(n_distinct, rel=0.1)
