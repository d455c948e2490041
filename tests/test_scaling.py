"""The simulation of ci/benchmarks/scaling.py against passes that are solved by hand."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def scaling():
    path = Path(__file__).parents[1] / "ci" / "benchmarks" / "scaling.py"
    spec = importlib.util.spec_from_file_location("benchmark_scaling", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


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
