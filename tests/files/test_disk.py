"""A full disk: what is needed and what is free is said, and nothing half-written looks finished."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import daskcluster as dc
from daskcluster.errors import DiskFullError
from daskcluster.files import atomic_path
from daskcluster.files import disk as disk_module
from daskcluster.io import write_array
from daskcluster.io.convert import convert
from tests.cli.calls import fail

MIB = 2**20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB, where one can be mounted."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root mounts a small disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr!r}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def noise(n_rows: int = 40_000, columns: int = 8) -> da.Array:
    return da.from_array(np.random.default_rng(0).normal(size=(n_rows, columns)), chunks=(5000, columns))


@pytest.mark.parametrize("scheduler", ["threads", "cluster"])
def test_labels_and_rows_that_do_not_fit(scheduler, small_disk, request):
    if scheduler == "cluster":
        request.getfixturevalue("client_inprocess")
    with pytest.raises(DiskFullError) as refused:
        write_array(noise(), small_disk / "x.zarr")
    assert refused.value.errno == errno.ENOSPC
    assert str(refused.value).startswith(
        f"the disk is full at {str(small_disk / 'x.zarr')!r}: 2,560,000 bytes are needed, 1,0"
    )
    assert "make room there, or give another path" in str(refused.value)
    assert os.listdir(small_disk) == []


def test_conversion(small_disk, tmp_path):
    np.save(tmp_path / "x.npy", noise().compute())
    np.savetxt(tmp_path / "x.csv", noise().compute(), delimiter=",")
    with pytest.raises(DiskFullError, match="2,560,000 bytes are needed"):
        convert(tmp_path / "x.npy", small_disk / "x.zarr")
    with pytest.raises(DiskFullError, match=r"more than [0-9,]+ bytes are needed"):
        convert(tmp_path / "x.csv", small_disk / "x.zarr", chunk_rows=2000)
    assert os.listdir(small_disk) == []


def test_models(small_disk):
    X = noise(600, 600).compute()
    model = dc.USPEC(3, n_representatives=500, selection="random", random_state=0).fit(X)
    with pytest.raises(DiskFullError, match="bytes are needed"):
        model.save(small_disk / "m.zarr")
    assert os.listdir(small_disk) == []


def test_a_named_store_keeps_what_was_whole_and_goes_on(small_disk):
    X = noise(60_000, 2)
    model = dc.USPEC(3, n_representatives=100, random_state=0, storage=small_disk / "run")
    with pytest.raises(DiskFullError, match=r"run/nearest': 2,400,000 bytes are needed"):
        model.fit(X)
    there = sorted(os.listdir(small_disk / "run"))
    assert there == [".nearest.growing", ".nearest.parts", "daskcluster.json", "representatives"]
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    resumed = model.fit(X).labels_
    again = dc.USPEC(3, n_representatives=100, random_state=0).fit(X).labels_
    assert np.array_equal(resumed.compute(), again.compute())


def test_the_scratch_store(small_disk):
    settings: dict[str, Any] = {"daskcluster.memory-budget": "0 B", "temporary-directory": str(small_disk)}
    with dask.config.set(settings), pytest.raises(DiskFullError, match="dask's setting temporary-directory"):
        dc.USPEC(3, n_representatives=100, random_state=0).fit(noise(60_000, 2))


def test_commands_have_code_1(small_disk):
    message = fail(1, "make", "flower", small_disk / "x.zarr", "-n", "200k", "--quiet")
    assert message.startswith(f"Error: the disk is full at {str(small_disk / 'x.zarr')!r}: 1,600,000 bytes are needed")
    assert os.listdir(small_disk) == []


# -- everywhere


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_any_write_that_fails_for_lack_of_room(code, tmp_path):
    def write() -> None:
        with atomic_path(tmp_path / "x", needed_bytes=12_345) as temporary:
            temporary.write_bytes(b"half")
            raise OSError(code, os.strerror(code))

    with pytest.raises(DiskFullError) as refused:
        write()
    text = str(refused.value)
    assert ("quota is used up" in text) == (code == errno.EDQUOT)
    assert f"at {str(tmp_path / 'x')!r}: 12,345 bytes are needed, " in text
    assert str(pickle.loads(pickle.dumps(refused.value))) == text
    assert os.listdir(tmp_path) == []


def test_other_failures_stay_what_they_are(tmp_path):
    with pytest.raises(PermissionError), atomic_path(tmp_path / "x"):
        raise PermissionError(errno.EACCES, "no")


def test_free_bytes_of_what_is_not_there_yet(tmp_path, monkeypatch):
    free = disk_module.free_bytes(tmp_path / "a" / "b")
    assert free is not None
    assert free > 0
    monkeypatch.setattr(disk_module.shutil, "disk_usage", lambda path: (_ for _ in ()).throw(OSError()))
    assert disk_module.free_bytes(tmp_path) is None


@pytest.mark.parametrize("where", ["files", "zarr"])
def test_a_fit_whose_writes_fail(where, tmp_path, monkeypatch):
    """Where no small disk can be mounted, too: the file of a block, and what zarr writes."""

    def full(*arguments: Any, **more: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if where == "files":
        monkeypatch.setattr("daskcluster.runtime.held.Held.__setitem__", full)
    else:
        monkeypatch.setattr("zarr.storage._local._put", full)
    with pytest.raises(DiskFullError, match=r"the disk is full at .*run"):
        dc.KMeans(3, random_state=0, storage=tmp_path / "run").fit(noise(3000, 2))
    left = {name for name in os.listdir(tmp_path / "run") if name.startswith(".")}
    assert left <= {".labels.parts", ".labels.growing"}, "with which the next run goes on"
