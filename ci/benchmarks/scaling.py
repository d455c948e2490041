"""What a scheduler costs a fit of very many row blocks, and passes on 8 to 256 simulated workers.

    ci/benchmarks/run scaling                the tables of docs/scaling.md

1. A fit of USPEC on one thread gives the CPU seconds of a row block in each pass.
2. A `dask scheduler` and two `dask worker`, each a process of its own, sum up blocks that cost nothing: CPU seconds of
   the scheduler and of the workers for a task, in tasks of one block and of several.
3. The task graphs of these passes over 10**8 to 10**10 rows, made by the library's own functions, are scheduled on
   simulated workers: a worker runs a task and has one waiting, a scheduler handles one message after the other, and
   partial sums travel. The simulation knows no slow store, disk or worker, and no work that the client does alone.
"""

from __future__ import annotations

import argparse
import heapq
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
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


def pass_on_processes(n_blocks: int) -> tuple[int, float, float]:
    """Tasks of a sum over blocks, and CPU seconds of the scheduler and of two workers."""
    import psutil
    from distributed import Client

    from daskcluster.runtime.execution import compute

    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/scheduler.json"
        workers = ["worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        commands = [["scheduler", "--port", "0", "--dashboard-address", ":0"], workers, workers]
        started = [
            subprocess.Popen(
                [sys.executable, "-m", "dask", *command, "--scheduler-file", file],
                cwd=folder,
                stderr=subprocess.DEVNULL,
            )
            for command in commands
        ]
        try:
            with Client(scheduler_file=file) as client:
                client.wait_for_workers(2, timeout=120)
                compute(lazy_pass(True, 100))  # imports
                processes = [psutil.Process(each.pid) for each in started]
                before = [sum(each.cpu_times()[:2]) for each in processes]
                compute(lazy_pass(True, n_blocks))
                spent = [sum(each.cpu_times()[:2]) - old for each, old in zip(processes, before, strict=True)]
                n_tasks = len(tasks_of(lazy_pass(True, n_blocks)))
        finally:
            for each in reversed(started):
                each.terminate()
                each.wait()
    return n_tasks, spent[0], sum(spent[1:])


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
    load, running = [0] * workers, [False] * workers
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
        for most in (1, 2):
            for worker in range(workers):
                if ready and load[worker] < most:
                    waiting[worker].append(ready.popleft())
                    load[worker] += 1
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
        load[worker] -= 1
        for above in dependents[number]:
            missing[above] -= 1
            if not missing[above]:
                ready.appendleft(above)
        hand_out(now)
    return end


def efficiency(name: str, rows: int, workers: int, block: float, task: float, scheduler: float) -> tuple[float, int]:
    """Share of the workers' time that a simulated pass spends on blocks, and its tasks."""
    import dask

    from daskcluster.runtime.groups import blocks_a_task

    summed, n_bytes = PASSES[name]
    n_blocks = -(-rows // BLOCK_ROWS)
    with dask.config.set(scheduler="threads", num_workers=workers):
        tasks, size = tasks_of(lazy_pass(summed, n_blocks)), blocks_a_task(n_blocks)
    costs = Costs(size * block, task, scheduler, n_bytes / LINK_BYTES, LATENCY)
    return n_blocks * block / workers / simulate(tasks, workers, costs), len(tasks)


def main() -> None:
    """Measure, simulate, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=100_000)
    arguments = parser.parse_args()
    from uspec import table

    from daskcluster.runtime import groups

    blocks = block_seconds()
    least, found = groups.LEAST_BLOCKS, {}
    for name, threshold in (("one", sys.maxsize), ("eight", least)):
        groups.LEAST_BLOCKS = threshold
        found[name] = pass_on_processes(arguments.blocks)
    table(
        f"a sum over {arguments.blocks:,} empty blocks, a scheduler and two workers",
        ["blocks a task", "tasks", "scheduler, CPU s", "us a block", "workers, CPU s", "us a block"],
        [
            [
                name,
                f"{n:,}",
                f"{s:.1f}",
                f"{1e6 * s / arguments.blocks:.0f}",
                f"{w:.1f}",
                f"{1e6 * w / arguments.blocks:.0f}",
            ]
            for name, (n, s, w) in found.items()
        ],
    )
    shares = {name: seconds / arguments.blocks for name, (_, seconds, _) in found.items()}
    table(
        f"blocks of {BLOCK_ROWS:,} rows x {FEATURES}, k = {CLUSTERS}: the scheduler's CPU seconds / the workers'",
        ["pass", "a block, CPU ms", "one block a task", "eight"],
        [
            [name, f"{1000 * s:.1f}", f"{shares['one'] / s:.2%}", f"{shares['eight'] / s:.2%}"]
            for name, s in blocks.items()
        ],
    )
    n_tasks, scheduler, worker = found["eight"]
    for rows in ROWS:
        lines = []
        for name, seconds in blocks.items():
            shown = [efficiency(name, rows, w, seconds, worker / n_tasks, scheduler / n_tasks) for w in WORKERS]
            lines.append([name, f"{shown[0][1]:,}", *(f"{share:.0%}" for share, _ in shown)])
        title = f"{rows:.0e} rows x {FEATURES}: share of workers' time on blocks, simulated".replace("e+", "e")
        table(title, ["pass", "tasks on 8", *(f"{w} workers" for w in WORKERS)], lines)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
