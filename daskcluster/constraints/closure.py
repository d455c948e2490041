"""Must-link components, implied cannot-links, contradictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from ..kernels.disjoint_set import component_roots, merge_in_order

__all__ = ["Contradiction", "close_pairs", "find_components", "find_contradictions"]

#: Rows at either end of a chain that its text names.
END_ROWS = 4

Rows = NDArray[np.int64]
#: first (m,), second (m,), weights (m,).
Triple = tuple[Rows, Rows, NDArray[np.float64]]


@dataclass(frozen=True)
class Contradiction:
    """A cannot-link between two rows that a chain of must-links joins.

    Attributes
    ----------
    chain : tuple of int
        The rows of the shortest chain; the cannot-link is between its ends. The text leaves out the middle of a long
        one.
    """

    chain: tuple[int, ...]

    def __str__(self) -> str:
        named = [str(row) for row in self.chain]
        if len(named) > 2 * END_ROWS + 1:
            named[END_ROWS:-END_ROWS] = [f"... {len(named) - 2 * END_ROWS} rows ..."]
        links = " - ".join(named)
        return f"rows {self.chain[0]} and {self.chain[-1]} cannot link, but the chain of must-links {links} joins them"


def find_components(first: Rows, second: Rows) -> tuple[Rows, Rows]:
    """Rows that pairs name, ascending, and the smallest row of each one's component."""
    rows, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    roots = component_roots(places[: len(first)], places[len(first) :], len(rows))
    return rows, rows[roots]


def find_contradictions(
    must_first: Rows, must_second: Rows, cannot_first: Rows, cannot_second: Rows, limit: int
) -> list[Contradiction]:
    """Cannot-links inside a must-link component, with their chains; at most `limit`, in the order of the pairs."""
    rows, components = find_components(must_first, must_second)
    if not len(rows):
        return []
    inside = np.isin(cannot_first, rows) & np.isin(cannot_second, rows)
    first, second = cannot_first[inside], cannot_second[inside]
    same = components[np.searchsorted(rows, first)] == components[np.searchsorted(rows, second)]
    a, b = np.searchsorted(rows, must_first), np.searchsorted(rows, must_second)
    links = scipy.sparse.csr_array((np.ones(len(a), np.int8), (a, b)), shape=(len(rows), len(rows)))
    found = []
    for i, j in zip(first[same][:limit].tolist(), second[same][:limit].tolist(), strict=True):
        start, place = int(np.searchsorted(rows, i)), int(np.searchsorted(rows, j))
        before = breadth_first_order(links, start, directed=False)[1]
        chain = [place]
        while chain[-1] != start:
            chain.append(int(before[chain[-1]]))
        found.append(Contradiction(tuple(int(rows[place]) for place in reversed(chain))))
    return found


def close_pairs(must: Triple, cannot: Triple, most_pairs: int) -> tuple[Triple, Triple]:
    """All must-links and cannot-links that follow from consistent ones.

    Parameters
    ----------
    must, cannot : (first, second, weights)
    most_pairs : int

    Returns
    -------
    must, cannot : (first, second, weights)
        first < second, in ascending order.

    Raises
    ------
    ValueError
        If more than `most_pairs` pairs follow.

    Notes
    -----
    Weights are those of the strongest chain, whose strength is its weakest link. For must-links it is found by
    Kruskal's order: the pair that joins two components is the weakest link of the best chains between them.
    """
    rows, components = find_components(*must[:2])
    named = np.union1d(rows, np.union1d(cannot[0], cannot[1]))
    component = named.copy()
    component[np.searchsorted(named, rows)] = components
    roots, which = np.unique(component, return_inverse=True)
    order = np.argsort(which, kind="stable")
    sizes = np.bincount(which, minlength=len(roots))
    members = np.split(named[order], np.cumsum(sizes)[:-1]) if len(roots) else []

    groups = which[np.searchsorted(named, cannot[0])], which[np.searchsorted(named, cannot[1])]
    low, high = np.minimum(*groups), np.maximum(*groups)
    linked = np.unique(np.stack([low, high], axis=1), axis=0)
    n_pairs = int((sizes.astype(np.int64) * (sizes - 1) // 2).sum() + (sizes[linked[:, 0]] * sizes[linked[:, 1]]).sum())
    if n_pairs > most_pairs:
        raise ValueError(f"the closure of the constraints has {n_pairs} pairs, more than {most_pairs}")

    strengths = _chain_strengths(must, named, which, members)
    implied_must: list[tuple[Any, ...]] = []
    for group, strength in zip(members, strengths, strict=True):
        a, b = np.triu_indices(len(group), 1)
        implied_must.append((group[a], group[b], strength[a, b]))
    implied_cannot: list[tuple[Any, ...]] = []
    by_groups = np.lexsort((high, low))
    changes = (np.diff(low[by_groups]) != 0) | (np.diff(high[by_groups]) != 0)
    for links in np.split(by_groups, np.flatnonzero(changes) + 1) if len(low) else []:
        c, d = int(low[links[0]]), int(high[links[0]])
        strength = np.zeros((len(members[c]), len(members[d])))
        for e in links:
            i, j = (cannot[0][e], cannot[1][e]) if groups[0][e] == c else (cannot[1][e], cannot[0][e])
            left = strengths[c][np.searchsorted(members[c], i)]
            right = strengths[d][np.searchsorted(members[d], j)]
            np.maximum(strength, np.minimum.outer(np.minimum(left, cannot[2][e]), right), out=strength)
        implied_cannot.append(
            (np.repeat(members[c], len(members[d])), np.tile(members[d], len(members[c])), strength.ravel())
        )
    return _sorted(implied_must), _sorted(implied_cannot)


def _chain_strengths(must: Triple, named: Rows, which: Rows, members: list[Rows]) -> list[NDArray[np.float64]]:
    """For each component the strength (s, s) of the best chain between its rows; 1 on the diagonal."""
    strengths = [np.eye(len(group)) for group in members]
    order = np.argsort(-must[2], kind="stable")
    first, second = np.searchsorted(named, must[0][order]), np.searchsorted(named, must[1][order])
    merging = np.flatnonzero(merge_in_order(first, second, len(named)))
    joined = {row: [row] for row in range(len(named))}
    owner = np.arange(len(named))
    for e in merging:
        a, b = int(owner[first[e]]), int(owner[second[e]])
        group = int(which[first[e]])
        left = np.searchsorted(members[group], named[joined[a]])
        right = np.searchsorted(members[group], named[joined[b]])
        weight = must[2][order[e]]
        strengths[group][np.ix_(left, right)] = weight
        strengths[group][np.ix_(right, left)] = weight
        owner[joined[b]] = a
        joined[a] += joined.pop(b)
    return strengths


def _sorted(parts: list[tuple[Any, ...]]) -> Triple:
    """Pairs with the smaller row first, in ascending order."""
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    a, b, weights = (np.concatenate([part[i] for part in parts]) for i in range(3))
    first, second = np.minimum(a, b), np.maximum(a, b)
    order = np.lexsort((second, first))
    return first[order], second[order], weights[order]
