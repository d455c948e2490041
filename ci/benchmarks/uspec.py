"""U-SPEC's figures beside its peers', measured in one run: time, peak memory, NMI, kernels, tasks, workers.

    ci/benchmarks/run uspec                    all parts
    ci/benchmarks/run uspec --part scale       one of: scale, quality, kernels, memory, tasks, workers
    ci/benchmarks/run uspec --rows 10000 100000 --repeat 3

Times are medians; ratios are of medians of this run. The machine should have nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
#: Rows up to which a peer is tried: above, it takes hours or all memory.
LIMITS = {"SpectralClustering": 20_000, "Genie": 1_000_000}
SETS = {"pendigits": 80.3, "usps": 63.5, "letter": 42.5, "mnist": 67.4, "covertype": 7.0}


def table(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """Print a table of text."""
    cells = [columns, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    print(f"\n{title}\n")
    for number, row in enumerate(cells):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
    sys.stdout.flush()


def measure(*arguments: Any, timeout: float = 3600) -> dict[str, float] | None:
    """Run `measure.py` in a process of its own; None when it fails or takes too long."""
    command = [sys.executable, str(HERE / "measure.py"), *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        print(f"{arguments}: more than {timeout:.0f} s", file=sys.stderr)
        return None
    if done.returncode:
        print(f"{arguments}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def stored(n_samples: int) -> Iterator[str]:
    """Circles and Gaussians (k = 11) as Zarr stores in a temporary folder."""
    from daskcluster import datasets
    from daskcluster.io import write_array

    with tempfile.TemporaryDirectory() as folder:
        X, y = datasets.make_circles_gaussians(n_samples, chunks=2**18, random_state=0)
        write_array(X, f"{folder}/X.zarr")
        write_array(y, f"{folder}/y.zarr")
        yield folder


def part_scale(rows: list[int], repeat: int) -> None:
    """Time, peak memory and NMI over n, beside the peers."""
    from measure import METHODS

    for n_samples in rows:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in METHODS}
        with stored(n_samples) as folder:
            for seed in range(repeat):  # in turn, so that a drift of the machine meets every method
                for name in METHODS:
                    if n_samples <= LIMITS.get(name, n_samples):
                        result = measure(name, folder, 11, seed)
                        found[name] += [] if result is None else [result]
        base = statistics.median([run["seconds"] for run in found["KMeans"]]) if found["KMeans"] else float("nan")
        lines = []
        for name, runs in found.items():
            if not runs:
                lines.append([name, "-", "-", "-", "-"])
                continue
            seconds = statistics.median(run["seconds"] for run in runs)
            peak = statistics.median(run["peak_mb"] for run in runs)
            nmi = statistics.mean(run["nmi"] for run in runs)
            lines.append([name, f"{seconds:.2f}", f"{seconds / base:.2f}", f"{peak:.0f}", f"{nmi:.3f}"])
        table(
            f"circles and Gaussians, {n_samples:,} x 2 float32, k = 11; {repeat} runs",
            ["method", "seconds", "/ KMeans", "peak MB", "NMI"],
            lines,
        )


def part_quality(rows: list[int], repeat: int) -> None:
    """NMI on the paper's real sets, mean of 10 seeds, beside its Table 4."""
    from sklearn.cluster import KMeans

    import daskcluster as dc

    lines = []
    for name, paper in SETS.items():
        X, y = dc.datasets.load_benchmark(name)
        k = len(np.unique(y))
        dc.USPEC(k, random_state=0).fit(X[:3000])
        scores, seconds = [], []
        for seed in range(10):
            start = time.perf_counter()
            labels = dc.USPEC(k, random_state=seed).fit(X).labels_
            seconds.append(time.perf_counter() - start)
            scores.append(100 * dc.metrics.normalized_mutual_info(y, labels))
        start = time.perf_counter()
        means = KMeans(k, n_init=1, random_state=0).fit(X)
        other = time.perf_counter() - start
        lines.append(
            [
                name,
                f"{len(X)} x {X.shape[1]}",
                f"{np.mean(scores):.1f} +- {np.std(scores):.1f}",
                f"{paper}",
                f"{100 * dc.metrics.normalized_mutual_info(y, means.labels_):.1f}",
                f"{statistics.median(seconds):.2f}",
                f"{other:.2f}",
            ]
        )
    columns = ["set", "size", "USPEC NMI %", "paper", "KMeans NMI %", "USPEC s", "KMeans s"]
    table("real sets, 10 seeds, all defaults", columns, lines)


def part_kernels(rows: list[int], repeat: int) -> None:
    """Nanoseconds a row and core of the kernels, recall, and distance from the machine's limits."""
    import daskcluster as dc
    from daskcluster.kernels.lloyd import accumulate_rows, assign_rows
    from daskcluster.pipeline.affinity import distance_sum
    from daskcluster.pipeline.cut import _small_graph_block
    from daskcluster.pipeline.neighbors import index_representatives, nearest_block, recall
    from daskcluster.runtime.threads import one_blas_thread

    with one_blas_thread():
        bandwidth, flops = _machine_limits()
        print(f"\none core: copies {bandwidth / 1e9:.1f} GB/s, float32 matrix product {flops / 1e9:.0f} GFlop/s")
        lines = []
        for n_features in (2, 3, 16, 54, 784):
            n_rows = 131072 if n_features < 100 else 8192
            rng = np.random.default_rng(0)
            centers = 4 * rng.normal(size=(12, n_features))
            X = (centers[rng.integers(0, 12, n_rows)] + rng.normal(size=(n_rows, n_features))).astype(np.float32)
            model = dc.USPEC(12, random_state=0).fit(X)
            _, bound = model._block_function("labels", X.dtype)
            index, points = bound["index"].compute(), bound["points"]
            prepared = index.form.prepare(X)
            exact = index_representatives(model.representatives_, index.form, X.dtype, 5, neighborhood=999)
            found, truth = index.search(prepared, 5)[0], exact.search(prepared[:4096], 5)[0]
            edges = nearest_block(X, index, 5)
            embedded, _ = points(edges)
            labels = assign_rows(embedded, model.cluster_centers_)
            k, q = model.cluster_centers_.shape

            def lloyd(embedded: Any = embedded, labels: Any = labels, model: Any = model) -> None:
                k, q = model.cluster_centers_.shape
                accumulate_rows(
                    embedded,
                    np.empty(0),
                    labels,
                    model.cluster_centers_,
                    np.zeros((k, q)),
                    np.zeros(k),
                    np.full(k, 10**9),
                )

            # Work that no algorithm of this kind avoids: one look at the candidates, or at the bytes.
            looked = 31 + 32 + model.neighborhood_size_ + 1 if not index.exact else 1000
            cases: list[tuple[str, Callable[[], Any], float, float]] = [
                ("nearest (search)", lambda i=index, p=prepared: i.search(p, 5), 3 * looked * n_features, 40),
                ("nearest (exact)", lambda i=exact, p=prepared[:4096]: i.search(p, 5), 3 * 1000 * n_features, 40),
                ("distance sum", lambda e=edges: distance_sum(e), 5, 40),
                ("small graph", lambda e=edges, p=points: _small_graph_block(e, p.edges_of, 1000), 75, 40),
                ("lift", lambda e=edges, p=points: p(e), 2 * 5 * q + 3 * q, 40 + 4 * q),
                ("assign", lambda e=embedded, m=model: assign_rows(e, m.cluster_centers_), 3 * k * q, 4 * q),
                ("accumulate", lloyd, 4 * q, 4 * q + 4),
            ]
            for name, function, operations, n_bytes in cases:
                size = 4096 if "exact" in name else n_rows
                nanoseconds = _nanoseconds(function, size, repeat)
                limit = 1e9 * max(operations / flops, n_bytes / bandwidth)
                note = f"{100 * recall(found[:4096], truth):.1f} %" if name == "nearest (search)" else ""
                lines.append(
                    [n_features, name, f"{nanoseconds:.0f}", f"{limit:.1f}", f"{nanoseconds / limit:.1f}", note]
                )
    table(
        "kernels, p = 1000, K = 5, k = 12, one core; the limit is the slower of arithmetic and memory",
        ["d", "kernel", "ns a row", "limit", "x limit", "recall"],
        lines,
    )


def _nanoseconds(function: Callable[[], Any], n_rows: int, repeat: int) -> float:
    function()
    seconds = []
    for _ in range(max(5, repeat)):
        start = time.thread_time()
        function()
        seconds.append(time.thread_time() - start)
    return 1e9 * statistics.median(seconds) / n_rows


def _machine_limits() -> tuple[float, float]:
    """Bytes a second of a copy and operations a second of a float32 matrix product, on one core."""
    source, target = np.ones(2**25), np.empty(2**25)
    a = np.ones((1024, 1024), np.float32)
    copies, products = [], []
    for _ in range(7):
        start = time.perf_counter()
        np.copyto(target, source)
        copies.append(2 * source.nbytes / (time.perf_counter() - start))
        start = time.perf_counter()
        a @ a
        products.append(2 * 1024**3 / (time.perf_counter() - start))
    return max(copies), max(products)


def part_memory(rows: list[int], repeat: int) -> None:
    """Peak memory for 5M and 40M rows of 16 features, and the forecast."""
    lines = []
    for n_samples in (5_000_000, 40_000_000):
        result = measure("memory", n_samples)
        if result is not None:
            peak, seconds = f"{result['peak_mb']:.0f}", f"{result['seconds']:.1f}"
            lines.append([f"{n_samples:,}", peak, f"{result['plan_mb']:.0f}", seconds])
    table("16 features, local threads, defaults", ["rows", "peak MB", "forecast MB", "seconds"], lines)


def part_tasks(rows: list[int], repeat: int) -> None:
    """Tasks a row block in a whole fit, and the time to build the graph of 100,000 blocks."""
    import dask
    import dask.array as da
    from dask.callbacks import Callback

    import daskcluster as dc
    from daskcluster.io.inputs import check_rows

    count = [0]
    with stored(10_000_000) as folder, Callback(pretask=lambda *_: count.__setitem__(0, count[0] + 1)):
        model = dc.USPEC(11, random_state=0).fit(f"{folder}/X.zarr")
        n_blocks = model.labels_.numblocks[0]
        passes = model.n_iter_
    start = time.perf_counter()
    n_rows = 100_000 * 2**17
    X = da.zeros((n_rows, 2), chunks=(2**17, 2), dtype=np.float32)
    labels = model.predict(X)
    built = time.perf_counter() - start
    start = time.perf_counter()
    optimized = dask.optimize(labels)[0]
    n_tasks = len(dict(optimized.__dask_graph__()))
    lowered = time.perf_counter() - start
    table(
        "task graphs",
        ["what", "figure"],
        [
            ["tasks a row block, 10M x 2 from Zarr", f"{count[0] / n_blocks:.1f} ({passes} Lloyd passes)"],
            ["row blocks of 13.1e9 rows", f"{check_rows(X).blocks.numblocks[0]:,}"],
            ["seconds to build the labels of 100,000 blocks", f"{built:.1f}"],
            ["seconds to optimize and materialise them", f"{lowered:.1f} ({n_tasks:,} tasks)"],
        ],
    )


def part_workers(rows: list[int], repeat: int) -> None:
    """Two `dask worker` of one thread against one, and against two threads of one process."""
    import dask
    from predict import PLACES, Shape, estimator, rows_of
    from scaling import cluster

    with tempfile.TemporaryDirectory() as folder:
        for n_features in (16, 2):
            warm, shape = (Shape(n, n_features, 1000, 10) for n in (300_000, 10_000_000))
            seconds: dict[str, list[float]] = {place: [] for place in PLACES}
            for _ in range(repeat):
                for place, n in PLACES.items():
                    on_threads = dask.config.set(scheduler="threads", num_workers=n)
                    with cluster(n) if "worker" in place else on_threads:
                        for each in (warm, warm, shape):
                            store = rows_of(Path(folder), each)
                            start = time.perf_counter()
                            estimator(each).fit(store)
                        seconds[place].append(time.perf_counter() - start)
            found = {place: statistics.median(times) for place, times in seconds.items()}
            lines = [[place, f"{time:.1f}", f"{found['1 worker'] / time:.2f}"] for place, time in found.items()]
            table(f"{shape.n:,} x {n_features} from Zarr", ["on", "seconds", "1 worker / that"], lines)
            print(f"2 workers / 2 threads: {found['2 workers'] / found['2 threads']:.2f}")


PARTS: dict[str, Callable[[list[int], int], None]] = {
    "scale": part_scale,
    "quality": part_quality,
    "kernels": part_kernels,
    "memory": part_memory,
    "tasks": part_tasks,
    "workers": part_workers,
}


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part; may be given several times")
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")
    for name in arguments.part or PARTS:
        PARTS[name](arguments.rows, arguments.repeat)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
