"""Outputs are complete or absent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from daskcluster.files import atomic, atomic_path, check_output, create_array, open_rows, place_at


def hidden(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


def store(path: Path, length: int, *, overwrite: bool = False) -> None:
    with atomic_path(path, overwrite=overwrite) as temporary:
        create_array(temporary, (length,), "f8")


def test_places_of_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert place_at("a/../x.zarr") == Path.cwd() / "x.zarr"
    assert place_at("file:///data/a%20b.zarr") == Path("/data/a b.zarr")


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
    store(tmp_path / "x.zarr", 3)
    (tmp_path / "link.zarr").symlink_to(tmp_path / "x.zarr")
    store(tmp_path / "link.zarr", 4, overwrite=True)
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
    host = atomic._hidden_sibling(tmp_path / "x", "partial").name.split("-")[1]
    dead = make_partial(tmp_path, "partial", host, finished_process())
    own = make_partial(tmp_path, "partial", host, os.getpid())  # of an earlier process with our number
    alive = make_partial(tmp_path, "partial", host, os.getppid())
    far = make_partial(tmp_path, "partial", "elsewhere", 1)
    far_old = make_partial(tmp_path, "partial", "elsewhere", 2)
    for folder in (far_old, far_old / "c"):
        os.utime(folder, (time.time() - 2 * atomic.ABANDONED_SECONDS,) * 2)
    other_target = tmp_path / ".y.zarr.partial-elsewhere-1-0123abcd"
    other_target.mkdir()
    store(tmp_path / "x.zarr", 3)
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
    host = atomic._hidden_sibling(tmp_path / "x", "partial").name.split("-")[1]
    replaced = make_partial(tmp_path, "replaced", host, finished_process())
    (replaced / "zarr.json").write_text("the old one")
    with pytest.raises(FileExistsError):
        store(tmp_path / "x.zarr", 3)
    assert (tmp_path / "x.zarr" / "zarr.json").read_text() == "the old one"
