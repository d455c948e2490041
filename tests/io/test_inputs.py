"""User data as lazy dask arrays."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

from daskcluster.files import create_array
from daskcluster.io import inputs, open_dask

VALUES = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)


def test_open_dask_reads_whole_stored_chunks(tmp_path):
    stored = create_array(tmp_path / "x.zarr", (1000, 3), "f4", chunks=70)
    stored[...] = VALUES
    array = open_dask(tmp_path / "x.zarr")
    assert array.numblocks == (1, 1)  # small chunks are read together
    np.testing.assert_array_equal(array.compute(), VALUES)


def test_open_dask_keeps_large_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "CHUNK_BYTES", 150 * 12)
    stored = create_array(tmp_path / "x.zarr", (1000, 3), "f4", chunks=70)
    stored[...] = VALUES
    assert open_dask(stored).chunks[0] == (140,) * 7 + (20,)
    sharded = create_array(tmp_path / "s.zarr", (1000, 3), "f4", chunks=70, shards=350)
    sharded[...] = VALUES
    assert open_dask(sharded).chunks[0] == (350, 350, 300)
    with pytest.raises(ValueError, match="scalar"):
        open_dask(zarr.create_array(str(tmp_path / "scalar.zarr"), shape=(), dtype="f4"))
