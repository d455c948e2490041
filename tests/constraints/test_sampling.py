"""Rows of held blocks."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcluster.constraints.sampling import gather_rows, sample_blocks
from tests.strategies import chunkings


@given(st.data(), st.integers(1, 30))
def test_gathered_rows_are_those_of_the_array(data, n):
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1)))), np.int64)
    for values in (np.arange(n) * 7, np.arange(2 * n).reshape(n, 2)):
        chunked = da.from_array(values, chunks=(data.draw(chunkings(n)), *values.shape[1:]))
        found = gather_rows(chunked, rows, name="dc-rows")
        np.testing.assert_array_equal(found, values[rows])
        assert found.dtype == values.dtype


@pytest.mark.parametrize(("rate", "sizes"), [(0.5, (4, 4, 2)), (0.01, (1, 1, 1)), (1.0, (7, 7, 4))])
def test_a_sample_keeps_the_rows_order_and_the_rate_in_every_block(rate, sizes):
    values = np.arange(18)[:, None] * [1, 100]
    sampled = sample_blocks(da.from_array(values, chunks=(7, 2)), rate, 3)
    assert sampled.chunks[0] == sizes
    found = np.asarray(sampled)
    assert (np.diff(found[:, 0]) > 0).all()
    assert [np.sum((found[:, 0] >= low) & (found[:, 0] < low + 7)) for low in (0, 7, 14)] == list(sizes)
    np.testing.assert_array_equal(found, values[found[:, 0]])
    np.testing.assert_array_equal(np.asarray(sample_blocks(da.from_array(values, chunks=(7, 2)), rate, 3)), found)


def test_every_row_is_drawn_as_often_as_the_others():
    blocks = da.from_array(np.arange(20)[:, None], chunks=(10, 1))
    drawn = [np.asarray(sample_blocks(blocks, 0.3, seed))[:, 0] for seed in range(200)]
    counts = np.bincount(np.concatenate(drawn), minlength=20)
    assert abs(counts - 60).max() < 30  # 4.6 standard deviations
