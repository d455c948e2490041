"""`make` and `convert`."""

from __future__ import annotations

import numpy as np
import pytest

from daskcluster import datasets
from daskcluster.cli.data import DATASETS
from daskcluster.io import open_rows
from tests.cli.calls import as_json, fail, succeed


def test_the_table_agrees_with_the_package():
    assert [name.replace("-", "_") for name in DATASETS] == [
        name.removeprefix("make_") for name in datasets.__all__ if name.startswith("make_")
    ]


@pytest.mark.parametrize("name", DATASETS)
def test_make(tmp_path, name):
    about = as_json("make", name.replace("-", "_"), tmp_path / "x.zarr", "-n", "1k", "--labels", tmp_path / "y.zarr")
    assert about["dataset"] == name
    X, y = getattr(datasets, f"make_{name.replace('-', '_')}")(1000, random_state=0)
    np.testing.assert_array_equal(open_rows(tmp_path / "x.zarr")[...], X.compute())
    np.testing.assert_array_equal(open_rows(tmp_path / "y.zarr")[...], y.compute())
    assert open_rows(tmp_path / "x.zarr").attrs.asdict() == {"dataset": name, "seed": 0}


def test_make_with_seed_and_chunks(tmp_path):
    succeed("make", "flower", tmp_path / "a.zarr", "-n", 1000, "--seed", 1, "--chunk-rows", 300)
    succeed("make", "flower", tmp_path / "b.zarr", "-n", "1e3", "--seed", 1)
    a, b = open_rows(tmp_path / "a.zarr"), open_rows(tmp_path / "b.zarr")
    assert (a.chunks, b.chunks) == ((300, 2), (1000, 2))
    np.testing.assert_array_equal(a[...], b[...])


def test_make_refuses_unknown_names(tmp_path):
    assert "'spiral' is not one of two-bananas, smiling-face" in fail(2, "make", "spiral", tmp_path / "x", "-n", 5)


def test_convert(tmp_path):
    (tmp_path / "x.csv").write_text("name,x,y\na,1,2\nb,3,4\n")
    message = fail(2, "convert", tmp_path / "x.csv", tmp_path / "x.zarr")
    assert message.endswith("column 'name' is not numeric: 'a' in row 0; choose others with --columns")
    options = ["--columns", "y, 1", "--dtype", "float32", "--chunk-rows", 1]
    about = as_json("convert", tmp_path / "x.csv", tmp_path / "x.zarr", *options)
    assert (about["shape"], about["dtype"], about["chunks"]) == ([2, 2], "float32", [1, 2])
    np.testing.assert_array_equal(open_rows(tmp_path / "x.zarr")[...], [[2, 1], [4, 3]])
    np.savez(tmp_path / "x.npz", a=np.eye(3), b=np.eye(4))
    succeed("convert", tmp_path / "x.npz", tmp_path / "b.zarr", "--member", "b")
    assert "2 x 2" in succeed("convert", tmp_path / "x.csv", tmp_path / "c.zarr", "--columns", "x,y").stdout
    assert "no file at" in fail(2, "convert", tmp_path / "no.csv", tmp_path / "no.zarr")
