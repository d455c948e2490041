"""The simulation of ci/benchmarks/scaling.py, and the model of predict.py, against what is solved by hand."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


def program(name):
    path = Path(__file__).parents[1] / "ci" / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def scaling():
    yield program("scaling")
    del sys.modules["benchmark_scaling"]


@pytest.fixture
def predict(monkeypatch):
    """The model, of fits with a task a million rows."""
    module = program("predict")
    monkeypatch.setattr(module, "tasks_of", lambda shape, threads: {"labels": shape.n / 1e6})
    yield module
    del sys.modules["benchmark_predict"]


@pytest.mark.parametrize(
    ("workers", "costs", "seconds"),
    [
        (1, {}, 4),
        (2, {}, 2),
        (1, {"scheduler": 0.5}, 5),  # blocks until 4, known at 4.5; the sum known at 5
        (1, {"scheduler": 2}, 11),  # known at 3, 5, 7, 9, since one block waits with the worker; the sum at 11
        (2, {"part": 0.25}, 2.5),  # half of the four sums come from the other worker
        (1, {"task": 0.5, "latency": 0.25}, 7.5),  # a message, 4 x 1.5, two messages, 0.5, and a message
    ],
)
def test_a_sum_of_four_blocks(scaling, workers, costs, seconds):
    tasks = [scaling.SimulatedTask()] * 4 + [scaling.SimulatedTask((0, 1, 2, 3))]
    assert scaling.simulate(tasks, workers, scaling.Costs(1, **costs)) == pytest.approx(seconds)


@pytest.mark.usefixtures("several_blocks")
def test_the_graph_is_that_of_the_library(scaling):
    sums = [len(task.needs) for task in scaling.tasks_of(scaling.lazy_pass(True, 70))]
    assert sorted(sums) == [0] * 9 + [1, 2, 8]
    assert [task.needs for task in scaling.tasks_of(scaling.lazy_pass(False, 70))] == [()] * 9


def test_tasks_of_one_block_cost_what_those_cost(scaling):
    free, dear = scaling.TaskCosts(1, 1, 0, 0), scaling.TaskCosts(1, 1, 0, 1.0)
    rows = 100 * scaling.BLOCK_ROWS  # too few for tasks of eight
    share, tasks = scaling.efficiency("dc-check", rows, 1, 1.0, {1: dear, 8: free})
    assert (share, tasks) == (pytest.approx(0.5, rel=1e-3), 100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("daskcluster.runtime.groups.LEAST_BLOCKS", 1)
        scaling.graph_of.cache_clear()
        share, tasks = scaling.efficiency("dc-check", rows, 1, 1.0, {1: free, 8: dear})
    scaling.graph_of.cache_clear()
    assert (share, tasks) == (pytest.approx(100 / (104 + 13), rel=1e-3), 13)  # the last task is charged as a full one


def test_coefficients_are_found(predict):
    true = {"labels": [[0.5, 0.25, 0], [1e-6, 0]], "discretize": [[1, 0, 0], [1e-6, 0]]}
    shapes = [predict.Shape(n * 10**6, 2, 100, k) for n, k in ((1, 2), (2, 9), (4, 3))]
    parts = predict.predicted(true, shapes[1], 2, passes=3)
    assert parts == {"labels": (1, 2), "discretize": (1, 6)}
    assert predict.whole(parts, 2) == 1 + 1 + 1 + 3

    found = [
        predict.Measured(shape, place, predict.predicted(true, shape, threads, 3), 3, 0)
        for shape in shapes
        for place, threads in (("1 worker", 1), ("2 workers", 2))
    ]
    again = predict.fitted(found)
    assert predict.predicted(again, shapes[1], 2, 3)["labels"] == pytest.approx((1, 2))
    assert again["discretize"][1] == pytest.approx([1e-6, 0], abs=1e-9)
