"""Files of rows that are opened by path: the labels of the same rows in memory."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

import daskcluster as dc
from daskcluster.errors import UnseenStoreError
from daskcluster.io import open_dask, open_rows, save_model, tables
from daskcluster.io.columns import open_column
from daskcluster.io.convert import convert
from daskcluster.io.identity import identity_of
from daskcluster.io.inputs import open_source
from daskcluster.io.tables import open_table
from tests.cli.calls import as_json, fail, succeed
from tests.slow import slowly

pytestmark = pytest.mark.usefixtures("small_blocks")

_RNG = np.random.default_rng(0)
ROWS = np.concatenate([_RNG.normal(centre, 0.4, size=(250, 4)) for centre in range(3)])
FRAME = pd.DataFrame(ROWS, columns=list("abcd"))


def folder(path: Path) -> str:
    path.mkdir()
    for number, start in enumerate((0, 300, 310, 310)):  # one file is empty, and part.10 would sort before part.2
        stop = (300, 310, 310, 750)[number]
        FRAME[start:stop].to_parquet(path / f"part.{number * 5}.parquet", row_group_size=70)
    (path / "_SUCCESS").touch()
    return str(path)


def parquet(path: Path, table: pa.Table) -> str:
    pq.write_table(table, path, row_group_size=110)
    return str(path)


def hdf5(path: Path, name: str, **how: object) -> str:
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=ROWS, **how)
    return f"{path}/{name}"


def cells(path: Path) -> str:
    """A group as AnnData writes it."""
    group = zarr.create_group(str(path), attributes={"encoding-type": "anndata", "encoding-version": "0.1.0"})
    group.create_group("obsm").create_array("X_pca", data=ROWS, chunks=(200, 4))
    return f"{path}/obsm/X_pca"


def saved(path: Path) -> str:
    np.save(path, ROWS)
    return str(path)


FIXED = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 4)})
FORMS: dict[str, Callable[[Path], str]] = {
    "parquet": lambda here: parquet(here / "X.parquet", pa.Table.from_pandas(FRAME)),
    "folder of parquet": lambda here: folder(here / "X"),
    "lists": lambda here: parquet(here / "X.pq", pa.table({"v": pa.array(list(ROWS))})),
    "lists of one size": lambda here: parquet(here / "X.pq", FIXED),
    "npy": lambda here: saved(here / "X.npy"),
    "HDF5": lambda here: hdf5(here / "X.h5", "some/X", chunks=(90, 2)),
    "h5ad": lambda here: hdf5(here / "X.h5ad", "obsm/X_pca"),
    "AnnData in Zarr": lambda here: cells(here / "X.zarr"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("estimator", [dc.KMeans(3, random_state=0), dc.USPEC(3, n_representatives=60, random_state=0)])
def test_labels_are_those_of_the_rows_in_memory(form, estimator, tmp_path):
    path = FORMS[form](tmp_path)
    expected = estimator.fit(ROWS).labels_
    model = estimator.fit(path)
    np.testing.assert_array_equal(np.asarray(model.labels_), expected)
    np.testing.assert_array_equal(np.asarray(model.predict(path)), expected)
    assert "parquet" not in form or list(model.feature_names_in_) == list("abcd")


def test_names_of_columns_are_held_to(tmp_path):
    model = dc.KMeans(3, random_state=0).fit(FORMS["parquet"](tmp_path))
    FRAME[list("bacd")].to_parquet(tmp_path / "other.parquet")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(tmp_path / "other.parquet")


@pytest.mark.parametrize("form", ["npy", *slowly("folder of parquet", "HDF5")])
def test_workers_read_them_by_themselves(form, tmp_path, cluster_processes):
    path = FORMS[form](tmp_path)
    expected = dc.KMeans(3, random_state=0).fit(ROWS).labels_
    np.testing.assert_array_equal(np.asarray(dc.KMeans(3, random_state=0).fit(path).labels_), expected)


def test_row_groups_are_read_once_a_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "PIECE_BYTES", 8 * 4 * 150)
    table = open_table(FORMS["folder of parquet"](tmp_path))
    assert table is not None
    assert table.array.chunks[0] == (140, 140, 20, 10, 140, 140, 140, 20)
    np.testing.assert_array_equal(table.array.compute(), ROWS)
    assert open_source(tmp_path / "X").chunked


def test_a_source_travels_and_proves_that_it_is_the_same(tmp_path):
    path = FORMS["parquet"](tmp_path)
    table = open_table(path)
    assert table is not None
    layer = next(layer for layer in table.array.__dask_graph__().layers.values() if len(layer) == 1)
    source = next(iter(layer.values())).value
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.read(0), source.read(0))
    mark = identity_of(open_source(path))
    assert mark is not None
    assert mark == identity_of(open_source(path))
    parquet(tmp_path / "X.parquet", pa.Table.from_pandas(FRAME * 2))
    assert identity_of(open_source(path)) != mark
    with pytest.raises(UnseenStoreError, match=r"other content"):
        pickle.loads(pickle.dumps(source)).read(0)


def test_declared_no_data_of_a_dataset(tmp_path):
    with h5py.File(tmp_path / "X.nc", "w") as file:
        variable = file.create_dataset("X", data=np.where(ROWS > 2, -999, ROWS * 100).astype(np.int16))
        variable.attrs["_FillValue"] = np.int16(-999)
        variable.attrs["scale_factor"] = 0.01
    model = dc.KMeans(3, random_state=0, missing="label").fit(f"{tmp_path}/X.nc/X")
    np.testing.assert_array_equal(np.asarray(model.labels_) == -1, (ROWS > 2).any(axis=1))
    stored = convert(f"{tmp_path}/X.nc/X", tmp_path / "X.zarr")
    np.testing.assert_array_equal(np.isnan(stored[...]), ROWS > 2)
    found = dc.KMeans(3, random_state=0, missing="label").fit(stored).labels_
    np.testing.assert_array_equal(np.asarray(found), np.asarray(model.labels_))


def test_convert_of_datasets(tmp_path):
    path = hdf5(tmp_path / "X.h5", "some/X", chunks=(90, 4))
    np.testing.assert_array_equal(convert(tmp_path / "X.h5", tmp_path / "a.zarr")[...], ROWS)
    found = convert(path, tmp_path / "b.zarr", columns=[2, 0], dtype="float32")
    np.testing.assert_array_equal(found[...], ROWS[:, [2, 0]].astype(np.float32))
    with pytest.raises(ValueError, match="source"):
        convert(path, tmp_path / "X.h5", overwrite=True)
    assert open_rows(tmp_path / "b.zarr").attrs["source"] == "X"


def test_columns_and_metrics(tmp_path):
    y = np.repeat([0, 1, 2], 250)
    np.save(tmp_path / "y.npy", y)
    pd.DataFrame({"y": y}).to_parquet(tmp_path / "y.parquet", row_group_size=100)
    for name in ("y.npy", "y.parquet"):
        np.testing.assert_array_equal(np.asarray(open_column("y", tmp_path / name)), y)
    assert dc.metrics.adjusted_rand_index(str(tmp_path / "y.npy"), y) == 1
    np.save(tmp_path / "w.npy", np.ones(750))
    weighted = dc.KMeans(3, random_state=0).fit(ROWS, sample_weight=tmp_path / "w.npy")
    np.testing.assert_array_equal(weighted.labels_, dc.KMeans(3, random_state=0).fit(ROWS).labels_)


def test_labels_are_a_column_of_a_dask_dataframe(tmp_path):
    frame = dd.from_pandas(FRAME.set_index(np.arange(750) * 3), npartitions=4)
    model = dc.KMeans(3, random_state=0).fit(frame)
    found = frame.assign(label=model.labels_).compute()
    np.testing.assert_array_equal(found["label"], dc.KMeans(3, random_state=0).fit(ROWS).labels_)
    np.testing.assert_array_equal(found.index, np.arange(750) * 3)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_labels_are_a_column_without_known_divisions(form, tmp_path):
    if form == "parquet":
        frame = dd.read_parquet(FORMS["folder of parquet"](tmp_path))
    else:
        FRAME.to_csv(tmp_path / "X.csv", index=False)
        frame = dd.read_csv(tmp_path / "X.csv", blocksize="20kB")
    assert frame.npartitions > 1
    assert not frame.known_divisions
    model = dc.KMeans(3, random_state=0)
    for labels in (model.fit_predict(frame), model.labels_, model.predict(frame)):
        found = frame.assign(label=labels).compute()
        np.testing.assert_array_equal(found["label"], dc.KMeans(3, random_state=0).fit(found[list("abcd")]).labels_)


def test_a_pipeline_opens_paths(tmp_path):
    scalers = pytest.importorskip("dask_ml.preprocessing")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    steps = scalers.StandardScaler(), dc.KMeans(3, random_state=0)
    pipeline = make_pipeline(FunctionTransformer(open_dask), *steps).fit(FORMS["AnnData in Zarr"](tmp_path))
    found = pipeline.predict(FORMS["npy"](tmp_path))
    assert isinstance(found, da.Array)
    for X in (FORMS["parquet"](tmp_path), dd.from_pandas(FRAME, npartitions=2), da.from_array(ROWS), ROWS):
        np.testing.assert_array_equal(np.asarray(pipeline.predict(X)), found.compute())
    save_model(pipeline[1:], tmp_path / "model.zarr")
    np.testing.assert_array_equal(np.asarray(dc.load_model(tmp_path / "model.zarr").predict(ROWS)), found.compute())
    expected = dc.KMeans(3, random_state=0).fit((ROWS - ROWS.mean(0)) / ROWS.std(0)).labels_
    np.testing.assert_array_equal(found.compute(), expected)


# -- refusals ----------------------------------------------------------------------------------------------------------


def _with_words(here: Path) -> str:
    FRAME.assign(name="x").to_parquet(here / "X.parquet")
    return str(here / "X.parquet")


def _broken(here: Path, name: str, content: bytes) -> str:
    (here / name).write_bytes(content)
    return str(here / name)


def _two(here: Path) -> str:
    with h5py.File(here / "X.h5", "w") as file:
        file["a"], file["g/b"] = ROWS, ROWS
    return str(here / "X.h5")


REFUSED: dict[str, tuple[Callable[[Path], str], str]] = {
    "words": (_with_words, r"column 'name' is not numeric.*read_parquet\(.*columns="),
    "uneven": (
        lambda here: parquet(here / "X.pq", pa.table({"v": [[1.0], [1.0, 2.0]]})),
        "expected lists of one|lists of",
    ),
    "no parquet": (lambda here: _broken(here, "X.parquet", b"words"), "'X.parquet' is not a parquet file"),
    "no npy": (lambda here: _broken(here, "X.npy", b"words"), "is not an npy file of numbers"),
    "no HDF5": (lambda here: _broken(here, "X.h5", b"words"), "is not an HDF5 file that can be read"),
    "NetCDF 3": (lambda here: _broken(here, "X.nc", b"CDF\x01..."), "is a NetCDF 3 file; open it with xarray"),
    "two tables": (_two, r"is an HDF5 file; give one of '.*X.h5/a' \(750, 4\), '.*X.h5/g/b'"),
    "a group": (lambda here: _two(here) + "/g", r"is a group, not an array; give one of '.*X.h5/g/b'"),
    "csv": (lambda here: _broken(here, "X.csv", b"1,2\n"), "store it with `daskcluster convert`"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case, tmp_path):
    make, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        np.asarray(dc.KMeans(1).fit(make(tmp_path)).labels_)


def test_a_dataset_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no dataset 'c' in .*; give one of .*X.h5/a"):
        open_table(_two(tmp_path) + "/c")


def test_a_package_that_is_missing(tmp_path, monkeypatch):
    path = hdf5(tmp_path / "X.h5", "X")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"needs h5py.*daskcluster\[convert\]"):
        open_table(path)


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["folder of parquet", "npy", "HDF5"])
def test_commands(form, tmp_path):
    path, model, labels = FORMS[form](tmp_path), tmp_path / "m.zarr", tmp_path / "l.zarr"
    options = ["-k", 3, "--algorithm", "kmeans", "--seed", 0]
    succeed("fit", path, *options, "--labels", labels, "--model", model, "--scale", "standard", "--quiet")
    zarr.create_array(str(tmp_path / "c.zarr"), data=ROWS)
    succeed("fit", tmp_path / "c.zarr", *options, "--labels", tmp_path / "k.zarr", "--scale", "standard", "--quiet")
    np.testing.assert_array_equal(open_rows(labels)[...], open_rows(tmp_path / "k.zarr")[...])
    succeed("predict", path, "--model", model, "--labels", tmp_path / "p.zarr", "--quiet")
    np.testing.assert_array_equal(open_rows(tmp_path / "p.zarr")[...], open_rows(labels)[...])
    assert as_json("plan", path, *options)["n_samples"] == 750
    about = as_json("info", path)
    assert about["shape"] == [750, 4]
    assert about["columns"] == (list("abcd") if "parquet" in form else None)


def test_convert_says_nothing_when_quiet(tmp_path):
    path = saved(tmp_path / "X.npy")
    assert succeed("convert", path, tmp_path / "a.zarr", "--quiet").stdout == ""
    assert "750 x 4" in succeed("convert", path, tmp_path / "b.zarr").stdout
    assert as_json("convert", path, tmp_path / "c.zarr", "--quiet")["shape"] == [750, 4]
    assert "exists" in fail(2, "convert", path, tmp_path / "c.zarr", "--quiet")
