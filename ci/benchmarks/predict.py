"""How long a fit takes on workers that are not there: a model of each stage's seconds, fitted on 1 and 2 workers.

    ci/benchmarks/run predict --folder SCRATCH      the tables of docs/scaling.md, in about ten minutes

The seconds of a stage on W threads are the sum of five terms with coefficients of at least 0: one of the stage, one a
task (scheduler and client), one a row / W, one of the stage's `WORK` / W, and one of what is done in one piece. Tasks
are those of `plan()`. Fits of `FITTED` on `dask worker` processes of one thread give the coefficients, those of
`UNSEEN` are predicted. Measured fits are noted in SCRATCH, so a broken run goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
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
    Shape(2_000_000, 2, 1000, 20),
    Shape(2_000_000, 4, 500, 5),
    Shape(2_000_000, 16, 200, 10),
    Shape(3_000_000, 8, 1000, 5),
    Shape(4_000_000, 2, 500, 10),
]
UNSEEN = [
    Shape(1_500_000, 4, 1000, 10),
    Shape(3_000_000, 2, 200, 20),
    Shape(2_500_000, 12, 500, 10),
    Shape(4_000_000, 16, 1000, 10),
]
#: Places of a fit: 1 or 2 workers of one thread; 1 or 2 threads of one process, for `UNSEEN[-1]` only.
PLACES = {"1 worker": 1, "2 workers": 2, "1 thread": 1, "2 threads": 2}
LARGE, LARGE_WORKERS = (10**9, 10**10), (8, 32, 64, 128, 256)
#: Work of a stage that all threads share, and work in one piece, beside rows and tasks.
WORK: dict[str, Callable[[Shape], tuple[float, float]]] = {
    "check and sample": lambda s: (s.n * s.d, s.p * s.d),
    "representatives": lambda s: (0, s.p**2 * s.d),
    "nearest representatives": lambda s: (s.n * s.d * (s.p**0.5 + 50), s.p**2 * s.d),
    "transfer cut": lambda s: (s.n * s.d, s.p**3),
    "discretize": lambda s: (s.n * s.k, s.k**2),
    "labels": lambda s: (s.n * s.k, 0),
}


def estimator(shape: Shape) -> Any:
    """What is fitted."""
    import daskcluster as dc

    return dc.USPEC(shape.k, n_representatives=shape.p, random_state=0)


def tasks_of(shape: Shape, threads: int) -> dict[str, float]:
    """Tasks of each stage by the plan, which counts a task a block."""
    import dask
    import dask.array as da
    from scaling import BLOCK_ROWS

    from daskcluster.runtime.groups import blocks_a_task

    with dask.config.set(scheduler="threads", num_workers=threads):
        rows = da.zeros((shape.n, shape.d), dtype=np.float32, chunks=(BLOCK_ROWS, shape.d))
        plan = estimator(shape).plan(rows)
        return {stage.name: stage.tasks / blocks_a_task(plan.n_blocks) for stage in plan.stages}


def terms(title: str, shape: Shape, threads: int, tasks: float) -> list[float]:
    """What the coefficients of a stage are multiplied with."""
    shared, single = WORK.get(title, lambda s: (0, 0))(shape)
    return [1, tasks, shape.n / threads, shared / threads, single]


class Measured(NamedTuple):
    """Seconds of the stages of a fit; "fit" is the whole one."""

    shape: Shape
    place: str
    seconds: dict[str, float]


def fitted(found: list[Measured]) -> dict[str, list[float]]:
    """Coefficients by title: least squares of the error as a share of the whole fit, not below 0."""
    from scipy.optimize import nnls

    coefficients = {}
    for title in found[0].seconds:
        if title == "fit":
            continue
        lines, sought = [], []
        for shape, place, seconds in found:
            threads = PLACES[place]
            line = terms(title, shape, threads, tasks_of(shape, threads).get(title, 0))
            lines.append(np.array(line) / seconds["fit"])
            sought.append(seconds.get(title, 0) / seconds["fit"])
        scale = np.maximum(np.abs(lines).max(axis=0), 1e-300)
        coefficients[title] = list(nnls(np.array(lines) / scale, np.array(sought))[0] / scale)
    return coefficients


def predicted(coefficients: dict[str, list[float]], shape: Shape, threads: int) -> dict[str, float]:
    """Seconds of each stage."""
    tasks = tasks_of(shape, threads)
    return {
        title: float(np.dot(each, terms(title, shape, threads, tasks.get(title, 0))))
        for title, each in coefficients.items()
    }


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


def seconds_of(shape: Shape, store: str) -> dict[str, float]:
    """Wall seconds of a fit and its stages."""
    from daskcluster.runtime.stages import Run

    seconds: dict[str, float] = defaultdict(float)
    call = Run.__call__

    def timed(run: Run, stage: Any, *results: Any) -> Any:
        start = time.perf_counter()
        try:
            return call(run, stage, *results)
        finally:
            seconds[stage.title] += time.perf_counter() - start

    Run.__call__ = timed  # type: ignore[method-assign]
    try:
        start = time.perf_counter()
        estimator(shape).fit(store)
        seconds["fit"] = time.perf_counter() - start
    finally:
        Run.__call__ = call  # type: ignore[method-assign]
    return dict(seconds)


def measure(folder: Path) -> list[Measured]:
    """All fits, those from before too."""
    import dask
    from scaling import cluster

    notes = folder / "fits.jsonl"
    lines = notes.read_text().splitlines() if notes.exists() else []
    found = [Measured(Shape(*shape), place, seconds) for shape, place, seconds in map(json.loads, lines)]
    small = Shape(20_000, 4, 200, 5)
    stores = {shape: rows_of(folder, shape) for shape in (small, *FITTED, *UNSEEN)}
    for place, threads in PLACES.items():
        workers = "worker" in place
        shapes = [*FITTED, *UNSEEN] if workers else UNSEEN[-1:]
        missing = [shape for shape in shapes if not any(each[:2] == (shape, place) for each in found)]
        if not missing:
            continue
        with ExitStack() as stack:
            if workers:
                stack.enter_context(cluster(threads))
            else:
                stack.enter_context(dask.config.set(scheduler="threads", num_workers=threads))
            first = seconds_of(small, stores[small])["fit"]  # imports, kernels
            print(f"{place}: the first fit, of {small.n:,} rows, {first:.1f} s", flush=True)
            for shape in missing:
                found.append(Measured(shape, place, seconds_of(shape, stores[shape])))
                with notes.open("a") as file:
                    file.write(json.dumps(found[-1]) + "\n")
    return found


# -- tables --------------------------------------------------------------------------------------------------------


def large(coefficients: dict[str, list[float]], n: int) -> list[list[str]]:
    """Workers, hours, the share of what W does not divide, memory of a worker, and bytes a second from the store."""
    import dask
    import dask.array as da
    from scaling import BLOCK_ROWS

    shape, lines = Shape(n, 16, 1000, 10), []
    with dask.config.set(scheduler="threads", num_workers=1):
        plan = estimator(shape).plan(da.zeros((n, 16), dtype=np.float32, chunks=(BLOCK_ROWS, 16)))
    held = sum(stage.written_bytes for stage in plan.stages)
    assert plan.demand is not None
    for workers in LARGE_WORKERS:
        seconds = predicted(coefficients, shape, workers)
        whole, alone = sum(seconds.values()), sum(predicted(coefficients, shape, 10**9).values())
        fastest = min(seconds[title] for title in ("check and sample", "nearest representatives"))
        rate = n * 16 * 4 / fastest / 1e9
        memory = plan.demand.working_bytes(1) + held / workers
        lines.append(
            [str(workers), f"{whole / 3600:.2f}", f"{alone / whole:.0%}", f"{memory / 2**30:.1f}", f"{rate:.2f}"]
        )
    return lines


def main() -> None:
    """Measure, fit, predict, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="for rows, about 1 GB, and measured seconds")
    parser.add_argument("--prepare", action="store_true", help="make the rows only")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.prepare:
        for shape in (Shape(20_000, 4, 200, 5), *FITTED, *UNSEEN):
            rows_of(arguments.folder, shape)
        return
    from uspec import table

    found = measure(arguments.folder)
    on_workers = [each for each in found if "worker" in each.place]
    coefficients = fitted([each for each in on_workers if each.shape in FITTED])
    table(
        "coefficients: seconds, ms a task, us a row, ns a unit of work, ns a unit in one piece",
        ["stage", "once", "a task", "a row", "shared work", "in one piece"],
        [
            [title, *(f"{c * scale:.3g}" for c, scale in zip(each, (1, 1e3, 1e6, 1e9, 1e9), strict=True))]
            for title, each in coefficients.items()
        ],
    )
    for name, shapes in (("fitted", FITTED), ("unseen", UNSEEN)):
        lines = []
        for shape, place, seconds in on_workers:
            if shape in shapes:
                guess = sum(predicted(coefficients, shape, PLACES[place]).values())
                ratio = guess / seconds["fit"]
                size = [f"{shape.n / 1e6:g}M x {shape.d}", str(shape.p), str(shape.k), place]
                missed = "" if 0.8 <= ratio <= 1.2 else "missed"
                lines.append([*size, f"{seconds['fit']:.2f}", f"{guess:.2f}", f"{ratio:.2f}", missed])
        columns = ["rows", "p", "k", "on", "measured, s", "predicted, s", "ratio", ""]
        table(f"{name} shapes", columns, lines)
    one = {place: seconds["fit"] for shape, place, seconds in found if shape == UNSEEN[-1]}
    table(
        f"{UNSEEN[-1].n:,} rows x {UNSEEN[-1].d} on one and two",
        ["on", "seconds", "1 worker's / it"],
        [[place, f"{each:.2f}", f"{one['1 worker'] / each:.2f}"] for place, each in one.items()],
    )
    columns = ["workers", "hours", "not divided", "memory of one, GiB", "store, GB/s"]
    for n in LARGE:
        table(f"{n:.0e} rows x 16, p = 1000, k = 10".replace("e+", "e"), columns, large(coefficients, n))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
