"""A command that a signal ends is gone within seconds, with all that is finished: in a long task, in a long call."""

from __future__ import annotations

import os
import select
import signal

import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster.runtime.parts import Parts
from tests.cli.calls import run, succeed
from tests.programs import run_program

pytestmark = [
    pytest.mark.usefixtures("small_blocks"),
    pytest.mark.skipif(os.name != "posix", reason="sends signals"),
]

#: The command of the arguments, of which the sixth block of nearest representatives takes for ever.
LONG_TASK = """
import os, signal, sys, threading
import dask
from daskcluster.cli import main
from daskcluster.runtime import deadline, held
from tests.blocks import blocks_of

begun, write = [], held._write_block

def long(block, number, target, size, name, **more):
    if name == "nearest":
        begun.append(number)
        if len(begun) == 6:
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait()
    return write(block, number, target, size, name, **more)

deadline.DEADLINE_SECONDS, held._write_block = 0.1, long
with blocks_of(128), dask.config.set(num_workers=1):  # takes a block when the one before is finished
    main(sys.argv[1:])
"""


def test_a_long_task(tmp_path):
    """The fit does not wait for it; the next one goes on with the five blocks that were finished, and says so."""
    X = np.random.default_rng(0).normal(size=(1500, 2)).astype("f4") + 9 * (np.arange(1500) % 3)[:, None]
    rows, labels, store = (tmp_path / name for name in ("x.zarr", "labels.zarr", "run"))
    zarr.create_array(rows, data=X, chunks=(500, 2))
    fit = ["fit", rows, "-k", "3", "--representatives", "100", "--seed", "0", "--storage", store, "--labels", labels]
    ended = run_program(LONG_TASK, *fit)
    assert ended.returncode == 128 + signal.SIGTERM, ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last == "Ended by SIGTERM. Unfinished outputs are removed; the same command goes on where it stopped."
    assert not labels.exists()
    assert "goes on in 'nearest representatives': 5 of 12 blocks" in succeed("info", store).stdout
    again = run(*fit)
    assert again.exit_code == 0
    assert "resumed: products of 1 of 5 stages, nearest representatives 5 of 12 blocks" in again.stderr
    expected = dc.USPEC(3, n_representatives=100, random_state=0).fit(X).labels_
    np.testing.assert_array_equal(zarr.open_array(labels)[:], expected)


#: A pass with a result that is not written yet, while the main thread has signals wait, as in a long call.
LONG_CALL = """
import multiprocessing, os, pathlib, signal, sys, threading, time
from daskcluster.cli.signals import Ended
from daskcluster.runtime import deadline
from daskcluster.runtime.parts import Parts, recorded
from daskcluster.runtime.signals import delayed_signals, ending_signals

deadline.DEADLINE_SECONDS, deadline.LAST_SECONDS = 0.1, 60.0
tell = lambda number: print("ended by", number, flush=True)
with deadline.ended_in_time(tell), ending_signals(Ended, last=True):
    alive = open(sys.argv[2], "w")
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,)).start()
    parts = Parts(pathlib.Path(sys.argv[1]))
    with recorded(parts), delayed_signals():
        parts.begin("dc-pass", 2, "token").add("0-0", 42)
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait()
"""


def test_a_long_call(tmp_path):
    """What is not written yet is, and processes that it has started go, too."""
    os.mkfifo(tmp_path / "alive")
    pipe = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)  # ends when all that hold its other end are gone
    ended = run_program(LONG_CALL, tmp_path / "parts", tmp_path / "alive")
    assert (ended.returncode, ended.stdout) == (128 + signal.SIGTERM, f"ended by {int(signal.SIGTERM)}\n"), ended.stderr
    assert select.select([pipe], [], [], 60)[0]
    os.close(pipe)
    assert Parts(tmp_path / "parts").units(0) == {"0-0": 42}


#: A child that was forked is ended by a signal of its own; a second signal changes nothing.
FORKED = """
import os, signal, sys, threading
from daskcluster.cli.signals import Ended
from daskcluster.runtime import deadline
from daskcluster.runtime.signals import ending_signals

deadline.DEADLINE_SECONDS, deadline.LAST_SECONDS = 0.1, 60.0
with deadline.ended_in_time(print), ending_signals(Ended, last=True):
    ready, tell = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(7))
        os.write(tell, b"!")
        while True:
            signal.pause()
    os.read(ready, 1)
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), deadline._watching)
    threading.Event().wait(0.3)
print(signal.set_wakeup_fd(-1), deadline._watching)
"""


def test_a_signal_to_a_forked_child():
    """It is none to this process, which ends in its own time; nothing is watched after the work."""
    ended = run_program(FORKED)
    assert (ended.returncode, ended.stdout) == (0, "7 True\n-1 False\n"), ended.stderr
