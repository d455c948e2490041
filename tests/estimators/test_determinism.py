"""Equal seeds give equal labels, to the last bit: for any chunking, container, scheduler and number of threads."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from threadpoolctl import threadpool_limits

import daskcluster as dc
from tests.blocks import blocks_of
from tests.estimators.cases import (
    CASES,
    CLASSES,
    as_parameter,
    assert_equal_fits,
    every,
    every_third,
    of_ids,
    reference,
)
from tests.slow import slowly

pytestmark = pytest.mark.usefixtures("small_blocks")

#: Some with every kind of stage, where a run costs more than its work, and only the rows' way counts.
FEW = of_ids("KMeans-parallel", "USPEC-options", "Ensemble-FastCSC-SEC", "ISEC", "CSPML")
#: Some whose products travel between processes in every way.
TRAVELLING = of_ids("KMeans-parallel", "USENC", "Ensemble-KMeans-ISEC", "FastCSC-pairs")


# -- tasks of several blocks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [*map(as_parameter, FEW), *slowly(*(case for case in CASES if case not in FEW))])
def test_tasks_of_several_blocks(case, several_blocks):
    with dask.config.set(scheduler="synchronous"):
        assert_equal_fits(case.fit(), reference(case))


@every(of_ids("USPEC", "FastCSC"))
def test_pieces_that_workers_hold(case, several_blocks, client_inprocess):
    assert_equal_fits(case.fit(), reference(case))


# -- chunks ----------------------------------------------------------------------------------------------------------

CHUNKINGS = {
    "one chunk": lambda n, d: (n, d),
    "uneven": lambda n, d: ((1, 0, 5, n - 80, 64, 0, 9, 1), d),
    "many": lambda n, d: (30, d),
    "columns": lambda n, d: ((64, n - 64), max(1, d // 4)),
}


def of_cases(forms: Iterable[str], hardest: str) -> Callable[[Any], Any]:
    """Run a law for every form with `FEW`, which have every kind of stage; for the hardest with half of the others."""
    pairs = [(case, form) for case in CASES for form in forms if case in FEW or form == hardest]

    def of_test(test: Any) -> Any:
        now = FEW + every_third(CASES, test.__name__)
        values = [as_parameter(case, form, slow=case not in now) for case, form in pairs]
        return pytest.mark.parametrize(("case", "form"), values)(test)

    return of_test


@of_cases(CHUNKINGS, hardest="uneven")
def test_chunks(case, form):
    X = da.from_array(case.X, chunks=CHUNKINGS[form](*case.X.shape))
    assert_equal_fits(case.fit_chunked(X), reference(case))


@every(CLASSES)
def test_chunks_of_one_row(case):
    some = {name: value[:100] if isinstance(value, np.ndarray) else value for name, value in case.more().items()}
    if "constraints" in some:
        some["constraints"] = dc.Constraints.from_pairs([(0, 7), (30, 99)], [(1, 50)])
    X = case.X[:100]
    expected = case.make().fit(X, **some)
    assert_equal_fits(case.make().fit(da.from_array(X, chunks=(1, -1)), **some), expected)


LAYOUTS = {
    "aligned": lambda n, d: {"chunks": (64, d)},
    "columns": lambda n, d: {"chunks": (77, max(1, d // 4))},
    "shards": lambda n, d: {"chunks": (50, d), "shards": (150, d)},
}


@of_cases(LAYOUTS, hardest="columns")
def test_zarr(case, form, tmp_path):
    X = case.X
    group = zarr.open_group(tmp_path / "all.zarr", mode="w")
    group.create_array("X", shape=X.shape, dtype=X.dtype, **LAYOUTS[form](*X.shape))[...] = X
    assert_equal_fits(case.fit(tmp_path / "all.zarr" / "X"), reference(case))


@every(FEW)
def test_generated_rows(case):
    lazy = da.from_array(case.X, chunks=(60, -1))
    assert_equal_fits(case.fit(da.flip(da.flip(lazy, 0), 0).rechunk((90, 1))), reference(case))


@every(CLASSES)
def test_products_in_a_scratch_store(case, tmp_path):
    with dask.config.set({"daskcluster.memory-budget": 1, "temporary-directory": str(tmp_path)}):
        assert_equal_fits(case.fit_chunked(), reference(case))


# -- schedulers and threads ------------------------------------------------------------------------------------------

LOCAL: dict[str, dict[str, Any]] = {
    "synchronous": {"scheduler": "synchronous"},
    "one thread": {"scheduler": "threads", "num_workers": 1},
    "four threads": {"scheduler": "threads", "num_workers": 4},
}


@of_cases(LOCAL, hardest="four threads")
def test_local_schedulers(case, form):
    with dask.config.set(LOCAL[form]):
        model = case.fit_chunked()
        assert_equal_fits(model, reference(case))
        if case.predicts:
            np.testing.assert_array_equal(model.predict(case.X), reference(case).labels_)


@every(of_ids("KMeans-parallel", "Ensemble-FastCSC-SEC", "ISEC"))
def test_local_processes(case, pool):
    with dask.config.set(scheduler="processes", pool=pool):
        assert_equal_fits(case.fit_chunked(), reference(case))


@every(of_ids("USPEC-options", "Ensemble-FastCSC-SEC", "ISEC", "FastCSPML"))
def test_distributed_in_this_process(case, client_inprocess):
    assert_equal_fits(case.fit_chunked(), reference(case))


@every(TRAVELLING)
def test_two_worker_processes(case, cluster_processes, tmp_path):
    assert all(address.startswith("tcp://") for address in cluster_processes.nthreads())
    zarr.create_array(str(tmp_path / "X.zarr"), data=case.X, chunks=(70, case.X.shape[1]))
    model = case.fit(tmp_path / "X.zarr")
    assert_equal_fits(model, reference(case))
    if case.predicts:
        np.testing.assert_array_equal(model.predict(case.X), reference(case).labels_)


@every(of_ids("USPEC"))
def test_two_worker_processes_and_a_named_store(case, cluster_processes, tmp_path):
    assert_equal_fits(case.fit_chunked(storage=tmp_path / "run"), reference(case))
    assert_equal_fits(case.fit_chunked(storage=tmp_path / "run"), reference(case))


@pytest.fixture(scope="module")
def outliving(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Models whose cluster is gone."""
    from distributed import Client

    folder = str(tmp_path_factory.mktemp("client"))
    with blocks_of(128), Client(processes=False, dashboard_address="127.0.0.1:0", local_directory=folder):
        return {case.id: case.fit_chunked() for case in TRAVELLING}


@every(TRAVELLING)
def test_outputs_outlive_the_cluster(case, outliving):
    for name in ("labels_", "agreement_", "base_labels_"):
        if hasattr(reference(case), name):
            output = getattr(outliving[case.id], name)
            np.testing.assert_array_equal(output.compute(), getattr(reference(case), name))


@every(CLASSES)
def test_blas_threads(case):
    with threadpool_limits(1, user_api="blas"):
        expected = case.fit_chunked()
    with threadpool_limits(4, user_api="blas"):
        assert_equal_fits(case.fit_chunked(), expected)


# -- seeds -----------------------------------------------------------------------------------------------------------


@every(CLASSES)
def test_the_global_random_state_plays_no_part(case):
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert_equal_fits(case.fit(), reference(case))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def are_equal(model: Any, other: Any) -> bool:
    try:
        assert_equal_fits(model, other)
    except AssertionError:
        return False
    return True


#: Where the result of these few rows tells one seed from another. Others come to the same end from any start.
SEEDED = of_ids("KMeans", "KMeans-parallel", "USPEC-options", "USENC", "Ensemble-FastCSC-SEC", "SECRP", "FastCSPML")


@every(SEEDED)
def test_a_seed_decides(case):
    assert not are_equal(case.fit(random_state=4), reference(case))
    assert_equal_fits(case.fit(random_state=np.int64(0)), reference(case))


@every(of_ids("KMeans", "SECRP"))
def test_where_seeds_come_from(case, tmp_path):
    """The seeds are compared, and not what comes of them: fits may come to the same end from two seeds."""
    runs = itertools.count()

    def seed_of(random_state):
        store = tmp_path / str(next(runs))
        model = case.fit(random_state=random_state, storage=store)
        seed = json.loads((store / "daskcluster.json").read_text())["seed"]
        assert_equal_fits(model, case.fit(random_state=seed))
        return seed

    assert seed_of(None) != seed_of(None)
    for source in (np.random.RandomState, np.random.default_rng):
        generator = source(7)
        first = seed_of(generator)
        assert seed_of(source(7)) == first
        assert seed_of(generator) != first, "its next number is another seed"


# -- again -----------------------------------------------------------------------------------------------------------


@every(CLASSES)
def test_refits_are_equal(case):
    model = case.make()
    for _ in range(2):
        assert_equal_fits(model.fit(case.X, **case.more()), reference(case))


@every(of_ids("KMeans", "USENC", "SEC", "FastCSPML"))
def test_fits_at_the_same_time(case):
    with ThreadPoolExecutor(2) as executor:
        for model in executor.map(lambda _: case.fit_chunked(), range(2)):
            assert_equal_fits(model, reference(case))


@every(FEW)
def test_fits_in_tasks_of_local_threads(case):
    for labels in dask.compute(*[dask.delayed(case.make().fit_predict)(case.X, **case.more()) for _ in range(3)]):
        np.testing.assert_array_equal(labels, reference(case).labels_)


def test_fits_in_tasks_of_every_worker_thread(cluster_processes):
    """A fit inside a task gives its thread back while it waits, or fits in all threads would wait for each other."""
    futures = cluster_processes.map(fit_inside, range(4), seed=0)
    assert [future.result(timeout=120) for future in futures] == [fit_inside(0)] * 4


def fit_inside(number=0, seed=0):
    # Numbers only: a task's modules need not be importable by the workers.
    import daskcluster

    X, _ = daskcluster.datasets.make_flower(1000, chunks=300, random_state=0)
    return daskcluster.USPEC(13, n_representatives=60, random_state=seed).fit(X).labels_.compute().tolist()
