"""Scheduler and workers of a cluster import the package when a fit begins: all at once, and no more than they need."""

from __future__ import annotations

import logging
import subprocess
import sys
import time

import numpy as np
import pytest
from distributed import Client

import daskcluster as dc
from daskcluster.runtime import warming
from tests.test_hpc import dask_processes

ROOMS = {"daskcluster.ensemble.weighted_kmeans", "daskcluster.kernels.lloyd", "daskcluster.pipeline.neighbors"}


def rooms_of() -> tuple[bool, bool]:
    """Whether this process has the package, and scikit-learn."""
    return sys.modules.keys() >= ROOMS, "sklearn" in sys.modules


def test_who_only_works_imports_no_scikit_learn():
    """It takes longer than all the rest of what tasks need."""
    program = """
import sys
from types import SimpleNamespace
from daskcluster.kernels.jit import load_kept
from daskcluster.preload import dask_setup
loaded = []
sys.modules["daskcluster.kernels.jit"].load_kept = lambda: loaded.append(1)
dask_setup(SimpleNamespace())
dask_setup(SimpleNamespace(nthreads=1))
print({"daskcluster.ensemble.weighted_kmeans", "daskcluster.pipeline.neighbors"} <= sys.modules.keys(), loaded)
print([name for name in ("sklearn", "scipy.stats") if name in sys.modules])
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told == "True [1]\n[]\n"


def test_a_cluster_is_warmed_once(client_inprocess, monkeypatch):
    begun = []
    monkeypatch.setattr(warming, "_clients", {})
    monkeypatch.setattr(warming, "_warm", begun.append)
    X = np.random.default_rng(0).normal(size=(60, 2))
    for _ in range(2):
        dc.KMeans(2, random_state=0).fit(X)
    assert begun == [client_inprocess]
    assert warming.is_warming(client_inprocess)


@pytest.mark.parametrize("error", [None, ValueError("not here")])
def test_a_cluster_that_cannot_be_warmed(error, client_inprocess, monkeypatch, caplog):
    """It costs time, and nothing else."""

    async def refusing(function):
        if error is not None:
            raise error

    monkeypatch.setattr(warming, "LEAST_SECONDS", 0)
    monkeypatch.setattr(client_inprocess, "run_on_scheduler", refusing)
    with caplog.at_level(logging.DEBUG, "daskcluster"):
        client_inprocess.sync(warming._warm, client_inprocess)
    assert not warming.is_warming(client_inprocess)
    (record,) = (record for record in caplog.records if record.name == "daskcluster")
    assert record.levelname == ("INFO" if error is None else "DEBUG")
    assert (str(error) in record.message) == (error is not None)


def test_who_does_not_answer_is_not_told_of_for_ever(monkeypatch):
    monkeypatch.setattr(warming, "_clients", {"client": time.monotonic()})
    assert warming.is_warming("client")
    monkeypatch.setattr(warming, "MOST_SECONDS", 0)
    assert not warming.is_warming("client")


@pytest.mark.slow
def test_processes_of_a_cluster_import_at_once(tmp_path):
    with dask_processes(tmp_path) as file, Client(scheduler_file=str(file), set_as_default=False) as client:
        client.wait_for_workers(2)
        assert client.run_on_scheduler(rooms_of) == (False, False)
        client.sync(warming._warm, client)
        assert client.run_on_scheduler(rooms_of) == (True, False)
        assert set(client.run(rooms_of).values()) == {(True, False)}
