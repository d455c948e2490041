"""Named stores in object stores: as folders are, but that nothing is renamed or appended, and listings may be old."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import dask
import numpy as np
import pytest

import daskcluster as dc
from daskcluster.files.object_locks import hold
from daskcluster.files.objects import ObjectPath
from daskcluster.files.records import Records
from tests.counting import Interrupted, count_tasks
from tests.estimators.cases import CLASSES, Case, as_parameter, of_ids, reference
from tests.estimators.test_resume import Stop, interrupt, own_tasks, stored
from tests.slow import slowly

URL = "s3://bucket/run.zarr"
FAST = of_ids("KMeans")
ROWS = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)


def kmeans(**more: Any) -> dc.KMeans:
    return dc.KMeans(3, random_state=0, storage=URL, **more)


# -- records -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def log(s3) -> ObjectPath:
    path = ObjectPath("s3://bucket/log")
    records = Records(path)
    for number in range(1, 5):
        records.put({str(number): np.arange(number)})
    return path


@pytest.mark.parametrize("damage", ["removed", "cut", "empty", "flipped"])
def test_records_behind_a_damaged_one_are_not_believed_and_do_not_come_back(damage, log):
    file = log / "00000003"
    content = file.read_bytes()
    if damage == "removed":
        file.unlink()
    else:
        flipped = content[:-1] + bytes([content[-1] ^ 1])
        file.write_bytes({"cut": content[:-3], "empty": b"", "flipped": flipped}[damage])
    records = Records(log)
    assert list(records) == ["1", "2"]
    records.put({"new": 7, "more": b"x"})
    again = Records(log)  # though object 4 is still there
    assert list(again) == ["1", "2", "new", "more"]
    assert again.get("new") == 7
    np.testing.assert_array_equal(again.get("2"), [0, 1])


def test_what_is_whole_of_a_cut_object_counts(log):
    Records(log).put({"a": 1, "b": 2})
    file = log / "00000005"
    file.write_bytes(file.read_bytes()[:-1])
    records = Records(log)
    assert list(records) == ["1", "2", "3", "4", "a"]
    assert records.get("a") == 1
    records.put({"c": 3})
    assert [Records(log).get(key) for key in ("a", "c")] == [1, 3]


def test_records_that_are_forgotten_are_gone_whenever_that_was_interrupted(log, monkeypatch):
    before = {name: (log / name).read_bytes() for name in log.names_inside()}
    records = Records(log)
    records.forget(["2", "4"])
    for name, content in before.items():  # their removal did not come so far
        (log / name).write_bytes(content)
    again = Records(log)
    assert list(again) == ["1", "3"]
    np.testing.assert_array_equal(again.get("3"), [0, 1, 2])
    again.clear()
    assert log.names_inside() == []
    assert list(Records(log)) == []


# -- fits --------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("case", [*map(as_parameter, FAST), *slowly(*(case for case in CLASSES if case not in FAST))])
def test_a_run_that_is_stopped_again_and_again_ends_with_the_same_labels(case: Case, s3, tmp_path, monkeypatch):
    X = stored(case, tmp_path)
    monkeypatch.setattr("daskcluster.runtime.parts.SAVED_SECONDS", 0.0)
    with dask.config.set(scheduler="synchronous"):
        with count_tasks() as tasks:
            case.fit(X, storage="s3://bucket/whole.zarr")
        whole, done = own_tasks(tasks), Counter[str]()
        walltime = max(4, whole.total() // 3)
        for n_calls in range(1, 40):  # noqa: B007
            try:
                with count_tasks() as tasks, Stop(walltime, interrupt):
                    model = case.fit(X, storage=URL)
            except Interrupted:
                done += own_tasks(tasks)
                continue
            done += own_tasks(tasks)
            break
    assert n_calls > 1
    np.testing.assert_array_equal(np.asarray(model.labels_), reference(case).labels_)
    assert done.total() <= whole.total() + 2 * n_calls


def test_what_is_damaged_is_made_again(s3):
    labels = np.asarray(kmeans().fit(ROWS).labels_)
    chunk = ObjectPath(URL) / "labels" / "rows" / "c" / "0"
    for damage in (chunk.unlink, lambda: chunk.write_bytes(chunk.read_bytes()[:-1])):
        damage()
        with pytest.warns(match="product 'labels' of storage 's3://bucket/run.zarr' is damaged"):
            np.testing.assert_array_equal(np.asarray(kmeans().fit(ROWS).labels_), labels)
    denied = lambda method, path, query: path.endswith("labels/rows/c/0")  # noqa: E731
    with s3.failing("denied", about=denied), pytest.raises((PermissionError, dc.UnreadableChunkError), match="denied"):
        kmeans().fit(ROWS)
    assert chunk.is_file()  # what is not reached is not damaged


@pytest.mark.slow
def test_other_parameters_data_and_writers_are_refused(s3):
    kmeans().fit(ROWS)
    with pytest.raises(dc.StorageMismatchError, match=r"storage 's3://bucket/run.zarr' was made with other parameters"):
        kmeans(n_init=2).fit(ROWS)
    with pytest.raises(dc.StorageMismatchError, match="other data"):
        kmeans().fit(ROWS + 1)
    lock = hold(ObjectPath(URL), "storage")
    with pytest.raises(dc.StorageBusyError, match=r"storage 's3://bucket/run.zarr' is in use by this process"):
        kmeans().fit(ROWS)
    lock.release()
    kmeans().fit(ROWS)


@pytest.mark.slow
def test_other_processes_use_a_store_with_options(s3):
    (ObjectPath("s3://bucket/other") / "thing").write_bytes(b"mine")
    with pytest.raises(ValueError, match="storage must be a store made by daskcluster"):
        dc.KMeans(3, storage="s3://bucket/other").fit(ROWS)
    labels = np.asarray(kmeans().fit(ROWS).labels_)
    about = subprocess.run(
        [sys.executable, "-m", "daskcluster", "info", URL, "--json", "--storage-options", json.dumps(s3.options)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(about.stdout)
    assert (found["kind"], found["next"]) == ("storage", "computes nothing: all products are there")
    assert found["products"]["labels"]["rows"]["shape"] == [len(labels)]
