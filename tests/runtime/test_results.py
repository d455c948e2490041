"""Outputs with an entry a row on a cluster: computed once, and there without the cluster."""

from __future__ import annotations

import os
import pickle
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from tests.conftest import DASHBOARD
from tests.counting import count_reads
from tests.estimators.cases import CLASSES, as_parameter, chunked_reference, every, of_ids
from tests.slow import slowly

pytestmark = pytest.mark.usefixtures("small_blocks")

OUTPUTS = ("labels_", "agreement_", "base_labels_")
#: Nothing fits in, as if rows were many.
NOTHING = {"daskcluster.memory-budget": 0}
SOME = of_ids("USPEC", "SEC", "CSPML")
FAST = of_ids("USENC", "CSPML")


def outputs_of(model: Any) -> dict[str, da.Array]:
    """The lazy outputs of a fitted model."""
    return {name: getattr(model, name) for name in OUTPUTS if hasattr(model, name)}


def rows_of(case: Any, folder: Path) -> da.Array:
    """The rows of a case, which count in a folder how often they are read."""
    return count_reads(da.from_array(case.X, chunks=(70, -1)), folder)


def reads(folder: Path) -> int:
    """Blocks that were read since the folder was made."""
    return sum(file.stat().st_size for file in folder.iterdir())


def touched(model: Any) -> dict[str, np.ndarray]:
    """What a user does with outputs, and not one large graph is sent for it."""
    with warnings.catch_warnings(), dask.config.set({"distributed.admin.large-graph-warning-threshold": "12 kB"}):
        warnings.simplefilter("error", UserWarning)  # sockets of a killed worker are none of ours
        found = {name: np.asarray(output) for name, output in outputs_of(model).items()}
        for name, output in outputs_of(model).items():
            assert int((output == output).sum().compute()) == output.size
            np.testing.assert_array_equal(output[:3].compute(), found[name][:3])
    return found


@pytest.mark.parametrize("case", [*map(as_parameter, FAST), *slowly(*(case for case in CLASSES if case not in FAST))])
@pytest.mark.parametrize("budget", [{}, *slowly(NOTHING)])
@pytest.mark.parametrize("cluster", ["client_inprocess", *slowly("cluster_processes")])
def test_touching_an_output_reads_no_row(case, cluster, budget, request, tmp_path):
    client = request.getfixturevalue(cluster)
    with client.as_current(), dask.config.set(budget):
        model = case.fit_chunked(rows_of(case, tmp_path))
        before = reads(tmp_path)
        assert before > 0
        found = [touched(model) for _ in range(3)]
        assert reads(tmp_path) == before
    for each in found:
        np.testing.assert_equal(each, {name: np.asarray(o) for name, o in outputs_of(chunked_reference(case)).items()})
    for output in outputs_of(model).values():
        assert isinstance(output, da.Array)
        assert output.chunks[0] == (70,) * (len(case.X) // 70) + ((len(case.X) % 70,) if len(case.X) % 70 else ())


@pytest.fixture
def own_client(tmp_path: Path) -> Iterator[Client]:
    """A cluster in this process that a test may close."""
    with (
        LocalCluster(
            processes=False,
            n_workers=1,
            threads_per_worker=1,
            dashboard_address=DASHBOARD,
            local_directory=str(tmp_path / "workers"),
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@every(SOME)
def test_what_this_process_holds_outlives_the_client(case, own_client, client_inprocess, tmp_path):
    reading = tmp_path / "reads"
    reading.mkdir()
    with own_client.as_current():
        model = case.fit_chunked(rows_of(case, reading))
        inside = touched(model)
        local = model.labels_.compute(scheduler="synchronous")
    before = reads(reading)
    own_client.close()
    np.testing.assert_array_equal(local, inside["labels_"])
    with client_inprocess.as_current():
        np.testing.assert_equal(touched(model), inside)
    with dask.config.set(scheduler="threads"):
        np.testing.assert_equal(touched(model), inside)
        other = pickle.loads(pickle.dumps(model.labels_))
        np.testing.assert_array_equal(other, local)
    assert reads(reading) == before


def test_what_workers_hold_is_made_anew_without_them(own_client, tmp_path):
    (case,) = of_ids("USPEC")
    reading = tmp_path / "reads"
    reading.mkdir()
    with own_client.as_current(), dask.config.set(NOTHING):
        model = case.fit_chunked(rows_of(case, reading))
        inside = touched(model)
    before = reads(reading)
    own_client.close()
    np.testing.assert_array_equal(model.labels_.compute(), inside["labels_"])
    assert reads(reading) == before + -(-len(case.X) // 70)


@pytest.mark.slow
@every(SOME)
@pytest.mark.parametrize("budget", [{}, NOTHING], ids=["client", "workers"])
def test_outputs_survive_the_workers(case, budget, tmp_path):
    reading = tmp_path / "reads"
    reading.mkdir()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=DASHBOARD) as cluster,
        Client(cluster) as client,
        dask.config.set(budget),
    ):
        model = case.fit_chunked(rows_of(case, reading))
        inside, before = touched(model), reads(reading)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        np.testing.assert_equal(touched(model), inside)
        if not budget:
            client.restart()
            np.testing.assert_equal(touched(model), inside)
            assert reads(reading) == before


def test_outputs_share_the_budget(client_inprocess, tmp_path):
    (case,) = of_ids("USENC")
    with client_inprocess.as_current(), dask.config.set({"daskcluster.memory-budget": 8 * len(case.X)}):
        model = case.fit_chunked(rows_of(case, tmp_path))
    np.testing.assert_array_equal(model.labels_.compute(scheduler="synchronous"), chunked_reference(case).labels_)
    before = reads(tmp_path)
    model.agreement_.compute(scheduler="synchronous")
    assert reads(tmp_path) == before, "the first two fit"
    model.base_labels_.compute(scheduler="synchronous")
    assert reads(tmp_path) > before, "the third does not"
