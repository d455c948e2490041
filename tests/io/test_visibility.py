"""Workers that do not see what the caller's process sees: an error that names worker and path, never zeros."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster.files.chunks import content_mark
from daskcluster.io import write_array
from daskcluster.runtime.execution import compute
from daskcluster.runtime.visibility import Seen
from tests.slow import slowly

pytestmark = pytest.mark.usefixtures("small_blocks")

TRUTH = np.random.default_rng(0).integers(3, size=1000)
ROWS = (8 * TRUTH[:, None] + np.random.default_rng(1).normal(size=(1000, 3))).astype(np.float32)
#: A folder that is another one in every process.
HERE = "/proc/self/cwd"

needs_proc = pytest.mark.skipif(not os.path.isdir(HERE), reason="needs /proc")


def in_first(client: Any, function: Any, *arguments: Any) -> None:
    """Call a function in the first worker."""
    client.run(function, *arguments, workers=[first_worker(client)])


def first_worker(client: Any) -> str:
    return str(min(client.scheduler_info()["workers"]))


def save(path: Path | str, values: Any = ROWS, **options: Any) -> str:
    zarr.create_array(str(path), data=np.asarray(values), chunks=(100, *np.shape(values)[1:]), **options)
    return str(path)


@pytest.fixture
def folders(tmp_path, monkeypatch, cluster_processes):
    """This process and the second worker in one folder, the first worker in another, empty one."""
    shared, other = tmp_path / "shared", tmp_path / "other"
    shared.mkdir()
    other.mkdir()
    before = cluster_processes.run(os.getcwd)
    monkeypatch.chdir(shared)
    cluster_processes.run(os.chdir, str(shared))
    in_first(cluster_processes, os.chdir, str(other))
    yield shared, other
    for worker, folder in before.items():
        cluster_processes.run(os.chdir, folder, workers=[worker])


ESTIMATORS = {
    "KMeans": lambda: dc.KMeans(3, random_state=0),
    "USPEC": lambda: dc.USPEC(3, n_representatives=50, random_state=0),
}


@needs_proc
@pytest.mark.parametrize("estimator", ["USPEC", *slowly("KMeans")])
def test_a_worker_that_does_not_see_the_rows(estimator, folders, cluster_processes):
    path = save(f"{HERE}/X.zarr")
    words = f"worker {first_worker(cluster_processes)} does not see '{path}'"
    with pytest.raises(dc.UnseenStoreError, match=words):
        ESTIMATORS[estimator]().fit(path)
    with pytest.raises(dc.UnseenStoreError, match=f"worker {first_worker(cluster_processes)} does not see"):
        ESTIMATORS[estimator]().fit(da.from_array(zarr.open_array(path, mode="r"), chunks=(100, 3)))
    model = dc.KMeans(3, random_state=0).fit(ROWS)
    with pytest.raises(dc.UnseenStoreError, match=words):
        compute(model.predict(path))


@needs_proc
def test_a_worker_that_sees_another_store_there(folders, cluster_processes):
    path = save(f"{HERE}/X.zarr")
    save(folders[1] / "X.zarr", ROWS[:900])
    with pytest.raises(dc.UnseenStoreError, match=r"another array is there, \(\(900, 3\)"):
        dc.KMeans(3).fit(path)


@needs_proc
@pytest.mark.parametrize("rows", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize("compressors", ["auto", None], ids=["compressed", "plain"])
def test_a_worker_that_sees_other_content_there(rows, compressors, folders, cluster_processes):
    """In an array of the same shape, dtype and chunks; as told by its first and its last chunk."""
    path = save(f"{HERE}/X.zarr", compressors=compressors)
    other = ROWS.copy()
    other[rows] += 1
    save(folders[1] / "X.zarr", other, compressors=compressors)
    words = f"worker {first_worker(cluster_processes)} does not see '{path}' .*an array with other content is there"
    for X in (path, da.from_array(zarr.open_array(path, mode="r"), chunks=(100, 3))):
        with pytest.raises(dc.UnseenStoreError, match=words):
            dc.KMeans(3).fit(X)


@needs_proc
def test_a_worker_that_sees_a_copy_there(folders, cluster_processes):
    save(folders[1] / "X.zarr")
    model = dc.KMeans(3, random_state=0).fit(save(f"{HERE}/X.zarr"))
    assert dc.metrics.adjusted_rand_index(model.labels_, TRUTH) == 1.0


@needs_proc
def test_a_worker_that_sees_the_store_without_some_of_its_chunks(folders, cluster_processes):
    path = save(f"{HERE}/X.zarr")
    save(folders[1] / "X.zarr")
    for number in range(5, 10):
        (folders[1] / "X.zarr" / "c" / str(number) / "0").unlink()
    with pytest.raises(
        dc.MissingChunksError, match=rf"worker {first_worker(cluster_processes)} does not find chunk 'c/"
    ):
        dc.KMeans(3).fit(path)


@needs_proc
def test_a_worker_that_does_not_see_weights_or_labels(folders, cluster_processes):
    weights, labels = save(f"{HERE}/w.zarr", np.ones(1000)), save(f"{HERE}/y.zarr", TRUTH)
    cluster_processes.run(os.chdir, str(folders[1]))  # both workers: one task reads a short column
    with pytest.raises(dc.UnseenStoreError, match=f"does not see '{weights}'"):
        dc.KMeans(3).fit(ROWS, sample_weight=weights)
    with pytest.raises(dc.UnseenStoreError, match=f"does not see '{labels}'"):
        dc.FastCSC(3, n_representatives=50).fit(ROWS, labels)


@needs_proc
def test_a_worker_that_does_not_see_the_file_of_a_memory_map(folders, cluster_processes):
    np.save("X.npy", ROWS)
    mapped = np.load(f"{HERE}/X.npy", mmap_mode="r")
    with pytest.raises(
        dc.UnseenStoreError, match=f"worker {first_worker(cluster_processes)} does not see '{HERE}/X.npy'"
    ):
        dc.KMeans(3).fit(mapped)
    np.save(folders[1] / "X.npy", ROWS + 1)
    with pytest.raises(dc.UnseenStoreError, match="a file with other content is there"):
        dc.KMeans(3).fit(mapped)
    np.save(folders[1] / "X.npy", ROWS)
    dc.KMeans(3).fit(mapped)


@needs_proc
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_worker_that_does_not_see_the_storage(estimator, folders, cluster_processes):
    path = save(folders[0] / "X.zarr")
    words = rf"worker {first_worker(cluster_processes)} does not see '{HERE}/run/"
    with pytest.raises(dc.UnseenStoreError, match=words):
        ESTIMATORS[estimator]().set_params(storage=f"{HERE}/run").fit(path)
    assert not (folders[1] / "run").exists()


@needs_proc
def test_a_worker_that_does_not_see_the_storage_of_a_run_that_goes_on(folders, cluster_processes):
    path = save(folders[0] / "X.zarr")
    make = lambda: dc.USPEC(3, n_representatives=50, random_state=0, storage=f"{HERE}/run")  # noqa: E731
    with dask.config.set(scheduler="threads"):
        labels = np.asarray(make().fit(path).labels_)
    in_first(cluster_processes, os.chdir, str(folders[0]))
    np.testing.assert_array_equal(np.asarray(make().fit(path).labels_), labels)
    in_first(cluster_processes, os.chdir, str(folders[1]))
    with pytest.raises(dc.UnseenStoreError, match=f"does not see '{HERE}/run/labels"):
        compute(make().fit(path).labels_)


@needs_proc
def test_a_worker_that_does_not_see_the_output(folders, cluster_processes):
    with pytest.raises(dc.UnseenStoreError, match=f"worker {first_worker(cluster_processes)} does not see"):
        write_array(da.ones((1000, 3), chunks=(100, 3)), f"{HERE}/out.zarr", chunks=100)
    assert not list(folders[0].iterdir())
    assert not list(folders[1].iterdir())


def test_relative_paths_mean_the_folder_of_this_process(folders, cluster_processes):
    save("X.zarr")
    np.save("X.npy", ROWS)
    expected = dc.KMeans(3, random_state=0).fit(ROWS).labels_
    relative = zarr.open_array(zarr.storage.LocalStore("X.zarr", read_only=True), mode="r")
    assert not relative.store.root.is_absolute()  # type: ignore[attr-defined]
    for form in ("X.zarr", Path("X.zarr"), relative, np.load("X.npy", mmap_mode="r")):
        np.testing.assert_array_equal(np.asarray(dc.KMeans(3, random_state=0).fit(form).labels_), expected)
    model = dc.KMeans(3, random_state=0, storage="run").fit("X.zarr")
    np.testing.assert_array_equal(compute(model.labels_)[0], expected)
    write_array(model.predict("X.zarr"), "labels.zarr")
    np.testing.assert_array_equal(zarr.open_array("labels.zarr", mode="r")[:], expected)


@pytest.mark.parametrize("kind", ["MemoryStore", "store in memory"])
def test_stores_in_memory_are_refused_where_other_processes_work(kind, cluster_processes):
    where: Any = zarr.storage.MemoryStore() if kind == "MemoryStore" else "memory://X.zarr"
    zarr.create_array(where, data=ROWS, chunks=(100, 3), overwrite=True)
    form = zarr.open_array(where, mode="r") if kind == "MemoryStore" else where
    with pytest.raises(ValueError, match=f"X lives in a zarr {kind}, which the worker processes"):
        dc.KMeans(3).fit(form)
    with pytest.raises(ValueError, match="sample_weight lives in a zarr"):
        dc.KMeans(3).fit(ROWS, sample_weight=form)
    with dask.config.set(scheduler="threads"):
        assert np.asarray(dc.KMeans(3, random_state=0).fit(form).labels_).shape == (1000,)


def test_the_proof_costs_one_look_a_process(tmp_path, monkeypatch):
    array = zarr.open_array(save(tmp_path / "X.zarr"), mode="r")
    seen = Seen(array)
    seen.prove()
    (tmp_path / "X.zarr").rename(tmp_path / "away.zarr")
    seen.prove()
    with pytest.raises(dc.UnseenStoreError, match=r"process \d+ on .* does not see"):
        Seen(array).prove()


def test_the_content_of_any_store_has_a_mark(tmp_path):
    for where in (str(tmp_path / "X.zarr"), zarr.storage.MemoryStore(), "memory://marks/X.zarr"):
        array = zarr.create_array(where, data=ROWS, chunks=(400, 2))
        first, last = content_mark(array)
        array[0, 0] += 1
        changed, same = content_mark(array)
        assert None not in (first, last)
        assert (changed != first, same == last) == (True, True)
    empty = zarr.create_array(str(tmp_path / "empty.zarr"), shape=(10, 2), chunks=(5, 2), dtype="f4")
    assert content_mark(empty) == (None, None)
    assert content_mark(zarr.create_array(str(tmp_path / "none.zarr"), shape=(0, 2), chunks=(5, 2), dtype="f4")) == ()
