"""Every estimator on easy data of few rows: one table of adjusted Rand indices, estimators by numbers of rows.

    ci/benchmarks/run few_rows                                       all of it
    ci/benchmarks/run few_rows --sizes 10 50 250 --seeds 3
    ci/benchmarks/run few_rows --estimators FastCSC USENC --sets blobs5 rings
    ci/benchmarks/run few_rows --by-set                              a table for each set

A cell is mean / minimum over sets and seeds, in hundredths, and names the sets on which the minimum is below .99.
Easy are blobs nine standard deviations apart, of equal and unequal sizes, and the package's two bananas, concentric
circles and flower where they have enough rows: where the clusters are the parts that single linkage finds, and a row's
neighbors are nearer than the next cluster (`is_easy`). K-means and its ensembles are asked for blobs only.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial import cKDTree
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import daskcluster as dc

SIZES = (10, 20, 30, 50, 100, 150, 250, 500, 1000, 2500, 5000)
#: Distance of blobs, in standard deviations.
APART = 9.0
#: Share of rows whose label is given, and rows of each class at least.
LABELLED, LEAST_LABELLED = 0.02, 2

Rows = tuple[np.ndarray, np.ndarray]


def spots(k: int, d: int) -> np.ndarray:
    """Centres of k blobs, each `APART` from its nearest."""
    if d >= k:
        return np.eye(k, d) * APART / np.sqrt(2)
    side = int(np.ceil(k ** (1 / d)))
    return np.stack(np.unravel_index(np.arange(k), (side,) * d), axis=1) * APART


def blobs(k: int, d: int = 2, shares: tuple[float, ...] | None = None) -> Callable[[int, int], Rows]:
    """Maker of k blobs; their shares of the rows are equal, or in proportion to `shares`."""

    def make(n: int, seed: int) -> Rows:
        sizes = np.full(k, n // k) if shares is None else np.array(shares) / sum(shares) * n
        sizes = np.maximum(2, sizes.astype(int))
        sizes[np.argmax(sizes)] += n - sizes.sum()
        X, y = make_blobs(sizes, centers=spots(k, d), random_state=seed)
        return X, y

    return make


def shape(name: str) -> Callable[[int, int], Rows]:
    """Maker of one of the package's data sets."""

    def make(n: int, seed: int) -> Rows:
        X, y = getattr(dc.datasets, f"make_{name}")(n, chunks=n, random_state=seed)
        return np.asarray(X), np.asarray(y)

    return make


#: Set -> its maker, and its number of clusters.
SETS: dict[str, tuple[Callable[[int, int], Rows], int]] = {
    "blobs2": (blobs(2), 2),
    "blobs3": (blobs(3), 3),
    "blobs5": (blobs(5), 5),
    "wide5": (blobs(5, 16), 5),
    "unequal3": (blobs(3, 2, (0.6, 0.3, 0.1)), 3),
    "unequal5": (blobs(5, 2, (0.5, 0.2, 0.1, 0.1, 0.1)), 5),
    "bananas": (shape("two_bananas"), 2),
    "rings": (shape("concentric_circles"), 3),
    "flower": (shape("flower"), 13),
}
SHAPES = ("bananas", "rings", "flower")


@cache
def load(name: str, n: int, seed: int) -> Rows | None:
    """Rows and clusters; None where there are too few rows for the set."""
    make, k = SETS[name]
    if n < 2 * k:
        return None
    X, y = make(n, seed)
    return (X, y) if is_easy(X, y) else None


def is_easy(X: np.ndarray, y: np.ndarray) -> bool:
    """Whether single linkage finds the clusters, and fewer than one in a hundred 5-neighborhoods goes across them."""
    near = cKDTree(X).query(X, min(6, len(X) // len(np.unique(y))))[1][:, 1:]
    if (y[near] != y[:, None]).any(axis=1).mean() >= 0.01:
        return False
    found = fcluster(linkage(X, "single"), len(np.unique(y)), "maxclust")
    return bool(adjusted_rand_score(y, found) == 1.0)


def known(y: np.ndarray, seed: int) -> np.ndarray:
    """Correct labels of a few rows, -1 for the others."""
    rng = np.random.default_rng([seed, 7])
    labels = np.full(len(y), -1)
    drawn = rng.permutation(len(y))[: int(LABELLED * len(y))]
    labels[drawn] = y[drawn]
    for c in np.unique(y):
        inside = rng.permutation(np.flatnonzero(y == c))[:LEAST_LABELLED]
        labels[inside] = c
    return labels


def base_clusterings(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """K-means labels with k to 2 k clusters, as many as a user would make by hand."""
    numbers = [min(len(X), k + i % (k + 1)) for i in range(10)]
    return np.stack(
        [dc.KMeans(c, random_state=100 * seed + i).fit_predict(X) for i, c in enumerate(numbers)],
        axis=1,
    )


def plain(make: Callable[[int], Any]) -> Callable[..., Any]:
    """Fit to the rows alone."""
    return lambda X, y, k, seed: make(k).set_params(random_state=seed).fit_predict(X)


def guided(make: Callable[[int], Any]) -> Callable[..., Any]:
    """Fit with a few correct labels."""
    return lambda X, y, k, seed: make(k).set_params(random_state=seed).fit_predict(X, known(y, seed))


def consensus(make: Callable[[int], Any]) -> Callable[..., Any]:
    """Fit to base clusterings."""
    return lambda X, y, k, seed: make(k).set_params(random_state=seed).fit_predict(base_clusterings(X, k, seed))


#: Name -> how it is fitted. All parameters are the defaults.
ESTIMATORS: dict[str, Callable[..., Any]] = {
    "KMeans": plain(dc.KMeans),
    "USPEC": plain(dc.USPEC),
    "FastCSC": plain(dc.FastCSC),
    "FastCSC labels": guided(dc.FastCSC),
    "CSPML": plain(dc.CSPML),
    "CSPML labels": guided(dc.CSPML),
    "FastCSPML": plain(dc.FastCSPML),
    "FastCSPML labels": guided(dc.FastCSPML),
    "USENC": plain(dc.USENC),
    "Ensemble": plain(dc.Ensemble),
    "Ensemble KMeans": plain(lambda k: dc.Ensemble(k, base=dc.KMeans())),
    "Ensemble KMeans SEC": plain(lambda k: dc.Ensemble(k, base=dc.KMeans(), consensus=dc.SEC())),
    "Ensemble USPEC SEC": plain(lambda k: dc.Ensemble(k, consensus=dc.SEC())),
    "Ensemble USPEC ISEC": plain(lambda k: dc.Ensemble(k, consensus=dc.ISEC())),
    "Ensemble FastCSC": plain(lambda k: dc.Ensemble(k, base=dc.FastCSC())),
    "Ensemble FastCSC SEC labels": guided(lambda k: dc.Ensemble(k, base=dc.FastCSC(), consensus=dc.SEC())),
    "BipartiteCut": consensus(dc.BipartiteCut),
    "SEC": consensus(dc.SEC),
    "SECRP": consensus(lambda k: dc.SEC(k, n_components=40)),
    "KCC": consensus(dc.KCC),
    "ECPCS": consensus(dc.ECPCS),
    "ISEC": consensus(dc.ISEC),
}
#: What these find are blobs; the other shapes are not for them at any number of rows.
BLOBS_ONLY = (
    "KMeans",
    "BipartiteCut",
    "SEC",
    "SECRP",
    "KCC",
    "ECPCS",
    "ISEC",
    "Ensemble KMeans",
    "Ensemble KMeans SEC",
)
#: Gaussian affinities of a width in the units of the rows: shapes of length 1 are points to it.
WIDTH_ONE = ("CSPML", "CSPML labels", "FastCSPML", "FastCSPML labels")
#: O(n**3) in every round.
SMALL_ONLY = {"ISEC": 500, "Ensemble USPEC ISEC": 500, "CSPML": 2500, "CSPML labels": 2500}


def asked(estimator: str, name: str, n: int) -> bool:
    """Whether the estimator is for such data."""
    if n > SMALL_ONLY.get(estimator, n):
        return False
    return not (name in SHAPES and estimator in BLOBS_ONLY + WIDTH_ONE)


def run(estimators: list[str], sets: list[str], sizes: list[int], n_seeds: int) -> list[dict[str, Any]]:
    """One record a fit."""
    records = []
    for estimator in estimators:
        started = time.perf_counter()
        for n in sizes:
            for name in sets:
                for seed in range(n_seeds):
                    rows = load(name, n, seed) if asked(estimator, name, n) else None
                    if rows is None:
                        continue
                    with warnings.catch_warnings(record=True) as said:
                        warnings.simplefilter("always")
                        try:
                            found = ESTIMATORS[estimator](*rows, SETS[name][1], seed)
                            score, error = float(adjusted_rand_score(rows[1], found)), ""
                        except Exception as refused:
                            score, error = 0.0, f"{type(refused).__name__}: {refused}"
                    texts = sorted({str(warned.message) for warned in said})
                    records.append(
                        {"estimator": estimator, "set": name, "n": n, "seed": seed, "score": score, "error": error}
                        | {"warnings": texts}
                    )
        print(f"{estimator}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    return records


def cell(records: list[dict[str, Any]]) -> str:
    """Mean / minimum of some fits, and the sets that are not found each time."""
    if not records:
        return "-"
    scores = [record["score"] for record in records]
    bad = sorted({record["set"] for record in records if record["score"] < 0.99})
    return f"{100 * np.mean(scores):.0f}/{100 * min(scores):.0f}" + (f" {','.join(bad)}" if bad else "")


def table(title: str, records: list[dict[str, Any]], sizes: list[int], *, named: bool) -> None:
    """Print a table in Markdown: a row an estimator."""
    print(f"\n{title}\n\n| | {' | '.join(map(str, sizes))} |\n|---|{'---|' * len(sizes)}")
    for estimator in dict.fromkeys(record["estimator"] for record in records):
        own = [record for record in records if record["estimator"] == estimator]
        cells = [cell([record for record in own if record["n"] == n]) for n in sizes]
        print(f"| {estimator} | {' | '.join(text if named else text.split()[0] for text in cells)} |")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--estimators", nargs="*", default=list(ESTIMATORS), choices=list(ESTIMATORS))
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--by-set", action="store_true", help="a table for each set")
    parser.add_argument("--named", action="store_true", help="name the sets that are not found")
    parser.add_argument("--json", type=Path, help="write every fit's figure here")
    given = parser.parse_args()
    records = run(given.estimators, given.sets, given.sizes, given.seeds)
    if given.json:
        given.json.write_text(json.dumps(records, indent=0))
    table("All sets: mean / minimum of the adjusted Rand index, %", records, given.sizes, named=given.named)
    if given.by_set:
        for name in given.sets:
            own = [record for record in records if record["set"] == name]
            if own:
                table(name, own, given.sizes, named=False)
    for record in records:
        if record["error"]:
            print(f"{record['estimator']}, {record['set']}, n = {record['n']}: {record['error']}")


if __name__ == "__main__":
    main()
