"""Equal seeds give equal labels, to the last bit: for any chunking, container, scheduler and number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from threadpoolctl import threadpool_limits

import daskcluster as dc
from daskcluster.pipeline import rows as row_blocks

PLANE = dc.datasets.make_flower(3000, chunks=3000, random_state=0)[0].compute()
#: More features, where products of matrices run on the BLAS.
WIDE = np.random.default_rng(0).normal(size=(1200, 40)).astype(np.float32) + np.arange(1200)[:, None] % 5

MODELS: dict[str, tuple[Any, np.ndarray]] = {
    "USPEC": (lambda **p: dc.USPEC(**{"n_clusters": 13, "n_representatives": 200, "random_state": 3} | p), PLANE),
    "USPEC, options": (
        lambda **p: dc.USPEC(
            **{"n_clusters": 5, "n_representatives": 40, "selection": "kmeans", "metric": "cosine", "max_iter": 4}
            | {"random_state": 3}
            | p
        ),
        WIDE,
    ),
    "KMeans": (
        lambda **p: dc.KMeans(**{"n_clusters": 40, "init": "k-means||", "max_iter": 3, "random_state": 3} | p),
        WIDE,
    ),
}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks: of 512 rows in the plane."""
    monkeypatch.setattr(row_blocks, "MOST_BLOCK_ROWS", 512)
    monkeypatch.setattr(row_blocks, "LEAST_BLOCK_ROWS", 64)


@pytest.fixture(params=MODELS)
def case(request: pytest.FixtureRequest) -> tuple[Any, np.ndarray, Any]:
    """How to make a model, its rows, and its fit on NumPy and threads."""
    make, X = MODELS[request.param]
    return make, X, make().fit(X)


def assert_equal_fits(model: Any, expected: Any) -> None:
    """Every fitted attribute, to the last bit."""
    names = [name for name in vars(expected) if name.endswith("_")]
    assert "labels_" in names
    for name in names:
        np.testing.assert_array_equal(np.asarray(getattr(model, name)), getattr(expected, name), err_msg=name)


def lengths(n: int, size: int) -> tuple[int, ...]:
    return (size,) * (n // size) + ((n % size,) if n % size else ())


CHUNKINGS = {
    "one": lambda n, d: ((n,), (d,)),
    "uneven": lambda n, d: ((0, 5, n - 12, 0, 7), (d,)),
    "hundreds": lambda n, d: (lengths(n, 100), (d,)),
    "aligned": lambda n, d: (lengths(n, 512), (d,)),
    "columns": lambda n, d: (lengths(n, 999), (1,) * d),
    "growing": lambda n, d: ((1, 2, 4, 8, 16, 32, 64, 128, n - 255), (d - 1, 1)),
}


@pytest.mark.parametrize("chunking", CHUNKINGS)
def test_chunks(case, chunking):
    make, X, expected = case
    assert_equal_fits(make().fit(da.from_array(X, chunks=CHUNKINGS[chunking](*X.shape))), expected)


def test_chunks_of_one_row(case):
    make, X, _ = case
    some = X[:150]
    parameters = {"n_clusters": 4}
    model = make(**parameters).fit(da.from_array(some, chunks=(1, X.shape[1])))
    assert_equal_fits(model, make(**parameters).fit(some))


@pytest.mark.parametrize(
    "layout",
    [{"chunks": 512}, {"chunks": 77, "by": 2}, {"chunks": 3000}, {"chunks": 50, "shards": 350}],
    ids=str,
)
def test_zarr(case, layout, tmp_path):
    make, X, expected = case
    width = X.shape[1] // layout.get("by", 1)
    lengths = {name: (rows, width) for name, rows in layout.items() if name != "by"}
    store = zarr.create_array(str(tmp_path / "X.zarr"), shape=X.shape, dtype=X.dtype, **lengths)
    store[...] = X
    assert_equal_fits(make().fit(tmp_path / "X.zarr"), expected)


def test_generated_rows(case):
    make, X, expected = case
    lazy = da.from_array(X, chunks=300)
    assert_equal_fits(make().fit(da.flip(da.flip(lazy, 0), 0).rechunk((450, 1))), expected)


def test_where_products_are_held(case, tmp_path):
    make, X, expected = case
    lazy = da.from_array(X, chunks=700)
    with dask.config.set({"daskcluster.memory-budget": 1, "temporary-directory": str(tmp_path)}):
        for given in (X, lazy):
            assert_equal_fits(make().fit(given), expected)
    for number, given in enumerate((X, lazy)):
        assert_equal_fits(make(storage=tmp_path / f"run{number}").fit(given), expected)


# -- schedulers and threads ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Two processes for dask's local process scheduler, which would start new ones for every pass."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


def inputs(X: np.ndarray, tmp_path: Path) -> list[Any]:
    """The same rows as NumPy, dask and Zarr."""
    store = zarr.create_array(str(tmp_path / "X.zarr"), shape=X.shape, dtype=X.dtype, chunks=(333, X.shape[1]))
    store[...] = X
    return [X, da.from_array(X, chunks=700), tmp_path / "X.zarr"]


def fewer_inputs(make: Any, X: np.ndarray, tmp_path: Path) -> list[Any]:
    """All three for U-SPEC, one for k-means: where a pass costs more than its work."""
    return inputs(X, tmp_path)[0 if isinstance(make(), dc.USPEC) else 2 :]


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("n_workers", [1, 4])
def test_local_schedulers(case, scheduler, n_workers, tmp_path):
    make, X, expected = case
    with dask.config.set(scheduler=scheduler, num_workers=n_workers):
        for given in inputs(X, tmp_path):
            model = make().fit(given)
            assert_equal_fits(model, expected)
            np.testing.assert_array_equal(model.predict(given), expected.labels_)


def test_local_processes(case, pool, tmp_path):
    make, X, expected = case
    with dask.config.set(scheduler="processes", pool=pool):
        for given in fewer_inputs(make, X, tmp_path):
            assert_equal_fits(make().fit(given), expected)


def test_distributed_in_this_process(case, client_inprocess, tmp_path):
    make, X, expected = case
    for given in fewer_inputs(make, X, tmp_path):
        assert_equal_fits(make().fit(given), expected)


def test_two_worker_processes(case, cluster_processes, tmp_path):
    make, X, expected = case
    assert len(cluster_processes.nthreads()) == 2
    assert all(address.startswith("tcp://") for address in cluster_processes.nthreads())
    for given in fewer_inputs(make, X, tmp_path):
        model = make().fit(given)
        assert_equal_fits(model, expected)
    np.testing.assert_array_equal(model.predict(X), expected.labels_)


def test_two_worker_processes_and_a_named_store(case, cluster_processes, tmp_path):
    make, X, expected = case
    assert_equal_fits(make(storage=tmp_path / "run").fit(da.from_array(X, chunks=700)), expected)
    with cluster_processes.as_current():
        again = make(storage=tmp_path / "run").fit(X)
    assert_equal_fits(again, expected)


def test_labels_outlive_the_cluster(case, tmp_path):
    from distributed import Client

    make, X, expected = case
    with Client(processes=False, dashboard_address="127.0.0.1:0", local_directory=str(tmp_path)):
        model = make().fit(da.from_array(X, chunks=700))
    np.testing.assert_array_equal(model.labels_, expected.labels_)


@pytest.mark.parametrize("n_threads", [1, 4])
def test_blas_threads(case, n_threads):
    make, X, expected = case
    with threadpool_limits(n_threads, user_api="blas"):
        assert_equal_fits(make().fit(X), expected)
        assert_equal_fits(make().fit(da.from_array(X, chunks=700)), expected)


# -- seeds ---------------------------------------------------------------------------------------------------


def test_the_global_random_state_plays_no_part(case):
    make, X, expected = case
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        assert_equal_fits(make().fit(X), expected)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_seeds(case):
    make, X, expected = case
    name = "representatives_" if hasattr(expected, "representatives_") else "cluster_centers_"
    other = make(random_state=4).fit(X)
    assert not np.array_equal(getattr(other, name), getattr(expected, name))
    assert_equal_fits(make(random_state=np.int64(3)).fit(X), expected)
    for source in (np.random.RandomState, np.random.default_rng):
        assert_equal_fits(make(random_state=source(7)).fit(X), make(random_state=source(7)).fit(X))
        generator = source(7)  # its next number is another seed
        first, second = make(random_state=generator).fit(X), make(random_state=generator).fit(X)
        assert not np.array_equal(getattr(first, name), getattr(second, name))
    first, second = make(random_state=None).fit(X), make(random_state=None).fit(X)
    assert not np.array_equal(getattr(first, name), getattr(second, name))


def test_refits_are_equal(case):
    make, X, expected = case
    model = make()
    for _ in range(3):
        assert_equal_fits(model.fit(X), expected)


def test_fits_at_the_same_time(case):
    make, X, expected = case
    lazy = da.from_array(X, chunks=700)
    with ThreadPoolExecutor(3) as executor:
        for model in executor.map(lambda _: make().fit(lazy), range(3)):
            assert_equal_fits(model, expected)
    for labels in dask.compute(*[dask.delayed(make().fit_predict)(X) for _ in range(2)]):
        np.testing.assert_array_equal(labels, expected.labels_)


def test_fits_in_tasks_of_every_worker_thread(cluster_processes):
    """A fit inside a task gives its thread back while it waits, or fits in all threads would wait for each other."""
    futures = cluster_processes.map(fit_inside, range(4))
    assert [future.result(timeout=120) for future in futures] == [fit_inside(seed) for seed in range(4)]


def fit_inside(seed):
    # Numbers only: a task's modules need not be importable by the workers.
    import daskcluster

    return daskcluster.USPEC(13, n_representatives=200, random_state=seed).fit(PLANE).labels_.tolist()
