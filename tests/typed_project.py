"""A program that uses the package with types, as a project does that has mypy check it.

mypy reads it with the tests, from the sources; `test_release.py` has it read against the installed wheel, and runs it.
`assert_type` fails where the package's types are missing, or become `Any`.
"""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import daskcluster as dc
from daskcluster.constraints.satisfaction import Satisfaction


def labels_of(rows: NDArray[np.float64], folder: Path) -> list[int]:
    """Cluster, save, load, label."""
    model = dc.USPEC(2, n_representatives=20, random_state=0)
    assert_type(model, dc.USPEC)
    assert_type(model.fit(rows), dc.USPEC)
    assert_type(model.n_clusters, int)
    model.save(folder / "model.zarr")
    return [int(label) for label in dc.load_model(folder / "model.zarr").predict(rows)]


def agreement(rows: NDArray[np.float64], known: NDArray[np.int64]) -> float:
    """How far a constrained fit keeps to what is known, and two labelings agree."""
    constraints = dc.Constraints.from_labels(known)
    assert_type(constraints, dc.Constraints)
    model = dc.FastCSC(2, n_representatives=20, random_state=0).fit(rows, constraints=constraints)
    assert_type(model, dc.FastCSC)
    assert_type(constraints.satisfaction(model.labels_), Satisfaction)
    means = dc.KMeans(2, n_init="auto", random_state=0).fit(rows, sample_weight=np.ones(len(rows)))
    assert_type(means.score(rows), float)
    return dc.metrics.normalized_mutual_info(model.labels_, means.labels_)


def main(folder: Path) -> None:
    """Run all of it."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(place, 0.1, (40, 2)) for place in (0.0, 5.0)])
    known = np.full(80, -1)
    known[[0, 79]] = 0, 1
    assert len(set(labels_of(rows, folder))) == 2
    assert agreement(rows, known) > 0.99
