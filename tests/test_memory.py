"""Peak memory: measured, under the forecast, and the same for any number of rows.

This file is also the program that is measured: it runs as a script, compiles the kernels, and forks a child for every
case, so that a peak is that of one fit and neither of the compiler nor of the process that started it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster as dc
from tests.slow import slowly

MIB = 2**20
#: What the tasks of two threads differ by from run to run.
SLACK = 12 * MIB

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="measures forked processes")


def generate(n_samples: int, n_features: int) -> da.Array:
    """Five far apart clusters, generated block by block, always the same."""
    rows = max(1, 4 * MIB // (4 * n_features))
    lengths = tuple(min(rows, n_samples - start) for start in range(0, n_samples, rows))
    return da.map_blocks(
        _generate_block,
        n_features,
        chunks=(lengths, (n_features,)),
        dtype=np.float32,
        meta=np.empty((0, 0), np.float32),
    )


def _generate_block(n_features: int, block_info: Any = None) -> np.ndarray:
    start, stop = block_info[None]["array-location"][0]
    rng = np.random.default_rng(start)
    X = rng.random((stop - start, n_features), dtype=np.float32)
    X += 10 * rng.integers(5, size=(stop - start, 1))
    return X


def generate_labels(n_samples: int) -> da.Array:
    """Eight base clusterings into 12 clusters each."""
    rows = generate(n_samples, 8)
    return (rows % 12).astype(np.int16)


#: Form -> (chunks, shards) of a store of so many rows and columns.
STORES: dict[str, Any] = {
    "one chunk": lambda n, d: ((n, d), None),
    "one shard": lambda n, d: ((-(-n // 16), d), (-(-n // 16) * 16, d)),
    "columns": lambda n, d: ((n, 1), None),
}


def stacked_raster(n_samples: int) -> Any:
    """Pixels (n, 6) of a raster, band by band in chunks of some of its rows and columns, as satellites' stores are."""
    xarray: Any = importlib.import_module("xarray")

    lengths = (min(1000, n_samples // 4000),) * -(-n_samples // 4_000_000)
    raster = da.map_blocks(_generate_band, chunks=((1,) * 6, lengths, (1000,) * 4), dtype=np.float32)
    pixels = xarray.DataArray(raster, dims=("band", "y", "x")).stack(pixel=("y", "x"))
    return pixels.transpose("pixel", "band")


def _generate_band(block_info: Any = None) -> np.ndarray:
    (first, last), *others = block_info[None]["array-location"]
    rng = np.random.default_rng(first)
    return rng.random((last - first, *(stop - start for start, stop in others)), dtype=np.float32)


def rows_of(case: dict[str, Any], folder: str) -> Any:
    """The rows of a case in the form that it asks for."""
    if case.get("form") == "raster":
        return stacked_raster(max(case["n"], 8000))
    X = generate_labels(case["n"]) if case.get("labels") else generate(case["n"], case["d"])
    X = X.astype(case.get("dtype", X.dtype))
    form = case.get("form", "dask")
    if form == "dask":
        return X
    if form == "numpy":
        rows = np.empty(X.shape, X.dtype)
        with dask.config.set(scheduler="synchronous"):
            X.store(rows)
        return rows
    chunks, shards = STORES[form](*X.shape)
    path = os.path.join(folder, f"{form}-{X.shape}-{X.dtype}.zarr")
    if not os.path.exists(path):  # written by a child of its own, whose memory nobody counts
        child = os.fork()
        if child == 0:
            with dask.config.set(scheduler="synchronous"):
                zarr.create_array(path, data=X.compute(), chunks=chunks, shards=shards)
            os._exit(0)
        os.waitpid(child, 0)
    return path


def estimator(case: dict[str, Any], **more: Any) -> Any:
    """The estimator of a case."""
    parameters = {"n_clusters": 5, "random_state": 0, **case.get("parameters", {}), **more}
    for name in ("base", "consensus"):
        if name in parameters:
            parameters[name] = getattr(dc, parameters[name])()
    return getattr(dc, case["class"])(**parameters)


def partial_labels(case: dict[str, Any], n_samples: int) -> tuple[Any, ...]:
    """Known classes of every tenth row, for an estimator that takes constraints."""
    return (np.where(np.arange(n_samples) % 10, -1, np.arange(n_samples) // 10 % 5),) if case.get("known") else ()


def peak_bytes() -> int:
    """Peak memory of this process; what `getrusage` says of a child starts at its parent's peak."""
    status = Path("/proc/self/status")
    if status.exists():
        found = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(found.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def fit(case: dict[str, Any], folder: str) -> dict[str, Any]:
    """Fit one case and report its peak."""
    X = rows_of(case, folder)
    known = partial_labels(case, case["n"])
    parameters: dict[str, Any] = {}
    if case.get("storage"):
        parameters["storage"] = os.path.join(folder, f"run{os.getpid()}")
    with dask.config.set(
        {"num_workers": 2, "daskcluster.memory-budget": case["budget"], "temporary-directory": folder}
    ):
        model = estimator(case, **parameters)
        plan = model.plan(X)
        model.fit(X, *known)
        labels = np.asarray(model.labels_[:: max(1, case["n"] // 1000)])
    return {
        "peak": peak_bytes(),
        "plan": plan.peak_bytes,
        "held": plan.held,
        "blocks": plan.n_blocks,
        "clusters": len(np.unique(labels)),
    }


def one_of_each(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cases that need other kernels than those before them."""
    kinds = ("class", "parameters", "dtype", "labels", "known", "d")
    return list({json.dumps([case.get(kind) for kind in kinds]): case for case in cases}.values())


def main(cases: list[dict[str, Any]], folder: str) -> None:
    """Measure every case in a child; write the reports."""
    with dask.config.set(scheduler="synchronous"):  # no threads before the forks
        for case in one_of_each(cases):
            few = {"max_iter": 1} if case["class"] not in ("Ensemble", "ISEC", "EAC") else {}
            X = (
                generate(600, 6)
                if case.get("form") == "raster"
                else rows_of({**case, "n": 600, "form": "dask"}, folder)
            )
            estimator(case, **few).fit(X, *partial_labels(case, 600))
    reports = []
    for case in cases:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            with os.fdopen(write, "w") as stream:
                json.dump(fit(case, folder), stream)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as stream:
            text = stream.read()
        os.waitpid(child, 0)
        reports.append(json.loads(text) if text else None)
    sys.stdout.write(json.dumps(reports))


def measure(cases: dict[str, dict[str, Any]], folder: Path) -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, __file__, json.dumps(list(cases.values())), str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr
    reports = dict(zip(cases, json.loads(done.stdout), strict=True))
    assert None not in reports.values(), done.stderr
    return reports


SMALL = {"n": 130_000, "d": 64, "budget": "1 MiB"}
USPEC = {"class": "USPEC", "parameters": {"n_representatives": 200}}
KMEANS = {"class": "KMeans", "parameters": {"max_iter": 2, "tol": 0}}

CASES: dict[str, dict[str, Any]] = {
    "USPEC": SMALL | USPEC,
    "USPEC, four times the rows": SMALL | USPEC | {"n": 520_000},
    "USPEC in memory": SMALL | USPEC | {"budget": "1 GiB"},
    "USPEC in a named store": SMALL | USPEC | {"storage": True},
    "USPEC, NumPy": SMALL | USPEC | {"form": "numpy"},
    "USPEC in the plane": {"n": 300_000, "d": 2, "budget": "1 MiB", "class": "USPEC"},
    "USPEC, many representatives": {"n": 30_000, "d": 3, "budget": "1 MiB", "class": "USPEC"}
    | {"parameters": {"n_representatives": 2000, "candidate_factor": 4}},
    "USPEC, options": SMALL
    | {"class": "USPEC", "dtype": "f8"}
    | {
        "parameters": {"selection": "kmeans", "neighbors": "exact", "metric": "cosine", "n_representatives": 50}
        | {"max_iter": 3}
    }
    | {"n": 60_000},
    "KMeans": SMALL | KMEANS,
    "KMeans, four times the rows": SMALL | KMEANS | {"n": 520_000},
    "KMeans ||": SMALL | {"n": 60_000, "class": "KMeans", "parameters": {"max_iter": 1, "init": "k-means||"}},
}

#: Every estimator, on rows (or labels) of some 30 MB.
ROWS = {"n": 500_000, "d": 16, "budget": "128 MiB"}
LABELS = {"n": 1_000_000, "d": 8, "labels": True, "budget": "128 MiB"}
EVERY: dict[str, dict[str, Any]] = {
    "USPEC": ROWS | USPEC,
    "KMeans": ROWS | KMEANS,
    "FastCSC": ROWS | {"class": "FastCSC", "known": True, "parameters": {"n_representatives": 200}},
    "FastCSPML": ROWS | {"class": "FastCSPML", "parameters": {"max_iter": 5, "gamma": 0.01}},
    "CSPML": ROWS | {"n": 1500, "class": "CSPML", "known": True, "parameters": {"max_iter": 5}},
    "USENC": ROWS | {"class": "USENC", "parameters": {"n_base_clusterings": 3, "n_representatives": 200}},
    "Ensemble": ROWS | {"class": "Ensemble", "parameters": {"base": "KMeans", "n_base_clusterings": 2}},
    "BipartiteCut": LABELS | {"class": "BipartiteCut"},
    "SEC": LABELS | {"class": "SEC", "parameters": {"n_init": 2, "max_iter": 3}},
    "SECRP": LABELS | {"class": "SEC", "parameters": {"n_components": 10, "n_init": 2, "max_iter": 3}},
    "KCC": LABELS | {"class": "KCC", "parameters": {"n_init": 2, "max_iter": 3}},
    "ECPCS": LABELS | {"class": "ECPCS"},
    "EAC": LABELS | {"class": "EAC", "parameters": {"max_distinct": 4000}},
    "PTGP": LABELS | {"class": "PTGP", "parameters": {"max_distinct": 1000}},
    "ISEC": LABELS | {"class": "ISEC", "parameters": {"n_representatives": 200, "max_iter": 5}},
}
for _name, _case in EVERY.items():
    CASES |= {f"{_name}: {form}": _case | {"form": form} for form in ("numpy", "one chunk")}
for _name in ("USPEC", "KMeans", "SEC"):
    CASES |= {f"{_name}: {form}": EVERY[_name] | {"form": form} for form in ("one shard", "columns")}
if importlib.util.find_spec("xarray") is not None:
    CASES |= {"KMeans: raster": KMEANS | {"n": 8_000_000, "budget": "128 MiB", "form": "raster"}}

#: Estimators with every kind of stage, each in one form; the others, and the other forms, are slow tests.
_FAST = [
    "USPEC",
    "USPEC in memory",
    "USPEC in a named store",
    "KMeans",
    "KMeans, four times the rows",
    "USPEC: one shard",
    "FastCSC: one chunk",
    "USENC: numpy",
    "SEC: columns",
    "KMeans: raster",
    "EAC: one chunk",
]
FAST = [case for case in CASES if case in _FAST]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, run_slow: bool) -> dict[str, dict[str, Any]]:
    """The measured cases."""
    return measure(CASES if run_slow else {case: CASES[case] for case in FAST}, tmp_path_factory.mktemp("scratch"))


@pytest.mark.parametrize("case", [pytest.param(case, marks=[] if case in FAST else pytest.mark.slow) for case in CASES])
def test_peak_is_below_the_forecast(case, reports):
    report = reports[case]
    assert report["peak"] <= report["plan"]
    assert report["plan"] <= 4 * report["peak"], "the forecast says something"
    assert report["clusters"] >= 2


def test_the_forecast_says_where_products_are_held(reports):
    held = {case: report["held"] for case, report in reports.items() if case.startswith("USPEC") and ":" not in case}
    special = {"USPEC in memory": "memory", "USPEC in a named store": "named store"}
    assert held == {case: special.get(case, "scratch store") for case in held}


@pytest.mark.parametrize("name", ["KMeans", *slowly("USPEC")])
def test_peak_does_not_grow_with_the_rows(name, reports):
    few, many = reports[name], reports[f"{name}, four times the rows"]
    assert (few["blocks"], many["blocks"]) == (4, 16)
    assert many["peak"] <= 1.1 * few["peak"] + SLACK
    assert many["plan"] <= 1.1 * few["plan"]


@pytest.mark.slow
def test_peak_of_five_and_of_forty_million_rows(tmp_path):
    case = {"d": 16, "budget": "128 MiB", "class": "USPEC"}
    reports = measure({"5M": {**case, "n": 5_000_000}, "40M": {**case, "n": 40_000_000}}, tmp_path)
    assert reports["40M"]["peak"] <= 1.1 * reports["5M"]["peak"]
    assert reports["40M"]["peak"] <= 1.2e9
    for report in reports.values():
        assert report["peak"] <= report["plan"]
        assert report["held"] == "scratch store"


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
