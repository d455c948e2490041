"""Outputs: refused before any work, whole when they are there; pictures."""

from __future__ import annotations

import importlib.util
import os

import dask.array as da
import pytest

from daskcluster import estimators
from daskcluster.io import open_rows, write_array
from tests.cli.calls import FAST, fail, succeed


def test_existing_outputs_are_refused_before_any_work(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(estimators.USPEC, "fit", lambda *arguments: pytest.fail("worked"))
    taken = tmp_path / "taken.zarr"
    write_array(da.ones(3), taken)
    message = fail(2, "fit", stores / "x.zarr", "-k", 3, "--labels", taken)
    assert message == f"Error: '{taken}' exists; give --overwrite to replace it"
    assert "exists" in fail(2, "predict", stores / "x.zarr", "--model", stores / "model.zarr", "--labels", taken)
    assert "exists" in fail(2, "make", "flower", taken, "-n", 5)
    (tmp_path / "x.csv").write_text("1,2\n")
    assert "exists" in fail(2, "convert", tmp_path / "x.csv", taken)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    assert "is a folder that is no Zarr store" in fail(2, "make", "flower", tmp_path / "folder", "-n", 5, "--overwrite")
    assert open_rows(taken).shape == (3,)


def test_overwrite(tmp_path):
    for rows in (10, 20):
        succeed("make", "flower", tmp_path / "x.zarr", "-n", rows, "--overwrite")
        assert open_rows(tmp_path / "x.zarr").shape == (rows, 2)


def test_an_output_is_neither_an_input_nor_another_output(stores, tmp_path):
    x, out = stores / "x.zarr", tmp_path / "out.zarr"
    assert f"--labels '{x}' is the input; give" in fail(2, "fit", x, "-k", 3, "--labels", x, "--overwrite")
    assert f"--model '{out}' is --labels; give" in fail(2, "fit", x, "-k", 3, "--labels", out, "--model", out)


def test_picture(stores, tmp_path):
    pytest.importorskip("matplotlib")
    for name, start in (("p.png", b"\x89PNG"), ("p.pdf", b"%PDF")):
        succeed("fit", stores / "x.zarr", "-k", 3, *FAST, "--picture", tmp_path / name, "--quiet")
        assert (tmp_path / name).read_bytes().startswith(start)
    assert sorted(os.listdir(tmp_path)) == ["p.pdf", "p.png"]


def test_pictures_that_could_not_be_drawn_are_refused_first(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(estimators.USPEC, "fit", lambda *arguments: pytest.fail("worked"))
    write_array(da.ones((10, 1)), tmp_path / "thin.zarr")
    picture = ["-k", 2, "--picture", tmp_path / "p.png"]
    assert "needs rows with two features" in fail(2, "fit", tmp_path / "thin.zarr", *picture)
    assert "expected a .png" in fail(2, "fit", stores / "x.zarr", "-k", 2, "--picture", tmp_path / "p.doc")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'daskcluster[plot]'" in fail(2, "fit", stores / "x.zarr", *picture)
