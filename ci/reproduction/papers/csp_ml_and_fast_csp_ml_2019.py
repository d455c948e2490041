"""Trokicic, Todorovic, constrained spectral clustering via multi-layer graphs, IJAMCS 2019: figures and tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import daskcluster as dc
from ci.reproduction.constrained import constraints_between, draw_labels, draw_pairs
from ci.reproduction.data import load_set
from ci.reproduction.scores import scores
from ci.reproduction.systems.csp import constrained_spectral_clustering
from ci.reproduction.systems.spectral_learning import spectral_learning
from ci.reproduction.values import Cell, Experiment, Paper, Published, Table
from daskcluster.constraints.layers import gaussian_columns

SYSTEMS = ("CSP", "CSP-ML", "FAST-CSP-ML", "SL")
#: SL knows hard constraints only.
SOFT_SYSTEMS = SYSTEMS[:3]
#: Of the affinities exp(-gamma |x - y|^2) of all systems (section 5).
GAMMA = 0.5
#: l of FAST-CSP-ML on the small sets; the paper does not give it.
SMALL_LANDMARKS = 60
LABELS = tuple(range(30, 166, 15))
PAIRS = (500, 1000, 2000, 4000, 8000, 16000)
TABLE_LABELS = (30, 75, 120, 165)
#: Of the subset of covertype: 2100 rows, 300 of each class.
SUBSET_LABELS = (210, 630, 1050, 1470)
SUBSET_PAIRS = (10_000, 100_000, 500_000)


@lru_cache(maxsize=4)
def rows_of(name: str, number: int) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Rows and classes, as many as Table 1 names: of iris and wine two classes, of covertype what figure 6 takes."""
    X, y = load_set(name)
    if name == "iris":  # 100 rows: setosa, which stands apart, is left out as Wang et al. do
        X, y = X[y > 0], y[y > 0] - 1
    elif name == "wine":  # 130 rows: 59 and 71 of the first two classes
        X, y = X[y < 2], y[y < 2]
    elif name == "covertype":
        rng = np.random.default_rng(number)
        rows = np.concatenate([rng.choice(np.flatnonzero(y == c), 300, replace=False) for c in range(7)])
        X, y = standardized(X[:, :10])[rows], y[rows]
    return np.asarray(X, np.float64), y


def standardized(X: NDArray[Any]) -> NDArray[Any]:
    """Columns of mean 0 and deviation 1."""
    return np.asarray((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9))


@lru_cache(maxsize=1)
def affinities(name: str, number: int) -> NDArray[np.float64]:
    """The paper's exp(-|x - y|^2 / 2) of all rows."""
    X, _ = rows_of(name, number)
    W = gaussian_columns(X, X, GAMMA)
    return np.asarray((W + W.T) / 2)


def cluster(system: str, name: str, number: int, known: dc.Constraints, k: int) -> Any:
    """Labels by a system."""
    X, _ = rows_of(name, number)
    if system == "CSP-ML":
        return dc.CSPML(k, gamma=GAMMA, random_state=number).fit_predict(X, constraints=known)
    if system == "FAST-CSP-ML":
        landmarks = SMALL_LANDMARKS if len(X) < 1000 else 300
        return dc.FastCSPML(k, gamma=GAMMA, n_landmarks=landmarks, random_state=number).fit_predict(
            X, constraints=known
        )
    W = affinities(name, number)
    if system == "SL":
        return spectral_learning(W, known, k, random_state=number)
    return constrained_spectral_clustering(W, known, k, random_state=number)


def draw_of(kind: str) -> Callable[[str, str, int, bool], dict[str, float]]:
    """Draws with one kind of constraints; a column is "SET @ COUNT labels" or "SET @ COUNT pairs"."""

    def draw(system: str, column: str, number: int, paper_sizes: bool) -> dict[str, float]:
        name, _, counted = column.partition(" @ ")
        count = int(counted.split()[0])
        _, y = rows_of(name, number)
        rng = np.random.default_rng([number, count])
        if kind == "pairs":
            known = draw_pairs(y, count, rng)
        else:
            known = constraints_between(draw_labels(y, count, rng), kind, rng)
        start = time.process_time()
        labels = np.asarray(cluster(system, name, number, known, int(y.max()) + 1))
        seconds = time.process_time() - start
        return scores(y, labels, seconds) | {"RI": dc.metrics.rand_index(y, labels)}

    return draw


EXPERIMENTS = {kind: Experiment(kind, draw_of(kind)) for kind in ("labels", "inconsistent", "noise", "soft", "pairs")}


@lru_cache(maxsize=1)
def large_rows(features: str) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """All rows of covertype, standardised, with the ten quantitative columns or all of them."""
    X, y = load_set("covertype")
    return standardized(X[:, :10] if features == "10" else X).astype(np.float32), y


def draw_large(system: str, column: str, number: int, paper_sizes: bool) -> dict[str, float]:
    """Soft labels of a share of all rows; with noise 30 % of them are those of a random class."""
    share = column.partition(" @ ")[2]
    X, y = large_rows("10" if share.startswith("ten") else "all")
    rng = np.random.default_rng(number)
    known = draw_labels(y, len(y) * int(share.split()[-2]) // 100, rng)
    if system.endswith("noise"):
        wrong = (known >= 0) & (rng.random(len(y)) < 0.3)
        known[wrong] = rng.integers(0, 7, int(wrong.sum()))
    soft = dc.Constraints.from_labels(known, weight=np.sqrt(rng.uniform(0.7, 1.0, len(y))))
    start = time.process_time()
    labels = dc.FastCSPML(7, gamma=GAMMA, random_state=number).fit_predict(X, constraints=soft)
    seconds = time.process_time() - start
    return scores(y, labels, seconds) | {"RI": dc.metrics.rand_index(y, labels)}


LARGE = Experiment("large", draw_large)
LARGE_SYSTEMS = ("FAST-CSP-ML", "FAST-CSP-ML, 30 % noise")

#: Table 2: set, labels, then RI and NMI of CSP, CSP-ML, FAST-CSP-ML, SL.
TABLE_2 = """
glass 30 0.68±0.12 0.55±0.13 0.69±0.12 0.31±0.06 0.36±0.08 0.35±0.08 0.28±0.06 0.12±0.02
glass 75 0.72±0.13 0.69±0.13 0.71±0.13 0.31±0.07 0.39±0.10 0.49±0.10 0.33±0.08 0.12±0.02
glass 120 0.75±0.14 0.80±0.14 0.76±0.14 0.41±0.14 0.44±0.11 0.61±0.11 0.46±0.09 0.32±0.20
glass 165 0.78±0.14 0.89±0.16 0.85±0.15 0.58±0.14 0.53±0.11 0.76±0.14 0.62±0.12 0.55±0.14
seeds 30 0.87±0.16 0.91±0.16 0.82±0.15 0.88±0.16 0.71±0.15 0.76±0.14 0.53±0.14 0.71±0.13
seeds 75 0.91±0.16 0.94±0.17 0.83±0.16 0.91±0.16 0.75±0.16 0.81±0.15 0.57±0.14 0.78±0.14
seeds 120 0.93±0.17 0.96±0.17 0.85±0.17 0.95±0.17 0.81±0.15 0.87±0.16 0.65±0.15 0.85±0.16
seeds 165 0.93±0.17 0.98±0.18 0.91±0.17 0.98±0.18 0.83±0.15 0.92±0.17 0.75±0.14 0.92±0.17
ionosphere 30 0.76±0.15 0.72±0.15 0.54±0.10 0.55±0.10 0.46±0.11 0.36±0.18 0.18±0.04 0.09±0.02
ionosphere 75 0.84±0.15 0.79±0.19 0.55±0.11 0.55±0.10 0.58±0.12 0.52±0.22 0.19±0.07 0.08±0.02
ionosphere 120 0.88±0.16 0.90±0.18 0.59±0.12 0.55±0.10 0.64±0.12 0.68±0.18 0.21±0.08 0.07±0.02
ionosphere 165 0.90±0.16 0.94±0.17 0.64±0.14 0.55±0.10 0.71±0.13 0.80±0.15 0.31±0.09 0.06±0.02
"""
#: Table 3: set, percent of known labels, RI and seconds without noise, RI and seconds with it.
TABLE_3 = """
covertype10 10 0.59±0.01 27.93 0.58±0.01 26.27
covertype10 30 0.59±0.01 27.03 0.59±0.01 30.85
covertype10 50 0.62±0.03 29.39 0.59±0.01 33.11
covertype10 70 0.68±0.04 34.03 0.59±0.01 29.49
covertype10 90 0.70±0.04 27.90 0.58±0.01 32.65
covertype 10 0.48±0.01 20.23 0.46±0.01 22.32
covertype 30 0.47±0.02 23.42 0.49±0.01 21.11
covertype 50 0.52±0.05 21.34 0.51±0.04 23.19
covertype 70 0.52±0.05 22.11 0.53±0.05 23.09
covertype 90 0.65±0.06 21.51 0.54±0.03 21.78
Sylva 10 0.51±0.01 1.13 0.50±0.01 1.12
Sylva 30 0.54±0.03 1.11 0.50±0.01 1.26
Sylva 50 0.64±0.02 1.16 0.52±0.01 1.29
Sylva 70 0.73±0.01 1.18 0.58±0.03 1.39
Sylva 90 0.91±0.01 1.18 0.67±0.04 1.52
Orange 10 0.50±0.01 1.06 0.50±0.01 0.89
Orange 30 0.54±0.01 0.97 0.51±0.01 1.02
Orange 50 0.62±0.01 0.97 0.56±0.02 1.31
Orange 70 0.74±0.01 0.93 0.66±0.02 1.54
Orange 90 0.89±0.01 0.91 0.74±0.02 2.55
Sdd 10 0.83±0.01 2.41 0.84±0.01 2.15
Sdd 30 0.84±0.01 2.39 0.84±0.01 2.41
Sdd 50 0.87±0.01 2.23 0.84±0.01 3.74
Sdd 70 0.90±0.01 2.20 0.84±0.01 5.75
Sdd 90 0.96±0.01 1.86 0.85±0.01 7.43
Postures 10 0.70±0.01 2.33 0.68±0.01 2.15
Postures 30 0.70±0.01 2.36 0.69±0.01 2.20
Postures 50 0.74±0.02 2.19 0.69±0.01 2.85
Postures 70 0.80±0.03 2.05 0.70±0.01 3.49
Postures 90 0.87±0.03 1.79 0.72±0.01 4.47
"""


def _value(text: str) -> Published:
    mean, _, spread = text.partition("±")
    return Published(float(mean), float(spread))


def _table_2(measure: int) -> dict[Cell, Published]:
    """Rand indices (0) or NMI (1)."""
    found = {}
    for line in TABLE_2.strip().splitlines():
        name, count, *values = line.split()
        for system, value in zip(SYSTEMS, values[4 * measure :], strict=False):
            found[system, f"{name} @ {count} labels"] = _value(value)
    return found


def _table_3() -> tuple[tuple[str, ...], dict[Cell, Published], dict[Cell, float]]:
    """Columns, Rand indices and seconds."""
    columns, found, seconds = [], {}, {}
    for line in TABLE_3.strip().splitlines():
        name, share, *values = line.split()
        column = f"covertype @ ten features, {share} %" if name == "covertype10" else f"{name} @ {share} %"
        columns.append(column)
        for system, value, taken in zip(LARGE_SYSTEMS, values[::2], values[1::2], strict=True):
            found[system, column], seconds[system, column] = _value(value), float(taken)
    return tuple(columns), found, seconds


def _columns(sets: tuple[str, ...], counts: tuple[int, ...], what: str = "labels") -> tuple[str, ...]:
    sizes = {"iris": 100, "wine": 130}
    return tuple(f"{name} @ {count} {what}" for name in sets for count in counts if count < sizes.get(name, 10**9))


def _figure(
    number: str,
    kind: str,
    title: str,
    sets: tuple[str, ...],
    metric: str = "RI",
    published: Mapping[Cell, Published] | None = None,
    note: str = "",
) -> Table:
    """A metric over known labels or pairs."""
    systems = SOFT_SYSTEMS if kind in ("soft", "pairs") else SYSTEMS
    what = "pairs" if kind == "pairs" else "labels"
    subset = sets == ("covertype",)
    counts = (SUBSET_PAIRS if subset else PAIRS) if what == "pairs" else (SUBSET_LABELS if subset else LABELS)
    columns = _columns(sets, counts, what)
    made = Table(number, title, EXPERIMENTS[kind], metric, systems, columns, published or {}, unit=1, kind="figure")
    return replace(made, note=note or CURVES)


CURVES = "The paper prints curves only: its numbers are not in its text."
SMALL = ("glass", "seeds", "ionosphere")
LARGE_COLUMNS, LARGE_VALUES, LARGE_SECONDS = _table_3()
FIGURE_1 = {
    (system, column): value for (system, column), value in _table_2(0).items() if column.split(" @ ")[0] in SMALL
}

PAPER = Paper(
    "csp_ml_and_fast_csp_ml_2019",
    "Trokicić, Todorović, Constrained spectral clustering via multi-layer graph embeddings on a Grassmann manifold, "
    "International Journal of Applied Mathematics and Computer Science 2019",
    (
        Table(
            "2a",
            "Rand index over known labels",
            EXPERIMENTS["labels"],
            "RI",
            SYSTEMS,
            _columns(SMALL, TABLE_LABELS),
            _table_2(0),
            unit=1,
        ),
        Table(
            "2b",
            "NMI over known labels",
            EXPERIMENTS["labels"],
            "NMI",
            SYSTEMS,
            _columns(SMALL, TABLE_LABELS),
            _table_2(1),
            unit=1,
        ),
        Table(
            "3",
            "FAST-CSP-ML on large sets, soft labels",
            LARGE,
            "RI",
            LARGE_SYSTEMS,
            LARGE_COLUMNS,
            LARGE_VALUES,
            LARGE_SECONDS,
            unit=1,
            note=(
                "Columns are standardised, 300 sampled columns; the paper gives neither scale nor number. With noise"
                " 30 % of the labels are those of a random class: the paper's 30 % are of pairs, of which there are "
                "10^10 here."
            ),
        ),
        _figure(
            "1",
            "labels",
            "Rand index over known labels",
            ("iris", "wine", *SMALL),
            published=FIGURE_1,
            note="Published values are those that Table 2 has of the curves; others are not in the paper's text.",
        ),
        _figure("2", "inconsistent", "Rand index with inconsistent constraints", SMALL),
        _figure("3", "noise", "Rand index with 30 % noise", SMALL),
        _figure("4", "soft", "Rand index with soft constraints", SMALL),
        _figure(
            "5",
            "pairs",
            "Rand index with soft edge constraints",
            SMALL,
            note=CURVES + " Nor are the numbers of pairs: these are ours.",
        ),
        *(
            _figure(f"6{part}", kind, f"covertype, 2100 rows, {said}: {metric}", ("covertype",), metric)
            for part, kind, said, metric in (
                ("a", "inconsistent", "inconsistent constraints", "RI"),
                ("b", "soft", "soft constraints", "RI"),
                ("c", "pairs", "soft edge constraints", "RI"),
                ("d", "inconsistent", "inconsistent constraints", "seconds"),
                ("e", "soft", "soft constraints", "seconds"),
                ("f", "pairs", "soft edge constraints", "seconds"),
            )
        ),
    ),
    absent={
        "Sylva": "causality.inf.ethz.ch, active learning challenge",
        "Orange": "causality.inf.ethz.ch, active learning challenge",
        "Sdd": "UCI, Dataset for Sensorless Drive Diagnosis",
        "Postures": "UCI, MoCap Hand Postures",
    },
    note=(
        "30 draws a cell in the paper, 20 in Table 3. All systems have the paper's affinities exp(-|x - y|^2 / 2), of "
        "the rows as they are, but for covertype, whose columns are standardised; the library by itself takes a width "
        "that suits the rows, with which CSP-ML has 0.90 instead of 0.57 of the Rand index on wine with 30 labels and "
        "0.65 instead of 0.61 on glass (8 draws). `alpha=0.1`: the paper does not say. FAST-CSP-ML has "
        f"{SMALL_LANDMARKS} sampled columns on the small sets, 300 on covertype: the paper does not say. Of iris and "
        "wine it has 100 and 130 rows: two classes, here without setosa, and without the third. The published "
        "deviations, 0.10 to 0.18 where a Rand index is near 0.9, cannot be those over draws; they are printed as they "
        "stand. The paper has no constrained k-means. Its tables come before its figures here."
    ),
)
