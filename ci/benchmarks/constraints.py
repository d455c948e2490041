"""Constrained methods: quality over constraints, few of them above all, and cost.

    ci/benchmarks/run constraints                     all parts
    ci/benchmarks/run constraints --part fastcsc      one of: fastcsc, few, ensembles, layers, cost, memory
    ci/benchmarks/run constraints --part few --draws 5

The papers' tables and figures themselves are run by ci/reproduce.

Quality is the mean over draws of labelled rows; times are of this run, and want a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: Set -> the least NMI at 500 labelled rows.
FASTCSC_SETS = {"letter": 0.50, "mnist": 0.66, "covertype": 0.14}
FEW_SETS = (
    "pendigits",
    "usps",
    "letter",
    "mnist",
    "covertype",
    "make_two_bananas",
    "make_smiling_face",
    "make_concentric_circles",
    "make_circles_gaussians",
    "make_flower",
)
LAYER_SETS = ("iris", "wine", "wine, standardized", "glass", "seeds", "ionosphere", "breast_w")
LAYER_LABELLED = (9, 30, 75, 120, 165)
FEW_LABELLED = (0, 1, 2, 5, 20, 80)
FEW_ROWS = 20_000
LABELLED = (0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000)
#: FAST-CSP-ML's landmarks on the small sets; the paper does not give them.
SMALL_LANDMARKS = 60


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


def labelled(y: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Partial labels of so many random rows."""
    known = np.full(len(y), -1)
    rows = rng.choice(len(y), count, replace=False)
    known[rows] = y[rows]
    return known


def scores(y: np.ndarray, labels: Any) -> tuple[float, float]:
    """Rand index and NMI."""
    import daskcluster as dc

    counts = dc.metrics.contingency_matrix(y, labels)
    return dc.metrics.external.rand_index_from_table(counts), dc.metrics.external.normalized_mutual_info_from_table(
        counts
    )


def fastcsc(draws: int, sets: list[str], counts: list[int]) -> None:
    """NMI and purity over the number of labelled rows; 0 is LSC-R's level."""
    import daskcluster as dc

    for name in sets:
        least = FASTCSC_SETS[name]
        X, y = dc.datasets.load_benchmark(name)
        rows = []
        for count in counts:
            nmi, purity, seconds = [], [], []
            for seed in range(draws):
                known = labelled(y, count, np.random.default_rng(seed)) if count else None
                start = time.perf_counter()
                labels = dc.FastCSC(int(y.max()) + 1, random_state=seed).fit(X, known).labels_
                seconds.append(time.perf_counter() - start)
                nmi.append(dc.metrics.normalized_mutual_info(y, labels))
                purity.append(dc.metrics.purity(y, labels))
            rows.append(
                [
                    count or "0 (LSC-R)",
                    f"{np.mean(nmi):.3f} +- {np.std(nmi):.3f}",
                    f"{np.mean(purity):.3f}",
                    f"{statistics.median(seconds):.2f}",
                    f"at least {least:.2f}" if count == 500 else "",
                ]
            )
        columns = ["labelled rows", "NMI", "CA (purity)", "seconds", "wanted"]
        table(f"FastCSC on {name}: p = 500, r = 3, alpha = 5, {draws} draws", columns, rows)


def few(draws: int) -> None:
    """NMI of FastCSC over labels a class, few of them above all; * marks harm beyond the standard error."""
    import daskcluster as dc

    rows = []
    for name in FEW_SETS:
        found: dict[int, list[float]] = {count: [] for count in FEW_LABELLED}
        for seed in range(draws):
            X, y = _few_rows(name, seed)
            k = int(y.max()) + 1
            for count in FEW_LABELLED:
                known = np.full(len(y), -1)
                rng = np.random.default_rng([seed, count])
                for c in range(k):
                    known[rng.permutation(np.flatnonzero(y == c))[:count]] = c
                model = dc.FastCSC(k, random_state=seed).fit(X, known if count else None)
                found[count].append(100 * dc.metrics.normalized_mutual_info(y, model.labels_))
        error = np.std(found[0]) / np.sqrt(draws)
        cells = []
        for values in found.values():
            harm = "*" if np.mean(values) < np.mean(found[0]) - error else ""
            cells.append(f"{np.mean(values):.1f} +- {np.std(values) / np.sqrt(draws):.1f}{harm}")
        rows.append([name.removeprefix("make_"), *cells])
    title = f"NMI of FastCSC over labels a class, mean and standard error of {draws} draws (* harm beyond the error)"
    table(title, ["set", *map(str, FEW_LABELLED)], rows)


def _few_rows(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a generator, or of a real set, of which at most `FEW_ROWS` are drawn."""
    import daskcluster as dc

    if name.startswith("make_"):
        X, y = getattr(dc.datasets, name)(10_000, chunks=10_000, random_state=seed)
        return X.compute(), y.compute()
    X, y = dc.datasets.load_benchmark(name)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(y))[:FEW_ROWS])
    return np.asarray(X)[chosen], np.asarray(y)[chosen].astype(int)


def ensembles(draws: int, sets: list[str], m: int = 50) -> None:
    """CCSS-SE and CCSS-SER (rd = 40) beside their base clusterings and one FastCSC, as Fig. 3 of the paper."""
    import daskcluster as dc

    rows = []
    nmi = dc.metrics.normalized_mutual_info
    for name in sets:
        X, y = dc.datasets.load_benchmark(name)
        k = int(y.max()) + 1
        for count in (100, 500, 1000):
            found: dict[str, list[float]] = {"one": [], "bases": [], "SE": [], "SER": [], "seconds": []}
            for seed in range(draws):
                known = labelled(y, count, np.random.default_rng(seed))
                found["one"].append(nmi(y, dc.FastCSC(k, random_state=seed).fit(X, known).labels_))
                model = dc.Ensemble(k, base=dc.FastCSC(), consensus=dc.SEC(), n_base_clusterings=m, random_state=seed)
                start = time.perf_counter()
                base = model.fit(X, known).base_labels_
                found["seconds"].append(time.perf_counter() - start)
                found["bases"].append(float(np.mean([nmi(y, base[:, i]) for i in range(m)])))
                found["SE"].append(nmi(y, model.labels_))
                found["SER"].append(nmi(y, dc.SEC(k, n_components=40, random_state=seed).fit(base).labels_))
            *quality, seconds = found.values()
            rows.append([name, count, *[f"{np.mean(v):.3f}" for v in quality], f"{statistics.median(seconds):.1f}"])
    columns = ["set", "labelled", "one FastCSC", "base clusterings", "CCSS-SE", "CCSS-SER", "seconds of CCSS-SE"]
    table(f"NMI of semi-supervised ensembles: m = {m}, k - 5 to k + 4 clusters, {draws} draws", columns, rows)


def layers(draws: int) -> None:
    """Rand index of CSP-ML and FAST-CSP-ML for both readings of rows without must-links, with the default widths."""
    import daskcluster as dc

    rows = []
    for name in LAYER_SETS:
        X, y = dc.datasets.load_benchmark(name.removesuffix(", standardized"))
        X = np.asarray(X, np.float64)
        if name.endswith("standardized"):
            X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
        k = int(y.max()) + 1
        for count in LAYER_LABELLED:
            row: list[Any] = [name, count]
            for unlinked in ("penalized", "neutral"):
                for make in (dc.CSPML, dc.FastCSPML):
                    more = {} if make is dc.CSPML else {"n_landmarks": SMALL_LANDMARKS}
                    found = []
                    for seed in range(draws):
                        known = labelled(y, min(count, len(y)), np.random.default_rng(seed))
                        model = make(k, unlinked=unlinked, random_state=seed, **more).fit(X, known)
                        found.append(scores(y, model.labels_)[0])
                    row.append(f"{np.mean(found):.2f}")
            rows.append([*row, f"{model.gamma_:.2g}"])
    columns = ["set", "known", "CSP-ML, penalized", "FAST, penalized", "CSP-ML, neutral", "FAST, neutral", "gamma"]
    table(f"Rand index of the two readings, {draws} draws, {SMALL_LANDMARKS} landmarks", columns, rows)


def _store(folder: str, n_rows: int) -> str:
    import daskcluster as dc
    from daskcluster.io import write_array

    X, y = dc.datasets.make_circles_gaussians(n_rows, random_state=0)
    write_array(X, f"{folder}/X.zarr")
    write_array(y, f"{folder}/y.zarr")
    return folder


def _known(store: str, kind: str, n_rows: int) -> dict[str, Any]:
    """Arguments of `fit`: no constraints, all rows labelled, or 100,000 random pairs."""
    import zarr

    import daskcluster as dc

    if kind == "none":
        return {}
    if kind == "all labels":
        return {"y": f"{store}/y.zarr"}
    y = zarr.open_array(f"{store}/y.zarr", mode="r")[:]
    pairs = np.random.default_rng(0).integers(0, n_rows, (100_000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return {"constraints": dc.Constraints.from_pairs(pairs[same], pairs[~same], n_samples=n_rows)}


def cost(rows_wanted: int, repeat: int) -> None:
    """Time of FastCSC without constraints, with all rows labelled, and with 100,000 pairs."""
    import daskcluster as dc

    kinds = ("none", "all labels", "100,000 pairs")
    with tempfile.TemporaryDirectory() as folder:
        store = _store(folder, rows_wanted)
        arguments = {kind: _known(store, kind, rows_wanted) for kind in kinds}
        seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
        nmi = {}
        for number in range(repeat + 1):  # the first round compiles and reads the store
            for kind in kinds:
                start = time.perf_counter()
                model = dc.FastCSC(11, random_state=0).fit(f"{store}/X.zarr", **arguments[kind])
                if number:
                    seconds[kind].append(time.perf_counter() - start)
                nmi[kind] = dc.metrics.normalized_mutual_info(f"{store}/y.zarr", model.labels_)
    base = statistics.median(seconds["none"])
    rows = [
        [kind, f"{statistics.median(v):.2f}", f"{statistics.median(v) / base:.2f}", f"{nmi[kind]:.3f}"]
        for kind, v in seconds.items()
    ]
    title = f"Cost of constraints: FastCSC, {rows_wanted:,} rows x 2 from Zarr, median of {repeat}"
    table(title, ["constraints", "seconds", "ratio", "NMI"], rows)


MEASURE = """
import json, sys
import daskcluster as dc
from daskcluster.io import write_array
store, k = sys.argv[1], 11
name, y = sys.argv[2], sys.argv[3] or None
model = getattr(dc, name)(k, random_state=0).fit(f"{store}/X.zarr", y)
write_array(model.labels_, f"{store}/labels.zarr", overwrite=True)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps(int(peak.split()[1]) / 1024))
"""


def memory(rows_wanted: list[int]) -> None:
    """Peak memory with all rows labelled, each fit in a process of its own."""
    rows = []
    for n_rows in rows_wanted:
        with tempfile.TemporaryDirectory() as folder:
            store = _store(folder, n_rows)
            for name in ("FastCSC", "FastCSPML"):
                done = subprocess.run(
                    [sys.executable, "-c", MEASURE, store, name, f"{store}/y.zarr"],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                peak = f"{json.loads(done.stdout.splitlines()[-1]):.0f}" if done.returncode == 0 else done.stderr[-200:]
                rows.append([f"{n_rows:,}", name, peak])
    table("Peak memory, all rows labelled", ["rows", "method", "MB"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["fastcsc", "few", "ensembles", "layers", "cost", "memory"])
    parser.add_argument("--draws", type=int, help="draws of labelled rows; by default the paper's 20, or 10, or 3")
    parser.add_argument("--sets", nargs="+", choices=list(FASTCSC_SETS), default=list(FASTCSC_SETS))
    parser.add_argument("--labelled", type=int, nargs="+", default=list(LABELLED), help="labelled rows of fastcsc")
    parser.add_argument("--rows", type=int, nargs="+", help="rows of the cost and memory parts")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(Path(__file__).parents[2]))
    parts: dict[str, Callable[[], None]] = {
        "fastcsc": lambda: fastcsc(options.draws or 20, options.sets, options.labelled),
        "few": lambda: few(options.draws or 10),
        "ensembles": lambda: ensembles(options.draws or 3, options.sets),
        "layers": lambda: layers(options.draws or 10),
        "cost": lambda: cost((options.rows or [10_000_000])[0], options.repeat),
        "memory": lambda: memory(options.rows or [5_000_000, 20_000_000]),
    }
    for name, run in parts.items():
        if options.part in (None, name):
            run()


if __name__ == "__main__":
    main()
