"""Scaled features."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

import daskcluster
from daskcluster.cli.scale import SCALES
from daskcluster.io import load_model, open_rows, write_array
from tests.cli.calls import FAST, N, as_json, fail, succeed


@pytest.fixture
def stretched(stores, tmp_path) -> np.ndarray:
    """Rows whose features differ by six orders of magnitude, stored with two chunkings."""
    values = open_rows(stores / "x.zarr")[...] * np.array([1e-3, 1e3]) + np.array([0, 1e5])
    for name, chunks in (("a.zarr", 1000), ("b.zarr", 217)):
        write_array(da.from_array(values, chunks=(chunks, 2)), tmp_path / name, chunks=chunks)
    return values


@pytest.mark.parametrize("scale", list(SCALES))
def test_scaling_is_part_of_the_model(stores, tmp_path, stretched, scale):
    outputs = ["--labels", tmp_path / "l.zarr", "--model", tmp_path / "m.zarr", "--quiet"]
    succeed("fit", tmp_path / "a.zarr", "-k", 3, *FAST, "--scale", scale, *outputs)
    labels = open_rows(tmp_path / "l.zarr")[...]
    assert daskcluster.metrics.normalized_mutual_info(open_rows(stores / "y.zarr")[...], labels) > 0.95
    # another chunking gives the same labels, and so does the stored model
    succeed("fit", tmp_path / "b.zarr", "-k", 3, *FAST, "--scale", scale, "--labels", tmp_path / "l2.zarr", "--quiet")
    np.testing.assert_array_equal(open_rows(tmp_path / "l2.zarr")[...], labels)
    succeed("predict", tmp_path / "b.zarr", "--model", tmp_path / "m.zarr", "--labels", tmp_path / "p.zarr", "--quiet")
    np.testing.assert_array_equal(open_rows(tmp_path / "p.zarr")[...], labels)
    # in Python the scaling cannot be forgotten either
    pipeline = load_model(tmp_path / "m.zarr")
    np.testing.assert_array_equal(pipeline.predict(da.from_array(stretched, chunks=(100, 2))), labels)
    shown = succeed("info", tmp_path / "m.zarr").stdout
    assert f"dask_ml.preprocessing.{SCALES[scale]}" in shown
    assert "USPEC" in shown


@pytest.mark.parametrize("scale", list(SCALES))
def test_scaling_with_missing_values(tmp_path, stretched, scale):
    stretched[7, 1] = np.nan
    stretched[1000:2000] = np.inf  # a whole chunk
    write_array(da.from_array(stretched, chunks=(1000, 2)), tmp_path / "n.zarr", chunks=1000)
    options = ["-k", 3, *FAST, "--scale", scale, "--labels", tmp_path / "l.zarr", "--quiet"]
    message = fail(2, "fit", tmp_path / "n.zarr", *options)
    assert "at row 7, column 1; --missing label gives the label -1" in message
    about = as_json("fit", tmp_path / "n.zarr", *options, "--missing", "label")
    assert about["cluster_sizes"].pop("-1") == 1001
    assert sum(about["cluster_sizes"].values()) == N - 1001
    # as if those rows were absent
    finite = stretched[np.isfinite(stretched).all(axis=1)]
    write_array(da.from_array(finite, chunks=(1000, 2)), tmp_path / "f.zarr", chunks=1000)
    options[-2] = tmp_path / "lf.zarr"
    succeed("fit", tmp_path / "f.zarr", *options)
    labels = open_rows(tmp_path / "l.zarr")[...]
    assert isinstance(labels, np.ndarray)
    np.testing.assert_array_equal(open_rows(tmp_path / "lf.zarr")[...], labels[labels >= 0])


def test_scaling_without_any_finite_row_or_of_labels(stores, tmp_path):
    write_array(da.full((10, 2), np.nan), tmp_path / "n.zarr")
    options = ["-k", 2, "--scale", "standard", "--labels", tmp_path / "l.zarr", "--quiet"]
    assert "has no row without NaN" in fail(2, "fit", tmp_path / "n.zarr", *options, "--missing", "label")
    assert "expected a table of numbers" in fail(2, "fit", stores / "y.zarr", *options)
