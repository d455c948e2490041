"""npy and npz files turned into Zarr arrays."""

from __future__ import annotations

import os

import numpy as np
import pytest

from daskcluster.io.convert import convert

VALUES = np.random.default_rng(0).normal(size=(100, 3))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u1", ">f4", "?"])
def test_npy(tmp_path, out, order, dtype):
    values = np.asarray(VALUES * 10, dtype=dtype, order=order)
    np.save(tmp_path / "x.npy", values)
    stored = convert(tmp_path / "x.npy", out, chunk_rows=33)
    np.testing.assert_array_equal(stored[...], values)
    assert stored.dtype == (np.uint8 if dtype == "?" else np.dtype(dtype).newbyteorder("="))
    assert stored.chunks == (33, 3)
    assert stored.attrs.asdict() == {"source": "x.npy"}


def test_npy_of_one_dimension_and_of_one_column(tmp_path, out):
    np.save(tmp_path / "y.npy", np.arange(50, dtype=np.int32))
    np.testing.assert_array_equal(convert(tmp_path / "y.npy", out)[...], np.arange(50))
    np.save(tmp_path / "x.npy", VALUES)
    np.testing.assert_array_equal(
        convert(tmp_path / "x.npy", out, columns=[2, 0], overwrite=True)[...], VALUES[:, [2, 0]]
    )
    with pytest.raises(ValueError, match="columns: the array has one dimension"):
        convert(tmp_path / "y.npy", out, columns=[0], overwrite=True)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npz(tmp_path, out, save, order):
    save(tmp_path / "x.npz", X=np.asarray(VALUES, order=order), y=np.arange(100))
    np.testing.assert_array_equal(convert(tmp_path / "x.npz", out)[...], VALUES)  # the only table
    stored = convert(tmp_path / "x.npz", out, member="y", overwrite=True)
    np.testing.assert_array_equal(stored[...], np.arange(100))


def test_npz_needs_a_member_where_it_holds_several(tmp_path, out):
    np.savez(tmp_path / "x.npz", a=VALUES, b=VALUES)
    with pytest.raises(ValueError, match=r"member: 'x\.npz' holds a \(100, 3\) float64, b .*name one"):
        convert(tmp_path / "x.npz", out)
    with pytest.raises(ValueError, match=r"member: no array 'c' in 'x\.npz'; it holds a"):
        convert(tmp_path / "x.npz", out, member="c")
    np.testing.assert_array_equal(convert(tmp_path / "x.npz", out, member="b")[...], VALUES)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array(["a", "b"]), "holds <U1, not numbers"),
        (np.zeros((2, 2), complex), "holds complex128, not numbers"),
        (np.zeros(3, [("x", "f4")]), "not numbers"),
        (np.zeros((2, 2, 2)), r"has shape \(2, 2, 2\); expected rows and columns"),
        (np.zeros((0, 2)), r"holds no rows: its shape is \(0, 2\)"),
        (np.float64(3), "expected rows and columns"),
        (np.array([None]), "not"),
    ],
)
@pytest.mark.parametrize("format", ["npy", "npz"])
def test_arrays_that_are_no_tables(tmp_path, out, values, message, format):
    path = tmp_path / f"x.{format}"
    np.save(path, values) if format == "npy" else np.savez(path, X=values)
    with pytest.raises(ValueError, match=message):
        convert(path, out)
    assert os.listdir(tmp_path) == [path.name]


def test_truncated_npy(tmp_path, out):
    np.save(tmp_path / "x.npy", VALUES)
    data = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(data[:-100])
    with pytest.raises(ValueError, match=r"x\.npy"):
        convert(tmp_path / "x.npy", out)
    assert not out.exists()
