"""Outputs that would eat inputs, stores or each other are refused before any work, and nothing is lost."""

from __future__ import annotations

import os
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster import estimators
from daskcluster.io import write_array
from tests.cli.calls import fail, succeed


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with g.zarr/X, base.zarr, a model, a finished storage, y.zarr, pairs.csv; and no work done."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)), 9 + rng.normal(size=(60, 2))])
    zarr.create_group("g.zarr").create_array("X", data=X)
    zarr.create_array("base.zarr", data=np.stack([X[:, 0] > 4, X[:, 1] > 4], axis=1).astype(np.int32))
    zarr.create_array("y.zarr", data=np.where(np.arange(120) % 9 == 0, np.arange(120) // 60, -1))
    Path("pairs.csv").write_text("0,1\n2,3\n")
    Path("link").symlink_to("g.zarr")
    dc.KMeans(2, random_state=0, storage="run").fit("g.zarr/X").save("m.zarr")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


FIT = ["fit", "g.zarr/X", "-k", 2, "--overwrite"]
REFUSED = [
    *([*FIT, "--labels", f"{prefix}g.zarr"] for prefix in ("", "./", "file://{home}/", "{home}/", "~/", "run/../")),
    [*FIT, "--labels", "link"],
    [*FIT, "--labels", "link/X"],
    [*FIT, "--labels", "file://{home}/link"],
    [*FIT, "--labels", "g.zarr/"],
    [*FIT, "--labels", "g.zarr/X/labels"],
    ["fit", "link/X", "-k", 2, "--overwrite", "--labels", "g.zarr"],
    ["fit", "file://{home}/g.zarr/X", "-k", 2, "--overwrite", "--labels", "g.zarr/X"],
    [*FIT, "--model", "g.zarr"],
    [*FIT, "--model", "g.zarr/X"],
    [*FIT, "--picture", "g.zarr/X.png", "--labels", "g.zarr/X.png/l"],
    [*FIT, "--picture", "g.zarr"],
    [*FIT, "--labels", "a.zarr", "--storage", "a.zarr"],
    [*FIT, "--labels", "run/labels", "--storage", "run"],
    [*FIT, "--labels", "run/labels"],
    [*FIT, "--labels", "run", "--storage", "other"],
    [*FIT, "--labels", "a.zarr", "--model", "a.zarr/m"],
    [*FIT, "--labels", "a.zarr/l", "--model", "a.zarr"],
    [*FIT, "--labels", "a.zarr", "--storage", "g.zarr/X/run"],
    [*FIT, "--labels", "a.zarr", "--storage", "g.zarr"],
    [*FIT, "--labels", "a.zarr", "--storage", "link"],
    [*FIT, "--labels", "store/a.zarr", "--storage", "store"],
    [*FIT, "--labels", "store", "--storage", "store/run"],
    [*FIT, "--labels", "m.zarr"],
    [*FIT, "--labels", "m.zarr/labels"],
    [*FIT, "--model", "base.zarr"],
    [*FIT, "--labels", "y.zarr", "--algorithm", "fastcsc", "--partial-labels", "y.zarr"],
    [*FIT, "--picture", "pairs.csv", "--algorithm", "fastcsc", "--must-link", "pairs.csv"],
    ["predict", "g.zarr/X", "--model", "m.zarr", "--labels", "m.zarr", "--overwrite"],
    ["predict", "g.zarr/X", "--model", "m.zarr", "--labels", "m.zarr/labels", "--overwrite"],
    ["predict", "g.zarr/X", "--model", "m.zarr", "--labels", "g.zarr", "--overwrite"],
    ["predict", "g.zarr/X", "--model", "m.zarr", "--labels", "run/labels", "--overwrite"],
    ["consensus", "base.zarr", "-k", 2, "--labels", "base.zarr", "--overwrite"],
    ["consensus", "base.zarr", "-k", 2, "--labels", "a.zarr", "--agreement", "a.zarr/b", "--overwrite"],
    ["consensus", "base.zarr", "-k", 2, "--labels", "a.zarr", "--storage", "a.zarr", "--overwrite"],
    ["consensus", "base.zarr", "-k", 2, "--labels", "a.zarr", "--storage", "base.zarr/run", "--overwrite"],
    ["convert", "pairs.csv", "pairs.csv", "--overwrite"],
    ["convert", "parquet", "parquet", "--overwrite"],
    ["convert", "parquet", "parquet/out.zarr", "--overwrite"],
    ["convert", "x.csv", "g.zarr", "--overwrite"],
    ["make", "flower", "a.zarr", "-n", 10, "--labels", "a.zarr/y", "--overwrite"],
    ["make", "flower", "g.zarr", "-n", 10, "--overwrite"],
    ["make", "flower", "run/a.zarr", "-n", 10, "--overwrite"],
    ["demo", "g.zarr/X", 2, "--directory", "g.zarr/X"],
]


@pytest.mark.parametrize("command", REFUSED, ids=lambda command: " ".join(map(str, command)))
def test_nothing_is_eaten(command, home, monkeypatch):
    for name in ("USPEC", "FastCSC", "BipartiteCut"):
        monkeypatch.setattr(getattr(estimators, name), "fit", lambda *arguments, **more: pytest.fail("worked"))
    if "parquet" in command:
        (home / "parquet").mkdir()
        (home / "parquet" / "part.0.parquet").write_bytes(b"PAR1")
    (home / "x.csv").write_text("1,2\n")
    before = contents(home)
    message = fail(2, *[str(part).replace("{home}", str(home)) for part in command])
    assert contents(home) == before
    assert "give --overwrite" not in message
    assert "overwrite=True" not in message


def test_a_report_is_an_output_too(home):
    message = fail(2, *FIT, "--labels", "a.zarr", "--report", "a.zarr", "--workers", 1)
    assert "--report 'a.zarr' is --labels" in message


def test_labels_beside_their_rows_and_again(home):
    for _ in range(2):
        succeed(*FIT, "--labels", "g.zarr/labels", "--model", "m.zarr", "--storage", "other", "--quiet")
    assert zarr.open_array("g.zarr/labels", mode="r").shape == (120,)
    assert zarr.open_array("g.zarr/X", mode="r").shape == (120, 2)


@pytest.mark.parametrize("storage", ["X.zarr", "X.zarr/run", "file://{home}/X.zarr/run", "."])
@pytest.mark.parametrize("form", [str, Path, lambda path: zarr.open_array(path, mode="r")])
def test_a_storage_is_apart_from_the_rows_in_python_too(storage, form, home):
    write_array(da.ones((20, 2)), "X.zarr")
    before = contents(home)
    with pytest.raises(ValueError, match=r"^storage .* X") as refused:
        dc.KMeans(2, storage=storage.replace("{home}", str(home))).fit(form("X.zarr"))
    assert "overwrite" not in str(refused.value)
    assert contents(home) == before


def test_a_storage_is_apart_from_labels_and_weights(home):
    X = np.random.default_rng(0).normal(size=(120, 2))
    write_array(da.ones(120), "w.zarr")
    with pytest.raises(ValueError, match=r"storage 'w\.zarr/run' lies inside sample_weight"):
        dc.KMeans(2, storage="w.zarr/run").fit(X, sample_weight="w.zarr")
    for model in (dc.FastCSC(2, storage="y.zarr/run"), dc.FastCSPML(2, storage="y.zarr/run")):
        with pytest.raises(ValueError, match=r"storage 'y\.zarr/run' lies inside y"):
            model.fit(X, "y.zarr")
    assert sorted(os.listdir("w.zarr")) == ["c", "zarr.json"]


def test_write_array_replaces_arrays_only(home):
    write_array(da.zeros(5), "a.zarr")
    write_array(da.zeros(6), "a.zarr", overwrite=True)
    before = contents(home)
    for path, what in [
        ("g.zarr", "a Zarr group"),
        ("m.zarr", "a saved model"),
        ("run", "the storage of a fit"),
        ("pairs.csv", "a file"),
    ]:
        for overwrite in (False, True):
            with pytest.raises(FileExistsError, match=f"{path}' exists and is {what}") as refused:
                write_array(da.zeros(5), path, overwrite=overwrite)
            assert "overwrite" not in str(refused.value)
    for path in ("g.zarr/X/a", "run/labels", "run/labels/rows", "m.zarr/a"):
        with pytest.raises(FileExistsError, match="lies inside"):
            write_array(da.zeros(5), path, overwrite=True)
    assert contents(home) == before
