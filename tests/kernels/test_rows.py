"""Stage 0 on one block, against plain loops and hand-made cases."""

import math

import numpy as np
import pytest

from daskcluster.kernels.rows import compute_dtype, finite_rows, prepare_rows, scan_rows

FLOATS = ["f2", "f4", "f8", ">f4", ">f8"]


def scan(kernel, rows):
    minimum = np.full(rows.shape[1], np.inf)
    maximum = np.full(rows.shape[1], -np.inf)
    return tuple(map(int, kernel(rows, minimum, maximum))), minimum, maximum


def scan_by_loops(rows):
    whole = [row for row in rows.tolist() if all(map(math.isfinite, row))]
    bad = [(i, f) for i, row in enumerate(rows.tolist()) for f, value in enumerate(row) if not math.isfinite(value)]
    minimum = [min(column) for column in zip(*whole, strict=True)]
    maximum = [max(column) for column in zip(*whole, strict=True)]
    return (len(whole), *(bad[0] if bad else (-1, -1))), minimum, maximum


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("?", "f4"), ("i1", "f4"), ("u1", "f4"), ("i2", "f4"), ("u2", "f4"), ("f2", "f4"), ("f4", "f4"), (">f4", "f4"),
        ("i4", "f8"), ("u4", "f8"), ("i8", "f8"), ("u8", "f8"), ("f8", "f8"), (">i2", "f4"), (">f8", "f8"),
    ],
)  # fmt: skip
def test_computing_dtype_holds_every_value(dtype, expected):
    found = compute_dtype(np.dtype(dtype))
    assert found == np.dtype(expected)
    assert found.isnative


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n_features", [1, 3])
def test_scan_agrees_with_plain_loops(twin, dtype, n_features):
    rng = np.random.default_rng(n_features)
    rows = rng.normal(size=(40, n_features)).astype(dtype)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[7, 0], rows[9, -1] = np.inf, -np.inf
    found, minimum, maximum = scan(twin(scan_rows), rows)
    expected, least, most = scan_by_loops(rows)
    assert found == expected
    assert minimum.tolist() == least
    assert maximum.tolist() == most


def test_scan_of_finite_rows_only_widens_the_range(twin):
    rows = np.array([[1.0, -4.0], [3.0, 2.0]])
    minimum, maximum = np.array([0.0, -9.0]), np.array([2.0, -8.0])
    assert twin(scan_rows)(rows, minimum, maximum) == (2, -1, -1)
    assert minimum.tolist() == [0, -9]
    assert maximum.tolist() == [3, 2]


def test_scan_names_the_first_bad_value_in_row_order(twin):
    rows = np.array([[0.0, 0.0, 0.0], [1.0, np.inf, np.nan], [np.nan, 0.0, 0.0]])
    found, minimum, maximum = scan(twin(scan_rows), rows)
    assert found == (1, 1, 1)
    assert minimum.tolist() == maximum.tolist() == [0, 0, 0]  # the other values of a bad row do not count


def test_scan_of_no_finite_row_leaves_the_range(twin):
    rows = np.full((3, 2), np.nan)
    found, minimum, maximum = scan(twin(scan_rows), rows)
    assert found == (0, 0, 0)
    assert np.isposinf(minimum).all()
    assert np.isneginf(maximum).all()


def test_scan_of_an_empty_block(twin):
    assert scan(twin(scan_rows), np.empty((0, 2)))[0] == (0, -1, -1)


@pytest.mark.parametrize("dtype", [*FLOATS, np.longdouble])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_finite_rows_finds_every_bad_row(dtype, bad):
    block = np.arange(12).reshape(6, 2).astype(dtype)
    assert finite_rows(block) is None
    block[4, 1] = bad
    block[0, 0] = bad
    assert finite_rows(block).tolist() == [False, True, True, True, False, True]


def test_infinities_that_cancel_are_found():
    assert finite_rows(np.array([[np.inf], [0.0], [-np.inf]])).tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_a_sum_that_overflows_is_no_bad_row(dtype):
    block = np.full((5, 2), np.finfo(dtype).max)
    assert finite_rows(block) is None
    block[2, 0] = np.nan
    assert finite_rows(block).tolist() == [True, True, False, True, True]


@pytest.mark.parametrize("dtype", ["u1", "i8", "?"])
def test_integers_are_finite(dtype):
    assert finite_rows(np.ones((3, 2), dtype)) is None


@pytest.mark.parametrize("dtype", [*FLOATS, "u1", ">i4", "i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_prepared_rows_are_shifted_and_scaled(dtype, order):
    block = np.asarray([[3, 5], [7, 100]]).astype(dtype).copy(order)
    before = block.copy()
    rows = prepare_rows(block, np.array([3.0, 4.0]), 0.25)
    assert rows.tolist() == [[0, 0.25], [1, 24]]
    assert rows.dtype == compute_dtype(block.dtype)
    assert rows.flags.c_contiguous
    assert np.array_equal(block, before)
    assert not np.shares_memory(rows, block)


def test_prepared_rows_keep_digits_far_from_the_origin():
    block = np.array([[1e6], [1e6 + 1], [1e6 + 2]], np.float32)
    assert prepare_rows(block, np.array([1e6 + 1]), 0.5).ravel().tolist() == [-0.5, 0, 0.5]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_at_both_ends_of_the_range_do_not_overflow(dtype):
    most = float(np.finfo(dtype).max)
    scale = 2.0 ** -int(np.frexp(most)[1])
    rows = prepare_rows(np.array([[-most], [0.0], [most]], dtype), np.array([-most]), scale)
    assert rows.ravel() == pytest.approx([0.0, 1.0, 2.0], rel=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_that_the_scale_brings_beyond_the_range_stay_finite(dtype):
    """New rows, of another order of size than those that chose the scale."""
    most = float(np.finfo(dtype).max)
    block = np.array([[1.0, -most], [most / 2, 3.0], [most, 0.5]], dtype)
    rows = prepare_rows(block, np.array([0.5, 0.5]), 2.0**20)
    assert np.isfinite(rows).all()
    assert rows[0, 0] == 2.0**19
    assert rows[1, 1] == 2.5 * 2.0**20
    assert rows[0, 1] == -rows[1, 0] == -rows[2, 0]
    assert rows[1, 0] > 0.99 * most


@pytest.mark.parametrize("dtype", [*FLOATS, "i2"])
def test_unit_length(dtype):
    block = np.array([[3, 4], [0, 0], [-5, 0]]).astype(dtype)
    rows = prepare_rows(block, np.array([9.0, 9.0]), 8.0, unit_length=True)  # shift and scale do not apply
    assert rows == pytest.approx(np.array([[0.6, 0.8], [0, 0], [-1, 0]]), rel=1e-7)
    assert rows.dtype == compute_dtype(block.dtype)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_unit_length_of_rows_whose_squares_leave_the_range(size):
    rows = prepare_rows(np.array([[3 * size, 4 * size]]), np.zeros(2), 1.0, unit_length=True)
    assert rows == pytest.approx(np.array([[0.6, 0.8]]), rel=1e-14)
