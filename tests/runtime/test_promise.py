"""A plan against the memory that there is: refused before anything is read, and told what to change."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, KilledWorker, LocalCluster, Status

import daskcluster as dc
from daskcluster.errors import NotEnoughMemoryError, WorkersKilledError
from daskcluster.io.inputs import check_rows
from daskcluster.runtime import clients, forecast, limits, promise
from daskcluster.runtime.execution import compute
from daskcluster.runtime.limits import Room, memory_limit, promised, rooms
from daskcluster.runtime.products import Products
from daskcluster.runtime.progress import Progress
from daskcluster.runtime.promise import Demand, Work, advice, judge
from daskcluster.runtime.stages import Run, Stage
from tests.conftest import DASHBOARD
from tests.runtime.test_forecast import MIB, unreadable

GIB = 2**30


@dataclass(frozen=True)
class Chunks:
    """Input in chunks of so many bytes, of which every thread needs one."""

    n_bytes: int = 0

    def peak_bytes(self, threads: int) -> int:
        return threads * self.n_bytes


def demand(*, held: int = 0, task: int = 100, chunk: int = 0) -> Demand:
    """200 MiB and `task` MiB a thread, in the second stage."""
    works = (Work("first", 1, 0, True), Work("second", task * MIB, 0, chunk > 0))
    return Demand(200 * MIB, held * MIB, works, Chunks(chunk * MIB), 1000)


def workers(threads: int, limit: int, *, spill: float = 0.5, number: int = 2) -> Room:
    """Workers that pause at 0.8 of so many MiB."""
    return Room(threads, limit * MIB, 0.8, spill, number)


@pytest.mark.parametrize(
    ("room", "held", "outcome", "least", "good"),
    [
        (workers(4, 1200), 0, "fits", 750, 1200),
        (workers(4, 1199), 0, "may spill", 750, 1200),
        (workers(4, 750), 0, "may spill", 750, 1200),
        (workers(4, 749), 0, "refused", 750, 1200),
        # What is held can be spilled; workers that never do need room for it.
        (workers(4, 750), 1000, "may spill", 750, 3200),
        (workers(4, 750, spill=0.8), 1000, "refused", 2000, 2000),
        (workers(4, 0), 1000, "fits", 750, 3200),  # no limit
        (Room(4, 600 * MIB), 0, "fits", 600, 600),
        (Room(4, 599 * MIB), 0, "refused", 600, 600),
    ],
)
def test_what_fits(room, held, outcome, least, good):
    verdict = judge(demand(held=held), [room])
    assert (verdict.word, verdict.least_bytes, verdict.good_bytes) == (outcome, least * MIB, good * MIB)
    assert verdict.stage == "second"
    assert outcome in str(verdict)


def test_the_worker_that_has_least_decides():
    verdict = judge(demand(), [workers(1, 2000), workers(8, 1500), workers(2, 700)])
    assert (verdict.room.threads, verdict.word) == (8, "may spill")
    # Those that would pause before those that would spill more.
    assert judge(demand(held=900), [workers(1, 370), workers(8, 1500)]).word == "refused"
    assert judge(demand(), []) is None


@pytest.mark.parametrize(
    ("wanted", "room", "changes"),
    [
        (demand(), workers(4, 600), ["workers of at most 2 threads", "750 MiB"]),
        (demand(task=10, chunk=100), workers(2, 400), ["1 thread", "chunks of at most 14,979 rows", "525 MiB"]),
        (demand(held=1000), workers(4, 1000, spill=0.8), ["storage=", "10 workers", "1.96 GiB"]),
        (demand(), Room(4, 450 * MIB), ["num_workers, the threads, to at most 2", "600 MiB"]),
        (demand(), workers(1, 100), ["375 MiB"]),
    ],
)
def test_advice_has_numbers_that_work(wanted, room, changes):
    found = advice(wanted, room, lambda: None)
    assert len(found) == len(changes)
    assert all(change in text for change, text in zip(changes, found, strict=True)), found
    assert "give n_representatives=50" in advice(wanted, room, lambda: "give n_representatives=50")


@pytest.fixture
def small_machine(monkeypatch):
    """This machine with half a gibibyte more than the interpreter takes, and eight threads."""
    limit = forecast.BASE_BYTES + GIB // 2
    monkeypatch.setattr(forecast, "rooms", lambda: [Room(8, limit)])
    with dask.config.set(num_workers=8):
        yield limit


def test_a_fit_that_does_not_fit_is_refused_before_anything_is_read(small_machine):
    model, rows = dc.USPEC(8, n_representatives=4000, candidate_factor=2), unreadable(10_000_000)
    with pytest.raises(NotEnoughMemoryError) as refused:
        model.fit(rows)
    told = str(refused.value)
    plan = model.plan(rows)
    assert "USPEC of X needs a memory limit of" in told
    assert promise.size_text(plan.memory.least_bytes) in told
    assert promise.size_text(small_machine) in told
    assert "'transfer cut'" in told
    assert plan.to_dict()["memory"]["verdict"] == "refused"
    assert str(plan).endswith("refused")
    # Each change that is named does it.
    number = int(re.search(r"give n_representatives=(\d+)", told)[1])
    assert number >= 250
    assert dc.USPEC(8, n_representatives=number, candidate_factor=2).plan(rows).memory.fits
    with dask.config.set({"daskcluster.check-memory": False}), pytest.raises(AssertionError, match="was read"):
        model.fit(rows)


def test_where_all_rows_are_too_many_a_number_of_them_is_named(small_machine):
    base = da.zeros((200_000, 4), dtype=np.int32, chunks=(50_000, 4))
    with pytest.raises(NotEnoughMemoryError, match="give n_representatives=") as refused:
        dc.ISEC(2).fit(base)
    number = int(re.search(r"give n_representatives=(\d+)", str(refused.value))[1])
    assert dc.ISEC(2, n_representatives=number).plan(base).memory.fits
    assert not dc.ISEC(2, n_representatives=2 * number).plan(base).memory.fits


def test_a_fit_inside_a_fit_is_a_part_of_its_plan(monkeypatch):
    made = []
    monkeypatch.setattr("daskcluster.estimators.base.make_plan", lambda *a: made.append(a[0]) or forecast.make_plan(*a))
    X = np.random.default_rng(0).normal(size=(60, 2))
    dc.Ensemble(2, base=dc.KMeans(max_iter=2), n_base_clusterings=2, random_state=0).fit(X)
    assert made == ["Ensemble"]


class Named(Stage):
    title = "named"

    def __call__(self, run):
        return limits.promised_now()


def test_a_cluster_without_workers_is_compared_when_there_are_some():
    plan = dc.KMeans(3).plan(unreadable(100))
    answers = iter([None, plan])
    rows = check_rows(np.zeros((100, 2)))
    with Run(rows, Products(None, "M", {}, 0), [], False, lambda: next(answers)) as run:
        assert run(Named()) is None
        assert str(plan.memory) in run(Named())
        assert str(plan.memory) in run(Named()), "and no more"


def test_workers_are_asked_for_their_limits(tmp_path):
    with (
        LocalCluster(
            processes=False,
            n_workers=1,
            threads_per_worker=3,
            memory_limit=100 * MIB,
            dashboard_address=DASHBOARD,
            local_directory=str(tmp_path),
        ) as cluster,
        Client(cluster),
    ):
        assert rooms() == [Room(3, 100 * MIB, 0.8, 0.7, 1)]
        with pytest.raises(NotEnoughMemoryError, match=r"a worker of 3 threads .* the workers have 100 MiB"):
            dc.KMeans(3).fit(unreadable(1_000_000))


def test_a_cluster_without_workers_has_no_rooms():
    with (
        LocalCluster(processes=False, n_workers=0, dashboard_address=DASHBOARD) as cluster,
        Client(cluster),
    ):
        assert rooms() == []
        assert dc.KMeans(3).plan(unreadable(100)).memory is None


@pytest.mark.parametrize(
    ("lines", "files", "found"),
    [
        ("0::/slurm/job/step", {"slurm/job/memory.max": "1000", "slurm/job/step/memory.max": "max"}, [1000]),
        ("0::/", {"memory.max": "500"}, [500]),
        ("5:cpu:/x\n4:memory:/job", {"memory/job/memory.limit_in_bytes": "700"}, [700]),
        ("4:memory:/", {"memory/memory.limit_in_bytes": str(2**63 - 4096)}, []),
        ("0::/gone", {}, []),
    ],
)
def test_limits_of_control_groups(lines, files, found, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "cgroup").write_text(lines + "\n")
    assert list(limits._group_limits(tmp_path / "cgroup", tmp_path)) == found
    assert list(limits._group_limits(tmp_path / "none", tmp_path)) == []
    assert 2**28 < memory_limit() < 2**50


# -- what happens all the same ----------------------------------------------------------------------------------------


class Gone:
    address = "tcp://10.0.0.1:1234"


def killed():
    raise KilledWorker("some-task", Gone(), 3)


def test_a_killed_worker_is_told_with_stage_and_promise(client_inprocess):
    work = dask.delayed(killed)()
    with pytest.raises(WorkersKilledError, match=r"most often for lack of memory.*plan"):
        compute(work)
    with (
        Progress(False).stage("transfer cut"),
        promised("the plan needs 2 GiB"),
        pytest.raises(WorkersKilledError, match=r"in stage 'transfer cut'.*the plan needs 2 GiB") as told,
    ):
        compute(dask.delayed(killed)())
    assert isinstance(told.value.__cause__, KilledWorker)


def test_paused_workers_are_told_of(client_inprocess, monkeypatch):
    monkeypatch.setattr(clients, "LOOK_SECONDS", 0.02)
    (worker,) = client_inprocess.cluster.workers.values()
    said = threading.Event()

    class Listen(logging.Handler):
        def emit(self, record):
            if "all workers have paused" in record.getMessage():
                said.set()

    def pause(status):
        client_inprocess.sync(set_status, worker, status)

    async def set_status(worker, status):
        worker.status = status

    def resume():
        said.wait(20)
        pause(Status.running)

    handler, resuming = Listen(), threading.Thread(target=resume)
    clients.logger.addHandler(handler)
    pause(Status.paused)
    resuming.start()
    try:
        assert compute(dask.delayed(sum)([1, 2])) == (3,)
    finally:
        resuming.join()
        clients.logger.removeHandler(handler)
    assert said.is_set()


def kill(block):
    if len(block):
        os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.mark.slow
def test_workers_that_die_end_a_fit_with_one_clear_error(tmp_path):
    deadly = da.zeros((1000, 2), chunks=(500, 2)).map_blocks(kill, dtype=float, meta=np.empty((0, 0)))
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=DASHBOARD, local_directory=tmp_path
        ) as cluster,
        Client(cluster),
        pytest.raises(WorkersKilledError, match=r"in stage 'check and sample'.*a worker of 1 thread.*storage= keeps"),
    ):
        dc.KMeans(3).fit(deadly)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["one big chunk", "ensemble", "layers"])
def test_fits_keep_within_a_limit_little_above_the_plan(shape):
    """The program that measures it: no spilled byte, no paused and no restarted worker."""
    program = Path(__file__).parents[2] / "ci" / "benchmarks" / "memory.py"
    done = subprocess.run([sys.executable, program, "--shape", shape], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1" in done.stdout
