"""What stands under a path: opened where it is a Zarr node, in a zip file too, and said in one line where not."""

from __future__ import annotations

import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster.files import open_rows
from daskcluster.io import write_array
from tests.estimators.cases import BLOBS


def zipped(path: Path, name: str = "") -> Path:
    """A zip file of an array, or of a group with the array under a name."""
    store = zarr.storage.ZipStore(str(path), mode="w")
    if name:
        zarr.create_group(store).create_array(name, data=BLOBS, chunks=(70, 2))
    else:
        zarr.create_array(store, data=BLOBS, chunks=(70, 2))
    store.close()
    return path


def message(path: Any, **how: Any) -> str:
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        open_rows(path, **how)
    return str(caught.value)


# -- zip files


def test_zip_files_by_path(tmp_path):
    expected = dc.KMeans(3, random_state=0).fit(BLOBS).labels_
    for path in (zipped(tmp_path / "a.zarr.zip"), zipped(tmp_path / "g.ZIP", "deep") / "deep"):
        array = pickle.loads(pickle.dumps(open_rows(path)))
        np.testing.assert_array_equal(array[...], BLOBS)
        model = dc.KMeans(3, random_state=0).fit(path)
        np.testing.assert_array_equal(model.labels_, expected)
        np.testing.assert_array_equal(model.predict(str(path)), expected)


def test_zip_files_on_worker_processes(tmp_path, monkeypatch, cluster_processes):
    monkeypatch.chdir(tmp_path)
    zipped(tmp_path / "a.zarr.zip")
    model = dc.KMeans(3, random_state=0).fit("a.zarr.zip")
    np.testing.assert_array_equal(model.labels_, dc.KMeans(3, random_state=0).fit(BLOBS).labels_)


def test_a_folder_that_was_zipped_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    zarr.create_array("a.zarr", data=BLOBS, chunks=(70, 2))
    shutil.make_archive("a", "zip", ".", "a.zarr")
    assert message("a.zip") == "no Zarr array at 'a.zip'; the zip file has Zarr metadata at 'a.zip/a.zarr'"
    np.testing.assert_array_equal(open_rows("a.zip/a.zarr")[...], BLOBS)


def test_zip_files_without_an_array(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("text.zip", "w") as archive:
        archive.writestr("hello.txt", "hello")
    assert message("text.zip") == "'text.zip' is a zip file without a Zarr array"
    Path("torn.zip").write_bytes(b"PK no")
    assert message("torn.zip") == "'torn.zip' is not a zip file that can be read: File is not a zip file"
    zipped(tmp_path / "g.zip", "X")
    assert message("g.zip/Y").startswith(
        "no Zarr array at 'g.zip/Y'; the zip file has Zarr metadata at 'g.zip', 'g.zip/X'"
    )
    assert "Name one of them, such as 'g.zip/X'" in message("g.zip")


def test_models_in_zip_files(tmp_path):
    model = dc.KMeans(3, random_state=0).fit(BLOBS)
    model.save(tmp_path / "m.zarr")
    shutil.make_archive(str(tmp_path / "m"), "zip", str(tmp_path / "m.zarr"))
    np.testing.assert_array_equal(dc.load_model(tmp_path / "m.zip").predict(BLOBS), model.labels_)


# -- the home folder


def test_the_home_folder_is_written_out(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir("/")
    import dask.array as da

    from daskcluster.io.convert import convert

    write_array(da.from_array(BLOBS, chunks=(70, 2)), "~/X.zarr")
    model = dc.KMeans(3, random_state=0, storage="~/run").fit("~/X.zarr")
    model.save("~/m.zarr")
    np.testing.assert_array_equal(dc.load_model("~/m.zarr").predict("~/X.zarr"), model.labels_)
    np.save(tmp_path / "x.npy", BLOBS)
    convert("~/x.npy", "~/x.zarr")
    write_array(model.labels_, "~/labels.zarr")
    assert dc.metrics.adjusted_rand_index("~/labels.zarr", model.labels_) == 1
    names = {child.name for child in tmp_path.iterdir()}
    assert names == {"X.zarr", "run", "m.zarr", "x.npy", "x.zarr", "labels.zarr"}


# -- groups


@pytest.mark.filterwarnings("ignore:The data type")
def test_a_group_names_the_table_of_numbers(tmp_path):
    group = zarr.create_group(str(tmp_path / "g.zarr"))
    group.create_array("band", data=np.array(["red", "nir"], dtype="S3"))
    group.create_array("a_raster", data=np.zeros((3, 20, 20)))
    group.create_array("x", data=np.arange(2000.0))
    group.create_array("small", data=np.zeros((5, 2)))
    group.create_array("zz_rows", data=np.zeros((50, 3)))
    found = message(tmp_path / "g.zarr")
    assert "it holds zz_rows (50, 3), small (5, 2), a_raster (3, 20, 20), x (2000,), band (2,). " in found
    assert found.endswith("g.zarr/zz_rows'")
    assert message(tmp_path / "g.zarr", n_axes=1).endswith("g.zarr/x'")
    with pytest.raises(ValueError, match=r"such as '.*g\.zarr/x'"):
        dc.metrics.purity(tmp_path / "g.zarr", [0, 1])
    with pytest.raises(ValueError, match=r"such as '.*g\.zarr/x'"):
        dc.KMeans(2).fit(BLOBS, sample_weight=tmp_path / "g.zarr")


@pytest.mark.filterwarnings("ignore:The data type")
def test_a_group_without_numbers(tmp_path):
    zarr.create_group(str(tmp_path / "g.zarr")).create_array("names", data=np.array([b"a"], dtype="S3"))
    assert message(tmp_path / "g.zarr").endswith("not an array; it holds names (1,): none of numbers")


def test_sparse_matrices_of_anndata(tmp_path):
    group = zarr.create_group(str(tmp_path / "a.zarr"), attributes={"encoding-type": "anndata"})
    sparse = group.create_group("X", attributes={"encoding-type": "csr_matrix", "shape": [60, 20]})
    for name in ("data", "indices", "indptr"):
        sparse.create_array(name, data=np.arange(61.0))
    group.create_group("obsm").create_array("X_pca", data=np.zeros((60, 5)))
    found = message(tmp_path / "a.zarr/X")
    assert "a.zarr/X' is a sparse matrix of AnnData (csr_matrix), not an array: as csr_matrix it is rows for" in found
    assert message(tmp_path / "a.zarr").endswith(
        f"it holds obsm/X_pca (60, 5). Name one of them, such as '{tmp_path}/a.zarr/obsm/X_pca'"
    )


# -- files


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x.csv", "every pass would parse its text again: store it with `daskcluster convert`"),
        ("x.npz", "it has to be unpacked as a whole: store its array with `daskcluster convert`"),
        ("x.bin", "it may be .parquet, .npy or .h5 too, and `daskcluster convert` reads .npz and .csv"),
        ("x.tif", "open it with rioxarray"),
    ],
)
def test_files_of_other_kinds(tmp_path, name, words):
    (tmp_path / name).write_bytes(b"")
    assert f"{name}' is a file, not a Zarr array; {words}" in message(tmp_path / name)


def test_a_folder_around_a_store(tmp_path):
    zarr.create_array(str(tmp_path / "a.zarr"), data=BLOBS)
    assert message(tmp_path).endswith(f"it has no Zarr metadata; '{tmp_path}/a.zarr' has some")
