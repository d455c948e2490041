"""Rows and labels in object stores: the same labels, nothing read that is not there, one clear error."""

from __future__ import annotations

import threading
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster.files.objects import ObjectPath
from daskcluster.files.urls import store_options
from daskcluster.io import sources, write_array
from tests.blocks import blocks_of
from tests.cli.calls import as_json, fail
from tests.estimators.cases import CLASSES, Case, as_parameter, of_ids, reference
from tests.slow import slowly

ROWS = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
URL = "s3://bucket/rows.zarr"
#: What is compared by default.
FAST = of_ids("KMeans", "USPEC", "SEC")


def put(url: str, values: Any, chunk_rows: int = 250, **more: Any) -> zarr.Array[Any]:
    store = ObjectPath(url).store()
    return zarr.create_array(store, data=np.ascontiguousarray(values), chunks=(chunk_rows, *values.shape[1:]), **more)


def kmeans(X: Any = URL, **more: Any) -> Any:
    return np.asarray(dc.KMeans(3, random_state=0).fit(X, **more).labels_)


@pytest.mark.parametrize("case", [*map(as_parameter, FAST), *slowly(*(case for case in CLASSES if case not in FAST))])
def test_labels_are_those_of_the_same_rows_in_memory(case: Case, s3):
    put(URL, case.X, 70)
    with blocks_of(128):
        np.testing.assert_array_equal(np.asarray(case.fit(URL).labels_), reference(case).labels_)


def test_plans_and_predictions_are_those_of_the_same_rows_on_disk(s3, tmp_path):
    put(URL, ROWS)
    zarr.create_array(str(tmp_path / "rows.zarr"), data=ROWS, chunks=(250, 3))
    model = dc.USPEC(3, n_representatives=50, random_state=0).fit(URL)
    assert repr(model.plan(URL)) == repr(model.plan(str(tmp_path / "rows.zarr")))
    np.testing.assert_array_equal(np.asarray(model.predict(URL)), np.asarray(model.labels_))


def test_everything_beside_the_rows_may_be_a_url(s3):
    put(URL, ROWS)
    weights, y = np.linspace(1, 2, 1000), np.where(np.arange(1000) % 9, -1, np.arange(1000) % 3)
    put("s3://bucket/weights.zarr", weights)
    put("s3://bucket/y.zarr", y)
    np.testing.assert_array_equal(kmeans(sample_weight="s3://bucket/weights.zarr"), kmeans(ROWS, sample_weight=weights))
    csc = dc.FastCSC(3, n_representatives=50, random_state=0)
    expected = csc.fit(ROWS, y).labels_
    np.testing.assert_array_equal(np.asarray(csc.fit(URL, "s3://bucket/y.zarr").labels_), expected)
    constraints = dc.Constraints.from_labels("s3://bucket/y.zarr")
    np.testing.assert_array_equal(np.asarray(csc.fit(URL, constraints=constraints).labels_), expected)
    assert dc.metrics.adjusted_rand_index("s3://bucket/y.zarr", y) == 1


@pytest.mark.slow
def test_forms_of_opened_arrays(s3, cluster_processes):
    put(URL, ROWS)
    from obstore.store import S3Store

    endpoint = {"endpoint": s3.options["endpoint_url"], "access_key_id": "k", "secret_access_key": "s"}
    bucket = S3Store("bucket", prefix="rows.zarr", region="us-east-1", client_options={"allow_http": True}, **endpoint)
    forms = [URL, ObjectPath(URL).store(), zarr.storage.ObjectStore(bucket, read_only=True)]
    opened = [form if isinstance(form, str) else zarr.open_array(form, mode="r") for form in forms]
    expected = kmeans(ROWS)
    for form in opened:
        np.testing.assert_array_equal(kmeans(form), expected)
        with dask.config.set(scheduler="threads"):
            np.testing.assert_array_equal(kmeans(form), expected)
    from daskcluster.files import place_of

    assert [place_of(form) for form in opened] == [URL] * 3


# -- what is not there -------------------------------------------------------------------------------------------------


def test_chunks_that_are_missing_are_counted_though_nothing_lists_them(s3):
    put(URL, ROWS)
    chunk = ObjectPath(URL) / "c" / "2" / "0"
    listing = lambda method, path, query: "list-type" in query  # noqa: E731
    with s3.failing("denied", about=listing), dask.config.set({"daskcluster.missing-chunks": "refuse"}):
        np.testing.assert_array_equal(kmeans(), kmeans(ROWS))  # one may read, and not list
    chunk.unlink()
    for left in (0, 10**9):
        said = r"1 of 4 chunks are not in 's3://bucket/rows.zarr', the first at row 500"
        with s3.failing("denied", left, listing), pytest.warns(dc.MissingChunksWarning, match=said):
            kmeans()
    denied = lambda *request: listing(*request) or "/c/2" in request[1]  # noqa: E731
    with s3.failing("denied", about=denied), pytest.raises(dc.UnreadableChunkError, match="access is denied"):
        kmeans()  # services that do not say what is missing deny it


def test_a_chunk_that_goes_after_it_was_listed_is_no_hole(s3):
    put(URL, ROWS)
    with (
        s3.failing("gone", about=lambda method, path, query: "/c/2" in path),
        pytest.raises(dc.MissingChunksError, match=r"does not find chunk 'c/2/0' \(rows 500 to 749\)"),
    ):
        kmeans()
    (ObjectPath(URL) / "c" / "2" / "0").write_bytes(b"")
    with pytest.raises((dc.MissingChunksError, dc.UnreadableChunkError), match="c/2/0"):
        kmeans()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("slow down", "'s3://bucket/rows.zarr' cannot be reached: .*reduce your request rate"),
        ("cut", "'s3://bucket/rows.zarr' cannot be reached: ClientPayloadError"),
        ("denied", "'s3://bucket/rows.zarr': access is denied"),
    ],
)
def test_faults_are_tried_again_or_said(fault, said, s3, monkeypatch):
    import asyncio

    put(URL, ROWS)
    monkeypatch.setattr("s3fs.core.asyncio.sleep", _at_once(asyncio.sleep))
    if fault != "denied":
        with s3.failing(fault, left=2):
            np.testing.assert_array_equal(kmeans(), kmeans(ROWS))
        assert s3.fault is None
    with s3.failing(fault), pytest.raises(dc.UnreadableChunkError, match=f"does not read rows 0 to 999: {said}"):
        kmeans()


def _at_once(sleep: Any) -> Any:
    async def sleeps(seconds: float, *more: Any) -> Any:
        return await sleep(0, *more)

    return sleeps


def test_errors_of_access_are_one_line(s3):
    put(URL, ROWS)
    cases: list[tuple[str, dict[str, Any], type[Exception], str]] = [
        ("s3://bucket/none.zarr", {}, ValueError, "no Zarr array at 's3://bucket/none.zarr': nothing is found there$"),
        ("s3://nobucket/x", {}, ValueError, "'s3://nobucket/x': nothing is found there, nor in 's3://nobucket'$"),
        ("s3://bucket", {}, ValueError, "it has no Zarr metadata; 's3://bucket/rows.zarr' has some$"),
        (f"{URL}/zarr.json", {}, ValueError, "it is an object, not an array$"),
        (
            URL,
            {"key": None, "secret": None, "anon": False},
            PermissionError,
            "access is denied .*check the credentials",
        ),
        (URL, {"endpoint_url": "http://127.0.0.1:1"}, ConnectionError, "cannot be reached: EndpointConnectionError"),
    ]
    for url, options, error, words in cases:
        with dask.config.set({"daskcluster.storage-options": {**s3.options, **options}}):
            with pytest.raises(error, match=words):
                dc.KMeans(3).fit(url)
            if error is not ValueError:
                with pytest.raises(error, match=words):
                    dc.load_model(url)


def test_whose_options_are_taken():
    with dask.config.set({"daskcluster.storage-options": {"anon": True}}):
        assert store_options("s3://b/x") == {"anon": True, "max_concurrency": 1}
    with dask.config.set({"daskcluster.storage-options": {"s3": {"anon": True}, "gs": {"project": "p"}}}):
        assert store_options("s3a://b/x") == store_options("s3://b/x") == {"anon": True, "max_concurrency": 1}
        assert (store_options("gs://b/x"), store_options("memory://x")) == ({"project": "p"}, {})
    with dask.config.set({"daskcluster.storage-options": 3}), pytest.raises(TypeError, match="a mapping of options"):
        store_options("s3://b/x")


# -- how much at a time ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_requests_at_a_time_are_bounded(s3, monkeypatch):
    """Four threads, of which each reads a shard of 25 chunks, ask for two things at a time together."""
    from daskcluster.files import bounded

    put(URL, ROWS, 10)
    monkeypatch.setattr(bounded, "REQUESTS_AT_ONCE", 2)
    monkeypatch.setattr(bounded, "_semaphores", {})
    array = zarr.open_array(ObjectPath(URL).store(), mode="r")
    rows = sources.ZarrRows(array, None)
    rows.read(0, 10)
    for most in (2, 40):
        s3.peak = 0
        if most == 40:  # without the bound
            monkeypatch.setattr(rows, "_bounded", array)
        threads = [threading.Thread(target=rows.read, args=(k * 250, k * 250 + 250)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (s3.peak <= 2) is (most == 2)
    assert zarr.config.get("async.concurrency") == 10


# -- the command line --------------------------------------------------------------------------------------------------


def test_commands_take_urls_and_options(s3):
    import json

    put(URL, ROWS)
    with dask.config.set({"daskcluster.storage-options": {}}):
        options = ("--storage-options", json.dumps(s3.options))
        fit = as_json("fit", URL, "-k", 3, "--algorithm", "kmeans", "--labels", "s3://bucket/y.zarr", *options)
        assert sum(fit["cluster_sizes"].values()) == 1000
        assert "1.0" in str(as_json("score", "s3://bucket/y.zarr", "s3://bucket/y.zarr", *options))
        assert as_json("info", URL, *options)["shape"] == [1000, 3]
        assert "access is denied" in fail(2, "info", URL, "--storage-options", '{"anon": false}')
        assert "expected a JSON object" in fail(2, "info", URL, "--storage-options", "anon")


# -- Icechunk ----------------------------------------------------------------------------------------------------------


def test_a_session_of_icechunk_that_only_reads_is_read(tmp_path, cluster_processes):
    icechunk = pytest.importorskip("icechunk")
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repository")))
    session = repository.writable_session("main")
    for name in ("X", "holes"):
        array = zarr.create_array(session.store, name=name, shape=ROWS.shape, chunks=(250, 3), dtype="f4")
        array[: 1000 if name == "X" else 250] = ROWS[: 1000 if name == "X" else 250]
    session.commit("rows")
    reading = repository.readonly_session("main").store
    X, holes = (zarr.open_array(reading, path=name, mode="r") for name in ("X", "holes"))
    np.testing.assert_array_equal(kmeans(X), kmeans(ROWS))
    writable = zarr.open_array(repository.writable_session("main").store, path="X", mode="r")
    with pytest.raises(
        ValueError, match=r"X lives in a IcechunkStore that does not travel .*open it for reading only$"
    ):
        kmeans(writable)
    with dask.config.set(scheduler="threads"):
        np.testing.assert_array_equal(kmeans(X), kmeans(ROWS))
        with pytest.warns(dc.MissingChunksWarning, match=r"3 of 4 chunks are not in 'IcechunkStore/holes'"):
            kmeans(holes)
    for given in (reading, session):
        with pytest.raises(TypeError, match=r"open an array of it, as with zarr.open_array\("):
            kmeans(given)
    with pytest.raises(TypeError, match=r"counts when it is committed: store the array there yourself$"):
        write_array(da.ones(3), session.store)
    with pytest.raises(TypeError, match="storage must be a path or None"):
        dc.KMeans(3, storage=session.store).fit(ROWS)
