"""Names of tasks: all that a dashboard shows of a fit begins with ``dc-``, but for what the user's own graph brings."""

from __future__ import annotations

from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from dask.utils import key_split

from daskcluster.runtime.pieces import recut, task_name
from tests.blocks import blocks_of
from tests.estimators.cases import CASES, of_ids
from tests.slow import slowly

#: What the user's arrays in these tests are made of.
USERS = "mine"


@contextmanager
def watched(client):
    """The prefixes of the tasks that run inside, on a distributed scheduler or on the threads of this process."""
    seen = set()
    if client is None:

        def note(key, *arguments):
            seen.add(key_split(key))

        with dask.config.set(scheduler="synchronous"), dask.callbacks.Callback(pretask=note):
            yield seen
        # One task of dask's own a computation, which local schedulers run in this process.
        seen.discard("finalize-hlgfinalizecompute")
        return
    from distributed.diagnostics.plugin import SchedulerPlugin

    class Note(SchedulerPlugin):
        name = "note"

        def transition(self, key, start, finish, *arguments, **more):
            if finish == "processing":
                seen.add(key_split(key))

    scheduler = client.cluster.scheduler
    scheduler.add_plugin(Note())
    try:
        yield seen
    finally:
        scheduler.plugins.pop("note")


def mine(array, chunks):
    return da.from_array(array, chunks=chunks, name=f"{USERS}-{np.random.default_rng().integers(2**60):x}")


def made(case):
    """A case whose data are made: they are by dask, too."""
    return case.X is not None and case.more() is not None


def fit_in_form(case, form, folder):
    """A fit to rows in a form, with what is beside them in the same."""
    if form == "NumPy":
        return case.fit()
    if form == "dask":
        more = {k: mine(v, 47) if isinstance(v, np.ndarray) else v for k, v in case.more().items()}
        return case.make().fit(mine(case.X, (70, 1)), **more)
    zarr.create_array(folder / "x.zarr", data=case.X, chunks=(70, case.X.shape[1]))
    return case.fit(
        folder / "x.zarr", **({"storage": folder / "run"} if form == "storage" and not case.foreign else {})
    )


def assert_ours(seen):
    others = {name for name in seen if not (name.startswith("dc-") or name.partition("-dc-")[0] == USERS)}
    assert not others
    assert any(name.startswith("dc-") for name in seen)


ENOUGH = of_ids("KMeans-weights", "USENC", "Ensemble-KMeans-ISEC", "SEC", "EAC-wct", "FastCSC", "FastCSPML")


@pytest.mark.parametrize("form", ["NumPy", "dask", "zarr", "storage"])
@pytest.mark.parametrize("case", slowly(*CASES), ids=lambda case: case.id)
def test_tasks_on_a_cluster_are_named(case, form, client_inprocess, tmp_path):
    assert made(case)
    with watched(client_inprocess) as seen, blocks_of(64):
        fit_in_form(case, form, tmp_path)
    assert_ours(seen)


@pytest.mark.parametrize("case", ENOUGH, ids=lambda case: case.id)
def test_tasks_are_named(case, tmp_path):
    assert made(case)
    with watched(None) as seen, blocks_of(64):
        fit_in_form(case, "storage" if case.id in ("USENC", "SEC", "FastCSPML") else "dask", tmp_path)
    assert_ours(seen)


def test_a_cluster_runs_no_task_but_ours(client_inprocess, tmp_path):
    (case,) = of_ids("USPEC")
    assert made(case)
    with watched(client_inprocess) as seen, blocks_of(64):
        fit_in_form(case, "NumPy", tmp_path)
    assert_ours(seen)


@pytest.mark.parametrize("name", ["base-000-labels", "dc-nearest", "sums_of_2"])
def test_a_name_is_whole_on_a_dashboard(name):
    assert key_split(f"{task_name(name)}-4a0b3c") == task_name(name)


CHUNKINGS = [((10,), (3,)), ((3, 3, 4), (1, 2)), ((1,) * 10, (1, 1, 1)), ((0, 4, 0, 6), (3,)), ((5, 5, 0), (2, 1))]


@pytest.mark.parametrize("new", CHUNKINGS)
@pytest.mark.parametrize("old", CHUNKINGS)
def test_recut_moves_every_number(old, new):
    X = np.arange(30).reshape(10, 3)
    cut = recut(da.from_array(X, chunks=old), new)
    assert cut.chunks == new
    np.testing.assert_array_equal(cut.compute(scheduler="synchronous"), X)
    for block, rows in zip(cut.to_delayed().ravel(), [a * b for a in new[0] for b in new[1]], strict=True):
        assert block.compute(scheduler="synchronous").size == rows


def test_recut_of_what_is_cut_so_is_the_array_itself():
    X = da.ones((10, 3), chunks=(4, 3))
    assert recut(X, X.chunks) is X


def test_recut_of_nothing():
    assert recut(da.ones((0, 3), chunks=(0, 3)), ((0, 0), (3,))).compute(scheduler="synchronous").shape == (0, 3)
