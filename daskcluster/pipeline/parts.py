"""Unlinked parts of a small graph: what is left out, and what is joined, before it is cut.

A graph in more unlinked parts than clusters wanted leaves the cut open: any of them serve as well. So specks are left
out, and of the other parts, those that are nearest to each other are joined.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from ..kernels.points import sqdist_to_all
from ..kernels.sparse_rows import is_sparse

__all__ = ["joining_edges", "parts_of", "without_specks"]

#: Normalized affinities below this are no link: the eigenproblem does not resolve them.
LEAST_LINK = 1e-12
#: A part of the graph below this share of its equal share (all degrees / k) is a speck.
SPECK = 0.01


def parts_of(linked: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Number of the unlinked part of each vertex (p,), counted from 0, from the vertices' links (p, p)."""
    parts: NDArray[np.int32] = connected_components(scipy.sparse.csr_array(linked), directed=False)[1]
    return parts


def without_specks(
    parts: NDArray[np.int32], degrees: NDArray[np.float64], n_clusters: int, bound: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Mask (p,) of the vertices to cut: leaves out the smallest parts of a graph that is in too many parts.

    Parameters
    ----------
    parts : (p,) int
    degrees : (p,)
    n_clusters : int
    bound : (p,) bool, optional
        Vertices of which something is known, whose part stays.
    """
    masses = np.bincount(parts, degrees)
    speck = SPECK * masses.sum() / n_clusters
    order = np.argsort(masses, kind="stable")[: max(0, len(masses) - n_clusters)]
    specks = order[masses[order] < speck]
    if bound is not None:
        specks = np.setdiff1d(specks, parts[bound])
    return ~np.isin(parts, specks)


def _distances(points: Any) -> NDArray[np.float64]:
    return np.sqrt(sqdist_to_all(points, points)) if is_sparse(points) else cdist(points, points)


def joining_edges(
    parts: NDArray[np.int32], points: NDArray[np.float64], n_parts: int, apart: NDArray[np.bool_] | None = None
) -> list[tuple[int, int]]:
    """Pairs of vertices whose links leave `n_parts` parts: the shortest ones, one after the other (single linkage).

    Parameters
    ----------
    parts : (p,) int
        Part of each vertex, from 0 without gaps.
    points : (p, d)
        Places of the vertices, dense or `SparseRows`.
    n_parts : int
        Parts wanted.
    apart : (P, P) bool, optional
        Parts that must not be joined, symmetric. Then more than `n_parts` may be left.

    Notes
    -----
    Eager, 8 p**2 bytes. Of equally long ones the pair of the first parts is taken.
    """
    n_found = int(parts.max()) + 1
    if n_found <= n_parts:
        return []
    order = np.argsort(parts, kind="stable")
    starts = np.searchsorted(parts[order], np.arange(n_found))
    distances = _distances(points[order])
    between = np.minimum.reduceat(np.minimum.reduceat(distances, starts, axis=0), starts, axis=1)  # (P, P)
    one, other = np.triu_indices(n_found, 1)
    apart = np.zeros((n_found, n_found), bool) if apart is None else apart.copy()
    group = np.arange(n_found)
    edges = []
    for place in np.argsort(between[one, other], kind="stable"):
        i, j = one[place], other[place]
        first, second = group[i], group[j]
        if first == second or apart[first, second]:
            continue
        block = distances[starts[i] :, starts[j] :][: np.sum(parts == i), : np.sum(parts == j)]
        row, column = np.unravel_index(np.argmin(block), block.shape)
        edges.append((int(order[starts[i] + row]), int(order[starts[j] + column])))
        group[group == second] = first
        apart[first] |= apart[second]
        apart[:, first] |= apart[:, second]
        n_found -= 1
        if n_found == n_parts:
            break
    return edges
