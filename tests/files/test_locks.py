"""One writer of a folder at a time."""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from daskcluster.errors import StorageBusyError
from daskcluster.files import locks
from daskcluster.files.locks import LOCK_FILE, FolderLock, check_free


def write_lock(folder: Path, **changes: Any) -> Path:
    """A lock as another process leaves it."""
    content = {**locks.own_identity(), "since": "2026-01-01T00:00:00+00:00", "token": "theirs", **changes}
    (folder / LOCK_FILE).write_text(json.dumps(content))
    return folder / LOCK_FILE


def finished_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_folder_is_held_once_and_given_free(tmp_path):
    lock = FolderLock(tmp_path, "storage")
    for take in (lambda: FolderLock(tmp_path, "storage"), lambda: check_free(tmp_path, "storage")):
        with pytest.raises(StorageBusyError) as refused:
            take()
        assert f"storage {str(tmp_path)!r} is in use by this process ({os.getpid()} on {socket.gethostname()})" in str(
            refused.value
        )
        assert ", since 20" in str(refused.value)
        assert "overwrite" not in str(refused.value)
    lock.release()
    lock.release()
    assert os.listdir(tmp_path) == []
    check_free(tmp_path, "storage")
    FolderLock(tmp_path, "storage").release()


def test_a_lock_goes_with_its_object(tmp_path):
    lock = FolderLock(tmp_path, "storage")
    assert os.listdir(tmp_path) == [LOCK_FILE]
    del lock
    gc.collect()
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="looks processes up")
def test_a_living_process_is_named(tmp_path):
    parent = os.getppid()
    write_lock(tmp_path, pid=parent, born=locks._birth(parent))
    with pytest.raises(StorageBusyError, match=f"by process {parent} on .*, since 2026-01-01T00:00:00"):
        FolderLock(tmp_path, "storage")


@pytest.mark.skipif(os.name != "posix", reason="looks processes up")
@pytest.mark.parametrize("gone", ["ended", "number given anew", "booted anew", "nonsense"])
def test_a_lock_of_a_process_that_is_gone_is_taken_over_at_once(gone, tmp_path):
    if gone == "ended":
        write_lock(tmp_path, pid=finished_process())
    elif gone == "nonsense":
        write_lock(tmp_path, pid=-5)
    elif locks._machine() is None:
        pytest.skip("this system does not tell")
    elif gone == "number given anew":
        write_lock(tmp_path, pid=os.getppid(), born="1")
    else:
        write_lock(tmp_path, machine="0-0-0 pid:[1]")
    lock = FolderLock(tmp_path, "storage")
    assert json.loads((tmp_path / LOCK_FILE).read_text())["pid"] == os.getpid()
    assert os.listdir(tmp_path) == [LOCK_FILE]
    lock.release()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", ["elsewhere", "", "[1]", "{"])
def test_a_lock_that_cannot_be_looked_up_counts_as_gone_after_a_while_without_a_sign(content, tmp_path):
    file = write_lock(tmp_path, host="elsewhere", pid=7)
    if content != "elsewhere":
        file.write_text(content)  # being written
    with pytest.raises(StorageBusyError, match="process 7 on elsewhere" if content == "elsewhere" else "in use by"):
        FolderLock(tmp_path, "storage")
    os.utime(file, (time.time() - locks.GONE_SECONDS - 5,) * 2)
    FolderLock(tmp_path, "storage").release()
    assert os.listdir(tmp_path) == []


def test_a_held_lock_shows_signs_of_life(tmp_path, monkeypatch):
    touched = []
    monkeypatch.setattr(locks.os, "utime", lambda file: touched.append(file))
    ended = locks.threading.Event()
    monkeypatch.setattr(ended, "wait", lambda seconds: len(touched) >= 3)
    locks._beat(tmp_path / LOCK_FILE, ended)
    assert touched == [tmp_path / LOCK_FILE] * 3


def test_the_lock_of_another_is_not_released(tmp_path):
    lock = FolderLock(tmp_path, "storage")
    write_lock(tmp_path)  # taken over, while this process was suspended
    lock.release()
    assert os.listdir(tmp_path) == [LOCK_FILE]


def test_a_lock_that_somebody_took_over_meanwhile_is_put_back(tmp_path, monkeypatch):
    write_lock(tmp_path, pid=-5)
    rename = os.rename

    def slow(source: Path, target: Path) -> None:
        write_lock(tmp_path, token="faster")
        rename(source, target)

    monkeypatch.setattr(locks.os, "rename", slow)
    with pytest.raises(StorageBusyError):
        FolderLock(tmp_path, "storage")
    assert json.loads((tmp_path / LOCK_FILE).read_text())["token"] == "faster"
    assert os.listdir(tmp_path) == [LOCK_FILE]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_the_end_of_a_forked_child_does_not_give_the_folder_free(tmp_path):
    code = f"""if True:
        import os
        from pathlib import Path
        from daskcluster.files.locks import FolderLock
        lock = FolderLock(Path({str(tmp_path)!r}), "storage")
        if os.fork() == 0:
            raise SystemExit
        os.wait()
        print(os.listdir({str(tmp_path)!r}))
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == str([LOCK_FILE])
    assert os.listdir(tmp_path) == []  # the parent has ended too


def test_a_folder_that_cannot_be_written_has_no_lock(tmp_path, monkeypatch):
    def refuse(*arguments: Any) -> int:
        raise PermissionError(13, "no")

    monkeypatch.setattr(locks.os, "open", refuse)
    FolderLock(tmp_path, "storage").release()
    assert os.listdir(tmp_path) == []
