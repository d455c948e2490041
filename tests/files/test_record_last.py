"""Outputs in object stores are complete or absent, too; and one process at a time writes there."""

from __future__ import annotations

import json
import threading
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster.files import check_output, locks, object_locks, open_rows, record_last
from daskcluster.files.object_locks import ObjectLock
from daskcluster.files.objects import ObjectPath
from daskcluster.io import write_array
from daskcluster.io.convert import convert
from tests.slow import slowly

#: Most of it is the same in every store: those of S3 are tried where they matter.
URL = "memory://bucket/out.zarr"
ROWS = np.arange(2000, dtype=np.float32).reshape(1000, 2)


def written(factor: float = 1, url: str = URL, **more: Any) -> zarr.Array[Any]:
    return write_array(da.from_array(factor * ROWS, chunks=(250, 2)), url, chunks=250, **more)


@pytest.fixture(autouse=True)
def _empty() -> None:
    ObjectPath("memory://bucket").remove()


class Killed(BaseException):
    """Ends a write as a kill does: nothing cleans up."""


def kill_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Have the process end, as far as the store is concerned, when a function of `record_last` is called."""

    def killed(*given: Any) -> None:
        monkeypatch.setattr(record_last, "_sweep", lambda final: None)
        raise Killed

    monkeypatch.setattr(record_last, name, killed)


@pytest.mark.parametrize("root", ["memory://bucket", *slowly("s3://bucket")])
def test_an_array_is_replaced_by_one_request(root, s3):
    url = f"{root}/replaced.zarr"
    names = []
    for factor in (1, 2, 3):
        array = written(factor, url, overwrite=factor > 1)
        np.testing.assert_array_equal(array[...], factor * ROWS)
        names.append(ObjectPath(url).names_inside())
    assert names[0] == names[2] == ["c/0/0", "c/1/0", "c/2/0", "c/3/0", "zarr.json"]
    assert names[1] == ["c.0.0", "c.1.0", "c.2.0", "c.3.0", "zarr.json"]
    with pytest.raises(FileExistsError, match="pass overwrite=True to replace it"):
        written(url=url)
    again = write_array(1 + da.from_zarr(array), url, overwrite=True, chunks=500)  # which reads what it replaces
    np.testing.assert_array_equal(again[...], 3 * ROWS + 1)


def test_what_stands_inside_an_unfinished_output_is_not_part_of_it(monkeypatch):
    with monkeypatch.context() as patch:
        kill_at(patch, "_publish")
        with pytest.raises(Killed):
            written()
    np.testing.assert_array_equal(written(2, f"{URL}/inside.zarr")[...], 2 * ROWS)
    with pytest.raises(FileExistsError, match="is a folder"):
        written()
    np.testing.assert_array_equal(open_rows(f"{URL}/inside.zarr")[...], 2 * ROWS)


def test_a_lock_whose_answer_was_lost_is_held(monkeypatch):
    create = ObjectPath.create

    def created_twice(self: ObjectPath, content: bytes) -> bool:
        return create(self, content) and create(self, content)

    monkeypatch.setattr(ObjectPath, "create", created_twice)
    lock = ObjectLock(ObjectPath(URL), "output")
    lock.release()
    ObjectLock(ObjectPath(URL), "output").release()


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("when", ["name_axes", "_publish"])
def test_a_killed_write_leaves_what_was_there(overwrite, when, monkeypatch):
    if overwrite:
        written()
    with monkeypatch.context() as patch:
        kill_at(patch, when)
        with pytest.raises(Killed):
            written(2, overwrite=overwrite)
    left = ObjectPath(URL).names_inside()
    assert any(".partial-" in name for name in left)
    assert sum(name.startswith("c") for name in left) == 4 + 4 * overwrite
    if overwrite:
        np.testing.assert_array_equal(open_rows(URL)[...], ROWS)
    else:
        with pytest.raises(ValueError, match=r"no array, or one that is not complete$"):
            open_rows(URL)
        check_output(URL)
    np.testing.assert_array_equal(written(3, overwrite=overwrite)[...], 3 * ROWS)
    assert len(ObjectPath(URL).names_inside()) == 5


def test_a_failed_write_leaves_what_was_there_and_late_tasks_write_nothing():
    written()
    late = []

    def failing() -> None:
        with record_last.record_last(ObjectPath(URL), lambda: None) as growing:
            from daskcluster.files import create_array

            late.append(create_array(growing, ROWS.shape, "f4", chunks=250))
            late[0][:250] = 7
            raise RuntimeError("no luck")

    with pytest.raises(RuntimeError, match="no luck"):
        failing()
    assert ObjectPath(URL).names_inside() == ["c/0/0", "c/1/0", "c/2/0", "c/3/0", "zarr.json"]
    with pytest.raises(FileNotFoundError, match="the output was given up"):
        late[0][250:500] = 7
    np.testing.assert_array_equal(open_rows(URL)[...], ROWS)


def test_models_are_saved_and_replaced(s3, monkeypatch):
    one, other = (dc.KMeans(3, random_state=seed).fit(ROWS) for seed in (0, 1))
    one.save(URL)
    np.testing.assert_array_equal(dc.load_model(URL).cluster_centers_, one.cluster_centers_)
    with monkeypatch.context() as patch:
        kill_at(patch, "_publish")
        with pytest.raises(Killed):
            other.save(URL, overwrite=True)
    np.testing.assert_array_equal(dc.load_model(URL).cluster_centers_, one.cluster_centers_)
    other.save(URL, overwrite=True)
    np.testing.assert_array_equal(dc.load_model(URL).cluster_centers_, other.cluster_centers_)
    with pytest.raises(FileExistsError, match="only a Zarr array is replaced there"):
        written(overwrite=True)
    with pytest.raises(FileExistsError, match="lies inside a saved model"):
        written(url=f"{URL}/labels")
    (ObjectPath(URL) / "zarr.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"no model at .*: it has no Zarr metadata"):
        dc.load_model(URL)


def test_groups_list_what_is_written_into_them():
    store = ObjectPath("memory://bucket/g.zarr").store()
    group = zarr.create_group(store)
    group.create_array("X", shape=(1000, 2), chunks=(500, 2), dtype="f4", dimension_names=("row", "column"))
    with pytest.warns(UserWarning, match="Consolidated metadata"):
        zarr.consolidate_metadata(store)
    write_array(da.arange(1000, chunks=500), "memory://bucket/g.zarr/labels")
    found = zarr.open_group(store, mode="r")
    assert found["labels"].metadata.dimension_names == ("row",)  # type: ignore[union-attr]
    assert found.metadata.consolidated_metadata is not None
    assert sorted(found.metadata.consolidated_metadata.metadata) == ["X", "labels"]


def test_format_2_has_no_other_keys_for_one_axis():
    zarr.create_group(ObjectPath("memory://bucket/g2.zarr").store(), zarr_format=2)
    for factor in (1, 2):
        for name, values in (("y", da.arange(9, chunks=5)), ("X", da.ones((9, 2), chunks=(5, 2)))):
            url = f"memory://bucket/g2.zarr/{name}"
            stored = write_array(factor * values, url, chunks=5, overwrite=factor > 1)
            np.testing.assert_array_equal(stored[...], factor * values.compute())
    names = ObjectPath("memory://bucket/g2.zarr").names_inside()
    assert [name for name in names if name[-1].isdigit()] == ["X/0/0", "X/1/0", "y/0", "y/1"]


def test_files_and_conversions_go_there(s3, tmp_path):
    np.save(tmp_path / "x.npy", ROWS)
    np.testing.assert_array_equal(convert(tmp_path / "x.npy", URL, chunk_rows=300)[...], ROWS)
    from daskcluster.files import atomic_path

    with atomic_path("memory://bucket/page.html", kind="file") as temporary:
        temporary.write_text("complete")
        assert not ObjectPath("memory://bucket/page.html").exists()
    assert ObjectPath("memory://bucket/page.html").read_text() == "complete"
    with pytest.raises(FileNotFoundError, match="there is no bucket 's3://nobucket'"):
        written(url="s3://nobucket/x.zarr")


# -- locks -------------------------------------------------------------------------------------------------------------


def test_one_process_at_a_time(s3, monkeypatch):
    place = ObjectPath("s3://bucket/run")
    lock = ObjectLock(place, "storage")
    with pytest.raises(dc.StorageBusyError, match="storage 's3://bucket/run' is in use by this process"):
        ObjectLock(place, "storage")
    lock.release()
    lock.release()
    assert place.names_inside() == []
    elsewhere = {"host": "other", "machine": "x y", "pid": 1, "born": "1", "token": "t"}
    (place / locks.LOCK_FILE).write_bytes(json.dumps(elsewhere).encode())
    with pytest.raises(dc.StorageBusyError, match="in use by process 1 on other"):
        ObjectLock(place, "storage")
    monkeypatch.setattr(object_locks, "GONE_SECONDS", -1.0)
    monkeypatch.setattr(locks, "GONE_SECONDS", -1.0)
    held: list[Any] = []

    def take() -> None:
        try:
            held.append(ObjectLock(place, "storage"))
        except dc.StorageBusyError as error:
            held.append(error)

    takers = [threading.Thread(target=take) for _ in range(2)]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()
    assert sum(isinstance(found, ObjectLock) for found in held) == 1
    next(found for found in held if isinstance(found, ObjectLock)).release()
    assert place.names_inside() == []


def test_a_lock_that_is_released_while_its_holder_writes_does_not_come_back(s3, monkeypatch):
    """Nor does the end of that writing remove the lock of the next holder."""
    monkeypatch.setattr(object_locks, "HEARTBEAT_SECONDS", 0.01)
    writes, go_on, write = threading.Event(), threading.Event(), ObjectPath.write_bytes

    def slow(path: ObjectPath, content: bytes) -> None:
        writes.set()
        go_on.wait(60)
        write(path, content)

    monkeypatch.setattr(ObjectPath, "write_bytes", slow)
    place = ObjectPath("s3://bucket/run")
    lock = ObjectLock(place, "storage")
    assert writes.wait(60)
    taken: list[ObjectLock] = []

    def hand_over() -> None:
        lock.release()
        taken.append(ObjectLock(place, "storage"))

    handing = threading.Thread(target=hand_over)
    handing.start()
    handing.join(0.5)  # long enough for a release that does not wait for the writing
    go_on.set()
    handing.join()
    lock._heart.join()
    content = json.loads((place / locks.LOCK_FILE).read_bytes())
    assert content["token"] == taken[0]._token
    taken[0].release()
    assert place.names_inside() == []


def test_a_holder_shows_that_it_lives_until_somebody_took_its_place(s3, monkeypatch):
    monkeypatch.setattr(object_locks, "HEARTBEAT_SECONDS", 0.01)
    file = ObjectPath("s3://bucket/run") / locks.LOCK_FILE
    lock = ObjectLock(file.parent, "storage")
    s3.requests.clear()
    while ("PUT", "/bucket/run/.daskcluster.lock") not in s3.requests:
        threading.Event().wait(0.01)
    lock._ended.set()
    lock._heart.join()
    file.write_bytes(b'{"token": "other"}')
    lock.release()
    assert file.read_bytes() == b'{"token": "other"}'
