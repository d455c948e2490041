"""What attributes declare: numbers that stand for no value, scale and offset."""

from __future__ import annotations

import base64
import re
import struct
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster.io.columns import open_column
from daskcluster.io.inputs import check_rows
from daskcluster.io.nodata import declared

pytestmark = pytest.mark.usefixtures("small_blocks")

RNG = np.random.default_rng(0)
ROWS = (8 * RNG.integers(3, size=(500, 1)) + RNG.normal(size=(500, 2))).astype(np.float32)
BAD = np.array([0, 130, 499])


def base64_of(number: float) -> str:
    return base64.b64encode(struct.pack("<d", number)).decode()


def store(path: Any, values: np.ndarray, **attributes: Any) -> str:
    zarr.create_array(str(path), data=values, chunks=(100, *values.shape[1:]), attributes=attributes)
    return str(path)


@pytest.mark.parametrize(
    ("dtype", "number", "attributes"),
    [
        ("i2", -9999, {"_FillValue": -9999}),
        ("i2", -9999, {"missing_value": -9999.0}),
        ("i2", -9999, {"missing_value": [-1234, -9999]}),
        ("i2", -9999, {"_FillValue": -1234, "missing_value": -9999}),
        ("i4", -(2**31), {"_FillValue": -(2**31)}),
        ("u1", 255, {"_FillValue": 255}),
        ("i1", -1, {"_FillValue": -1, "_Unsigned": "true"}),
        ("i8", 2**60 + 1, {"_FillValue": 2**60 + 1}),
        ("f4", 1e20, {"_FillValue": 1e20}),
        ("f4", -9999, {"_FillValue": "-9999"}),
        ("f8", -9999, {"_FillValue": base64_of(-9999)}),
        ("f2", -999, {"missing_value": -999}),
    ],
    ids=str,
)
def test_declared_nodata_is_missing_like_nan(dtype, number, attributes, tmp_path):
    values = (ROWS * 4 + 20).astype(dtype)
    values[BAD, [0, 1, 0]] = number
    clean = values.astype(np.float64)
    clean[BAD] = np.nan
    path = store(tmp_path / "X.zarr", values, **attributes)
    expected = dc.KMeans(3, missing="label", random_state=0).fit(clean)
    model = dc.KMeans(3, missing="label", random_state=0).fit(path)
    labels = np.asarray(model.labels_)
    np.testing.assert_array_equal(np.flatnonzero(labels == -1), BAD)
    np.testing.assert_array_equal(labels, expected.labels_)
    np.testing.assert_array_equal(np.asarray(model.predict(path)), labels)
    assert np.isnan(np.asarray(model.transform(path))[BAD]).all()
    said = re.escape(declared("X", values.dtype, attributes, {}).absent(values.dtype))
    with pytest.raises(ValueError, match=rf"X contains NaN at row 0, column 0 \(stored as {said}\); pass missing='l"):
        dc.KMeans(3).fit(path)


@pytest.mark.parametrize(
    ("dtype", "attributes", "words"),
    [
        ("i2", {"_FillValue": -9999}, " (stored as -9999, its _FillValue)"),
        (
            "i2",
            {"missing_value": [-1234, -9999]},
            " (stored as -1234, its missing_value, or -9999, its missing_value)",
        ),
        ("i2", {"_FillValue": -9999, "missing_value": -9999}, " (stored as -9999, its _FillValue)"),
        ("f4", {"_FillValue": -9999}, " (stored as NaN, or -9999.0, its _FillValue)"),
        ("f4", {"_FillValue": "NaN"}, ""),
    ],
)
def test_the_error_names_what_is_no_data(dtype, attributes, words, tmp_path):
    """In a store and in memory, in `fit` and, where it is first seen, in `predict`."""
    values = (ROWS * 4 + 20).astype(dtype)
    model = dc.KMeans(3, random_state=0).fit(values)
    values[7, 1] = np.nan if attributes == {"_FillValue": "NaN"} else -9999
    path = store(tmp_path / "X.zarr", values, **attributes)
    chunked = Variable(da.from_array(values, chunks=(70, 2)), attrs=attributes)
    for X in (path, chunked, Variable(values, attrs=attributes)):
        for call in (dc.KMeans(3).fit, lambda X: np.asarray(model.predict(X))):
            with pytest.raises(ValueError, match=f"X contains NaN at row 7, column 1{re.escape(words)}; pass"):
                call(X)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"_FillValue": "NaN"},
        {"_FillValue": base64_of(np.nan)},
        {"_FillValue": -9999},  # a uint8 never is
        {"missing_value": 1e20},
        {"scale_factor": 1.0, "add_offset": 0.0},
        {"units": "m", "columns": ["a", "b"]},
    ],
    ids=str,
)
def test_attributes_that_say_nothing_change_nothing(attributes, tmp_path):
    values = (ROWS * 4 + 20).astype("u1")
    rows = check_rows(store(tmp_path / "X.zarr", values, **attributes))
    assert rows.blocks.dtype == np.uint8
    np.testing.assert_array_equal(rows.blocks.compute(), values)


def test_the_fill_value_of_the_array_alone_is_no_nodata(tmp_path):
    values = np.zeros((100, 2), "i2")
    values[50:] = 7
    zarr.create_array(str(tmp_path / "X.zarr"), data=values, chunks=(100, 2), fill_value=0)
    np.testing.assert_array_equal(dc.KMeans(2).fit(tmp_path / "X.zarr").labels_, np.repeat([0, 1], 50))


def test_scale_and_offset_are_applied_after_nodata(tmp_path):
    values = np.array([[100, 200], [-9999, 300], [400, 500]], "i2")
    for attributes, dtype in (({"scale_factor": 0.5}, "f4"), ({"scale_factor": [0.5], "add_offset": 273.15}, "f8")):
        path = store(tmp_path / f"{dtype}.zarr", values, _FillValue=-9999, **attributes)
        blocks = check_rows(path, "label").blocks
        wanted = np.where(values == -9999, np.nan, values * 0.5 + attributes.get("add_offset", 0.0))
        assert blocks.dtype == dtype
        np.testing.assert_allclose(blocks.compute(), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"scale_factor": [0.1, 0.2]}, "scale_factor=.* one finite number for all columns"),
        ({"add_offset": "NaN"}, "add_offset=.* one finite number for all columns"),
        ({"scale_factor": 0}, "scale_factor=0"),
        ({"_FillValue": "none"}, "_FillValue='none', which is no number"),
        ({"missing_value": {"a": 1}}, "missing_value=.* which is no number"),
    ],
    ids=str,
)
def test_attributes_that_are_not_understood_are_refused(attributes, words, tmp_path):
    path = store(tmp_path / "X.zarr", ROWS, **attributes)
    with pytest.raises(ValueError, match=f"X has the attribute {words}"):
        dc.KMeans(3).fit(path)


def test_labels_without_a_value_are_unknown(tmp_path):
    values = np.array([0, 1, 255, 1], "u1")
    path = store(tmp_path / "y.zarr", values, _FillValue=255)
    np.testing.assert_array_equal(np.asarray(open_column("y", path)), [0, 1, -1, 1])
    base = store(tmp_path / "base.zarr", np.stack([values, values], axis=1), _FillValue=255)
    with pytest.warns(UserWarning, match="1 rows have no label"):
        labels = np.asarray(dc.SEC(2, random_state=0).fit(base).labels_)
    assert list(labels) == [0, 1, -1, 1]
    scaled = store(tmp_path / "scaled.zarr", values, scale_factor=0.5)
    with pytest.raises(ValueError, match=r"y has the attributes scale_factor=0\.5 .* not applied to labels"):
        open_column("y", scaled)


# -- xarray ------------------------------------------------------------------------------------------------------------


class Variable:
    """What is used of xarray's arrays."""

    __module__ = "xarray.core.dataarray"

    def __init__(self, data: Any, attrs: dict[str, Any] | None = None, encoding: dict[str, Any] | None = None) -> None:
        self.data, self.attrs, self.encoding = data, attrs or {}, encoding or {}
        self.shape, self.dtype, self.ndim = data.shape, data.dtype, data.ndim


@pytest.mark.parametrize("chunked", [False, True], ids=["numpy", "dask"])
def test_xarray_variables_as_they_are_stored(chunked):
    values = (ROWS * 4 + 20).astype("i2")
    values[BAD] = -9999
    data = da.from_array(values, chunks=(70, 2)) if chunked else values
    for about in ({"attrs": {"_FillValue": -9999}}, {"encoding": {"_FillValue": -9999}}):
        labels = np.asarray(dc.KMeans(3, missing="label", random_state=0).fit(Variable(data, **about)).labels_)
        np.testing.assert_array_equal(np.flatnonzero(labels == -1), BAD)
    assert (values[BAD] == -9999).all()


def test_xarray_variables_that_are_decoded_are_not_decoded_again():
    encoding = {"_FillValue": -9999, "scale_factor": 0.1, "add_offset": 5.0, "dtype": np.dtype("i2")}
    values = ROWS.copy()
    values[3] = np.nan
    values[4] = -9999
    rows = check_rows(Variable(values, encoding=encoding), "label")
    np.testing.assert_array_equal(rows.blocks.compute(), values)


def test_numbers_keep_every_digit():
    found = declared("X", np.dtype("i8"), {"_FillValue": 2**60 + 1}, {})
    assert found is not None
    block = found(np.array([[2**60, 2**60 + 1]]))
    assert np.isfinite(block[0, 0])
    assert np.isnan(block[0, 1])
