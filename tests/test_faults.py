"""Workers that are killed in every stage, come late, leave and adapt; a scheduler that dies: labels stay the same."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.utils import key_split
from distributed import Client, LocalCluster, SchedulerPlugin
from distributed.chaos import KillWorker

import daskcluster as dc
from tests.conftest import DASHBOARD
from tests.estimators.cases import CASES, CLASSES, as_parameter, chunked_reference, of_ids, reference
from tests.interrupts import interrupted_after
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


class Assassin(SchedulerPlugin):
    """Kills the worker that holds, or works on, the first task of each name that it sees, at most so many."""

    def __init__(self, cluster: LocalCluster, done: bool, most: float) -> None:
        self.cluster, self.most = cluster, most
        self.state, self.killed = "memory" if done else "processing", dict[str, str]()

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        name = key_split(key)
        if finish != self.state or not name.startswith("dc-") or name in self.killed or len(self.killed) >= self.most:
            return
        task = self.cluster.scheduler.tasks[key]
        holders = task.who_has if finish == "memory" else {task.processing_on}
        addresses = {worker.address for worker in holders or () if worker is not None}
        for nanny in self.cluster.workers.values():
            if nanny.worker_address in addresses and nanny.pid is not None:
                self.killed[name] = nanny.worker_address
                os.kill(nanny.pid, signal.SIGKILL)


@pytest.mark.parametrize("case", [*map(as_parameter, FAST), *slowly(*(case for case in CASES if case not in FAST))])
@pytest.mark.parametrize("done", [True, *slowly(False)], ids=["holds", "works"])
@pytest.mark.parametrize("named", [False, *slowly(True)], ids=["unnamed", "named"])
def test_a_worker_is_killed_in_every_stage(case, done, named, run_slow, tmp_path):
    """By SIGKILL, once for each name of a task, of which two by default; a nanny starts another."""
    storage = {"storage": tmp_path / "run"} if named and not case.foreign else {}
    with dask.config.set({"distributed.scheduler.allowed-failures": 30}), workers_of(tmp_path) as (cluster, _):
        assassin = Assassin(cluster, done, math.inf if run_slow else 2)
        cluster.scheduler.add_plugin(assassin)
        labels = np.asarray(case.fit_chunked(**storage).labels_)
    assert len(assassin.killed) >= 2
    np.testing.assert_array_equal(labels, chunked_reference(case).labels_)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sys.exit", "graceful", "segfault"])
@pytest.mark.parametrize("case", CLASSES, ids=lambda case: case.id)
def test_chaos(case, mode, tmp_path):
    """Every worker lives for a second or two after its first task, again and again."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 100}), workers_of(tmp_path) as (_, client):
        client.register_plugin(KillWorker("2 s", mode))
        for _ in range(2):
            np.testing.assert_array_equal(case.fit_chunked().labels_, chunked_reference(case).labels_)


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
