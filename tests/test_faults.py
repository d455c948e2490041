"""Workers that die in every stage, come late, leave, adapt, spill, pause; a scheduler that dies: equal labels."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, Status, WorkerPlugin
from distributed.chaos import KillWorker
from distributed.comm import CommClosedError

import daskcluster as dc
from tests.conftest import DASHBOARD
from tests.estimators.cases import CASES, CLASSES, as_parameter, chunked_reference, of_ids, reference
from tests.interrupts import interrupted_after
from tests.killing import DiesInEveryStage, telling_stages
from tests.slow import slowly
from tests.test_hpc import dask_processes

pytestmark = pytest.mark.usefixtures("small_blocks")

FAST = of_ids("USPEC")


@contextmanager
def workers_of(folder: Path, **options: Any) -> Iterator[tuple[LocalCluster, Client]]:
    """A cluster of this test's own."""
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": DASHBOARD} | options
    with (
        LocalCluster(local_directory=str(folder / "workers"), **settings) as cluster,
        Client(cluster, set_as_default=False) as client,
        client.as_current(),
    ):
        yield cluster, client


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A `dask scheduler` and two `dask worker`, whose nannies bring back what dies."""
    settings = {
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "100",
        "DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD": "forkserver",
    }
    with (
        dask_processes(tmp_path_factory.mktemp("dask"), ["--preload-nanny", "tests.preloaded"], **settings) as file,
        Client(scheduler_file=str(file), set_as_default=False) as client,
    ):
        client.wait_for_workers(2)
        yield client


@contextmanager
def plugged(client: Client, plugin: WorkerPlugin) -> Iterator[None]:
    """Have a plugin in all workers meanwhile. One that dies while they are told of the end needs not be told."""
    client.register_plugin(plugin, name="dies")
    try:
        yield
    finally:
        with suppress(CommClosedError):
            client.unregister_worker_plugin("dies")


#: Stages of USPEC that have tasks at this size.
WITH_TASKS = {"check and sample", "nearest representatives", "transfer cut", "discretize", "labels"}


@pytest.mark.parametrize("case", [*map(as_parameter, FAST), *slowly(*(case for case in CASES if case not in FAST))])
@pytest.mark.parametrize("named", [False, *slowly(True)], ids=["unnamed", "named"])
def test_a_worker_is_killed_in_every_stage(case, named, processes, run_slow, tmp_path):
    """By SIGKILL, when it holds a result, and, slowly, when it begins the first task; its nanny starts another."""
    storage = {"storage": tmp_path / "run"} if named and not case.foreign else {}
    ways = {"works", "holds"} if run_slow else {"holds"}
    with processes.as_current(), telling_stages(tmp_path), plugged(processes, DiesInEveryStage(tmp_path, ways)):
        labels = np.asarray(case.fit_chunked(**storage).labels_)
    deaths = {tuple(path.name.split(": ")) for path in tmp_path.glob("*: *")}
    assert len(deaths) >= 2
    if case in FAST:
        assert {(stage, way) for stage in WITH_TASKS for way in ways} <= deaths
    np.testing.assert_array_equal(labels, chunked_reference(case).labels_)


@contextmanager
def two_workers(processes: Client, mode: str, folder: Path) -> Iterator[Client]:
    """Workers that others follow: a nanny brings back one that crashes, and ends with one that leaves the scheduler."""
    if mode == "segfault":
        with processes.as_current():
            yield processes
        return
    failures = dask.config.set({"distributed.scheduler.allowed-failures": 100})
    with failures, workers_of(folder) as (cluster, client):
        cluster.adapt(minimum=2, maximum=2, interval="100 ms", wait_count=1)
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["graceful", "segfault"])
@pytest.mark.parametrize("case", CLASSES, ids=lambda case: case.id)
def test_chaos(case, mode, processes, tmp_path):
    """Every worker lives for some seconds, again and again."""
    with two_workers(processes, mode, tmp_path) as client:
        seen = set(client.scheduler_info(n_workers=-1)["workers"])
        with plugged(client, KillWorker("4 s", mode)):
            while len(seen) < 5:
                np.testing.assert_array_equal(case.fit_chunked().labels_, chunked_reference(case).labels_)
                seen |= set(client.scheduler_info(n_workers=-1)["workers"])


@pytest.mark.parametrize("case", [*map(as_parameter, FAST), *slowly(*(case for case in CLASSES if case not in FAST))])
def test_workers_come_late_and_leave(case, tmp_path):
    """A fit begins without any, goes on with one of those that come, and with none of them at the end."""
    with workers_of(tmp_path, processes=False, n_workers=0) as (cluster, client):
        first = list[str]()

        def change(title: str) -> bool:
            if not first:
                first.extend(client.scheduler_info(n_workers=-1)["workers"])
                cluster.scale(2)
                client.wait_for_workers(2)
                client.retire_workers(first, close_workers=True)
            return False

        threading.Thread(target=cluster.scale, args=(1,)).start()
        with interrupted_after(change):
            labels = np.asarray(case.fit_chunked().labels_)
    assert len(first) == 1
    np.testing.assert_array_equal(labels, chunked_reference(case).labels_)


@pytest.mark.parametrize("case", [*map(as_parameter, FAST), *slowly(*(case for case in CLASSES if case not in FAST))])
def test_workers_that_spill_and_pause(case, tmp_path):
    """Everything that workers hold goes to their disks, and after each stage all of them pause for a moment."""
    memory = {"target": 1e-6, "spill": False, "pause": False, "terminate": False}
    settings = {f"distributed.worker.memory.{name}": value for name, value in memory.items()}
    pauses = 0
    with (
        dask.config.set(settings | {"daskcluster.check-memory": False, "daskcluster.memory-budget": "0"}),
        workers_of(tmp_path, processes=False, memory_limit="1 GiB") as (cluster, client),
    ):

        async def become(status: Status) -> None:
            for worker in cluster.workers.values():
                worker.status = status

        def pause(title: str) -> bool:
            nonlocal pauses
            pauses += 1
            client.sync(become, Status.paused)
            threading.Timer(0.1, client.sync, (become, Status.running)).start()
            return False

        with interrupted_after(pause):
            labels = np.asarray(case.fit_chunked().labels_)
        spilled = sum(worker.data.cumulative_metrics["disk-write", "bytes"] for worker in cluster.workers.values())
    assert pauses > 1
    assert spilled > labels.nbytes
    np.testing.assert_array_equal(labels, chunked_reference(case).labels_)


@pytest.mark.slow
@pytest.mark.parametrize("case", CLASSES, ids=lambda case: case.id)
def test_a_cluster_that_adapts(case, tmp_path):
    with workers_of(tmp_path, n_workers=0) as (cluster, _):
        cluster.adapt(minimum=0, maximum=3, interval="200ms", wait_count=1)
        np.testing.assert_array_equal(case.fit_chunked().labels_, chunked_reference(case).labels_)


# -- the scheduler ---------------------------------------------------------------------------------------------------


def rows_of(case: Any, folder: Path) -> da.Array:
    """The rows of a case, in a store."""
    array = da.from_array(case.X, chunks=(70, -1))
    array.to_zarr(str(folder / "X.zarr"))
    return da.from_zarr(str(folder / "X.zarr"))


@pytest.mark.parametrize("case", FAST, ids=lambda case: case.id)
@pytest.mark.parametrize("named", [True, False])
def test_a_cluster_that_is_closed(case, named, tmp_path):
    """The fit ends with one error, and not on the threads of this process; a named store goes on elsewhere."""
    X = rows_of(case, tmp_path)
    storage = {"storage": tmp_path / "run"} if named else {}
    with workers_of(tmp_path, processes=False) as (cluster, client):

        def close(title: str) -> bool:
            client.close()
            cluster.close()
            return False

        with interrupted_after(close), pytest.raises(dc.ClusterLostError, match="storage= the same call goes on"):
            case.fit(X, **storage)
    with dask.config.set(scheduler="synchronous"):
        np.testing.assert_array_equal(case.fit(X, **storage).labels_, reference(case).labels_)


@pytest.mark.slow
@pytest.mark.parametrize("case", CLASSES, ids=lambda case: case.id)
def test_a_scheduler_that_dies(case, tmp_path):
    """By SIGKILL, in the middle of its stages; the store resumes with another scheduler."""
    X = str(tmp_path / "X.zarr")
    da.from_array(case.X, chunks=(70, -1)).to_zarr(X)
    storage = {} if case.foreign else {"storage": tmp_path / "run"}
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        with (
            dask_processes(folder) as file,
            dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
            Client(scheduler_file=str(file), set_as_default=False) as client,
            client.as_current(),
        ):
            client.wait_for_workers(2)
            if number:
                labels = np.asarray(case.fit(X, **storage).labels_)
                break
            pid = client.run_on_scheduler(os.getpid)

            def kill(title: str, pid: int = pid) -> bool:
                os.kill(pid, signal.SIGKILL)
                return False

            with interrupted_after(kill), pytest.raises(dc.ClusterLostError, match="connection to the scheduler"):
                case.fit(X, **storage).labels_.compute()
    np.testing.assert_array_equal(labels, reference(case).labels_)
