"""One measurement in a process of its own: wall seconds and peak memory, printed as JSON.

    python ci/benchmarks/measure.py NAME [ARGUMENT ...]

The other programs of this folder call it, so that a method's memory is its own and a peer that fails ends nothing else.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: Rows that a peer which takes blocks is given at a time.
BLOCK_ROWS = 2**18


def peak_megabytes() -> float:
    """Peak resident memory of this process. `ru_maxrss` would inherit the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _score(store: str, labels: Any) -> float:
    import daskcluster as dc

    return float(dc.metrics.normalized_mutual_info(f"{store}/y.zarr", labels))


def _uspec(store: str, k: int, seed: int, **parameters: Any) -> Any:
    import daskcluster as dc

    warm = np.random.default_rng(0).random((3000, 2), dtype=np.float32)
    dc.USPEC(k, n_representatives=200, random_state=0).fit(warm)  # compiled kernels are read from their cache
    start = time.perf_counter()
    model = dc.USPEC(k, random_state=seed, **parameters).fit(f"{store}/X.zarr")
    target = f"{store}/labels-{os.getpid()}.zarr"
    dc.io.write_array(model.labels_, target)
    seconds = time.perf_counter() - start
    return seconds, target


def uspec(store: str, k: int, seed: int) -> Any:
    """USPEC from Zarr, labels to Zarr."""
    return _uspec(store, k, seed)


def _in_memory(store: str) -> Any:
    import zarr

    return zarr.open_array(f"{store}/X.zarr", mode="r")[:]


def sklearn_kmeans(store: str, k: int, seed: int) -> Any:
    """scikit-learn KMeans, n_init=1, on the array in memory."""
    from sklearn.cluster import KMeans

    X = _in_memory(store)
    start = time.perf_counter()
    labels = KMeans(k, n_init=1, random_state=seed).fit(X).labels_
    return time.perf_counter() - start, labels


def sklearn_minibatch(store: str, k: int, seed: int) -> Any:
    """scikit-learn MiniBatchKMeans on the array in memory."""
    from sklearn.cluster import MiniBatchKMeans

    X = _in_memory(store)
    start = time.perf_counter()
    labels = MiniBatchKMeans(k, n_init=1, random_state=seed).fit(X).labels_
    return time.perf_counter() - start, labels


def sklearn_spectral(store: str, k: int, seed: int) -> Any:
    """scikit-learn SpectralClustering, nearest_neighbors."""
    import warnings

    from sklearn.cluster import SpectralClustering

    warnings.filterwarnings("ignore", message="Graph is not fully connected")
    X = _in_memory(store)
    start = time.perf_counter()
    labels = SpectralClustering(k, affinity="nearest_neighbors", random_state=seed, n_jobs=-1).fit(X).labels_
    return time.perf_counter() - start, labels


def genie(store: str, k: int, seed: int) -> Any:
    """Genieclust's Genie."""
    import genieclust

    X = _in_memory(store)
    start = time.perf_counter()
    labels = genieclust.Genie(n_clusters=k).fit_predict(X)
    return time.perf_counter() - start, labels


def betula(store: str, k: int, seed: int) -> Any:
    """betula-cluster's spectral head on its micro-clusters, block by block from Zarr."""
    import betula_cluster
    import zarr

    X = zarr.open_array(f"{store}/X.zarr", mode="r")
    blocks = [slice(start, start + BLOCK_ROWS) for start in range(0, X.shape[0], BLOCK_ROWS)]
    start = time.perf_counter()
    model = betula_cluster.Betula(n_clusters=k, method="spectral", seed=seed)
    for block in blocks:
        model.partial_fit(X[block])
    model.partial_fit()
    labels = np.concatenate([model.predict(X[block]) for block in blocks])
    return time.perf_counter() - start, labels


def dask_ml_kmeans(store: str, k: int, seed: int) -> Any:
    """dask-ml KMeans on the same store."""
    import dask.array as da
    from dask_ml.cluster import KMeans

    X = da.from_zarr(f"{store}/X.zarr")
    start = time.perf_counter()
    labels = KMeans(k, random_state=seed).fit(X).labels_.compute()
    return time.perf_counter() - start, labels


METHODS: dict[str, Callable[[str, int, int], Any]] = {
    "USPEC": uspec,
    "KMeans": sklearn_kmeans,
    "MiniBatchKMeans": sklearn_minibatch,
    "SpectralClustering": sklearn_spectral,
    "Genie": genie,
    "Betula": betula,
    "dask-ml KMeans": dask_ml_kmeans,
}


def memory(n_samples: int) -> Any:
    """USPEC on lazily made rows of 16 features."""
    import dask.array as da

    import daskcluster as dc

    chunk = 200_000
    chunks = (chunk,) * (n_samples // chunk) + ((n_samples % chunk,) if n_samples % chunk else ())
    meta = np.empty((0, 0), np.float32)
    X = da.map_blocks(_blobs, chunks=(chunks, (16,)), sizes=chunks, dtype=np.float32, meta=meta)
    model = dc.USPEC(12, random_state=0)
    plan = model.plan(X)
    start = time.perf_counter()
    labels = model.fit(X).labels_
    int(labels.max().compute())
    return time.perf_counter() - start, {"plan_mb": plan.peak_bytes / 2**20}


def _blobs(sizes: tuple[int, ...], block_id: tuple[int, int]) -> Any:
    rng = np.random.default_rng([7, block_id[0]])
    centers = np.random.default_rng(1).normal(size=(12, 16)).astype(np.float32) * 4
    n_rows = sizes[block_id[0]]
    return centers[rng.integers(0, 12, n_rows)] + rng.standard_normal((n_rows, 16), dtype=np.float32)


def main() -> None:
    """Run the measurement that the command line names."""
    name = sys.argv[1]
    if name == "memory":
        seconds, extra = memory(int(sys.argv[2]))
        result = {"seconds": seconds, "peak_mb": peak_megabytes(), **extra}
    else:
        store, k, seed = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
        seconds, labels = METHODS[name](store, k, seed)
        peak = peak_megabytes()
        result = {"seconds": seconds, "peak_mb": peak, "nmi": _score(store, labels)}
        if isinstance(labels, str):
            import shutil

            shutil.rmtree(labels)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
