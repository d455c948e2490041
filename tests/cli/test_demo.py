"""`demo`."""

from __future__ import annotations

import os

import pytest

from tests.cli.calls import as_json, fail, succeed


def test_demo(tmp_path):
    pytest.importorskip("matplotlib")
    for _ in range(2):  # outputs of an earlier demo are replaced
        about = as_json("demo", "-n", 5000, "--directory", tmp_path / "demo", "--quiet")
        assert about["n_samples"] == 5000
        assert about["n_clusters"] == 13
        assert about["scores"]["NMI"] > 0.9
        assert sorted(os.listdir(tmp_path / "demo")) == [
            "classes.zarr",
            "flower.zarr",
            "labels.zarr",
            "model.zarr",
            "picture.png",
        ]


def test_demo_of_a_store(stores, tmp_path):
    shown = succeed("demo", stores / "x.zarr", 3, "--directory", tmp_path / "demo", "--quiet").stdout
    assert "cluster sizes" in shown
    assert not (tmp_path / "demo" / "flower.zarr").exists()
    assert "give both STORE.zarr and K" in fail(2, "demo", stores / "x.zarr")
    assert "-n is for the flower data" in fail(2, "demo", stores / "x.zarr", 3, "-n", 5)
    (tmp_path / "file").touch()
    assert "is not a folder" in fail(2, "demo", "--directory", tmp_path / "file")
