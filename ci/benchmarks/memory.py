"""Memory as a promise: fits on workers whose limit is 10 % above the plan, and rows beyond the memory of the machine.

    ci/benchmarks/run memory                      the shapes that users have, one cluster of two workers each
    ci/benchmarks/run memory --shape wide shards  some of them
    ci/benchmarks/run memory --beyond 40          40 GB of rows made on the fly, on threads and on workers under 2 GiB
    ci/benchmarks/run memory --beyond 40 --on workers    of these, one

A worker keeps the promise when it ends without having spilled, paused, died or been started again. The last figure is
the exit code: shapes that did not keep it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

MIB = 2**20
WORKERS, THREADS = 2, 2
LEGS = "threads", "workers"


def blobs(n: int, d: int, rows: int, dtype: Any = np.float32) -> da.Array:
    """Eight far apart clusters, made block by block from the number of the block."""
    lengths = tuple(min(rows, n - start) for start in range(0, n, rows))
    return da.map_blocks(
        _blobs,
        d=d,
        kind=np.dtype(dtype),
        dtype=dtype,
        chunks=(lengths, (d,)),
        meta=np.empty((0, 0), dtype),
    )


def _blobs(d: int, kind: Any, block_info: Any = None) -> Any:
    start, stop = block_info[None]["array-location"][0]
    rng = np.random.default_rng(start)
    X = rng.random((stop - start, d), dtype=np.float32)
    X += 10 * rng.integers(8, size=(stop - start, 1))
    return X.astype(kind)


def stored(folder: str, X: da.Array, chunks: Any, shards: Any = None, **attributes: Any) -> str:
    """The rows in a store; returns its path."""
    import zarr

    path = os.path.join(folder, "X.zarr")
    array = zarr.create_array(path, shape=X.shape, dtype=X.dtype, chunks=chunks, shards=shards, attributes=attributes)
    array[:] = X.compute(scheduler="synchronous")
    return path


def known(n: int) -> Any:
    """Classes of every hundredth row."""
    return np.where(np.arange(n) % 100, -1, np.arange(n) // 100 % 5)


def base_labels(n: int) -> da.Array:
    """Eight base clusterings into 24 clusters."""
    return (abs(blobs(n, 8, 100_000)) % 24).astype(np.int16)


def shapes() -> dict[str, Callable[[str], tuple[Any, Any, tuple[Any, ...]]]]:
    """Name -> function of a folder that gives the estimator, the rows and what else `fit` gets."""
    import daskcluster as dc

    def with_labels(n: int, d: int) -> tuple[Any, tuple[Any, ...]]:
        return blobs(n, d, 50_000), (known(n),)

    return {
        "narrow": lambda at: (dc.USPEC(8), blobs(2_000_000, 2, 500_000), ()),
        "many blocks": lambda at: (dc.USPEC(8), blobs(96 * 2**17, 4, 2**17), ()),
        "wide": lambda at: (dc.USPEC(8), stored(at, blobs(30_000, 784, 4000), (4000, 784)), ()),
        "one big chunk": lambda at: (dc.USPEC(8), stored(at, blobs(1_000_000, 16, 100_000), (1_000_000, 16)), ()),
        "shards": lambda at: (dc.USPEC(8), stored(at, blobs(2**19, 32, 2**16), (2**14, 32), (2**18, 32)), ()),
        "column chunks": lambda at: (dc.KMeans(8, max_iter=5), stored(at, blobs(2**20, 12, 2**16), (2**17, 1)), ()),
        "float16": lambda at: (dc.USPEC(8), blobs(600_000, 16, 150_000, np.float16), ()),
        "uint8, no data": lambda at: (
            dc.USPEC(8, missing="label"),
            stored(at, abs(blobs(1_000_000, 6, 200_000)).astype(np.uint8), (200_000, 6), _FillValue=255),
            (),
        ),
        "constraints": lambda at: (dc.FastCSC(5), *with_labels(400_000, 8)),
        "layers": lambda at: (dc.CSPML(5, gamma=0.01), blobs(2000, 8, 500), (known(2000),)),
        "ensemble": lambda at: (dc.USENC(8, n_base_clusterings=8), blobs(150_000, 8, 50_000), ()),
        "ensemble of k-means": lambda at: (
            dc.Ensemble(8, base=dc.KMeans(max_iter=10), n_base_clusterings=4),
            blobs(400_000, 8, 100_000),
            (),
        ),
        "base labels, SEC": lambda at: (dc.SEC(8, n_init=2, max_iter=10), base_labels(400_000), ()),
        "base labels, ISEC": lambda at: (dc.ISEC(8, n_representatives=300, max_iter=10), base_labels(250_000), ()),
        "cosine": lambda at: (dc.USPEC(8, metric="cosine"), blobs(150_000, 64, 50_000), ()),
        "NumPy": lambda at: (dc.USPEC(8), blobs(1_000_000, 16, 250_000).compute(scheduler="synchronous"), ()),
    }


# -- what workers say -------------------------------------------------------------------------------------------------


def peak_bytes() -> int:
    """Peak resident memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def _status(dask_worker: Any) -> dict[str, int]:
    metrics = getattr(dask_worker.data, "cumulative_metrics", {})
    return {"peak": peak_bytes(), "spilled": int(metrics.get(("disk-write", "bytes"), 0))}


class Watch(threading.Thread):
    """Looks at the workers while a fit runs: those that paused, and the processes that there were."""

    def __init__(self, client: Any) -> None:
        super().__init__(daemon=True)
        self._client, self._end = client, threading.Event()
        self.paused, self.seen = 0, set[str]()

    def run(self) -> None:
        while not self._end.wait(0.1):
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
            self.paused += any(worker["status"] == "paused" for worker in workers.values())
            self.seen |= workers.keys()

    def stop(self) -> None:
        self._end.set()
        self.join()


@contextlib.contextmanager
def cluster(limit: int | None, workers: int = WORKERS, threads: int = THREADS) -> Iterator[Any]:
    """Worker processes on this machine, with so many bytes of memory each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=threads,
            memory_limit=limit or 0,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as started,
        Client(started) as client,
    ):
        yield client


def fit(client: Any, model: Any, X: Any, more: tuple[Any, ...]) -> dict[str, Any]:
    """Fit, touch the labels, and say what it took."""
    import daskcluster as dc

    watch = Watch(client)
    watch.start()
    start, error = time.perf_counter(), ""
    try:
        model.set_params(random_state=0).fit(X, *more)
        labels, _ = dc.metrics.count_labels(model.labels_)  # block by block: as one array they may outgrow a worker
        assert len(labels) > 1
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    seconds = time.perf_counter() - start
    watch.stop()
    ends = client.run(_status).values()
    return {
        "seconds": seconds,
        "peak": max(end["peak"] for end in ends),
        "spilled": sum(end["spilled"] for end in ends),
        "paused": watch.paused,
        "restarts": len(watch.seen) - len(ends),
        "error": error,
    }


# -- the tables -------------------------------------------------------------------------------------------------------

COLUMNS = "{:<22}{:>9}{:>9}{:>9}{:>7}{:>9}{:>8}{:>10}{:>9}  {}"


def run_shapes(names: list[str], margin: float) -> int:
    """Print the table of shapes; the number of those that did not keep the promise."""
    every, broken = shapes(), 0
    names = names or list(every)
    heads = ("planned", "limit", "peak", "/ plan", "spilled", "paused", "restarts", "seconds", "")
    print(COLUMNS.format("MiB a worker", *heads), flush=True)
    with tempfile.TemporaryDirectory() as folder, dask.config.set({"temporary-directory": folder}):
        with cluster(None):  # a plan depends on the number of workers and threads
            made = {name: every[name](os.path.join(folder, name)) for name in names}
            plans = {name: model.plan(X) for name, (model, X, _) in made.items()}
        for name, plan in plans.items():
            planned = plan.memory.good_bytes
            with cluster(int(margin * planned)) as client:
                found = fit(client, *made.pop(name))
            broken += show(name, planned, margin, plan.peak_bytes, found)
    print(f"{len(names) - broken} of {len(names)} within the promise", flush=True)
    return broken


def show(name: str, planned: int, margin: float, peak: int, found: dict[str, Any]) -> bool:
    """Print a line; whether the promise was broken."""
    kept = not (found["error"] or found["spilled"] or found["paused"] or found["restarts"])
    print(
        COLUMNS.format(
            name,
            f"{planned / MIB:.0f}",
            f"{margin * planned / MIB:.0f}",
            f"{found['peak'] / MIB:.0f}",
            f"{found['peak'] / peak:.2f}",
            f"{found['spilled'] / MIB:.1f}",
            found["paused"],
            found["restarts"],
            f"{found['seconds']:.1f}",
            found["error"][:90] or ("" if kept else "broken"),
        ),
        flush=True,
    )
    return not kept


def run_beyond(gigabytes: float, limit: str, legs: list[str], features: int = 64) -> int:
    """Print a table of rows beyond this machine's memory, on threads and on workers."""
    n = int(gigabytes * 1e9 / (4 * features))
    X = blobs(n, features, 2**17)
    print(f"{n:,} rows x {features}, {X.nbytes / 1e9:.1f} GB of float32 made on the fly: USPEC(8)", flush=True)
    table = "{:<34}{:>9}{:>10}{:>10}{:>12}"
    print(table.format("", "seconds", "peak", "planned", "MB/s"), flush=True)
    broken, sizes = 0, set[tuple[int, ...]]()
    for leg in legs:
        with tempfile.TemporaryDirectory() as folder, dask.config.set({"temporary-directory": folder}):
            if leg == "threads":
                found, name = beyond_on_threads(X), "threads"
            else:
                found, name = beyond_on_workers(X, limit, folder), f"{WORKERS} workers of 1 thread, {limit}"
        figures = f"{found['peak'] / MIB:.0f} MiB", f"{found['planned'] / MIB:.0f} MiB"
        seconds = found["seconds"]
        print(table.format(name, f"{seconds:.0f}", *figures, f"{X.nbytes / 1e6 / seconds:.0f}"), found["error"])
        print(f"    sizes of clusters: {', '.join(f'{size:,}' for size in found['sizes'])}")
        print(f"    spilled {found['spilled']}, paused {found['paused']}, restarts {found['restarts']}", flush=True)
        broken += bool(found["error"] or found["spilled"] or found["paused"] or found["restarts"])
        sizes.add(found["sizes"])
    if len(legs) > 1:
        print(f"same sizes: {len(sizes) == 1}", flush=True)
    return broken + len(sizes) - 1


def beyond_on_threads(X: da.Array) -> dict[str, Any]:
    """What a fit on threads of this process takes."""
    import daskcluster as dc

    planned, start = dc.USPEC(8, random_state=0).plan(X).peak_bytes, time.perf_counter()
    model = dc.USPEC(8, random_state=0).fit(X)
    sizes = cluster_sizes(model)
    seconds = time.perf_counter() - start
    quiet = {"error": "", "spilled": 0, "paused": 0, "restarts": 0}
    return quiet | {"seconds": seconds, "peak": peak_bytes(), "planned": planned, "sizes": sizes}


def beyond_on_workers(X: da.Array, limit: str, folder: str) -> dict[str, Any]:
    """What a fit on workers takes that have so much memory together."""
    import daskcluster as dc

    with cluster(dask.utils.parse_bytes(limit) // WORKERS, threads=1) as client:
        # Products beyond the workers' memory go to a store, and not to the workers' disks.
        model = dc.USPEC(8, random_state=0, storage=os.path.join(folder, "run"))
        planned = model.plan(X).peak_bytes
        return fit(client, model, X, ()) | {"planned": planned, "sizes": cluster_sizes(model)}


def cluster_sizes(model: Any) -> tuple[int, ...]:
    """Rows of each cluster, counted block by block; none where the fit failed."""
    return tuple(da.bincount(model.labels_, minlength=8).compute()) if hasattr(model, "labels_") else ()


def main() -> int:
    """Run what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", nargs="+", default=[], help="some of the shapes; all by default")
    parser.add_argument("--margin", type=float, default=1.1, help="limit of a worker over what is planned")
    parser.add_argument("--beyond", type=float, metavar="GB", help="instead: so many gigabytes of rows")
    parser.add_argument("--limit", default="2 GiB", help="memory of all workers together there")
    parser.add_argument("--on", nargs="+", choices=LEGS, default=list(LEGS), help="threads, workers, or both there")
    given = parser.parse_args()
    if given.beyond:
        return run_beyond(given.beyond, given.limit, given.on)
    return run_shapes(given.shape, given.margin)


if __name__ == "__main__":
    sys.exit(main())
