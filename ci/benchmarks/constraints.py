"""Constrained methods beside the published figures: quality over constraints, soft and noisy ones, cost.

    ci/benchmarks/run constraints                     all parts
    ci/benchmarks/run constraints --part fastcsc      one of: fastcsc, few, ensembles, table2, layers, curves,
                                                      table3, cost, memory
    ci/benchmarks/run constraints --part table2 --draws 5

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
KNOWN = (30, 75, 120, 165)
METHODS = ("CSP", "CSP-ML", "FAST-CSP-ML", "SL")
#: Table 2 of csp_ml_and_fast_csp_ml_2019: set -> rows of KNOWN -> RI and NMI of METHODS, each (mean, deviation).
TABLE_2 = {
    "glass": (
        (
            (0.68, 0.12),
            (0.55, 0.13),
            (0.69, 0.12),
            (0.31, 0.06),
            (0.36, 0.08),
            (0.35, 0.08),
            (0.28, 0.06),
            (0.12, 0.02),
        ),
        (
            (0.72, 0.13),
            (0.69, 0.13),
            (0.71, 0.13),
            (0.31, 0.07),
            (0.39, 0.10),
            (0.49, 0.10),
            (0.33, 0.08),
            (0.12, 0.02),
        ),
        (
            (0.75, 0.14),
            (0.80, 0.14),
            (0.76, 0.14),
            (0.41, 0.14),
            (0.44, 0.11),
            (0.61, 0.11),
            (0.46, 0.09),
            (0.32, 0.20),
        ),
        (
            (0.78, 0.14),
            (0.89, 0.16),
            (0.85, 0.15),
            (0.58, 0.14),
            (0.53, 0.11),
            (0.76, 0.14),
            (0.62, 0.12),
            (0.55, 0.14),
        ),
    ),
    "seeds": (
        (
            (0.87, 0.16),
            (0.91, 0.16),
            (0.82, 0.15),
            (0.88, 0.16),
            (0.71, 0.15),
            (0.76, 0.14),
            (0.53, 0.14),
            (0.71, 0.13),
        ),
        (
            (0.91, 0.16),
            (0.94, 0.17),
            (0.83, 0.16),
            (0.91, 0.16),
            (0.75, 0.16),
            (0.81, 0.15),
            (0.57, 0.14),
            (0.78, 0.14),
        ),
        (
            (0.93, 0.17),
            (0.96, 0.17),
            (0.85, 0.17),
            (0.95, 0.17),
            (0.81, 0.15),
            (0.87, 0.16),
            (0.65, 0.15),
            (0.85, 0.16),
        ),
        (
            (0.93, 0.17),
            (0.98, 0.18),
            (0.91, 0.17),
            (0.98, 0.18),
            (0.83, 0.15),
            (0.92, 0.17),
            (0.75, 0.14),
            (0.92, 0.17),
        ),
    ),
    "ionosphere": (
        (
            (0.76, 0.15),
            (0.72, 0.15),
            (0.54, 0.10),
            (0.55, 0.10),
            (0.46, 0.11),
            (0.36, 0.18),
            (0.18, 0.04),
            (0.09, 0.02),
        ),
        (
            (0.84, 0.15),
            (0.79, 0.19),
            (0.55, 0.11),
            (0.55, 0.10),
            (0.58, 0.12),
            (0.52, 0.22),
            (0.19, 0.07),
            (0.08, 0.02),
        ),
        (
            (0.88, 0.16),
            (0.90, 0.18),
            (0.59, 0.12),
            (0.55, 0.10),
            (0.64, 0.12),
            (0.68, 0.18),
            (0.21, 0.08),
            (0.07, 0.02),
        ),
        (
            (0.90, 0.16),
            (0.94, 0.17),
            (0.64, 0.14),
            (0.55, 0.10),
            (0.71, 0.13),
            (0.80, 0.15),
            (0.31, 0.09),
            (0.06, 0.02),
        ),
    ),
}
#: Table 3, covertype's ten numeric columns and all 54: share of known labels -> RI and seconds without noise, with it.
TABLE_3 = {
    "covtype10": {10: (0.59, 28, 0.58, 26), 50: (0.62, 29, 0.59, 33), 90: (0.70, 28, 0.58, 33)},
    "covtype": {10: (0.48, 20, 0.46, 22), 50: (0.52, 21, 0.51, 23), 90: (0.65, 22, 0.54, 22)},
}
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


def _methods(X: np.ndarray, k: int) -> dict[str, Callable[[Any, int], Any]]:
    import daskcluster as dc
    from ci.reproduction.systems.csp import constrained_spectral_clustering
    from ci.reproduction.systems.spectral_learning import spectral_learning
    from daskcluster.constraints.layers import gaussian_columns

    affinity = gaussian_columns(X, X, 0.5)
    affinity = (affinity + affinity.T) / 2

    def csp(known: Any, seed: int) -> Any:
        try:
            return constrained_spectral_clustering(affinity, known, k, random_state=seed)
        except ValueError:  # nothing is feasible
            return np.zeros(len(X), np.int32)

    return {
        "CSP": csp,
        "CSP-ML": lambda known, seed: dc.CSPML(k, random_state=seed).fit_predict(X, constraints=known),
        "FAST-CSP-ML": lambda known, seed: dc.FastCSPML(k, n_landmarks=SMALL_LANDMARKS, random_state=seed).fit_predict(
            X, constraints=known
        ),
        "SL": lambda known, seed: spectral_learning(affinity, known, k, random_state=seed),
    }


def table2(draws: int) -> None:
    """Table 2 of csp_ml_and_fast_csp_ml_2019: ours beside the published; * marks more than two deviations."""
    import daskcluster as dc

    rows = []
    for name, published in TABLE_2.items():
        X, y = dc.datasets.load_benchmark(name)
        methods = _methods(np.asarray(X, np.float64), int(y.max()) + 1)
        for count, figures in zip(KNOWN, published, strict=True):
            found: dict[str, list[Any]] = {method: [] for method in METHODS}
            for seed in range(draws):
                known = dc.Constraints.from_labels(labelled(y, count, np.random.default_rng(seed)))
                for method in METHODS:
                    found[method].append(scores(y, methods[method](known, seed)))
            for i, measure in enumerate(("RI", "NMI")):
                row: list[Any] = [name, count, measure]
                for m, method in enumerate(METHODS):
                    mean, deviation = figures[4 * i + m]
                    ours = np.array(found[method])[:, i]
                    far = "*" if abs(ours.mean() - mean) > 2 * max(deviation, ours.std()) else ""
                    row.append(f"{ours.mean():.2f}+-{ours.std():.2f} / {mean:.2f}+-{deviation:.2f}{far}")
                rows.append(row)
    title = f"Table 2, ours / published, {draws} draws (* more than two standard deviations apart)"
    table(title, ["set", "known", "", *METHODS], rows)


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


def _pairs(known: np.ndarray, rng: np.random.Generator, kind: str) -> Any:
    """Constraints of section 5.2 to 5.5 from partial labels."""
    import daskcluster as dc

    rows = np.flatnonzero(known >= 0)
    a, b = np.triu_indices(len(rows), 1)
    first, second = rows[a], rows[b]
    same = known[first] == known[second]
    weights = np.ones(len(first))
    if kind == "inconsistent":  # 5.2: 0.08 x of the constraints contradict the labels
        wrong = rng.choice(len(first), max(1, round(0.08 * len(rows))), replace=False)
        same[wrong] = ~same[wrong]
    elif kind == "noise":  # 5.3: 30 % of the constraints are wrong
        wrong = rng.random(len(first)) < 0.3
        same[wrong] = ~same[wrong]
    else:  # 5.4 and 5.5: weights from 0.7 to 1
        weights = rng.uniform(0.7, 1.0, len(first))
    pairs = np.stack([first, second], axis=1)
    return dc.Constraints.from_pairs(pairs[same], pairs[~same], weights[same], weights[~same], len(known))


def curves(draws: int) -> None:
    """Sections 5.2 to 5.5: Rand index over known labels, or over known pairs, of soft and of wrong constraints."""
    import daskcluster as dc

    for kind in ("inconsistent", "noise", "soft"):
        rows = []
        for name in TABLE_2:
            X, y = dc.datasets.load_benchmark(name)
            methods = _methods(np.asarray(X, np.float64), int(y.max()) + 1)
            used = [method for method in METHODS if kind != "soft" or method != "SL"]
            for count in KNOWN:
                found: dict[str, list[float]] = {method: [] for method in METHODS}
                for seed in range(draws):
                    rng = np.random.default_rng(seed)
                    known = _pairs(labelled(y, count, rng), rng, kind)
                    for method in used:
                        found[method].append(scores(y, methods[method](known, seed))[0])
                rows.append([name, count, *(f"{np.mean(v):.2f}" if v else "" for v in found.values())])
        table(f"Rand index with {kind} constraints, {draws} draws", ["set", "known labels", *METHODS], rows)
    rows = []
    for name in TABLE_2:
        X, y = dc.datasets.load_benchmark(name)
        methods = _methods(np.asarray(X, np.float64), int(y.max()) + 1)
        for count in (500, 2000, 8000, 16000):
            found = {method: [] for method in METHODS[:3]}
            for seed in range(draws):
                rng = np.random.default_rng(seed)
                a, b = np.triu_indices(len(y), 1)
                chosen = rng.choice(len(a), min(count, len(a)), replace=False)
                pairs, weights = np.stack([a, b], axis=1)[chosen], rng.uniform(0.7, 1.0, len(chosen))
                same = y[pairs[:, 0]] == y[pairs[:, 1]]
                known = dc.Constraints.from_pairs(pairs[same], pairs[~same], weights[same], weights[~same], len(y))
                for method in METHODS[:3]:
                    found[method].append(scores(y, methods[method](known, seed))[0])
            rows.append([name, count, *(f"{np.mean(v):.2f}" for v in found.values())])
    table(f"Rand index with soft random pairs, {draws} draws", ["set", "pairs", *METHODS[:3]], rows)


def table3(draws: int) -> None:
    """Table 3's covertype at full size: Rand index and seconds of FAST-CSP-ML, soft labels without and with noise."""
    import daskcluster as dc

    X, y = dc.datasets.load_benchmark("covertype")
    X = np.asarray(X, np.float32)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    rows = []
    for name, features in (("covtype10", X[:, :10]), ("covtype", X)):
        for share, published in TABLE_3[name].items():
            cells: list[Any] = [name, f"{share} %"]
            for noise in (0.0, 0.3):
                found, seconds = [], []
                for seed in range(draws):
                    rng = np.random.default_rng(seed)
                    known = labelled(y, len(y) * share // 100, rng)
                    if noise:
                        wrong = (known >= 0) & (rng.random(len(y)) < noise)
                        known[wrong] = rng.integers(0, 7, int(wrong.sum()))
                    soft = dc.Constraints.from_labels(known, weight=np.sqrt(rng.uniform(0.7, 1.0, len(y))))
                    start = time.perf_counter()
                    model = dc.FastCSPML(7, random_state=seed).fit(features, constraints=soft)
                    seconds.append(time.perf_counter() - start)
                    found.append(scores(y, model.labels_)[0])
                ri, their_seconds = published[0 if not noise else 2], published[1 if not noise else 3]
                cells += [f"{np.mean(found):.2f} / {ri:.2f}", f"{statistics.median(seconds):.1f} / {their_seconds}"]
            rows.append(cells)
    columns = ["set", "known", "RI", "seconds", "RI, 30 % noise", "seconds"]
    table(f"Table 3, ours / published, standardised features, {draws} draws", columns, rows)


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
    parser.add_argument(
        "--part", choices=["fastcsc", "few", "ensembles", "table2", "layers", "curves", "table3", "cost", "memory"]
    )
    parser.add_argument("--draws", type=int, help="draws of labelled rows; by default the papers' 20 and 30")
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
        "table2": lambda: table2(options.draws or 30),
        "layers": lambda: layers(options.draws or 10),
        "curves": lambda: curves(options.draws or 30),
        "table3": lambda: table3(options.draws or 3),
        "cost": lambda: cost((options.rows or [10_000_000])[0], options.repeat),
        "memory": lambda: memory(options.rows or [5_000_000, 20_000_000]),
    }
    for name, run in parts.items():
        if options.part in (None, name):
            run()


if __name__ == "__main__":
    main()
