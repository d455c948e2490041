"""The aligned, atomic writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskcluster.files import open_rows
from daskcluster.io import open_dask, write, write_array

VALUES = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)


def hidden(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


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
    original = write._write_block

    def recorded(block, target, unit, lengths, block_id):
        regions.append((block_id[0] * unit[0], len(block)))
        return original(block, target, unit, lengths, block_id)

    monkeypatch.setattr(write, "_write_block", recorded)
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
    with pytest.raises(ValueError, match=r"Protocol not known: nope"):
        write_array(ones, "nope://bucket/x.zarr")
    assert os.listdir(tmp_path) == []


def test_write_array_in_worker_processes(tmp_path, pool):
    with dask.config.set(scheduler="processes", pool=pool):
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


def test_killed_run_leaves_only_a_hidden_folder_that_the_next_run_removes(tmp_path):
    program = textwrap.dedent(
        f"""
        import time
        import dask.array as da
        import numpy as np
        from daskcluster.io import write_array

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
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=Path(write.__file__).parents[2]
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"first chunk done\n"
        process.send_signal(signal.SIGKILL)
    (partial,) = os.listdir(tmp_path)
    assert partial.startswith(".x.zarr.partial-")
    write_array(da.ones(4, chunks=2), tmp_path / "x.zarr")
    assert os.listdir(tmp_path) == ["x.zarr"]


def test_write_array_rounds_shards_up_to_whole_chunks(tmp_path):
    for rows, wanted, chunks, shards in ((100, 300, 100, 300), (100, 250, 100, 300), (1000, 60, 60, 60)):
        path = tmp_path / f"{rows}-{wanted}.zarr"
        stored = write_array(da.arange(1000, chunks=rows), path, chunks=rows if rows < wanted else None, shards=shards)
        assert (stored.chunks, stored.shards) == ((chunks,), (shards,))
    stored = write_array(da.arange(1000, chunks=100), tmp_path / "s.zarr", shards=250)
    assert stored.shards is not None
    assert (stored.shards[0] >= 250, stored.shards[0] % stored.chunks[0]) == (True, 0)
    np.testing.assert_array_equal(stored[...], np.arange(1000))
    with pytest.raises(ValueError, match="shards: expected a positive number of rows, got 0"):
        write_array(da.arange(10, chunks=5), tmp_path / "none.zarr", shards=0)
