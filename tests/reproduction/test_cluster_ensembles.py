"""CSPA, MCLA and HGPA on the example of their paper, and what they are made of."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from ci.reproduction.systems.cspa import cluster_based_similarity_partitioning
from ci.reproduction.systems.hgpa import hypergraph_partitioning, imbalance
from ci.reproduction.systems.mcla import UNIT, meta_clustering, meta_graph
from ci.reproduction.systems.partitioners import hyperedges, partition_graph

#: The four labelings of seven objects of Strehl and Ghosh, 2002, and their consensus.
EXAMPLE = np.array([[1, 1, 1, 2, 2, 3, 3], [2, 2, 2, 3, 3, 1, 1], [1, 1, 2, 2, 3, 3, 3], [1, 2, -1, 1, 2, -1, -1]]).T
CONSENSUS = np.array([0, 0, 0, 1, 1, 2, 2])

SYSTEMS = {
    "CSPA": (cluster_based_similarity_partitioning, "pymetis"),
    "MCLA": (meta_clustering, "pymetis"),
    "HGPA": (hypergraph_partitioning, "mtkahypar"),
}
EACH = pytest.mark.parametrize("name", SYSTEMS)


def system(name: str) -> Any:
    """A system, if its partitioner is installed."""
    function, module = SYSTEMS[name]
    pytest.importorskip(module)
    return function


@EACH
@pytest.mark.parametrize("seed", [0, 1])
def test_the_example_of_the_paper(name, seed):
    found = system(name)(EXAMPLE, 3, random_state=seed)
    assert (found[:, None] == found).tolist() == (CONSENSUS[:, None] == CONSENSUS).tolist()


@EACH
def test_one_cluster(name):
    assert system(name)(EXAMPLE, 1, random_state=0).tolist() == [0] * 7


@pytest.mark.parametrize("often", ["first", "second"])
def test_rows_that_agree_more_often_stay_together_in_cspa(often):
    """Four rows in a ring, of which two opposite links count 2 and the others 1."""
    first, second = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0])
    expected = first if often == "first" else second
    found = system("CSPA")(np.stack([first, second, expected], axis=1), 2, random_state=0)
    assert (found[:, None] == found).tolist() == (expected[:, None] == expected).tolist()


def test_base_clusters_weigh_and_hold_rows_in_mcla():
    """Of base clusters of 8, 3, 3 and 2 rows the first is a half by its rows, and not by its number.

    Row 7 is in that one, which is all of its meta-cluster, and in two of the three of the other one.
    """
    members = [[0, 1, 2, 3, 4, 5, 6, 7], [7, 8, 9], [7, 9, 10], [10, 11]]
    base = np.full((12, 4), -1)
    for j, rows in enumerate(members):
        base[rows, j] = 0
    found = system("MCLA")(base, 2, random_state=0)
    assert (found == found[0]).tolist() == [True] * 8 + [False] * 4


def test_a_base_cluster_is_cut_once_in_hgpa():
    """Three thirds cut four halves, which are too large for a part.

    That each half is in three pieces does not count: two thirds that are cut so that it is in two would cost more.
    """
    thirds, halves = np.repeat([0, 0, 1, 1, 2, 2], 4), np.repeat([0, 1, 0, 1, 0, 1], 4)
    found = system("HGPA")(np.stack([thirds, halves, halves], axis=1), 3, random_state=0)
    assert (found[:, None] == found).tolist() == (thirds[:, None] == thirds).tolist()


def test_a_half_of_a_hypergraph_has_55_percent_at_most():
    """Of 40 rows one part may have 22, as of base clusters of 22 and 18; of 24 and 16 one must be cut."""
    pytest.importorskip("mtkahypar")
    assert [round(imbalance(parts), 3) for parts in (1, 2, 4)] == [0.0, 0.1, 0.21]
    for larger, cut in ((22, False), (24, True)):
        base = np.repeat([0, 1], [larger, 40 - larger])[:, None]
        found = hypergraph_partitioning(base, 2, random_state=0)
        assert (len({*zip(found.tolist(), base[:, 0].tolist(), strict=True)}) > 2) == cut
        assert 18 <= found.sum() <= 22


def test_parts_of_a_graph_are_balanced_by_weight():
    """A path of four: the cheapest cut with equal weights is the middle one, else the one behind the heavy vertex."""
    pytest.importorskip("pymetis")
    path = np.diag([9, 1, 9], 1)
    path += path.T
    halves = partition_graph(path, 2, 0)
    assert (halves == halves[0]).tolist() == [True, True, False, False]
    heavy = partition_graph(path, 2, 0, np.array([30, 10, 10, 10]))
    assert (heavy == heavy[0]).tolist() == [True, False, False, False]


def test_hyperedges_and_their_similarities_by_hand():
    H = hyperedges(np.array([[0, 5], [0, 7], [3, -1], [3, 7]]))
    assert H.tolist() == [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 0], [0, 1, 0, 1]]
    third, half = round(UNIT / 3), UNIT // 2
    expected = [[UNIT, 0, half, third], [0, UNIT, 0, third], [half, 0, UNIT, 0], [third, third, 0, UNIT]]
    assert meta_graph(H).tolist() == expected


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (np.zeros((3, 2)), "whole numbers"),
        (np.zeros(3, int), r"\(n, m\), got shape \(3,\)"),
        (np.array([[0, -2]]), "labels must be >= -1, got -2"),
        (np.array([[0, 0], [-1, -1]]), "got none in row 1"),
    ],
)
def test_labels_are_checked(labels, match):
    with pytest.raises(ValueError, match=match):
        hyperedges(labels)


def test_a_partitioner_that_is_not_installed_is_named(monkeypatch):
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"partitioning a graph needs pymetis: install daskcluster\[reproduction\]"):
        partition_graph(np.ones((3, 3), int), 2, 0)
