"""A process that is forked after its parent has computed computes too: web servers and data loaders do this."""

import os
from pathlib import Path

import pytest

from tests.programs import run_program
from tests.slow import slowly

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

#: Rows in every form, a model that the parent has fitted, and a child that is ended where it hangs.
START = """
import multiprocessing, os, sys, tempfile, threading, warnings
import dask, dask.array as da, numpy as np, zarr
import daskcluster as dc
from daskcluster.io import inputs
inputs.MOST_BLOCK_ROWS = 64
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, from Python 3.12 on

X = np.random.default_rng(0).normal(size=(300, 2)) + 9 * (np.arange(300) % 3)[:, None]
folder = tempfile.mkdtemp(dir=sys.argv[1])
zarr.create_array(folder + "/x.zarr", data=X, chunks=(100, 2))
forms = [X, da.from_array(X, chunks=(70, 2)), folder + "/x.zarr"]
fork = multiprocessing.get_context("fork")

def fitted(rows):
    return dc.KMeans(3, random_state=0).fit(rows)

def child(work, *arguments):
    process = fork.Process(target=work, args=arguments)
    process.start()
    process.join(60)
    if process.exitcode is None:
        process.kill()
        sys.exit("the child hangs")
    assert process.exitcode == 0, process.exitcode

def works(rows, model):
    expected = np.arange(300) % 3
    for labels in (model.predict(rows), model.labels_, fitted(rows).labels_):
        assert np.array_equal(np.asarray(labels), expected)

"""


def passes(program: str, folder: Path) -> None:
    """Run a program in a process of its own."""
    done = run_program(START + program, folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_rows_of_every_form(tmp_path):
    program = """
dask.config.set({"temporary-directory": folder, "daskcluster.memory-budget": 1})
model = fitted(forms[1])
scratch = os.listdir(folder)
for rows in forms:
    child(works, rows, model)

def again(rows):  # a child that has computed is forked in its turn
    works(rows, model)
    child(works, rows, model)

child(again, X)
assert os.listdir(folder) == scratch
works(X, model)
"""
    passes(program, tmp_path)


def test_what_the_parent_holds_is_not_the_childs_to_remove(tmp_path):
    """A child that ends in good order, or throws the model away, leaves the scratch store to its parent."""
    program = """
dask.config.set({"temporary-directory": folder, "daskcluster.memory-budget": 1})
model = fitted(forms[1])

def throw_away():
    global model
    del model

child(throw_away)
pid = os.fork()
if pid == 0:
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
works(X, model)
del model
import gc; gc.collect()
assert os.listdir(folder) == ["x.zarr"]
"""
    passes(program, tmp_path)


def test_pools_of_processes(tmp_path):
    program = """
from concurrent.futures import ProcessPoolExecutor
model = fitted(X)
with fork.Pool(2) as pool:
    for labels in pool.map_async(model.predict, forms).get(60):
        assert np.array_equal(np.asarray(labels), model.labels_)
with ProcessPoolExecutor(2, mp_context=fork) as pool:
    for labels in pool.map(model.predict, forms, timeout=60):
        assert np.array_equal(np.asarray(labels), model.labels_)
"""
    passes(program, tmp_path)


def test_pools_that_the_user_gave_to_dask(tmp_path):
    program = """
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
for setting in ({"pool": ThreadPoolExecutor(2)}, {"pool": ThreadPool(2)}, {"scheduler": ThreadPoolExecutor(2)},
                {"num_workers": 2}):
    with dask.config.set(setting):
        child(works, X, fitted(X))
"""
    passes(program, tmp_path)


def test_threads_of_the_parent(tmp_path):
    """Forked by another thread than the first, while a third computes: limits of that one are not the child's."""
    program = """
from threadpoolctl import threadpool_info, threadpool_limits
from daskcluster.runtime.threads import one_blas_thread
inside, leave = threading.Event(), threading.Event()

def compute():
    with one_blas_thread():
        inside.set()
        leave.wait(100)

def numbers():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

def work():
    assert numbers() == {2}
    works(X, model)
    assert numbers() == {2}

def other_thread():
    works(X, model)
    child(work)
    done.append(True)

model, done = fitted(X), []
with threadpool_limits(2, user_api="blas"):
    computing, forking = threading.Thread(target=compute), threading.Thread(target=other_thread)
    computing.start()
    inside.wait(60)
    assert numbers() == {1}
    forking.start()
    forking.join()
    leave.set()
    computing.join()
    assert done
    with one_blas_thread():
        pid = os.fork()
        if pid == 0:
            assert numbers() == {2}
            works(X, model)
    if pid == 0:
        os._exit(0 if numbers() == {2} else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert numbers() == {2}
"""
    passes(program, tmp_path)


def test_kernels_that_the_parent_is_compiling(tmp_path):
    """The fork waits for a thread that compiles: in the child nobody would end its work."""
    program = """
from numba.core.compiler_lock import global_compiler_lock
locked = threading.Event()

def compile():
    with global_compiler_lock:
        locked.set()
        forking.wait(60)

forking = threading.Event()
os.register_at_fork(before=forking.set)  # the last to register is the first to be called
thread = threading.Thread(target=compile)
thread.start()
locked.wait(60)
child(lambda: fitted(X))
thread.join()
"""
    passes(program, tmp_path)


@pytest.mark.parametrize("current", ["default", "worker", *slowly("current", "named")])
def test_clients_of_the_parent(tmp_path, current):
    """A child has no connection to the cluster of its parent: it computes by itself."""
    program = f"""
current = {current!r}
import contextlib, logging
from distributed import Client
dask.config.set({{"logging.distributed": "error"}})
client = Client(processes=False, n_workers=1, dashboard_address="127.0.0.1:0", local_directory=folder,
                set_as_default=current == "default")
model = fitted(X)
if current == "worker":
    client.submit(child, works, X, model, pure=False).result(60)
elif current == "current":
    with client.as_current():
        child(works, X, fitted(X))
elif current == "named":
    with dask.config.set(scheduler=client):
        child(works, X, fitted(X))
else:
    child(works, X, model)
    works(X, model)
client.close()
"""
    passes(program, tmp_path)
