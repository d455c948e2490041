"""Stores that the commands read."""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import numpy as np
import pytest

from tests.cli.calls import FAST, N, succeed


@pytest.fixture(scope="session")
def stores(tmp_path_factory) -> Path:
    """A folder with rows, classes, a model and labels, for reading only."""
    folder = tmp_path_factory.mktemp("stores")
    succeed("make", "concentric-circles", folder / "x.zarr", "-n", N, "--labels", folder / "y.zarr", "--quiet")
    options = ["--labels", folder / "labels.zarr", "--model", folder / "model.zarr", "--quiet"]
    succeed("fit", folder / "x.zarr", "-k", 3, *FAST, *options)
    return folder


@pytest.fixture
def blobs(tmp_path, monkeypatch) -> Path:
    """The working folder, with X.zarr, three blobs; y.zarr, their classes; base.zarr, five base clusterings of them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=400)
    X = np.array([[0, 0], [5, 5], [0, 6]])[truth] + 0.3 * rng.normal(size=(400, 2))
    base = np.stack([np.where(rng.random(400) < 0.1, rng.integers(3, size=400), truth) for _ in range(5)], axis=1)
    da.from_array(X, chunks=(100, 2)).to_zarr("X.zarr")
    da.from_array(base, chunks=(100, 5)).to_zarr("base.zarr")
    da.from_array(truth, chunks=100).to_zarr("y.zarr")
    return tmp_path
