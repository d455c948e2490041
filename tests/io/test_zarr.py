"""Opening arrays, and the aligned, atomic writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from daskcluster.io import zarr as io_zarr
from daskcluster.io.zarr import (
    atomic_path,
    check_output,
    choose_chunk_rows,
    create_array,
    local_path,
    open_dask,
    open_rows,
    write_array,
)

VALUES = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)


def hidden(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


# -- opening


def test_open_rows_takes_arrays_paths_and_urls(tmp_path):
    stored = create_array(tmp_path / "x.zarr", (4, 2), "f4")
    assert open_rows(stored) is stored
    for source in (tmp_path / "x.zarr", str(tmp_path / "x.zarr"), f"file://{tmp_path}/x.zarr"):
        array = open_rows(source)
        assert array.shape == (4, 2)
        assert array.read_only


def test_open_rows_opens_format_2_and_arrays_in_groups(tmp_path):
    zarr.create_array(str(tmp_path / "old.zarr"), shape=(3, 2), dtype="f8", chunks=(3, 2), zarr_format=2)
    group = zarr.create_group(str(tmp_path / "group.zarr"))
    group.create_array("X", shape=(5, 2), dtype="f4", chunks=(5, 2))
    assert open_rows(tmp_path / "old.zarr").shape == (3, 2)
    assert open_rows(tmp_path / "group.zarr" / "X").shape == (5, 2)


def test_open_rows_says_what_it_found(tmp_path):
    missing = tmp_path / "missing.zarr"
    with pytest.raises(FileNotFoundError, match=r"missing\.zarr.*nothing exists there"):
        open_rows(missing)
    with pytest.raises(ValueError, match="is a folder, not a Zarr array"):
        open_rows(tmp_path)
    (tmp_path / "x.npy").write_bytes(b"")
    with pytest.raises(ValueError, match=r"x\.npy' is a file.*daskcluster convert"):
        open_rows(tmp_path / "x.npy")
    (tmp_path / "broken.zarr").mkdir()
    (tmp_path / "broken.zarr" / "zarr.json").write_text("{")
    with pytest.raises(ValueError, match="metadata that cannot be read"):
        open_rows(tmp_path / "broken.zarr")
    with pytest.raises(TypeError, match="got list"):
        open_rows([1, 2])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no Zarr array at 'memory://nothing'"):
        open_rows("memory://nothing")


def test_open_rows_lists_the_arrays_of_a_group(tmp_path):
    group = zarr.create_group(str(tmp_path / "group.zarr"))
    with pytest.raises(ValueError, match="is an empty Zarr group"):
        open_rows(tmp_path / "group.zarr")
    group.create_array("X", shape=(5, 2), dtype="f4", chunks=(5, 2))
    group.create_group("deep").create_array("y", shape=(5,), dtype="i4", chunks=(5,))
    with pytest.raises(ValueError, match=r"it holds X \(5, 2\), deep/y \(5,\)\. Name one.*group\.zarr/X'"):
        open_rows(tmp_path / "group.zarr")
    with pytest.raises(ValueError, match=r"file://.*group\.zarr' is a Zarr group, not an array; it holds X"):
        open_rows(group)


def test_open_dask_reads_whole_stored_chunks(tmp_path):
    stored = create_array(tmp_path / "x.zarr", (1000, 3), "f4", chunks=70)
    stored[...] = VALUES
    array = open_dask(tmp_path / "x.zarr")
    assert array.numblocks == (1, 1)  # small chunks are read together
    np.testing.assert_array_equal(array.compute(), VALUES)


def test_open_dask_keeps_large_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(io_zarr, "CHUNK_BYTES", 150 * 12)
    stored = create_array(tmp_path / "x.zarr", (1000, 3), "f4", chunks=70)
    stored[...] = VALUES
    assert open_dask(stored).chunks[0] == (140,) * 7 + (20,)
    sharded = create_array(tmp_path / "s.zarr", (1000, 3), "f4", chunks=70, shards=350)
    sharded[...] = VALUES
    assert open_dask(sharded).chunks[0] == (350, 350, 300)
    with pytest.raises(ValueError, match="scalar"):
        open_dask(zarr.create_array(str(tmp_path / "scalar.zarr"), shape=(), dtype="f4"))


# -- creating


@pytest.mark.parametrize(
    ("row_bytes", "n_rows", "expected"),
    [
        (8, None, 2**20),
        (64, None, 2**19),
        (100, None, 2**18),
        (10**9, None, 1),
        (8, 5, 5),
        (8, 0, 1),
        (0, None, 2**20),
    ],
)
def test_choose_chunk_rows(row_bytes, n_rows, expected):
    assert choose_chunk_rows(row_bytes, n_rows) == expected


def test_create_array_uses_zarr_format_3_and_its_own_codecs(tmp_path):
    array = create_array(tmp_path / "x.zarr", (10, 2), ">f4", attributes={"a": [1, None, "b"]})
    assert array.metadata.zarr_format == 3
    assert all(type(codec).__module__.startswith("zarr.codecs") for codec in array.metadata.codecs)
    assert array.dtype == np.dtype(">f4")
    assert array.attrs.asdict() == {"a": [1, None, "b"]}
    array[...] = VALUES[:10, :2]
    np.testing.assert_array_equal(array[...], VALUES[:10, :2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "U5"}, "dtype: expected booleans"),
        ({"dtype": "O"}, "dtype: expected booleans"),
        ({"dtype": "c8"}, "dtype: expected booleans"),
        ({"chunks": 0}, "chunks: expected 2 positive lengths"),
        ({"chunks": (5, 2, 2)}, "chunks: expected 2 positive lengths"),
        ({"shards": 10}, "shards: name the chunks"),
        ({"chunks": 3, "shards": 10}, "shards: expected multiples of the chunks"),
        ({"attributes": {"x": float("nan")}}, "attributes: expected JSON"),
        ({"attributes": {"x": object()}}, "attributes: expected JSON"),
    ],
)
def test_create_array_refuses(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        create_array(tmp_path / "x.zarr", **{"shape": (20, 2), "dtype": "f4", **arguments})
    assert os.listdir(tmp_path) == []


# -- writing

CHUNKINGS = {
    "one": ((1000,), (3,)),
    "regular": ((300, 300, 300, 100), (3,)),
    "uneven": ((1, 998, 1), (3,)),
    "empty chunks": ((0, 5, 0, 995, 0), (3,)),
    "columns": ((400, 400, 200), (1, 2)),
}
GRIDS = {
    "default": {},
    "rows": {"chunks": 300},
    "both axes": {"chunks": (70, 2)},
    "longer than the array": {"chunks": 5000},
    "shards": {"chunks": 50, "shards": 150},
    "shards longer than the array": {"chunks": 300, "shards": 3000},
}


@pytest.mark.parametrize("chunking", CHUNKINGS.values(), ids=CHUNKINGS)
@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_write_array_stores_every_value_for_any_chunking(tmp_path, chunking, grid):
    stored = write_array(da.from_array(VALUES, chunks=chunking), tmp_path / "x.zarr", **grid)
    np.testing.assert_array_equal(stored[...], VALUES)
    assert stored.dtype == VALUES.dtype
    assert hidden(tmp_path) == []


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=8),
    chunk=st.integers(1, 12),
    per_shard=st.none() | st.integers(1, 3),
)
def test_write_array_one_dimension(tmp_path_factory, sizes, chunk, per_shard):
    values = np.arange(1, sum(sizes) + 1, dtype=np.int32)
    array = da.from_array(values, chunks=(tuple(sizes),)) if values.size else da.zeros(0, dtype=np.int32)
    path = tmp_path_factory.mktemp("write") / "x.zarr"
    stored = write_array(array, path, chunks=chunk, shards=None if per_shard is None else chunk * per_shard)
    np.testing.assert_array_equal(stored[...], values)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (5, 0)])
def test_write_array_without_values(tmp_path, shape):
    assert write_array(da.zeros(shape), tmp_path / "x.zarr").shape == shape


def test_write_array_keeps_regular_chunks_and_joins_tiny_ones(tmp_path):
    ones = da.ones(2**22, dtype=np.int32, chunks=2**21)
    assert write_array(ones, tmp_path / "a.zarr").chunks == (2**21,)  # 8 MiB each
    assert write_array(ones.rechunk(2**18), tmp_path / "b.zarr").chunks == (2**20,)  # four make 4 MiB
    assert write_array(ones.rechunk(((1, 2**22 - 1),)), tmp_path / "c.zarr").chunks == (2**20,)


def test_every_stored_chunk_has_one_writer(tmp_path, monkeypatch):
    regions: list[tuple[int, int]] = []
    original = io_zarr._write_block

    def recorded(block, path, unit, block_id):
        regions.append((block_id[0] * unit[0], len(block)))
        return original(block, path, unit, block_id)

    monkeypatch.setattr(io_zarr, "_write_block", recorded)
    write_array(da.from_array(VALUES, chunks=(70, 3)), tmp_path / "x.zarr", chunks=50, shards=300)
    assert sorted(regions) == [(0, 300), (300, 300), (600, 300), (900, 100)]


def test_write_array_stores_attributes(tmp_path):
    stored = write_array(da.ones(3, chunks=3), tmp_path / "x.zarr", attributes={"n_clusters": 3})
    assert stored.attrs.asdict() == {"n_clusters": 3}
    assert stored.read_only


class Counted:
    """A block function that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, block: np.ndarray) -> np.ndarray:
        self.calls += 1
        return block


def test_existing_output_is_refused_before_anything_is_computed(tmp_path):
    path = tmp_path / "x.zarr"
    write_array(da.ones(3, chunks=3), path)
    counted = Counted()
    array = da.zeros(4, chunks=2).map_blocks(counted, dtype=float, meta=np.empty(0))
    with pytest.raises(FileExistsError, match=r"x\.zarr' exists; pass overwrite=True"):
        write_array(array, path)
    assert counted.calls == 0
    assert open_rows(path).shape == (3,)
    assert write_array(array, path, overwrite=True).shape == (4,)
    assert counted.calls == 2
    assert os.listdir(tmp_path) == ["x.zarr"]


def test_overwrite_may_read_what_it_replaces(tmp_path):
    path = tmp_path / "x.zarr"
    write_array(da.from_array(VALUES, chunks=(100, 3)), path)
    stored = write_array(open_dask(path) * 2, path, overwrite=True)
    np.testing.assert_array_equal(stored[...], VALUES * 2)


def test_failure_leaves_nothing_and_keeps_the_old_output(tmp_path):
    path = tmp_path / "x.zarr"

    def fail(block):
        raise RuntimeError("no luck")

    failing = da.zeros(4, chunks=2).map_blocks(fail, dtype=float, meta=np.empty(0))
    with pytest.raises(RuntimeError, match="no luck"):
        write_array(failing, path)
    assert os.listdir(tmp_path) == []
    write_array(da.ones(3, chunks=3), path)
    with pytest.raises(RuntimeError, match="no luck"):
        write_array(failing, path, overwrite=True)
    assert open_rows(path).shape == (3,)
    assert os.listdir(tmp_path) == ["x.zarr"]


def test_write_array_refuses_what_it_cannot_store(tmp_path):
    with pytest.raises(TypeError, match="expected a dask array, got ndarray"):
        write_array(VALUES, tmp_path / "x.zarr")
    with pytest.raises(ValueError, match="one or two dimensions, got 3"):
        write_array(da.zeros((2, 2, 2)), tmp_path / "x.zarr")
    ones = da.ones(10, chunks=5)
    with pytest.raises(ValueError, match="known chunk lengths"):
        write_array(ones[ones > 0], tmp_path / "x.zarr")
    with pytest.raises(ValueError, match=r"path on a file system.*'s3://bucket/x.zarr'"):
        write_array(ones, "s3://bucket/x.zarr")
    assert os.listdir(tmp_path) == []


def test_write_array_in_worker_processes(tmp_path):
    with dask.config.set(scheduler="processes", num_workers=2):
        stored = write_array(da.from_array(VALUES, chunks=(400, 3)), tmp_path / "x.zarr", chunks=300)
    np.testing.assert_array_equal(stored[...], VALUES)


def on_worker(block: np.ndarray) -> np.ndarray:
    from distributed import get_worker

    get_worker()  # raises anywhere else
    return block


@pytest.mark.parametrize("client", ["client_inprocess", "cluster_processes"])
def test_write_array_on_a_cluster(tmp_path, request, client):
    request.getfixturevalue(client)
    array = da.from_array(VALUES, chunks=(70, 3)).map_blocks(on_worker, dtype=VALUES.dtype, meta=VALUES[:0])
    stored = write_array(array, tmp_path / "x.zarr", chunks=50, shards=300)
    np.testing.assert_array_equal(stored[...], VALUES)


# -- complete or absent


def test_local_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert local_path("a/../x.zarr") == Path.cwd() / "x.zarr"
    assert local_path("file:///data/a%20b.zarr") == Path("/data/a b.zarr")


def test_atomic_path_makes_folders_and_files(tmp_path):
    with atomic_path(tmp_path / "new" / "folder" / "x.txt") as temporary:
        assert temporary.parent == tmp_path / "new" / "folder"
        assert temporary.name.startswith(".x.txt.partial-")
        assert not temporary.exists()
        temporary.write_text("one")
        assert not (temporary.parent / "x.txt").exists()
    assert (tmp_path / "new" / "folder" / "x.txt").read_text() == "one"
    with atomic_path(tmp_path / "new" / "folder" / "x.txt", overwrite=True) as temporary:
        temporary.write_text("two")
    assert os.listdir(tmp_path / "new" / "folder") == ["x.txt"]
    assert (tmp_path / "new" / "folder" / "x.txt").read_text() == "two"


def test_atomic_path_notices_that_nothing_was_written(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match=r"nothing was written for .*x\.txt"),
        atomic_path(tmp_path / "x.txt"),
    ):
        pass


def test_atomic_path_does_not_replace_what_appeared_meanwhile(tmp_path):
    def write_late() -> None:
        with atomic_path(tmp_path / "x.txt") as temporary:
            temporary.write_text("late")
            (tmp_path / "x.txt").write_text("early")

    with pytest.raises(FileExistsError):
        write_late()
    assert (tmp_path / "x.txt").read_text() == "early"
    assert hidden(tmp_path) == []


def test_overwrite_spares_folders_that_are_no_stores(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").touch()
    with pytest.raises(FileExistsError, match="is a folder that is no Zarr store"):
        check_output(tmp_path / "precious", overwrite=True)
    (tmp_path / "empty").mkdir()
    assert check_output(tmp_path / "empty", overwrite=True) == tmp_path / "empty"


def test_overwrite_of_a_link_removes_the_link_only(tmp_path):
    write_array(da.ones(3, chunks=3), tmp_path / "x.zarr")
    (tmp_path / "link.zarr").symlink_to(tmp_path / "x.zarr")
    write_array(da.ones(4, chunks=4), tmp_path / "link.zarr", overwrite=True)
    assert open_rows(tmp_path / "x.zarr").shape == (3,)
    assert open_rows(tmp_path / "link.zarr").shape == (4,)


def test_check_output_finds_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        check_output(tmp_path / "file" / "x.zarr")
    if os.geteuid() != 0:  # root may write anywhere
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(PermissionError, match="is not writable"):
            check_output(tmp_path / "closed" / "x.zarr")


def make_partial(folder: Path, kind: str, host: str, pid: int) -> Path:
    partial = folder / f".x.zarr.{kind}-{host}-{pid}-0123abcd"
    (partial / "c").mkdir(parents=True)
    return partial


def finished_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_leftovers_of_dead_processes_are_removed(tmp_path):
    host = io_zarr._hidden_sibling(tmp_path / "x", "partial").name.split("-")[1]
    dead = make_partial(tmp_path, "partial", host, finished_process())
    own = make_partial(tmp_path, "partial", host, os.getpid())  # of an earlier process with our number
    alive = make_partial(tmp_path, "partial", host, os.getppid())
    far = make_partial(tmp_path, "partial", "elsewhere", 1)
    far_old = make_partial(tmp_path, "partial", "elsewhere", 2)
    for folder in (far_old, far_old / "c"):
        os.utime(folder, (time.time() - 2 * io_zarr.ABANDONED_SECONDS,) * 2)
    other_target = tmp_path / ".y.zarr.partial-elsewhere-1-0123abcd"
    other_target.mkdir()
    write_array(da.ones(3, chunks=3), tmp_path / "x.zarr")
    left = {dead: False, own: False, alive: True, far: True, far_old: False, other_target: True}
    assert {path: path.exists() for path in left} == left


def test_two_writers_in_one_process_do_not_disturb_each_other(tmp_path):
    with atomic_path(tmp_path / "x.txt") as first:
        first.write_text("first")
        with atomic_path(tmp_path / "x.txt") as second:
            assert second != first
            second.write_text("second")
        assert first.read_text() == "first"
        (tmp_path / "x.txt").unlink()
    assert (tmp_path / "x.txt").read_text() == "first"


def test_output_lost_between_the_renames_of_an_overwrite_comes_back(tmp_path):
    host = io_zarr._hidden_sibling(tmp_path / "x", "partial").name.split("-")[1]
    replaced = make_partial(tmp_path, "replaced", host, finished_process())
    (replaced / "zarr.json").write_text("the old one")
    with pytest.raises(FileExistsError):
        write_array(da.ones(3, chunks=3), tmp_path / "x.zarr")
    assert (tmp_path / "x.zarr" / "zarr.json").read_text() == "the old one"


def test_killed_run_leaves_only_a_hidden_folder_that_the_next_run_removes(tmp_path):
    program = textwrap.dedent(
        f"""
        import time
        import dask.array as da
        import numpy as np
        from daskcluster.io.zarr import write_array

        def slow(block, block_id):
            if block_id[0]:
                print("first chunk done", flush=True)
                time.sleep(60)
            return block

        array = da.ones(4, chunks=2).map_blocks(slow, dtype=float, meta=np.empty(0))
        with __import__("dask").config.set(num_workers=1):
            write_array(array, {str(tmp_path / "x.zarr")!r}, chunks=2)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=Path(io_zarr.__file__).parents[2]
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"first chunk done\n"
        process.send_signal(signal.SIGKILL)
    (partial,) = os.listdir(tmp_path)
    assert partial.startswith(".x.zarr.partial-")
    write_array(da.ones(4, chunks=2), tmp_path / "x.zarr")
    assert os.listdir(tmp_path) == ["x.zarr"]
