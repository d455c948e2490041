"""Ensembles' figures beside the papers' and scikit-learn's, measured in one run.

    ci/benchmarks/run ensembles                 all parts
    ci/benchmarks/run ensembles --part usenc    one of: usenc, confidence, pools, sec, secrp, missing, isec, large
    ci/benchmarks/run ensembles --seeds 3 --sets pendigits usps

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
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
#: Set -> NMI of U-SENC in uspec_usenc_2019, and of published ensembles what is asked for.
SETS = {"pendigits": 85.3, "usps": 73.9, "letter": 45.9, "mnist": 75.0, "covertype": 9.1}
POOLS = {"pendigits": 0.74, "letter": 0.40, "usps": 0.555, "mnist5k": 0.60}
#: Of `KCC`.
UTILITIES = ("entropy", "categorical", "cosine", "lp")
TEXTS = ("mm", "classic")
SMALL = ("iris", "wine", "breast_w", "breast_w_699")


def data_folder() -> Path:
    """The folder of the real data sets."""
    folder = Path(os.environ.get("DASKCLUSTER_DATA", HERE.parents[2] / "shared" / "data"))
    if not folder.is_dir():
        sys.exit(f"no data sets at {folder}: set DASKCLUSTER_DATA")
    return folder


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes of a dense set."""
    with np.load(data_folder() / f"{name}.npz") as stored:
        return stored["X"], stored["y"]


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


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the result."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def spread(values: list[float]) -> str:
    """Mean and standard deviation of scores, in points."""
    return f"{100 * np.mean(values):.1f} +- {100 * np.std(values):.1f}"


def usenc(sets: list[str], seeds: int) -> None:
    """NMI and time of U-SENC on the five sets, beside one U-SPEC."""
    import daskcluster as dc

    rows = []
    for name in sets:
        X, y = load(name)
        k = len(np.unique(y))
        dc.USENC(k, n_base_clusterings=2, random_state=0).fit(X)  # compiles
        dc.USPEC(k, random_state=0).fit(X)
        scores, times, single, single_times = [], [], [], []
        for seed in range(seeds):
            seconds, model = timed(lambda X=X, k=k, seed=seed: dc.USENC(k, random_state=seed).fit(X))
            times.append(seconds)
            scores.append(dc.metrics.normalized_mutual_info(y, model.labels_))
            seconds, model = timed(lambda X=X, k=k, seed=seed: dc.USPEC(k, random_state=seed).fit(X))
            single_times.append(seconds)
            single.append(dc.metrics.normalized_mutual_info(y, model.labels_))
        median, one = statistics.median(times), statistics.median(single_times)
        rows.append(
            [name, spread(scores), SETS[name], spread(single), f"{median:.2f}", f"{one:.2f}", f"{median / one:.1f}"]
        )
    columns = ["set", "U-SENC NMI", "paper", "U-SPEC NMI", "U-SENC s", "U-SPEC s", "ratio"]
    table(f"U-SENC, m = 20, k from 20 to 60, {seeds} seeds", columns, rows)


SHAPES = {"two_bananas": 2, "smiling_face": 4, "concentric_circles": 3, "circles_gaussians": 11, "flower": 13}


def drawn(name: str, seed: int, most: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes 0 to k - 1 of a real set or of a generator, so many rows at most."""
    import daskcluster as dc

    if name in SHAPES:
        X, y = getattr(dc.datasets, f"make_{name}")(most, chunks=most, random_state=seed)
        return np.asarray(X), np.asarray(y)
    X, y = load(name)
    taken = np.sort(np.random.default_rng(seed).permutation(len(X))[:most])
    return X[taken], np.unique(y[taken], return_inverse=True)[1]


def confidence(sets: list[str], seeds: int) -> None:
    """How well agreement and confidence find wrong rows, where the number of clusters is right or off by one."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics import roc_auc_score

    import daskcluster as dc

    warnings.simplefilter("ignore")
    rows = []
    for name in (*SHAPES, *sets):
        found: dict[str, list[float]] = {
            f"{what} {more:+}": [] for what in ("agreement", "confidence") for more in (1, -1, 0)
        }
        for seed in range(seeds):
            X, y = drawn(name, seed)
            for more in (1, -1, 0):
                k = int(y.max()) + 1 + more
                if k < 2:
                    continue
                model = dc.USENC(k, random_state=seed).fit(X)
                counts = np.asarray(dc.metrics.contingency_matrix(y, model.labels_))
                matched = np.full(k, -1)
                classes, clusters = linear_sum_assignment(-counts)
                matched[clusters] = classes
                wrong = matched[model.labels_] != y
                if wrong.sum() < 20:
                    continue
                values = dc.metrics.consensus_confidence(model.base_labels_, model.labels_)
                found[f"agreement {more:+}"].append(roc_auc_score(wrong, -model.agreement_))
                found[f"confidence {more:+}"].append(roc_auc_score(wrong, -values))
        rows.append([name, *(f"{np.mean(v):.2f}" if v else "-" for v in found.values())])
    columns = [f"{what} k{more}" for what in ("agreement", "confidence") for more in (" + 1", " - 1", "")]
    table("Wrong rows: area under the curve, mean over seeds; - where no row is wrong", ["set", *columns], rows)


def draws_of(name: str, seed: int, m: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """m base clusterings drawn from a published pool, and the classes."""
    with np.load(data_folder() / "pools" / f"{name}.npz") as stored:
        chosen = np.random.default_rng(seed).choice(stored["labels"].shape[1], m, replace=False)
        return np.ascontiguousarray(stored["labels"][:, chosen]), stored["y"]


def pools(seeds: int, m: int) -> None:
    """Consensus of m published base clusterings."""
    from sklearn.metrics import normalized_mutual_info_score

    import daskcluster as dc

    rows: list[list[Any]] = []
    larger: list[list[Any]] = []
    times: list[list[Any]] = []
    labels: list[str] = []
    for name, asked in POOLS.items():
        found: dict[str, list[float]] = {}
        for seed in range(seeds):
            base, y = draws_of(name, seed, m)
            k = len(np.unique(y))
            for label, model in (
                ("cut", dc.BipartiteCut(k, random_state=seed)),
                ("local", dc.BipartiteCut(k, weights="local", random_state=seed)),
                ("ECPCS", dc.ECPCS(k, random_state=seed)),
                *((f"EAC {weights}", dc.EAC(k, weights=weights)) for weights in ("none", "local", "wct")),
                ("PTGP", dc.PTGP(k, random_state=seed)),
                *((name, dc.KCC(k, utility=name, random_state=seed)) for name in UTILITIES),
                ("SEC", dc.SEC(k, random_state=seed)),
                ("SECRP 40", dc.SEC(k, n_components=40, random_state=seed)),
                ("ISEC 500", dc.ISEC(k, n_representatives=500, random_state=seed)),
            ):
                seconds, _ = timed(lambda model=model, base=base: model.fit(base))
                found.setdefault(label, []).append(dc.metrics.normalized_mutual_info(y, model.labels_))
                by_larger = normalized_mutual_info_score(y, model.labels_, average_method="max")
                found.setdefault(f"{label} larger", []).append(by_larger)
                found.setdefault(f"{label} s", []).append(seconds)
        labels = [label for label in found if not label.endswith((" s", " larger"))]
        rows.append([name, asked, *(f"{np.mean(found[label]):.3f}" for label in labels)])
        larger.append([name, *(f"{np.mean(found[f'{label} larger']):.3f}" for label in labels)])
        times.append([name, *(f"{statistics.median(found[f'{label} s']):.2f}" for label in labels)])
    table(
        f"NMI of the consensus, {m} base clusterings of each pool, {seeds} draws",
        ["pool", "asked of cut", *labels],
        rows,
    )
    table("The same, mutual information over the larger entropy", ["pool", *labels], larger)
    table("Seconds of these fits", ["pool", *labels], times)


def dense_rows(base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows b/w as a dense matrix, and w: what scikit-learn needs."""
    blocks = [base[:, [j]] == np.unique(base[:, j][base[:, j] >= 0]) for j in range(base.shape[1])]
    B = np.hstack(blocks).astype(np.float64)
    w = B @ B.sum(axis=0)
    B /= w[:, None]
    return B, w


def replicated(n_rows: int, m: int, seed: int, most: int = 200) -> np.ndarray:
    """m base clusterings of the pendigits pool, rows repeated, a tenth of the labels redrawn; `most` clusters each."""
    base = draws_of("pendigits", seed, m)[0] % most
    rng = np.random.default_rng(seed)
    large = base[rng.integers(len(base), size=n_rows)]
    noise = rng.random(large.shape, dtype=np.float32) < 0.1
    return np.where(noise, base[rng.integers(len(base), size=n_rows)], large)


def measured(*arguments: Any) -> dict[str, Any]:
    """Run one measurement in a process of its own, so that its memory is its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{arguments}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return {"seconds": float("nan"), "peak": float("nan"), "objective": float("nan")}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def peak_bytes() -> int:
    """Peak resident memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def measure_one(what: str, n_rows: int, m: int, k: int) -> None:
    """One measurement: time of the fit, and the peak above what the labels themselves and the imports take."""
    import daskcluster as dc

    warm = replicated(2000, m, 0, 10)
    base = replicated(n_rows, m, 0, 10)  # more clusters make a dense matrix that does not fit
    if what == "sklearn":
        from sklearn.cluster import KMeans

        KMeans(k, n_init=1, random_state=0).fit(*dense_rows(warm))
        before = peak_bytes()
        B, w = dense_rows(base)
        seconds, model = timed(lambda: KMeans(k, n_init=1, random_state=0, copy_x=False).fit(B, sample_weight=w))
        objective = model.inertia_
    else:
        parameters = {"n_components": 40} if what == "secrp" else {}
        dc.SEC(k, random_state=0, **parameters).fit(warm)
        before = peak_bytes()
        seconds, model = timed(lambda: dc.SEC(k, random_state=0, **parameters).fit(base))
        objective = model.objective_
    print(json.dumps({"seconds": seconds, "peak": peak_bytes() - before, "objective": float(objective)}))


def sec(seeds: int, n_rows: int) -> None:
    """SEC beside scikit-learn's weighted k-means on the dense matrix: objective, time, memory."""
    from sklearn.cluster import KMeans

    import daskcluster as dc

    rows = []
    for name in POOLS:
        lower, gaps = 0, []
        for seed in range(seeds):
            base, y = draws_of(name, seed)
            k = len(np.unique(y))
            B, w = dense_rows(base)
            best = min(KMeans(k, n_init=1, random_state=r).fit(B, sample_weight=w).inertia_ for r in range(10))
            found = dc.SEC(k, random_state=seed).fit(base).objective_
            lower += found <= best * (1 + 1e-9)
            gaps.append(found / best - 1)
        rows.append([name, f"{lower} of {seeds}", f"{100 * np.mean(gaps):+.3f} %", f"{100 * max(gaps):+.3f} %"])
    columns = ["pool", "at least as low", "mean difference", "largest"]
    table("SEC's objective against the best of 10 runs of scikit-learn's KMeans(sample_weight)", columns, rows)

    rows = []
    for what in ("sklearn", "sec", "secrp"):
        found = measured(what, n_rows, 50, 10)
        rows.append([what, f"{found['seconds']:.1f}", f"{found['peak'] / 2**20:.0f}", f"{found['objective']:.4f}"])
    table(f"{n_rows:,} rows, m = 50, k = 10, one run each", ["", "s", "MiB above the labels", "objective"], rows)


def pass_seconds(base: np.ndarray, k: int, rd: int | None, n_passes: int = 4) -> float:
    """Time of one Lloyd pass over all rows, of SEC or of SECRP, both from the same partition."""
    import dask.array as da

    from daskcluster.ensemble import incidence, projected_kmeans, projection, weighted_kmeans

    rows = incidence.check_base_clusterings(base)
    book = incidence.scan_labels(rows).book
    coded = incidence.code_labels(rows, book).compute()

    def blocks(array: np.ndarray) -> da.Array:
        return da.from_array(array, chunks=(rows.block_rows, *array.shape[1:]), name=False)

    labels = (coded[:, 0] % k).astype(np.int32)
    if rd is None:
        centers = weighted_kmeans.partition_centers(coded, book, labels, k)
        options = {"max_iter": n_passes, "tol": 0.0}
        seconds, run = timed(lambda: weighted_kmeans.lloyd_incidence(blocks(coded), book, centers, **options))
        return seconds / len(run.history)
    unit = float((book.sizes.astype(float) ** 2).sum()) / len(base)
    points = projection.ProjectedRows(book, projection.projection_of(book, rd, 0, 0), unit)
    projected, weights = points(coded), points.weights(coded)
    means = projected_kmeans.partition_in_projection(projected, weights, points, labels, k)
    held = blocks(projected), blocks(weights)
    options = {"max_iter": n_passes, "limit": -1.0, "n_clusters": k}
    seconds, run = timed(lambda: projected_kmeans.lloyd_projected(*held, points, means, **options))
    return seconds / run.n_iter


#: How many times as fast as SEC SECRP is on LetterRec, by rd: fast_csc_and_secrp_2017, Table 2.
PAPER_RATIOS = {10: 2.44, 20: 2.39, 40: 2.07, 70: 1.92, 100: 1.56}


def secrp(seeds: int) -> None:
    """SECRP beside SEC, as Table 2 of fast_csc_and_secrp_2017: by rd, by n and by the number of base clusters.

    Fits take turns, SEC and then SECRP, so that what else the machine does meets both.
    """
    import daskcluster as dc

    def compare(base: np.ndarray, y: np.ndarray | None, k: int, rd: int) -> list[Any]:
        fits: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        passes: dict[bool, list[float]] = {True: [], False: []}
        losses, scores = [], []
        for seed in range(seeds):
            models = {}
            for projected in (False, True):
                model = dc.SEC(k, n_components=rd if projected else None, random_state=seed)
                cpu = time.process_time()
                seconds, models[projected] = timed(lambda model=model: model.fit(base))
                fits[projected].append((seconds, time.process_time() - cpu))
                passes[projected].append(pass_seconds(base, k, rd if projected else None))
            losses.append(models[True].objective_ / models[False].objective_ - 1)
            if y is not None:
                scores.append([dc.metrics.normalized_mutual_info(y, models[p].labels_) for p in (False, True)])
        one, two = (statistics.median(passes[p]) for p in (False, True))
        (fit, cpu), (other, other_cpu) = (
            [statistics.median(t) for t in zip(*fits[p], strict=True)] for p in (False, True)
        )
        nmi = " to ".join(f"{value:.3f}" for value in np.mean(scores, axis=0)) if scores else "-"
        loss = f"{100 * np.mean(losses):+.1f} %"
        return [
            *[f"{1000 * one:.1f}", f"{1000 * two:.1f}", f"{one / two:.2f}"],
            *[f"{fit:.2f}", f"{other:.2f}", f"{fit / other:.2f}", f"{cpu / other_cpu:.2f}"],
            *[loss, nmi],
        ]

    ratios = ["speed-up", "SEC fit s", "SECRP fit s", "speed-up", "of CPU s"]
    columns = ["SEC ms", "SECRP ms", *ratios, "objective", "NMI"]
    for m in (20, 50):
        rows = []
        for name in POOLS:
            base, y = draws_of(name, 0, m)
            k = len(np.unique(y))
            for rd in (None, 10):  # compiles
                pass_seconds(base[:500], k, rd)
                dc.SEC(k, n_components=rd, random_state=0).fit(base[:500])
            rows += [[name, rd, paper, *compare(base, y, k, rd)] for rd, paper in PAPER_RATIOS.items()]
        title = f"SECRP against SEC, m = {m}: a Lloyd pass in ms, and the whole fit; medians of {seeds}"
        table(title, ["pool", "rd", "paper", *columns], rows)
    rows = [[f"{n:,}", *compare(replicated(n, 50, 0), None, 10, 40)] for n in (10_000, 100_000, 300_000)]
    table("The same by rows, rd = 40", ["n", *columns], rows)
    rows = []
    for m in (10, 25, 50, 100):
        base = replicated(100_000, m, 0)
        c = sum(len(np.unique(base[:, j])) for j in range(m))
        rows.append([m, c, *compare(base, None, 10, 40)])
    table("The same by base clusters, 100,000 rows, rd = 40", ["m", "c", *columns], rows)


def text_clusterings(name: str, m: int, rate: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Base clusterings of a text set as in sec_2015: k-means on tf-idf rows of unit length, k from K to sqrt(n)."""
    import scipy.sparse
    from sklearn.cluster import KMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.preprocessing import normalize

    counts = scipy.sparse.load_npz(data_folder() / f"{name}.npz").astype(np.float64)
    with np.load(data_folder() / f"{name}.npz") as stored:
        y = stored["y"]
    # A projection on 100 singular vectors keeps the cosines that matter and makes hundreds of runs possible.
    X = normalize(
        TruncatedSVD(100, random_state=0).fit_transform(TfidfTransformer(sublinear_tf=True).fit_transform(counts))
    )
    rng = np.random.default_rng(seed)
    n, K = len(y), len(np.unique(y))
    labels = np.full((n, m), -1, np.int32)
    for j in range(m):
        rows = np.sort(rng.choice(n, round(rate * n), replace=False))
        k = int(rng.integers(K, int(np.sqrt(n)) + 1))
        labels[rows, j] = KMeans(k, n_init=1, max_iter=50, random_state=int(rng.integers(2**31))).fit_predict(X[rows])
    return labels, y


def missing(seeds: int) -> None:
    """SEC with 20 to 80 % of each base clustering missing, as Fig. 2 of sec_2015."""
    import daskcluster as dc

    rows = []
    for name in TEXTS:
        for gone in (0.0, 0.2, 0.4, 0.6, 0.8):
            found: dict[str, list[float]] = {"SEC": [], "cut": [], "SEC NMI": []}
            for seed in range(seeds):
                base, y = text_clusterings(name, 100, 1 - gone, seed)
                there = (base >= 0).any(axis=1)
                for label, model in (
                    ("SEC", dc.SEC(len(np.unique(y)), random_state=seed)),
                    ("cut", dc.BipartiteCut(len(np.unique(y)), random_state=seed)),
                ):
                    labels = model.fit(base).labels_
                    found[label].append(dc.metrics.adjusted_rand_index(y[there], labels[there]))
                    if label == "SEC":
                        found["SEC NMI"].append(dc.metrics.normalized_mutual_info(y[there], labels[there]))
            rows.append([name, f"{100 * gone:.0f} %", *[f"{np.mean(values):.3f}" for values in found.values()]])
    columns = ["set", "missing", "SEC R_n", "cut R_n", "SEC NMI"]
    table(f"100 incomplete base clusterings, {seeds} draws; R_n is the adjusted Rand index", columns, rows)


def isec(seeds: int) -> None:
    """Convergence and accuracy of ISEC, as Fig. 1 and Table 2 of isec_2020."""
    from sklearn.cluster import KMeans

    import daskcluster as dc

    rows = []
    for name in SMALL:
        X, y = load(name)
        X = np.nan_to_num(np.asarray(X, np.float64), nan=1.0)
        n, K = len(X), len(np.unique(y))
        for partition in ("H", "Z"):
            scores, rounds, times = [], [], []
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                numbers = rng.integers(K, int(np.sqrt(n)) + 1, size=100)
                base = np.stack(
                    [
                        KMeans(int(k), n_init=1, random_state=100 * seed + j).fit_predict(X)
                        for j, k in enumerate(numbers)
                    ],
                    1,
                )
                model = dc.ISEC(K, partition=partition, random_state=seed)
                times.append(timed(lambda model=model, base=base: model.fit(base))[0])
                rounds.append(model.n_iter_)
                scores.append(dc.metrics.clustering_accuracy(y, model.labels_))
            history = " ".join(f"{model.history_[min(i, model.n_iter_) - 1]:.0e}" for i in (1, 5, 10, 15))
            rows.append([name, partition, n, spread(scores), max(rounds), history, f"{statistics.median(times):.2f}"])
    columns = ["set", "of", "n", "accuracy", "rounds", "error after 1, 5, 10, 15", "s"]
    table(f"ISEC on 100 base clusterings, {seeds} draws", columns, rows)


def large(n_rows: int) -> None:
    """Consensus of many rows from a Zarr store: time, and peak memory of the whole process."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "base.zarr")
        subprocess.run([sys.executable, str(Path(__file__).resolve()), "--write", path, str(n_rows)], check=True)
        for what in ("cut", "sec"):
            found = measured("consensus", path, what)
            rows.append([what, f"{found['seconds']:.1f}", f"{found['peak'] / 2**20:.0f}"])
    table(f"Consensus of {n_rows:,} rows, m = 20, k = 10, from Zarr", ["", "s", "peak MiB"], rows)


def write_large(path: str, n_rows: int) -> None:
    """Write replicated base clusterings, block by block."""
    import zarr

    step = 500_000
    stored = zarr.create_array(path, shape=(n_rows, 20), chunks=(step, 20), dtype="uint8")
    for number, start in enumerate(range(0, n_rows, step)):
        stored[start : start + step] = replicated(min(step, n_rows - start), 20, 0 if number == 0 else number % 7)


def measure_consensus(path: str, what: str) -> None:
    """Time and peak memory of one consensus from a store, its labels read block by block."""
    import daskcluster as dc

    model = dc.BipartiteCut(10, random_state=0) if what == "cut" else dc.SEC(10, random_state=0)
    seconds, _ = timed(lambda: model.fit(path))
    model.labels_.max().compute()
    print(json.dumps({"seconds": seconds, "peak": peak_bytes()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["usenc", "confidence", "pools", "sec", "secrp", "missing", "isec", "large"])
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--members", type=int, default=20, help="base clusterings of the pools part")
    parser.add_argument("--rows", type=int, help="rows of the large and sec parts")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(HERE.parents[1]))
    if options.write:
        write_large(options.write[0], int(options.write[1]))
        return
    if options.measure:
        what, *rest = options.measure
        if what == "consensus":
            measure_consensus(*rest)
        else:
            measure_one(what, *map(int, rest))
        return
    parts: dict[str, Callable[[], None]] = {
        "usenc": lambda: usenc(options.sets, options.seeds),
        "confidence": lambda: confidence(options.sets, options.seeds),
        "pools": lambda: pools(options.seeds, options.members),
        "sec": lambda: sec(options.seeds, options.rows or 1_000_000),
        "secrp": lambda: secrp(min(options.seeds, 3)),
        "missing": lambda: missing(min(options.seeds, 3)),
        "isec": lambda: isec(min(options.seeds, 3)),
        "large": lambda: large(options.rows or 20_000_000),
    }
    for name, run in parts.items():
        if options.part in (None, name):
            run()


if __name__ == "__main__":
    main()
