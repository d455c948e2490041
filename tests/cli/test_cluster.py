"""Where the work runs."""

from __future__ import annotations

import importlib.util
import json
import re

import dask
import numpy as np
import pytest

from daskcluster.io import open_rows
from tests.cli.calls import FAST, fail, start, succeed, wait_for_end_of_group


def test_scheduler_options_exclude_each_other(stores):
    message = fail(2, "score", stores / "y.zarr", stores / "y.zarr", "--workers", 2, "--scheduler", "tcp://x:1")
    assert "give one of --scheduler, --scheduler-file and --workers" in message


def test_report_needs_a_cluster(stores, tmp_path):
    options = ["--report", tmp_path / "r.html"]
    assert "--report needs a Dask cluster" in fail(2, "score", stores / "y.zarr", stores / "y.zarr", *options)


def test_reports_that_could_not_be_written_are_refused_first(stores, tmp_path, monkeypatch):
    (tmp_path / "r.html").touch()
    score = ["score", stores / "y.zarr", stores / "y.zarr", "--workers", 1, "--report", tmp_path / "r.html"]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "--report needs bokeh" in fail(2, *score)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: "bokeh")
    assert "r.html' exists" in fail(2, *score)


def test_scheduler_file_that_does_not_exist(stores, tmp_path):
    options = ["--scheduler-file", tmp_path / "s.json"]
    assert "no scheduler file at" in fail(2, "score", stores / "y.zarr", stores / "y.zarr", *options)


@pytest.mark.parametrize("how", ["address", "file", "configuration"])
def test_running_scheduler_is_used_and_left_running(stores, tmp_path, cluster_processes, how):
    client = cluster_processes
    (tmp_path / "s.json").write_text(json.dumps({"address": client.scheduler.address}))
    options = {
        "address": ["--scheduler", client.scheduler.address],
        "file": ["--scheduler-file", tmp_path / "s.json"],
        "configuration": [],
    }[how]
    address = client.scheduler.address if how == "configuration" else None
    with dask.config.set({"scheduler-address": address}):
        result = succeed(
            "predict", stores / "x.zarr", "--model", stores / "model.zarr", "--labels", tmp_path / "l.zarr", *options
        )
    assert "2 workers of" in result.stderr
    np.testing.assert_array_equal(open_rows(tmp_path / "l.zarr")[...], open_rows(stores / "labels.zarr")[...])
    assert len(client.nthreads()) == 2


def test_workers_are_started_and_ended(stores, tmp_path):
    options = ["--workers", 1, "--labels", tmp_path / "l.zarr", "--json"]
    with start("fit", stores / "x.zarr", "-k", 3, *FAST, *options) as process:
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert re.search(r"\b1 worker process\b", stderr)
    assert json.loads(stdout)["peak_worker_memory_bytes"] > 10**7
    np.testing.assert_array_equal(open_rows(tmp_path / "l.zarr")[...], open_rows(stores / "labels.zarr")[...])
    wait_for_end_of_group(process.pid)
