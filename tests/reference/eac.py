"""Evidence accumulation on all rows, by plain loops; and the random walks of PTGP."""

import numpy as np

from tests.reference import ecpcs, ensemble


def connected_triples(labels, decay):
    """Likeness of base clusters (c, c) of the same base clustering; 1 on the diagonal."""
    found = ensemble.members(labels)
    links = ecpcs.jaccard(labels)
    triples = np.zeros_like(links)
    for i, (a, _, _) in enumerate(found):
        for j, (b, _, _) in enumerate(found):
            if i != j and a == b:
                triples[i, j] = sum(min(links[i, k], links[j, k]) for k in range(len(found)) if k not in (i, j))
    most = triples.max()
    return np.eye(len(found)) + (decay * triples / most if most > 0 else 0)


def cluster_likeness(labels, weights, theta, decay):
    """Likeness of rows by the base clusters that they are in (c, c)."""
    if weights == "wct":
        return connected_triples(labels, decay)
    if weights == "none":
        return np.eye(len(ensemble.members(labels)))
    entropies = ensemble.entropies(labels)
    return np.diag(np.exp(-(entropies - entropies.min()) / theta))


def likeness(labels, weights="none", theta=0.4, decay=0.8):
    """Likeness of all rows (n, n): the mean over the base clusterings, see `kernels.linkage.row_likeness`."""
    found = [(column, value) for column, value, _ in ensemble.members(labels)]
    alike = cluster_likeness(labels, weights, theta, decay)
    n, m = labels.shape

    def of(x, y, column):
        one, other = labels[x, column], labels[y, column]
        return None if min(one, other) < 0 else alike[found.index((column, one)), found.index((column, other))]

    means = []
    for column in range(m):
        seen = [of(x, y, column) for x in range(n) for y in range(n)]
        if any(value is not None for value in seen):
            means.append(np.mean([value for value in seen if value is not None]))
    out = np.zeros((n, n))
    for x in range(n):
        for y in range(n):
            seen = [value for column in range(m) if (value := of(x, y, column)) is not None]
            out[x, y] = np.mean(seen if len(seen) == m else [*seen, np.mean(means)])
    return out


def clusters(labels, n_clusters, linkage="average", **options):
    """Cluster of each row, numbered by their first rows; -1 for rows without labels.

    Every row starts as a cluster of its own. Rows with equal labels are at distance 0, so they are joined first. Of
    equally similar pairs of clusters the one with the fewest rows is joined, of these the one whose first rows come
    first.
    """
    alike = likeness(labels, **options)
    for x in range(len(labels)):
        for y in range(len(labels)):
            if (labels[x] == labels[y]).all():
                alike[x, y] = 2.0
    measure = {"average": np.mean, "complete": np.min, "single": np.max}[linkage]
    groups = [[x] for x in range(len(labels)) if (labels[x] >= 0).any()]
    while len(groups) > n_clusters:
        pairs = [
            (-np.round(measure(alike[np.ix_(one, other)]), 9), len(one) + len(other), one[0], other[0], i, j)
            for i, one in enumerate(groups)
            for j, other in enumerate(groups)
            if one[0] < other[0]
        ]
        *_, i, j = min(pairs)
        groups[i] = sorted(groups[i] + groups[j])
        del groups[j]
    out = np.full(len(labels), -1)
    for number, group in enumerate(sorted(groups)):
        out[group] = number
    return out


def walk_links(alike, counts, n_neighbors):
    """Links of a random walk over micro-clusters (u, u); elite neighbor selection."""
    u = len(alike)
    elite = np.zeros((u, u), bool)
    for x in range(u):
        others = sorted((0.0 if y == x else alike[x, y] for y in range(u)), reverse=True)
        least = others[min(n_neighbors, u) - 1]
        for y in range(u):
            elite[x, y] = y != x and alike[x, y] >= least
    return np.array(
        [[alike[x, y] * counts[y] if elite[x, y] or elite[y, x] else 0.0 for y in range(u)] for x in range(u)]
    )
