"""How often `select_n_clusters` is right on the generators, and what it says of the real sets.

ci/benchmarks/run n_clusters                              generators of 20,000 rows, 10 seeds; real sets
ci/benchmarks/run n_clusters --rows 200000 --seeds 3 --part generators
ci/benchmarks/run n_clusters --data flower usps           one or more of either kind
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from ensembles import load
from sklearn.datasets import make_blobs
from uspec import table

import daskcluster as dc

#: Number of clusters, or None where nothing is apart.
GENERATORS: dict[str, tuple[int | None, Any]] = {
    "two_bananas": (2, dc.datasets.make_two_bananas),
    "smiling_face": (4, dc.datasets.make_smiling_face),
    "concentric_circles": (3, dc.datasets.make_concentric_circles),
    "circles_gaussians": (11, dc.datasets.make_circles_gaussians),
    "flower": (13, dc.datasets.make_flower),
    "five blobs, 8-D": (5, lambda n, chunks, random_state: make_blobs(n, 8, centers=5, random_state=random_state)),
    "uniform, 2-D": (None, lambda n, chunks, random_state: (np.random.default_rng(random_state).random((n, 2)), None)),
    "one Gaussian": (
        None,
        lambda n, chunks, random_state: (np.random.default_rng(random_state).normal(size=(n, 2)), 0),
    ),
}
REAL = {"pendigits": 10, "usps": 10, "letter": 26, "mnist": 10, "covertype": 7}


def part_generators(names: list[str], n: int, seeds: int) -> None:
    """Right answers of so many."""
    lines = []
    for name in names:
        k, make = GENERATORS[name]
        found = [
            dc.select_n_clusters(make(n, chunks=n, random_state=seed)[0], random_state=seed) for seed in range(seeds)
        ]
        best = [each.relative_gaps[1:].max() for each in found]
        right = sum(each.n_clusters == k for each in found)
        lines.append([name, "none" if k is None else k, f"{right} of {seeds}", f"{min(best):.2f} to {max(best):.2f}"])
    table(f"generators, {n:,} rows, k_max = 30", ["data", "k", "right", "largest gap"], lines)


def part_real(names: list[str], seeds: int) -> None:
    """What is said of the real sets, whose classes are no clusters that stand apart."""
    lines = []
    for name in names:
        k = REAL[name]
        X = load(name)[0]
        for seed in range(min(seeds, 2)):
            found = dc.select_n_clusters(X, 40, random_state=seed)
            named = ", ".join(
                f"{c} ({found.relative_gaps[c - 1]:.2f}, {found.stability[c - 1]:.2f})" for c in found.candidates[:3]
            )
            lines.append([name, k, "no clear answer" if found.n_clusters is None else found.n_clusters, named])
    table("real sets, k_max = 40", ["data", "classes", "answer", "most likely (gap, stability)"], lines)


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["generators", "real"], action="append")
    parser.add_argument("--data", nargs="+", choices=[*GENERATORS, *REAL], metavar="NAME", help="all by default")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    wanted = given.data or [*GENERATORS, *REAL]
    parts = given.part or ["generators", "real"]
    generators = [name for name in GENERATORS if name in wanted]
    real = [name for name in REAL if name in wanted]
    if generators and "generators" in parts:
        part_generators(generators, given.rows, given.seeds)
    if real and "real" in parts:
        part_real(real, given.seeds)


if __name__ == "__main__":
    main()
