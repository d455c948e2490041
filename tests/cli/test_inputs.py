"""Inputs that cannot be opened."""

from __future__ import annotations

import os

from tests.cli.calls import fail


def test_inputs_that_are_no_arrays(stores, tmp_path):
    out = ["--labels", tmp_path / "out.zarr"]
    assert "nothing exists there" in fail(2, "fit", tmp_path / "x.zarr", "-k", 3, *out)
    assert "is a folder, not a Zarr array" in fail(2, "fit", tmp_path, "-k", 3, *out)
    assert "is a saved model (USPEC)" in fail(2, "fit", stores / "model.zarr", "-k", 3, *out)
    assert "is a Zarr array, not a saved model" in fail(
        2, "predict", stores / "x.zarr", "--model", stores / "x.zarr", *out
    )
    assert os.listdir(tmp_path) == []
