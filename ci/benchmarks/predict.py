"""How long a fit takes on workers that are not there: a model of each stage's CPU seconds, fitted on 1 and 2 workers.

    ci/benchmarks/run predict --folder SCRATCH      the tables of docs/scaling.md, in about ten minutes

The seconds of a stage on W threads are those of client and scheduler, plus those of the workers / W. Both are sums of
terms with coefficients of at least 0: of the former one a stage, one a task and one of what is done in one piece; of
the latter one a row and one of the stage's `WORK`. Tasks are those of `plan()`. The discretisation makes as
many passes as the rows want: the model is told how many they were. Fits of `FITTED` on `dask worker` processes of one
thread give the coefficients, those of `UNSEEN` are predicted. CPU time is measured: other work on the machine
and the wait for a disk are no part of it. Measured fits are noted in SCRATCH, so a broken run goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Shape(NamedTuple):
    """Rows, features, representatives, clusters."""

    n: int
    d: int
    p: int
    k: int


FITTED = [
    Shape(500_000, 16, 1000, 20),
    Shape(1_000_000, 2, 200, 5),
    Shape(1_000_000, 8, 500, 10),
    Shape(1_500_000, 4, 1000, 10),
    Shape(2_000_000, 2, 1000, 20),
    Shape(2_000_000, 4, 500, 5),
    Shape(2_000_000, 16, 200, 10),
    Shape(2_500_000, 12, 500, 10),
    Shape(3_000_000, 2, 200, 20),
    Shape(3_000_000, 8, 1000, 5),
    Shape(4_000_000, 2, 500, 10),
    Shape(4_000_000, 16, 1000, 10),
]
UNSEEN = [
    Shape(1_200_000, 6, 800, 8),
    Shape(3_500_000, 3, 300, 15),
    Shape(2_000_000, 10, 1000, 10),
    Shape(5_000_000, 16, 700, 12),
]
#: Places of a fit: 1 or 2 workers of one thread; 1 or 2 threads of one process, for `UNSEEN[-1]` only.
PLACES = {"1 worker": 1, "1 thread": 1, "2 threads": 2, "2 workers": 2}
MOST_ROWS = 10**8
READING = ("check and sample", "nearest representatives")
LARGE, LARGE_WORKERS = (10**9, 10**10), (8, 32, 64, 128, 256)
#: Work of a stage that all threads share, and work in one piece, beside rows and tasks.
WORK: dict[str, Callable[[Shape], tuple[float, float]]] = {
    "check and sample": lambda s: (s.n * s.d, s.p * s.d),
    "representatives": lambda s: (0, s.p**2 * s.d),
    "nearest representatives": lambda s: (s.n * (s.d * s.p) ** 0.5, s.p**2 * s.d),
    "transfer cut": lambda s: (s.n * s.p, s.p**3),
    "discretize": lambda s: (s.n * s.k, s.k**2),
    "labels": lambda s: (s.n * s.k, 0),
}


def estimator(shape: Shape) -> Any:
    """What is fitted."""
    import daskcluster as dc

    return dc.USPEC(shape.k, n_representatives=shape.p, random_state=0)


@cache
def plan_of(shape: Shape) -> Any:
    """The plan of a fit without a cluster."""
    import dask
    import dask.array as da
    from scaling import BLOCK_ROWS

    with dask.config.set(scheduler="threads", num_workers=1):
        return estimator(shape).plan(da.zeros((shape.n, shape.d), dtype=np.float32, chunks=(BLOCK_ROWS, shape.d)))


def tasks_of(shape: Shape, threads: int) -> dict[str, float]:
    """Tasks of each stage, of the discretisation of a pass; of very many rows, more times those of `MOST_ROWS`."""
    import dask
    from scaling import BLOCK_ROWS

    from daskcluster.runtime.groups import blocks_a_task

    n_blocks = -(-shape.n // BLOCK_ROWS)
    with dask.config.set(scheduler="threads", num_workers=threads):
        size = blocks_a_task(n_blocks)
    plan = plan_of(shape._replace(n=min(shape.n, MOST_ROWS)))
    times = n_blocks / plan.n_blocks / size
    return {stage.name: times * stage.tasks / max(stage.passes, 1) for stage in plan.stages}


class Measured(NamedTuple):
    """CPU seconds of client and scheduler, and of the workers, by the stage; passes of the discretisation."""

    shape: Shape
    place: str
    seconds: dict[str, list[float]]
    passes: int
    wall: float

    @property
    def whole(self) -> float:
        """Seconds of the fit."""
        return sum(alone + workers / PLACES[self.place] for alone, workers in self.seconds.values())


def terms(title: str, shape: Shape, threads: int, passes: int) -> list[list[float]]:
    """What the coefficients of client and scheduler, and those of the workers, are multiplied with."""
    times = passes if title == "discretize" else 1
    tasks = times * tasks_of(shape, threads).get(title, 0)
    shared, single = WORK.get(title, lambda s: (0, 0))(shape)
    return [[1, tasks, single], [times * shape.n, times * shared]]


def fitted(found: list[Measured]) -> dict[str, list[list[float]]]:
    """Coefficients by title: least squares of the error as a share of the whole fit, not below 0."""
    from scipy.optimize import nnls

    coefficients: dict[str, list[list[float]]] = {}
    for title in found[0].seconds:
        coefficients[title] = []
        for part in (0, 1):
            lines = [np.array(terms(title, f.shape, PLACES[f.place], f.passes)[part]) / f.whole for f in found]
            scale = np.maximum(np.max(lines, axis=0), 1e-300)
            sought = np.array([f.seconds[title][part] / f.whole for f in found])
            coefficients[title].append(list(nnls(np.array(lines) / scale, sought)[0] / scale))
    return coefficients


def predicted(
    coefficients: dict[str, list[list[float]]], shape: Shape, threads: int, passes: int
) -> dict[str, tuple[float, float]]:
    """Seconds of each stage: of client and scheduler, and of all workers together."""
    return {
        title: tuple(map(np.dot, each, terms(title, shape, threads, passes))) for title, each in coefficients.items()
    }


def whole(parts: dict[str, tuple[float, float]], threads: int) -> float:
    """Seconds of a fit."""
    return float(sum(alone + workers / threads for alone, workers in parts.values()))


# -- measuring -----------------------------------------------------------------------------------------------------


def rows_of(folder: Path, shape: Shape) -> str:
    """A store of such rows, made where it is not there."""
    import dask.array as da
    from growth import blobs
    from scaling import BLOCK_ROWS

    store = folder / f"rows-{shape.n}-{shape.d}-{shape.k}.zarr"
    if not (store / "zarr.json").exists():
        da.from_array(blobs(shape.n, shape.d, shape.k), chunks=(BLOCK_ROWS, shape.d)).to_zarr(str(store))
    return str(store)


def measured(shape: Shape, place: str, store: str, workers: list[Any], scheduler: list[Any]) -> Measured:
    """A fit; without workers its threads are what works."""
    from daskcluster.runtime.stages import Run

    def spent(processes: list[Any]) -> float:
        return sum(sum(each.cpu_times()[:2]) for each in processes)

    seconds: dict[str, list[float]] = {}
    passes, call = 1, Run.__call__

    def timed(run: Run, stage: Any, *results: Any) -> Any:
        nonlocal passes
        before = time.process_time() + spent(scheduler), spent(workers)
        made = call(run, stage, *results)
        passes = getattr(made, "n_iter", passes)
        seconds[stage.title] = [time.process_time() + spent(scheduler) - before[0], spent(workers) - before[1]]
        return made

    Run.__call__ = timed  # type: ignore[method-assign]
    start = time.perf_counter()
    try:
        estimator(shape).fit(store)
    finally:
        Run.__call__ = call  # type: ignore[method-assign]
    return Measured(shape, place, seconds, passes, time.perf_counter() - start)


def measure(folder: Path, repeat: int) -> list[Measured]:
    """All fits, those from before too; of several of a shape the one with the fewest seconds."""
    import dask
    from scaling import cluster

    notes = folder / "fits.jsonl"
    lines = notes.read_text().splitlines() if notes.exists() else []
    found = [Measured(Shape(*shape), *more) for shape, *more in map(json.loads, lines)]
    small = Shape(20_000, 4, 200, 5)
    stores = {shape: rows_of(folder, shape) for shape in (small, *FITTED, *UNSEEN)}
    for place, threads in PLACES.items():
        shapes = [*UNSEEN, *FITTED] if "worker" in place else UNSEEN[-1:]
        there = Counter(each.shape for each in found if each.place == place)
        missing = [shape for shape in shapes for _ in range(repeat - there[shape])]
        if not missing:
            continue
        with ExitStack() as stack:
            scheduler, workers = [], []
            if "worker" in place:
                _, (first, *workers) = stack.enter_context(cluster(threads))
                scheduler = [first]
            else:
                stack.enter_context(dask.config.set(scheduler="threads", num_workers=threads))
            cold = measured(small, place, stores[small], workers, scheduler)  # imports, kernels
            total = np.sum(list(cold.seconds.values()), axis=0)
            print(f"{place}: the first fit, of {small.n:,} rows, CPU s: client {total[0]:.1f}, workers {total[1]:.1f}")
            for shape in missing:
                found.append(measured(shape, place, stores[shape], workers, scheduler))
                with notes.open("a") as file:
                    file.write(json.dumps(found[-1]) + "\n")
    least: dict[Any, Measured] = {}
    for each in sorted(found, key=lambda each: -each.whole):
        least[each.shape, each.place] = each
    return [least[shape, place] for shape in (*FITTED, *UNSEEN) for place in PLACES if (shape, place) in least]


# -- tables --------------------------------------------------------------------------------------------------------


def large(coefficients: dict[str, list[list[float]]], n: int) -> list[list[str]]:
    """Workers, hours, the share of client and scheduler, memory of a worker, and bytes a second from the store."""
    from daskcluster.pipeline.discretize import LIKELY_ITER

    shape, lines = Shape(n, 16, 1000, 10), []
    plan = plan_of(shape._replace(n=MOST_ROWS))
    held = sum(stage.written_bytes for stage in plan.stages) * n / MOST_ROWS
    for workers in LARGE_WORKERS:
        parts = predicted(coefficients, shape, workers, LIKELY_ITER)
        seconds, alone = whole(parts, workers), sum(each for each, _ in parts.values())
        rate = n * 16 * 4 / min(a + w / workers for t, (a, w) in parts.items() if t in READING) / 1e9
        memory = (plan.demand.working_bytes(1) + held / workers) / 2**30
        lines.append([str(workers), f"{seconds / 3600:.2f}", f"{alone / seconds:.0%}", f"{memory:.1f}", f"{rate:.2f}"])
    return lines


def main() -> None:
    """Measure, fit, predict, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="for rows, about 1 GB, and measured seconds")
    parser.add_argument("--repeat", type=int, default=2, help="fits of each shape, of which the fastest counts")
    parser.add_argument("--prepare", action="store_true", help="make the rows only")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.prepare:
        for shape in (Shape(20_000, 4, 200, 5), *FITTED, *UNSEEN):
            rows_of(arguments.folder, shape)
        return
    from uspec import table

    found = measure(arguments.folder, arguments.repeat)
    on_workers = [each for each in found if "worker" in each.place]
    coefficients = fitted([each for each in on_workers if each.shape in FITTED])
    scales = 1, 1e3, 1e9, 1e9, 1e9
    table(
        "coefficients: client and scheduler s, ms a task, ns a unit in one piece; workers ns a row, a unit of work",
        ["stage", "once", "a task", "in one piece", "workers: a row", "work"],
        [
            [title, *(f"{c * scale:.3g}" for c, scale in zip([*each[0], *each[1]], scales, strict=True))]
            for title, each in coefficients.items()
        ],
    )
    for name, shapes in (("fitted", FITTED), ("unseen", UNSEEN)):
        lines = []
        for each in on_workers:
            if (shape := each.shape) in shapes:
                threads = PLACES[each.place]
                guess = whole(predicted(coefficients, shape, threads, each.passes), threads)
                ratio = guess / each.whole
                lines.append([f"{shape.n / 1e6:g}M x {shape.d}", *shape[2:], each.passes, each.place])
                lines[-1] += [f"{each.whole:.2f}", f"{guess:.2f}", f"{ratio:.2f}"]
                lines[-1].append("" if 0.8 <= ratio <= 1.2 else "missed")
        table(f"{name} shapes", ["rows", "p", "k", "passes", "on", "measured, s", "predicted, s", "ratio", ""], lines)
    last = [each for each in found if each.shape == UNSEEN[-1]]
    table(
        f"{UNSEEN[-1].n:,} rows x {UNSEEN[-1].d}",
        ["on", "client and scheduler, CPU s", "workers, CPU s", "wall s"],
        [[e.place, *(f"{x:.2f}" for x in np.sum(list(e.seconds.values()), axis=0)), f"{e.wall:.1f}"] for e in last],
    )
    columns = ["workers", "hours", "not divided", "memory of one, GiB", "store, GB/s"]
    for n in LARGE:
        table(f"{n:.0e} rows x 16, p = 1000, k = 10".replace("e+", "e"), columns, large(coefficients, n))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
