"""`info`."""

from __future__ import annotations

import zarr

from tests.cli.calls import N, as_json, fail, succeed


def test_info(stores, tmp_path):
    about = as_json("info", stores / "x.zarr")
    assert (about["kind"], about["shape"], about["dtype"]) == ("array", [N, 2], "float32")
    assert about["attributes"] == {"dataset": "concentric-circles", "seed": 0}
    about = as_json("info", stores / "model.zarr")
    assert (about["kind"], about["class"]) == ("model", "USPEC")
    assert about["parameters"]["n_representatives"] == 300
    assert about["arrays"]["representatives_"]["shape"] == [300, 2]
    shown = succeed("info", stores / "model.zarr").stdout
    assert "300 x 2 float64" in shown
    assert "n_representatives" in shown
    group = zarr.create_group(str(tmp_path / "g.zarr"), attributes={"made": "by hand"})
    group.create_array("deep/X", shape=(5, 2), dtype="f4", chunks=(5, 2))
    about = as_json("info", tmp_path / "g.zarr")
    assert about["arrays"] == {"deep/X": {"shape": [5, 2], "dtype": "float32", "chunks": [5, 2]}}
    assert "by hand" in succeed("info", tmp_path / "g.zarr").stdout
    assert "nothing exists there" in fail(2, "info", tmp_path / "no.zarr")
    assert "is a folder, not a Zarr array" in fail(2, "info", tmp_path)
