"""`score`."""

from __future__ import annotations

import dask.array as da
import numpy as np
import zarr

import daskcluster
from daskcluster.cli.score import METRICS
from daskcluster.io import open_rows, write_array
from tests.cli.calls import N, as_json, fail, succeed


def test_score(stores, tmp_path):
    true, pred = open_rows(stores / "y.zarr")[...], open_rows(stores / "labels.zarr")[...]
    scores = as_json("score", stores / "y.zarr", stores / "labels.zarr")
    assert scores.pop("command") == "score"
    for name, (function, _) in METRICS.items():
        assert scores.pop(name) == getattr(daskcluster.metrics, function)(true, pred)
    assert scores == {}
    assert "  normalized mutual information\n" in succeed("score", stores / "y.zarr", stores / "labels.zarr").stdout
    write_array(da.ones(5), tmp_path / "short.zarr")
    assert "5" in fail(2, "score", stores / "y.zarr", tmp_path / "short.zarr")
    zarr.create_group(str(tmp_path / "g.zarr")).create_array("y", shape=(5,), dtype="i4")
    assert "is a Zarr group" in fail(2, "score", stores / "y.zarr", tmp_path / "g.zarr")


def test_score_takes_labels_from_a_csv_file(stores, tmp_path):
    np.savetxt(tmp_path / "y.csv", np.asarray(open_rows(stores / "y.zarr")[...]), fmt="%d")
    succeed("convert", tmp_path / "y.csv", tmp_path / "y.zarr", "--dtype", "int32")
    assert open_rows(tmp_path / "y.zarr").shape == (N, 1)
    assert as_json("score", stores / "y.zarr", tmp_path / "y.zarr")["NMI"] == 1
