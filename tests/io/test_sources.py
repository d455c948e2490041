"""Memory maps and HDF5 datasets, read where they are; containers that are no arrays."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import daskcluster as dc
from daskcluster.io.inputs import check_rows, open_source
from daskcluster.io.sources import FileRows, file_rows
from tests.slow import slowly

pytestmark = pytest.mark.usefixtures("small_blocks")

ROWS = np.random.default_rng(0).normal(size=(500, 4)).astype(np.float32)

VIEWS = {
    "all": lambda X: X,
    "some rows": lambda X: X[3:400],
    "every third row": lambda X: X[1::3],
    "some columns": lambda X: X[:, 1:3],
    "every second column": lambda X: X[5:, ::2],
    "no copy": np.asarray,
    "one row": lambda X: X[7:8],
    "another shape": lambda X: X.reshape(250, 8),
    "a view of a view": lambda X: X[10:][:, 1:][::2],
    "bytes": lambda X: X.view("u1"),
    "one row again and again": lambda X: np.broadcast_to(X[3], (100, 4)),
}


def map_of(path: Path, X: np.ndarray, order: str = "C") -> np.memmap:
    np.save(path, np.asarray(X, order=order))  # type: ignore[call-overload]
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["f4", ">f8", "i2"])
def test_memory_maps_are_read_from_their_file(view, order, dtype, tmp_path):
    X = (ROWS * 10).astype(dtype)
    if order == "F" and view in ("another shape", "bytes"):
        pytest.skip("these copy columns")
    mapped = VIEWS[view](map_of(tmp_path / "X.npy", X, order))
    source = file_rows(mapped)
    assert isinstance(source, FileRows)
    travelled = pickle.loads(pickle.dumps(source))
    assert len(pickle.dumps(source)) < 1000
    expected = VIEWS[view](X)
    for start, stop in ((0, len(expected)), (len(expected) // 3, len(expected) // 2 + 1)):
        for each in (source, travelled):
            found = each.read(start, stop)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected[start:stop])


def test_maps_with_an_offset_and_written_maps(tmp_path):
    raw = tmp_path / "X.raw"
    raw.write_bytes(b"x" * 5000 + ROWS.tobytes())
    for mode in ("r", "r+"):
        source = file_rows(np.memmap(raw, "f4", mode, offset=5000, shape=ROWS.shape)[100:])
        assert source is not None
        np.testing.assert_array_equal(source.read(0, 400), ROWS[100:])
    mapped = np.memmap(raw, "f4", "r+", offset=5000, shape=ROWS.shape)
    mapped[0] = 7
    source = file_rows(mapped)
    assert source is not None
    np.testing.assert_array_equal(source.read(0, 1), [[7, 7, 7, 7]])


def test_what_is_in_memory_stays_there(tmp_path):
    mapped = map_of(tmp_path / "X.npy", ROWS)
    changed = np.load(tmp_path / "X.npy", mmap_mode="c")
    changed[0] = 9  # the file does not know
    for array in (ROWS, ROWS[::2], mapped[::-1], mapped + 1, mapped[[1, 5]], mapped.astype("f8"), changed):
        assert file_rows(array) is None
        np.testing.assert_array_equal(check_rows(array).blocks.compute(), array)


@pytest.mark.parametrize("scheduler", ["threads", *slowly("processes")])
def test_fits_of_memory_maps_are_those_of_their_rows(scheduler, tmp_path, request):
    mapped = map_of(tmp_path / "X.npy", ROWS)
    expected = dc.KMeans(3, random_state=0).fit(ROWS)
    pool = request.getfixturevalue("pool") if scheduler == "processes" else None
    with dask.config.set(scheduler=scheduler, num_workers=1, pool=pool):
        model = dc.KMeans(3, random_state=0).fit(mapped)
        assert isinstance(model.labels_, np.ndarray)
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        np.testing.assert_array_equal(model.predict(mapped), expected.labels_)
    assert model.n_features_in_ == 4
    with pytest.raises(ValueError, match="X has 2 features, but KMeans is expecting 4"):
        model.predict(mapped[:, :2])


def test_tasks_of_a_memory_map_do_not_carry_it(tmp_path):
    mapped = map_of(tmp_path / "X.npy", np.zeros((100_000, 4), "f4"))
    rows = check_rows(mapped)
    assert rows.reading.memory_bytes == 0
    assert max(len(pickle.dumps(task)) for task in dict(rows.blocks.__dask_graph__()).values()) < 5000


def test_bad_values_of_a_memory_map_are_named(tmp_path):
    X = ROWS.copy()
    X[333, 2] = np.nan
    mapped = map_of(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="X contains NaN at row 333, column 2"):
        dc.KMeans(3).fit(mapped)
    with pytest.raises(ValueError, match="X contains NaN at row 333, column 2"):
        np.asarray(dc.KMeans(3).fit(ROWS).predict(mapped))


def test_a_file_that_is_another_one_meanwhile(tmp_path):
    rows = check_rows(map_of(tmp_path / "X.npy", ROWS))
    (tmp_path / "X.npy").write_bytes(b"short")
    with pytest.raises(dc.UnseenStoreError, match=r"does not see '.*X\.npy' .* 5 bytes there and not 8128"):
        rows.blocks.compute()
    (tmp_path / "X.npy").unlink()
    with pytest.raises(dc.UnseenStoreError, match=r"does not see '.*X\.npy' .*No such file"):
        rows.blocks.compute()


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(10), r"Expected 2D array .* got 1D"),
        (np.zeros((3, 2, 2)), r"Expected 2D array .* got 3D"),
        (np.zeros((3, 2), complex), "Complex data not supported"),
        (np.zeros((3, 2), "M8[s]"), "real numbers, got dtype datetime64"),
    ],
    ids=["1-D", "3-D", "complex", "dates"],
)
def test_maps_of_something_else_are_refused(array, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        dc.KMeans(2).fit(map_of(tmp_path / "X.npy", array))


# -- HDF5 --------------------------------------------------------------------------------------------------------------


class Dataset:
    """What is used of h5py's datasets; counts the rows that are read."""

    most = 0
    open = True

    def __init__(self, values: np.ndarray, path: Path, chunks: Any = None, attrs: dict[str, Any] | None = None) -> None:
        self._values, self.chunks, self.attrs = values, chunks, attrs or {}
        self.shape, self.dtype, self.ndim, self.name = values.shape, values.dtype, values.ndim, "/group/X"
        self.file = SimpleNamespace(filename=str(path))

    def __bool__(self) -> bool:
        return self.open

    def __getitem__(self, rows: slice) -> np.ndarray:
        assert isinstance(rows, slice)
        found = self._values[rows]
        type(self).most = max(type(self).most, len(found))
        return found

    def __array__(self, *options: Any) -> np.ndarray:
        raise AssertionError("the dataset was read whole")


Dataset.__module__ = "h5py._hl.dataset"


class File(dict[str, Any]):
    """An HDF5 file that is opened by its name."""

    def __init__(self, path: str, mode: str) -> None:
        assert mode == "r"
        super().__init__({"/group/X": Dataset(np.load(path), Path(path))})

    def __enter__(self) -> File:
        return self

    def __exit__(self, *error: object) -> None: ...


@pytest.fixture
def hdf5(tmp_path, monkeypatch):
    """A dataset, and the package that opens it anew."""
    module = ModuleType("h5py")
    module.File = File  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "h5py", module)
    monkeypatch.setattr(Dataset, "most", 0)
    with open(tmp_path / "X.h5", "wb") as file:
        np.save(file, ROWS)
    return lambda **options: Dataset(options.pop("values", ROWS), tmp_path / "X.h5", **options)


@pytest.mark.parametrize("chunks", [None, (50, 4), (200, 1)], ids=str)
def test_hdf5_datasets_are_read_block_by_block(chunks, hdf5):
    dataset = hdf5(chunks=chunks)
    model = dc.KMeans(3, random_state=0).fit(dataset)
    assert 0 < Dataset.most <= max(128, (chunks or (0,))[0])
    assert isinstance(model.labels_, da.Array)
    expected = dc.KMeans(3, random_state=0).fit(ROWS).labels_
    np.testing.assert_array_equal(model.labels_, expected)
    np.testing.assert_array_equal(model.predict(dataset), expected)


def test_hdf5_datasets_are_opened_anew_elsewhere(hdf5):
    source = open_source(hdf5()).stored()
    travelled = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(travelled.read(100, 200), ROWS[100:200])
    dataset = hdf5()
    rows = check_rows(dataset)
    dataset.open = False  # its file has been closed since
    np.testing.assert_array_equal(rows.blocks.compute(), ROWS)


def test_an_hdf5_file_that_is_not_there_is_named(hdf5, tmp_path):
    dataset = hdf5()
    rows = check_rows(dataset)
    dataset.open = False
    (tmp_path / "X.h5").unlink()
    with pytest.raises(dc.UnseenStoreError, match=r"process .* does not see '.*X\.h5'"):
        rows.blocks.compute()


def test_attributes_of_hdf5_datasets_count(hdf5):
    values = (ROWS * 10).astype("i2")
    values[3] = -9999
    dataset = hdf5(values=values, attrs={"_FillValue": np.array([-9999], "i2")})
    labels = np.asarray(dc.KMeans(3, missing="label", random_state=0).fit(dataset).labels_)
    np.testing.assert_array_equal(np.flatnonzero(labels == -1), [3])


def test_real_hdf5_files(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file.create_dataset("X", data=ROWS, chunks=(70, 4))
    with h5py.File(tmp_path / "X.h5", "r") as file:
        labels = np.asarray(dc.KMeans(3, random_state=0).fit(file["X"]).labels_)
    np.testing.assert_array_equal(labels, dc.KMeans(3, random_state=0).fit(ROWS).labels_)


# -- containers --------------------------------------------------------------------------------------------------------


class AnnData:
    """What is used of annotated matrices; reading it element by element would take hours."""

    def __init__(self) -> None:
        self.obs, self.obsm, self.X = object(), {"X_pca": ROWS, "X_umap": ROWS[:, :2]}, ROWS
        self.shape = ROWS.shape

    def __array__(self, *options: Any) -> np.ndarray:
        raise AssertionError("the object was read")

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("the object was read")

    def __len__(self) -> int:
        return len(ROWS)


def test_an_array_of_an_annotated_matrix_by_its_name():
    expected = dc.KMeans(3, random_state=0).fit(ROWS)
    model = dc.KMeans(3, random_state=0).fit(AnnData(), obsm="X_pca")
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.predict(AnnData(), obsm="X_pca"), expected.labels_)
    assert model.plan(AnnData(), obsm="X_pca").n_samples == len(ROWS)
    with pytest.raises(ValueError, match="obsm must be one of 'X_pca', 'X_umap', got 'X_tsne'"):
        model.fit(AnnData(), obsm="X_tsne")
    with pytest.raises(TypeError, match="an array in an AnnData object, and X is ndarray"):
        model.fit(ROWS, obsm="X_pca")


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (AnnData(), r"got AnnData; pass one of those it holds: AnnData.obsm\['X_pca'\], .*'X_umap'.*AnnData.X"),
        ({"a": ROWS, "b": ROWS}, r"got dict; pass one of those it holds: \['a'\], \['b'\]"),
    ],
    ids=["AnnData", "dict"],
)
def test_what_holds_several_arrays_is_refused_at_once(X, words):
    model = dc.KMeans(3).fit(ROWS)
    for call in (dc.KMeans(3).fit, dc.USPEC(3).fit, dc.SEC(3).fit, model.predict, dc.KMeans(3).plan):
        with pytest.raises(TypeError, match=rf"X must be one array \(rows, features\), {words}"):
            call(X)
