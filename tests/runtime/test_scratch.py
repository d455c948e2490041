"""Scratch folders go: with their arrays, with a fit that fails or is interrupted, and with what a kill left over."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import daskcluster as dc
from daskcluster.runtime.scratch import ScratchFolder
from tests.cli.calls import wait_for_end_of_group
from tests.estimators.cases import BLOBS, CASES, every, reference
from tests.interrupts import interrupted_after
from tests.programs import run_program
from tests.slow import slowly

ROOT = Path(dc.__file__).parents[1]

posix = pytest.mark.skipif(os.name != "posix", reason="signals and locks of files")


@pytest.fixture
def scratch(tmp_path):
    """The folder of temporary files; nothing is held in memory."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    with dask.config.set({"temporary-directory": str(folder), "daskcluster.memory-budget": 1}):
        yield folder


def test_a_folder_goes_with_its_object(scratch):
    folder = ScratchFolder()
    assert [folder.path] == list(scratch.iterdir())
    assert str(os.getpid()) in folder.path.name.split("-")
    del folder
    gc.collect()
    assert not list(scratch.iterdir())


# -- failures and interrupts -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_blocks")
@every(CASES, options=False)
def test_an_interrupted_fit_leaves_nothing(case, scratch):
    """At once, although the exception is kept, and with it all that the fit had."""
    with pytest.raises(KeyboardInterrupt) as kept, interrupted_after(lambda stage: any(scratch.iterdir())):
        case.fit_chunked()
    assert kept.value.__traceback__ is not None
    assert not list(scratch.iterdir())


@pytest.mark.usefixtures("small_blocks")
def test_a_failed_fit_leaves_what_an_earlier_one_holds(scratch):
    X = da.from_array(BLOBS, chunks=(64, 2))
    model = dc.USPEC(3, n_representatives=60, random_state=0).fit(X)
    labels, held = model.labels_, list(scratch.iterdir())
    with pytest.raises(KeyboardInterrupt), interrupted_after(lambda stage: len(list(scratch.iterdir())) > 1):
        model.fit(X)
    assert list(scratch.iterdir()) == held
    assert np.array_equal(labels.compute(), dc.USPEC(3, n_representatives=60, random_state=0).fit(BLOBS).labels_)


@posix
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("place", ["scratch", "store"])
def test_tasks_that_run_on_write_nowhere(scratch, place):
    """A task is in the middle of its block when the fit is interrupted, and ends it when all has been removed.

    In a named store its block may come where the product grows, of which it has no record.
    """
    go_on, reads = threading.Event(), [0]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background begins without it

    def read(block_id):
        reads[0] += block_id[0] == 1
        if block_id[0] == 1 and reads[0] == 2:  # the second pass writes
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            go_on.wait(60)
        return BLOBS[64 * block_id[0] : 64 * (block_id[0] + 1)]

    chunks = ((64,) * 9 + (24,), (2,))
    X = da.map_blocks(read, chunks=chunks, dtype=BLOBS.dtype, meta=np.empty((0, 0)), name="read-and-wait")
    storage = scratch / "run" if place == "store" else None
    with ThreadPoolExecutor(2) as pool, dask.config.set(pool=pool):
        with pytest.raises(KeyboardInterrupt):
            dc.USPEC(3, n_representatives=60, random_state=0, storage=storage).fit(X)
        left = sorted(scratch.rglob("*"))
        go_on.set()
    assert reads == [2]
    come = set(scratch.rglob("*")) - set(left)
    assert all(".nearest.growing" in path.parts for path in come)
    if place == "scratch":
        assert left == []
        assert not come
    else:
        assert not [path for path in left if "partial" in path.name]


# -- what a kill leaves over -------------------------------------------------------------------------------------------

HOLD = """
import os, signal, sys, dask
dask.config.set({"temporary-directory": sys.argv[1]})
from daskcluster.runtime.scratch import ScratchFolder
folder = ScratchFolder()
(folder.path / "rows").write_bytes(b"rows")
print(folder.path, flush=True)
sys.stdin.read()
"""


def holder(scratch):
    """A process that holds a scratch folder until its stdin ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(scratch)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, Path(process.stdout.readline().strip())


@posix
@pytest.mark.parametrize("locks", [True, *slowly(False)])
def test_folders_of_killed_processes_are_collected(scratch, locks):
    """And no others: of processes that live, of this one, of other machines, of users' own."""
    killed, left = holder(scratch)
    living, held = holder(scratch)
    own = ScratchFolder()
    if not locks:  # as where the file system has none
        for folder in (left, held, own.path):
            (folder / ".lock").unlink()
    number = left.name.split("-")[-2]
    others = [scratch / f"daskcluster-elsewhere-{number}-x", scratch / "daskcluster-mine", scratch / "other"]
    for other in others:
        other.mkdir()
    killed.kill()
    killed.communicate()
    stays = {held, own.path, *others}
    assert set(scratch.iterdir()) == {left, *stays}

    new = ScratchFolder()
    assert set(scratch.iterdir()) == {new.path, *stays}
    assert (held / "rows").read_bytes() == b"rows"

    living.communicate()
    assert living.returncode == 0
    assert held not in set(scratch.iterdir())


@posix
def test_the_number_of_a_killed_process_may_be_that_of_another(scratch):
    killed, left = holder(scratch)
    killed.kill()
    killed.communicate()
    host = left.name.split("-")[1]
    left.rename(scratch / f"daskcluster-{host}-{os.getpid()}-x")
    assert list(scratch.iterdir()) != []
    new = ScratchFolder()
    assert list(scratch.iterdir()) == [new.path]


@posix
def test_what_could_not_be_removed_is_removed_later(scratch):
    left = ScratchFolder().path.name
    (scratch / f"{left}.removed" / "rows").mkdir(parents=True)
    new = ScratchFolder()
    assert list(scratch.iterdir()) == [new.path]


FIT = """
import pathlib, signal, sys, threading
import dask, dask.array as da, numpy as np
import daskcluster as dc
from daskcluster.io import inputs
inputs.MOST_BLOCK_ROWS = 64
scratch, storage = sys.argv[1], None
dask.config.set({"temporary-directory": scratch, "daskcluster.memory-budget": 1})
X = np.random.default_rng(0).normal(size=(640, 2))
ended, written = threading.Event(), []

def read(block_id):
    written.append(block_id)
    if len(written) > 15:  # the second pass writes
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        ended.wait(2)  # longer than the interrupted program needs to come to its end
    return X[64 * block_id[0] : 64 * (block_id[0] + 1)]

rows = da.map_blocks(read, chunks=((64,) * 10, (2,)), dtype=X.dtype, meta=np.empty((0, 0)), name="read")
dc.USPEC(3, n_representatives=60, random_state=0).fit(rows)
"""


@posix
def test_an_interrupted_program_leaves_nothing(scratch):
    done = run_program(FIT, scratch)
    assert done.returncode in (130, -signal.SIGINT), done.stderr
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert not list(scratch.iterdir())


ON_A_CLUSTER = """
import sys
import dask, dask.array as da
import daskcluster as dc
from distributed import Client, LocalCluster

if __name__ == "__main__":
    dask.config.set({"temporary-directory": sys.argv[1], "daskcluster.memory-budget": 1})
    rows = da.random.default_rng(0).normal(size=(1_000_000, 8), chunks=(100_000, 8))
    with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster, Client(cluster):
        dc.USPEC(3, n_representatives=500, random_state=0, storage=sys.argv[2]).fit(rows)
"""


@posix
@pytest.mark.parametrize("name", slowly("SIGTERM", "SIGHUP", "SIGINT"))
def test_a_program_on_a_cluster_of_its_own(scratch, tmp_path, name):
    """A queue's signal to the program ends a fit as an exception does: the program's own blocks close, too."""
    program, store = tmp_path / "program.py", tmp_path / "run"
    program.write_text(ON_A_CLUSTER)
    number = getattr(signal, name)
    with subprocess.Popen(
        [sys.executable, str(program), str(scratch), str(store)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        while not list(store.glob(".*.partial*/rows/c/*")):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(number)
        stderr = process.communicate(timeout=60)[1]
    assert process.returncode in (128 + number, -number), stderr
    assert "Traceback" not in stderr or name == "SIGINT"
    assert not list(scratch.glob("daskcluster-*"))
    assert not list(store.glob("*partial*"))
    assert not list(scratch.rglob("*.dirlock"))
    wait_for_end_of_group(process.pid)


@posix
def test_a_programs_own_handlers_stay(scratch):
    """Of signals, in a fit and after it: the program decides about those that it knows."""
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with interrupted_after(lambda stage: not heard and os.kill(os.getpid(), signal.SIGTERM)):
            dc.USPEC(3, n_representatives=60, random_state=0).fit(da.from_array(BLOBS, chunks=(64, 2)))
        assert heard == [signal.SIGTERM]
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        terminated = interrupted_after(lambda stage: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(SystemExit) as ended, terminated:
            dc.USPEC(3, n_representatives=60, random_state=0).fit(da.from_array(BLOBS, chunks=(64, 2)))
        assert ended.value.code == 128 + signal.SIGTERM
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not list(scratch.iterdir())


TWICE = """
import pathlib, shutil, sys, dask
dask.config.set({"temporary-directory": sys.argv[1]})
from daskcluster.runtime.scratch import ScratchFolder
folders = [ScratchFolder() for _ in "12"]

def interrupted(*args, **kwargs):
    raise KeyboardInterrupt

for folder, (place, step) in zip(folders, [(pathlib.Path, "rename"), (shutil, "rmtree")], strict=True):
    (folder.path / "rows").write_bytes(b"rows")
    action = getattr(place, step)
    setattr(place, step, interrupted)
    try:
        folder.release()
    except KeyboardInterrupt:
        print(step)
    setattr(place, step, action)
    del folder
"""


@posix
def test_a_removal_that_is_interrupted_ends_with_the_program(scratch):
    """Ctrl-C is often pressed twice: the second one may come at any step of what the first one began."""
    done = run_program(TWICE, scratch)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["rename", "rmtree"], "")
    assert not list(scratch.iterdir())


def test_the_labels_are_those_in_memory(scratch):
    case = CASES[0]
    assert np.array_equal(case.fit_chunked().labels_.compute(), reference(case).labels_)
