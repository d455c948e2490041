"""How stages run: in block order, on the active scheduler, under one BLAS thread, and what a fit costs."""

from collections import Counter
from contextlib import contextmanager
from itertools import chain
from threading import get_ident

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from dask.callbacks import Callback
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

import daskcluster as dc
from daskcluster.io import inputs
from daskcluster.pipeline import kmeans as kmeans_module
from daskcluster.runtime import execution as execution_module
from daskcluster.runtime.execution import (
    FAN_IN,
    active_client,
    compute,
    map_rows,
    map_to_objects,
    objects_of,
    persist,
    reduce_blocks,
    runs_in_process,
)
from daskcluster.runtime.pieces import read_pieces

#: Rows of a canonical block.
BLOCK_ROWS = 64


@contextmanager
def counted_tasks():
    """Names of the tasks that a local scheduler runs."""
    names = []
    with Callback(posttask=lambda key, *others: names.append(dask.utils.key_split(key))):
        yield names


def numbered(n_rows, chunks, columns=1):
    return da.from_array(np.arange(n_rows * columns).reshape(n_rows, columns), chunks=(chunks, columns))


def read_counter(X, chunk_rows):
    """X as a dask array, and the number of times that each of its chunks was read."""
    reads: Counter = Counter()

    def read(block_id):
        reads[block_id[0]] += 1
        return X[block_id[0] * chunk_rows : (block_id[0] + 1) * chunk_rows]

    lengths = tuple(len(X[start : start + chunk_rows]) for start in range(0, len(X), chunk_rows))
    array = da.map_blocks(
        read, chunks=(lengths, (X.shape[1],)), dtype=X.dtype, meta=np.empty((0, 0), X.dtype), name=f"read-{id(reads)}"
    )
    return array, reads


@pytest.fixture
def blobs():
    """3,840 rows, 60 canonical blocks of 64, in three clusters."""
    rng = np.random.default_rng(0)
    return (3 * rng.integers(3, size=(3840, 1)) + rng.normal(size=(3840, 2))).astype(np.float32)


# -- maps and reductions


def double(block):
    return 2 * block


def row_sums(block):
    return block.sum(axis=1)


def number_of(block, number):
    return np.full((len(block), 1), number)


def describe(block, number, weights=None, add=0):
    weight = None if weights is None else weights.tolist()
    return {"number": number, "rows": block[:, 0].tolist(), "weights": weight, "add": add}


def rows_of(block, weights=None):
    return {"rows": block[:, 0].tolist(), "weights": [] if weights is None else weights[:, 0].tolist(), "depth": 0}


def join(parts):
    """Combine in the order given, and say how much was combined at a time and how deep the tree is."""
    return {
        "rows": list(chain(*(part["rows"] for part in parts))),
        "weights": list(chain(*(part["weights"] for part in parts))),
        "depth": 1 + max(part["depth"] for part in parts),
        "most": max([len(parts), *(part.get("most", 0) for part in parts)]),
    }


def test_map_rows():
    blocks = numbered(7, 3, columns=2)
    doubled = map_rows(double, blocks, name="dc-double", columns=2, dtype=np.int64)
    assert doubled.chunks == ((3, 3, 1), (2,))
    assert np.array_equal(doubled.compute(), 2 * blocks.compute())
    sums = map_rows(row_sums, blocks, name="dc-sum", columns=None, dtype=np.int64)
    assert sums.chunks == ((3, 3, 1),)
    assert np.array_equal(sums.compute(), blocks.compute().sum(axis=1))
    numbers = map_rows(number_of, blocks, name="dc-number", columns=1, dtype=np.int64, numbered=True)
    assert numbers.compute().ravel().tolist() == [0, 0, 0, 1, 1, 1, 2]


@pytest.mark.parametrize("n_rows", [5, 23])
def test_blocks_are_worked_on_by_tiles(monkeypatch, n_rows):
    """The result is the same, and has the dtype that was announced, whether a block is one tile or several."""
    monkeypatch.setattr(execution_module, "TILE_ROWS", 8)
    seen = []

    def halve(block):
        seen.append(len(block))
        return (block / 2).astype(np.float32)

    blocks = numbered(n_rows, n_rows, columns=2)
    for columns, function in ((2, halve), (None, lambda block: halve(block)[:, 0])):
        found = map_rows(function, blocks, name="dc-halve", columns=columns, dtype=np.float64).compute()
        expected = np.arange(2 * n_rows).reshape(n_rows, 2) / 2
        assert np.array_equal(found, expected if columns else expected[:, 0])
        assert found.dtype == np.float64
    assert seen == 2 * ([5] if n_rows == 5 else [8, 8, 7])


def test_nothing_runs_while_graphs_are_built():
    """Not even for dask's trial blocks of no rows."""

    def explode(block, number=0, weights=None):
        raise AssertionError("ran")

    blocks = numbered(6, 2)
    map_rows(explode, blocks, name="dc-explode", columns=3, dtype=float)
    map_rows(explode, blocks, name="dc-explode", columns=None, dtype=float, numbered=True)
    map_to_objects(explode, blocks, name="dc-explode", weights=da.ones(6, chunks=2))
    reduce_blocks(explode, explode, blocks, name="dc-explode", weights=da.ones(6, chunks=2))


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_objects_come_in_block_order(scheduler):
    with dask.config.set(scheduler=scheduler):
        found = objects_of(map_to_objects(describe, numbered(23, 2), name="dc-describe", add=5))
    assert [part["number"] for part in found] == list(range(12))
    assert list(chain(*(part["rows"] for part in found))) == list(range(23))
    assert {part["add"] for part in found} == {5}


def test_objects_take_weights_and_arrays_of_one_axis():
    weights = da.from_array(np.arange(5) / 2, chunks=2)
    found = objects_of(map_to_objects(describe, numbered(5, 2), name="dc-describe", weights=weights))
    assert [part["weights"] for part in found] == [[[0.0], [0.5]], [[1.0], [1.5]], [[2.0]]]

    def lengths(block, number):
        return {"shape": block.shape}

    found = objects_of(map_to_objects(lengths, da.arange(5, chunks=2), name="dc-length"))
    assert [part["shape"] for part in found] == [(2,), (2,), (1,)]


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("n_blocks", [1, 2, FAN_IN, FAN_IN + 1, FAN_IN**2 + 1])
def test_reductions_combine_in_block_order(scheduler, n_blocks):
    weights = da.from_array(np.arange(n_blocks) / 2, chunks=1)
    with dask.config.set(scheduler=scheduler):
        (found,) = compute(reduce_blocks(rows_of, join, numbered(n_blocks, 1), name="dc-join", weights=weights))
    assert found["rows"] == list(range(n_blocks))
    assert found["weights"] == [number / 2 for number in range(n_blocks)]
    assert found["most"] == min(n_blocks, FAN_IN)
    assert found["depth"] <= 1 + np.ceil(np.log(n_blocks) / np.log(FAN_IN))


@settings(max_examples=15)
@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=20))
def test_reductions_of_uneven_blocks(lengths):
    n_rows = sum(lengths)
    with dask.config.set(scheduler="synchronous"):
        (found,) = compute(reduce_blocks(rows_of, join, numbered(n_rows, tuple(lengths)), name="dc-join"))
    assert found["rows"] == list(range(n_rows))


def test_task_names_start_with_the_given_name():
    blocks = numbered(20, 1)
    with counted_tasks() as names, dask.config.set({"optimization.fuse.active": False}):
        compute(map_rows(double, blocks, name="dc-twice", columns=1, dtype=int))
        objects_of(map_to_objects(describe, blocks, name="dc-tell"))
        compute(reduce_blocks(rows_of, join, blocks, name="dc-join"))
    counts = Counter(names)
    assert counts["dc-twice"] == counts["dc-tell"] == counts["dc-join"] == 20
    assert counts["dc-join-partial"] == 3  # 20 partial results, eight at a time


def test_a_block_that_is_read_is_one_task():
    def read(source, block_id):
        return np.full((1, 1), block_id[0])

    blocks = read_pieces(read, None, ((1,) * 5, (1,)), np.dtype(int), name="read")
    with counted_tasks() as names:
        objects_of(map_to_objects(describe, blocks, name="dc-tell"))
    assert [name for name in names if name.startswith("dc-") and name != "dc-source"] == ["dc-tell"] * 5


# -- the active scheduler


def test_entries_of_rows_and_what_takes_them_are_one_task():
    """Also where the rows are held, so that each pass over labels is a task a block."""
    held = da.from_array(np.arange(60.0).reshape(20, 3), chunks=(5, 3)).persist()
    entries = map_rows(lambda block: block.sum(axis=1), held, name="dc-sums", columns=None, dtype=float)
    boxes = map_to_objects(lambda block, number: {"most": block.max()}, entries, name="dc-most")
    with dask.config.set(
        {"optimization.fuse.active": False}
    ):  # it would leave an alias, which a scheduler runs as well
        tasks = dask.optimize(boxes)[0].__dask_graph__()
    assert len(tasks) == 2 * 4  # the held blocks, and what is made of them
    assert [found["most"] for found in objects_of(boxes)] == [39.0, 84.0, 129.0, 174.0]


def test_no_client_is_active():
    assert active_client() is None
    assert runs_in_process()


@pytest.mark.parametrize(("scheduler", "inside"), [("threads", True), ("synchronous", True), ("processes", False)])
def test_local_schedulers(scheduler, inside):
    with dask.config.set(scheduler=scheduler):
        assert active_client() is None
        assert runs_in_process() is inside


def test_the_client_in_use_is_active(client_inprocess):
    assert active_client() is client_inprocess
    assert runs_in_process()
    with dask.config.set(scheduler="threads"):  # what the user says last counts
        assert active_client() is None


def test_work_goes_to_the_active_client(client_inprocess):
    def where(block, number):
        from distributed import get_worker

        return {"worker": get_worker().address}

    found = objects_of(map_to_objects(where, numbered(4, 1), name="dc-where"))
    assert {part["worker"] for part in found} <= set(client_inprocess.scheduler_info()["workers"])
    (held,) = persist(map_rows(double, numbered(4, 1), name="dc-double", columns=1, dtype=int))
    assert set(client_inprocess.who_has(held)) == {key for key in dask.core.flatten(held.__dask_keys__())}
    assert held.compute().ravel().tolist() == [0, 2, 4, 6]


def test_work_goes_to_the_active_local_scheduler():
    def thread(block, number):
        return {"thread": get_ident()}

    blocks = numbered(4, 1)
    with dask.config.set(scheduler="synchronous"):
        assert {part["thread"] for part in objects_of(map_to_objects(thread, blocks, name="dc-t"))} == {get_ident()}
    with dask.config.set(scheduler="threads"):
        assert get_ident() not in {part["thread"] for part in objects_of(map_to_objects(thread, blocks, name="dc-u"))}


def test_persist_computes_once():
    calls = []

    def note(block):
        calls.append(1)
        return block

    (held,) = persist(map_rows(note, numbered(6, 2), name="dc-note", columns=1, dtype=int))
    assert len(calls) == 3
    assert held.compute().ravel().tolist() == list(range(6))
    assert len(calls) == 3


def test_tasks_have_one_blas_thread():
    def threads(block, number=0):
        return {"threads": {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}}

    blocks = numbered(4, 1)
    with threadpool_limits(2, user_api="blas"):
        by_the_package = objects_of(map_to_objects(threads, blocks, name="dc-threads"))
        by_the_user = (
            map_to_objects(threads, blocks, name="dc-threads").compute().flat
        )  # labels_.compute() is like this
        assert {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} == {2}
    assert [part["threads"] for part in [*by_the_package, *by_the_user]] == [{1}] * 8


# -- what a fit costs


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("budget", ["128 MiB", "0 B"], ids=["memory", "scratch store"])
@pytest.mark.parametrize("source", ["numpy", "dask", "zarr"])
def test_a_uspec_fit_runs_at_most_12_tasks_a_row_block(budget, source, tmp_path, monkeypatch):
    """With starts from a sample that is small enough for a few Lloyd passes to follow."""
    monkeypatch.setattr(kmeans_module, "START_ROWS", 64)
    values = np.random.default_rng(0).normal(size=(3840, 2)).astype(np.float32)
    X = {
        "numpy": lambda: values,
        "dask": lambda: da.from_array(values, chunks=(64, 2)),
        "zarr": lambda: zarr.create_array(str(tmp_path / "X.zarr"), data=values, chunks=(64, 2)),
    }[source]()
    settings = {"daskcluster.memory-budget": budget, "temporary-directory": str(tmp_path)}
    with dask.config.set(settings), counted_tasks() as names:
        model = dc.USPEC(5, n_representatives=50, random_state=1).fit(X)
    assert model.n_iter_ >= 4
    assert 60 * (4 + model.n_iter_) < len(names) <= 60 * 12


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("budget", ["128 MiB", "0 B"], ids=["memory", "scratch store"])
@pytest.mark.parametrize("chunk_rows", [64, 100, 3840])
def test_a_uspec_fit_reads_its_input_twice(blobs, budget, chunk_rows, tmp_path):
    X, reads = read_counter(blobs, chunk_rows)
    with dask.config.set({"daskcluster.memory-budget": budget, "temporary-directory": str(tmp_path)}):
        model = dc.USPEC(3, n_representatives=50, random_state=0).fit(X)
        model.labels_.compute()
    assert reads == dict.fromkeys(range(-(-3840 // chunk_rows)), 2)


@pytest.mark.usefixtures("small_blocks")
def test_missing_rows_cost_one_more_pass(blobs):
    blobs[100] = np.nan
    X, reads = read_counter(blobs, 64)
    labels = dc.USPEC(3, n_representatives=50, random_state=0, missing="label").fit(X).labels_.compute()
    assert labels[100] == -1
    assert set(reads.values()) == {3}


@pytest.mark.usefixtures("small_blocks")
def test_prediction_reads_new_rows_once_and_when_asked(blobs):
    model = dc.USPEC(3, n_representatives=50, random_state=0).fit(blobs)
    X, reads = read_counter(blobs, 64)
    labels = model.predict(X)
    assert not reads
    assert np.array_equal(labels.compute(), model.labels_)
    assert set(reads.values()) == {1}


@pytest.mark.usefixtures("small_blocks")
def test_kmeans_reads_its_input_for_each_pass(blobs):
    X, reads = read_counter(blobs, 64)
    model = dc.KMeans(3, random_state=0).fit(X)
    assert set(reads.values()) == {2 + model.n_iter_}  # check, Lloyd passes, labels


@pytest.mark.usefixtures("small_blocks")
def test_the_index_is_one_task_and_not_part_of_each(blobs):
    """A model of a million numbers must not travel with every block."""
    with counted_tasks() as names:
        dc.USPEC(3, n_representatives=50, random_state=0).fit(da.from_array(blobs, chunks=(64, 2)))
    assert Counter(names)["RepresentativeIndex"] <= 1


def test_a_task_graph_for_20_000_blocks_is_a_few_layers():
    n_blocks = 20_000
    size = inputs.block_rows(2, np.dtype("f4"))
    X = da.zeros((n_blocks * size, 2), chunks=(size, 2), dtype=np.float32)
    model = dc.USPEC(3, n_representatives=50, random_state=0).fit(np.random.default_rng(0).normal(size=(500, 2)))
    labels = model.predict(X)
    assert labels.numblocks == (n_blocks,)
    assert len(labels.dask.layers) <= 8
    small = reduce_blocks(rows_of, join, inputs.check_rows(X).blocks, name="dc-join")
    assert len(small.dask.layers) <= 12
    assert len(dask.optimize(small)[0].dask) <= 2.5 * n_blocks


def test_what_is_no_collection_is_its_own_value_on_a_cluster(client_inprocess):
    found = compute(None, da.ones((4, 2), chunks=(2, 1)), 3)
    assert (found[0], found[2]) == (None, 3)
    np.testing.assert_array_equal(found[1], np.ones((4, 2)))
