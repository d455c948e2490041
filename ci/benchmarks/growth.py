"""How time and memory of fits grow with n, d, p, K, k and m: exponents fitted from runs.

    ci/benchmarks/run growth                 the table of docs/pipeline.md
    ci/benchmarks/run growth --repeat 3

Each run is a process of its own, on one thread; one size is varied and the others stay at their base. The exponent of a
stage is the slope of a line through logarithms: doubling the size multiplies the seconds by 2 to that power. A stage
that takes less than `LEAST_SECONDS` in the largest run has none.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
BASE = {"n": 400_000, "d": 8, "p": 1000, "K": 5, "k": 40, "m": 0}
VARIED = {
    "n": (200_000, 400_000, 800_000, 1_600_000),
    "d": (4, 8, 16, 32),
    "p": (1000, 2000, 4000, 6000),
    "K": (4, 8, 16),
    "k": (40, 80, 160, 320),
    "m": (5, 10, 20, 40),
}
#: The ensemble costs a multiple of one fit, so it is smaller.
ENSEMBLE = {"n": 100_000, "k": 10}
LEAST_SECONDS = 0.05


def blobs(n: int, d: int, k: int) -> Any:
    """Rows around k centres, float32."""
    rng = np.random.default_rng(0)
    centers = rng.uniform(-10, 10, (k, d)).astype(np.float32)
    return centers[rng.integers(0, k, n)] + rng.standard_normal((n, d), dtype=np.float32)


def one(sizes: dict[str, int]) -> dict[str, float]:
    """CPU seconds of each stage of a fit, and megabytes above those of the process before it."""
    import dask
    from measure import peak_megabytes

    import daskcluster as dc
    from daskcluster.runtime.stages import Run

    seconds: dict[str, float] = {}
    call = Run.__call__

    def timed(run: Run, stage: Any, *results: Any) -> Any:
        start = time.process_time()
        try:
            return call(run, stage, *results)
        finally:
            seconds[stage.title] = time.process_time() - start

    parameters = {"n_representatives": sizes["p"], "n_neighbors": sizes["K"], "random_state": 0}
    kind, more = (dc.USENC, {"n_base_clusterings": sizes["m"]}) if sizes["m"] else (dc.USPEC, {})
    with dask.config.set(scheduler="synchronous"):
        kind(40, **{**parameters, **more, "n_representatives": 2200}).fit(blobs(20_000, sizes["d"], 40))  # compiled
        X = blobs(sizes["n"], sizes["d"], sizes["k"])
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten (Linux)
        before = peak_megabytes()
        Run.__call__ = timed  # type: ignore[method-assign]
        start = time.process_time()
        model = kind(sizes["k"], **parameters, **more).fit(X)
        seconds["whole fit"] = time.process_time() - start
    return {**seconds, "peak MB": peak_megabytes() - before, "plan MB": model.plan(X).peak_bytes / 2**20}


def runs(sizes: dict[str, int], repeat: int) -> dict[str, float]:
    """Medians of several processes."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--one", json.dumps(sizes)]
    found = []
    for _ in range(repeat):
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def exponent(values: tuple[int, ...], found: list[float], least: float) -> str:
    """Slope of the logarithms, as text."""
    if max(found) < least:
        return "-"
    return f"{np.polyfit(np.log(values), np.log(np.maximum(found, least / 10)), 1)[0]:.1f}"


def main() -> None:
    """Run what is asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(json.loads(arguments.one))))
        return
    from uspec import table

    base = runs(BASE, arguments.repeat)
    columns: dict[str, dict[str, str]] = {}
    for size, values in VARIED.items():
        start = {**BASE, **(ENSEMBLE if size == "m" else {})}
        found = [runs({**start, size: value}, arguments.repeat) for value in values]
        for value, each in zip(values, found, strict=True):
            print(f"{size} = {value}:", {name: round(number, 2) for name, number in each.items()}, flush=True)
        names = found[0]
        least = {name: 20.0 if name.endswith("MB") else LEAST_SECONDS for name in names}
        columns[size] = {name: exponent(values, [each[name] for each in found], least[name]) for name in names}
    names = list(dict.fromkeys(name for column in columns.values() for name in column if name != "plan MB"))
    rows = [
        [name, f"{base[name]:.2f}" if name in base else "", *(columns[size].get(name, "") for size in VARIED)]
        for name in names
    ]
    at = ", ".join(f"{name} = {value:,}" for name, value in BASE.items() if value)
    table(f"exponents; the first column at {at}", ["stage", "seconds", *VARIED], rows)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
