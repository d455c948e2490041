"""The forecast of a fit and the fit itself: the same stages, no more tasks, no more reads."""

from __future__ import annotations

import logging

import dask.array as da
import numpy as np
import pytest

from tests.counting import count_tasks
from tests.estimators.cases import CASES, every, of_ids

pytestmark = pytest.mark.usefixtures("small_blocks")

#: A forecast is asked for the rows, and knows nothing of weights.
WITHOUT_WEIGHTS = [case for case in CASES if "sample_weight" not in case.more()]

CHUNKINGS = {"aligned": (64, -1), "one chunk": (-1, -1), "other rows": (70, -1), "columns": (60, 1)}


@every(CASES, options=False)
def test_a_fit_goes_through_the_stages_of_its_plan(case, caplog):
    with caplog.at_level(logging.INFO, logger="daskcluster"):
        case.fit()
    reported = [record.args[0] for record in caplog.records if record.msg == "%s: %.2f s"]
    assert [stage.name for stage in case.make().plan(case.X).stages] == reported


@pytest.mark.parametrize(
    ("case", "chunking"),
    # How rows are cut into blocks is one matter for all; what is made of the blocks is each one's own.
    [
        pytest.param(case, chunking, id=f"{case.id}-{chunking}")
        for case in WITHOUT_WEIGHTS
        for chunking in CHUNKINGS
        if case in of_ids("USPEC", "BipartiteCut", "CSPML") or chunking == "columns"
    ],
)
def test_a_fit_takes_no_more_tasks_and_reads_than_planned(case, chunking):
    reads = []

    def read(block):
        reads.append(block.size)
        return block

    X = da.from_array(case.X, chunks=CHUNKINGS[chunking])
    X = X.map_blocks(read, dtype=X.dtype, meta=np.empty((0, 0), X.dtype))
    plan = case.make().plan(X)
    assert not reads
    with count_tasks() as tasks:
        case.fit(X)
    assert 0 < tasks.total() <= plan.tasks
    assert plan.tasks == sum(stage.tasks for stage in plan.stages)
    assert 0 < sum(reads) <= plan.input_passes * X.size


@every(CASES, options=False)
def test_a_plan_leaves_the_estimator_as_it_was(case):
    model = case.make()
    before = dict(vars(model))
    plan = model.plan(case.X)
    assert vars(model) == before
    assert plan.method == type(model).__name__
    assert (plan.n_samples, plan.n_features) == case.X.shape
    assert plan.n_blocks == -(-plan.n_samples // plan.block_rows)
    assert str(plan).count("\n") == len(plan.stages) + 5
    fitted = case.fit()
    assert fitted.plan(case.X) == plan


@every(CASES, options=False)
def test_twice_the_rows_are_twice_the_work(case):
    few, many = (case.make().plan(da.zeros((n, 8), chunks=(100, 8), dtype=np.int8)) for n in (5_000, 10_000))
    assert many.tasks == pytest.approx(2 * few.tasks, rel=0.1)
    assert many.read_bytes == pytest.approx(2 * few.read_bytes, rel=0.1)
    assert many.peak_bytes >= few.peak_bytes
