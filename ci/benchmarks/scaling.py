"""What a scheduler costs a fit of very many row blocks, and passes on 8 to 256 simulated workers.

    ci/benchmarks/run scaling                the first tables of docs/scaling.md, in a few minutes
    ci/benchmarks/run scaling --grouped 100000    so many blocks in the measurement of tasks of eight

1. A fit of USPEC on one thread gives the CPU seconds of a row block in each pass.
2. A `dask scheduler` and two `dask worker`, each a process of its own, sum up blocks that cost nothing: CPU seconds of
   the scheduler and of the workers for a task, in tasks of one block and of several.
3. The task graphs of these passes over 10**8 to 10**10 rows, made by the library's own functions, are scheduled on
   simulated workers: a worker runs a task and has one waiting, a scheduler handles one message after the other, and
   partial sums travel. Tasks of one block and of eight have the costs measured for each. The simulation knows no slow
   store, disk or worker, and no work that the client does alone.
"""

from __future__ import annotations

import argparse
import heapq
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

BLOCK_ROWS, FEATURES, CLUSTERS = 2**17, 16, 10
#: Passes of a fit, by the end of their tasks' names: whether what the blocks give is summed up, and bytes of a sum.
PASSES = {
    "dc-check": (False, 0),
    "dc-nearest": (False, 0),
    "dc-affinities": (True, 16 * 50_000),
    "dc-lloyd": (True, 8 * CLUSTERS * (CLUSTERS + 3)),
}
#: Seconds until a message has come, and bytes a second between two workers.
LATENCY, LINK_BYTES = 0.0005, 1e9
WORKERS = (8, 32, 64, 128, 256)
ROWS = (10**8, 10**9, 10**10)


# -- 1: what a block costs -----------------------------------------------------------------------------------------


def block_seconds(n_blocks: int = 3) -> dict[str, float]:
    """CPU seconds of a block in each pass of a fit on one thread."""
    import dask
    from growth import blobs

    import daskcluster as dc

    seconds, tasks, begun = Counter[str](), Counter[str](), dict[Any, float]()

    def before(key: Any, *more: Any) -> None:
        begun[key] = time.process_time()

    def after(key: Any, *more: Any) -> None:
        name = dask.utils.key_split(key)
        seconds[name] += time.process_time() - begun.pop(key)
        tasks[name] += 1

    with tempfile.TemporaryDirectory() as folder, dask.config.set(scheduler="synchronous"):
        rows = blobs(n_blocks * BLOCK_ROWS, FEATURES, CLUSTERS)
        dask.array.from_array(rows, chunks=(BLOCK_ROWS, FEATURES)).to_zarr(f"{folder}/rows.zarr")
        model = dc.USPEC(CLUSTERS, random_state=0)
        model.fit(rows[:20_000])  # loads the kernels
        with dask.callbacks.Callback(pretask=before, posttask=after):
            model.fit(f"{folder}/rows.zarr")
    return {name: seconds[name] / tasks[name] for name in PASSES if tasks[name]}


# -- 2: what a task costs ------------------------------------------------------------------------------------------


def nothing(block: Any) -> dict[str, Any]:
    """What a block that costs nothing gives."""
    return {"sum": 0.0}


def lazy_pass(summed: bool, n_blocks: int) -> Any:
    """A pass over so many blocks that cost nothing, as the library makes it."""
    from daskcluster.runtime.execution import add_parts, map_to_objects, reduce_blocks
    from daskcluster.runtime.groups import blocks_a_task, grouped
    from daskcluster.runtime.pieces import read_pieces

    rows = read_pieces(no_rows, 0, ((1,) * n_blocks, (1,)), np.dtype(int), name="read")
    if summed:
        return reduce_blocks(nothing, add_parts, rows, name="dc-pass")
    lazy = map_to_objects(nothing, rows, name="dc-pass", numbered=False)
    several = grouped(lazy, blocks_a_task(n_blocks))
    return lazy if several is None else several.objects()


def no_rows(source: Any, block_id: tuple[int, ...]) -> Any:
    """A block of one row."""
    return np.zeros((1, 1), int)


@contextmanager
def cluster(n_workers: int, n_threads: int = 1) -> Iterator[tuple[Any, list[Any]]]:
    """A client, and the processes of its scheduler and workers; none of them outlives this one for long."""
    import psutil
    from distributed import Client

    worker = ["worker", "--nthreads", str(n_threads), "--no-nanny", "--no-dashboard", "--death-timeout", "10"]
    scheduler = ["scheduler", "--port", "0", "--dashboard-address", ":0", "--idle-timeout", "120"]
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    started: list[psutil.Popen] = []
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/scheduler.json"
        try:
            for command in (scheduler, *[worker] * n_workers):
                line = [sys.executable, "-m", "dask", *command, "--scheduler-file", file]
                started.append(psutil.Popen(line, cwd=folder, stderr=subprocess.DEVNULL))
            with Client(scheduler_file=file) as client:
                client.wait_for_workers(n_workers, timeout=120)
                yield client, started
        finally:
            for each in reversed(started):
                each.kill()
                each.wait()
            signal.signal(signal.SIGTERM, before)


def pass_on_processes(n_blocks: int) -> tuple[int, float, float]:
    """Tasks of a sum over blocks, and CPU seconds of the scheduler and of two workers."""
    from daskcluster.runtime.execution import compute

    with cluster(2) as (_, processes):
        compute(lazy_pass(True, 1000))  # imports
        before = [sum(each.cpu_times()[:2]) for each in processes]
        compute(lazy_pass(True, n_blocks))
        spent = [sum(each.cpu_times()[:2]) - old for each, old in zip(processes, before, strict=True)]
        n_tasks = len(tasks_of(lazy_pass(True, n_blocks)))
    return n_tasks, spent[0], sum(spent[1:])


@dataclass(frozen=True)
class TaskCosts:
    """A measured sum over empty blocks: blocks and tasks of it, CPU seconds of a task on the scheduler and a worker."""

    blocks: int
    tasks: int
    scheduler: float
    worker: float


def task_costs(n_blocks: int, threshold: int) -> TaskCosts:
    """Costs of a task where as many blocks as the threshold are grouped."""
    from daskcluster.runtime import groups

    before = groups.LEAST_BLOCKS, groups.LEAST_BLOCKS_ON_WORKERS
    groups.LEAST_BLOCKS, groups.LEAST_BLOCKS_ON_WORKERS = threshold, threshold
    try:
        tasks, scheduler, worker = pass_on_processes(n_blocks)
    finally:
        groups.LEAST_BLOCKS, groups.LEAST_BLOCKS_ON_WORKERS = before
    return TaskCosts(n_blocks, tasks, scheduler / tasks, worker / tasks)


# -- 3: a simulation -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SimulatedTask:
    """Numbers of the tasks whose results it needs; none where it works on blocks."""

    needs: tuple[int, ...] = ()


def tasks_of(lazy: Any) -> list[SimulatedTask]:
    """The tasks of a lazy value, without values that are only there."""
    import dask

    graph = {
        key: task
        for key, task in dict(dask.optimize(lazy)[0].__dask_graph__()).items()
        if not isinstance(task, dask.task_spec.DataNode)
    }
    numbers = {key: number for number, key in enumerate(graph)}
    return [
        SimulatedTask(tuple(numbers[need] for need in task.dependencies if need in numbers)) for task in graph.values()
    ]


@dataclass(frozen=True)
class Costs:
    """Seconds of a task on blocks, of a worker and of the scheduler for any task, of a sum on its way, of a message."""

    blocks: float
    task: float = 0.0
    scheduler: float = 0.0
    part: float = 0.0
    latency: float = 0.0


def simulate(tasks: Sequence[SimulatedTask], workers: int, costs: Costs) -> float:
    """Seconds of a pass: tasks go out in the order of the graph, sums first; a worker has one task waiting."""
    missing = [len(task.needs) for task in tasks]
    dependents: list[list[int]] = [[] for _ in tasks]
    for number, task in enumerate(tasks):
        for need in task.needs:
            dependents[need].append(number)
    ready = deque(number for number, count in enumerate(missing) if not count)
    waiting: list[deque[int]] = [deque() for _ in range(workers)]
    spare = set(range(workers)), set[int]()  # workers that have no task, and one
    running = [False] * workers
    events: list[tuple[float, int, int, int, bool]] = []
    scheduler = end = 0.0
    n_events = 0

    def at(when: float, worker: int, number: int, told: bool) -> None:
        nonlocal n_events
        n_events += 1
        heapq.heappush(events, (when, n_events, worker, number, told))

    def begin(worker: int, now: float) -> None:
        number = waiting[worker].popleft()
        running[worker] = True
        needs = len(tasks[number].needs)
        work = costs.part * needs * (1 - 1 / workers) if needs else costs.blocks
        at(now + costs.task + work, worker, number, False)

    def hand_out(now: float) -> None:
        while ready and (spare[0] or spare[1]):
            load = 0 if spare[0] else 1
            worker = min(spare[load])
            spare[load].remove(worker)
            if not load:
                spare[1].add(worker)
            waiting[worker].append(ready.popleft())
            if not running[worker]:
                begin(worker, now + costs.latency)

    hand_out(0.0)
    while events:
        now, _, worker, number, told = heapq.heappop(events)
        if not told:  # it has ended: the worker goes on, and the scheduler is going to be told
            running[worker] = False
            if waiting[worker]:
                begin(worker, now)
            scheduler = max(scheduler, now + costs.latency) + costs.scheduler
            at(scheduler, worker, number, True)
            continue
        end = now
        load = 1 if worker in spare[1] else 2
        spare[1].discard(worker)
        spare[load - 1].add(worker)
        for above in dependents[number]:
            missing[above] -= 1
            if not missing[above]:
                ready.appendleft(above)
        hand_out(now)
    return end


@cache
def graph_of(summed: bool, n_blocks: int, workers: int) -> tuple[list[SimulatedTask], int]:
    """Tasks of a pass on so many workers, and the blocks of a task."""
    import dask

    from daskcluster.runtime.groups import blocks_a_task

    with dask.config.set(scheduler="threads", num_workers=workers):
        return tasks_of(lazy_pass(summed, n_blocks)), blocks_a_task(n_blocks)


def efficiency(name: str, rows: int, workers: int, block: float, tasks: dict[int, TaskCosts]) -> tuple[float, int]:
    """Share of the workers' time that a simulated pass spends on blocks, and its tasks; `tasks` by blocks of a task."""
    summed, n_bytes = PASSES[name]
    n_blocks = -(-rows // BLOCK_ROWS)
    graph, size = graph_of(summed, n_blocks, workers)
    costs = Costs(size * block, tasks[size].worker, tasks[size].scheduler, n_bytes / LINK_BYTES, LATENCY)
    return n_blocks * block / workers / simulate(graph, workers, costs), len(graph)


def main() -> None:
    """Measure, simulate, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=10_000)
    parser.add_argument("--grouped", type=int, help="blocks of the measurement of tasks of eight; as --blocks")
    arguments = parser.parse_args()
    from uspec import table

    from daskcluster.runtime.groups import FAN_IN, LEAST_BLOCKS

    blocks = block_seconds()
    found = {
        1: task_costs(arguments.blocks, sys.maxsize),
        FAN_IN: task_costs(arguments.grouped or arguments.blocks, LEAST_BLOCKS),
    }
    table(
        "a sum over empty blocks, a scheduler and two workers, CPU time",
        ["blocks a task", "blocks", "tasks", "scheduler, a task", "a block", "workers, a task", "a block"],
        [
            [size, f"{c.blocks:,}", f"{c.tasks:,}"]
            + [f"{1e3 * each:.2f} ms" for s in (c.scheduler, c.worker) for each in (s, s * c.tasks / c.blocks)]
            for size, c in found.items()
        ],
    )
    table(
        f"blocks of {BLOCK_ROWS:,} rows x {FEATURES}, k = {CLUSTERS}: the scheduler's CPU seconds / the workers'",
        ["pass", "a block, CPU ms", *(f"{size} a task" for size in found)],
        [
            [name, f"{1000 * s:.1f}", *(f"{c.scheduler * c.tasks / c.blocks / s:.2%}" for c in found.values())]
            for name, s in blocks.items()
        ],
    )
    for rows in ROWS:
        lines = []
        for name, seconds in blocks.items():
            shown = [efficiency(name, rows, w, seconds, found) for w in WORKERS]
            lines.append([name, f"{shown[0][1]:,}", *(f"{share:.0%}" for share, _ in shown)])
        title = f"{rows:.0e} rows x {FEATURES}: share of workers' time on blocks, simulated".replace("e+", "e")
        table(title, ["pass", "tasks on 8", *(f"{w} workers" for w in WORKERS)], lines)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
