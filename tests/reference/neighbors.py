"""K nearest representatives, by plain loops; uspec_usenc_2019, section 3.1.2."""

import math


def distance(x, y):
    """Euclidean distance of two rows, eq. (3)."""
    return math.sqrt(sum((float(a) - float(b)) ** 2 for a, b in zip(x, y, strict=True)))


def closest(x, points, names, n_kept):
    """The `n_kept` of the named points that are closest to x; of equally close ones those that are named first."""
    return sorted(names, key=lambda name: distance(x, points[name]))[:n_kept]


def exact(rows, representatives, n_neighbors):
    """N_K(x_i) of eq. (6) for every row, by comparing with every representative, nearest first."""
    every = range(len(representatives))
    return [closest(x, representatives, every, n_neighbors) for x in rows]


def rep_cluster_centers(representatives, rep_clusters):
    """The mean of the representatives of each rep-cluster, eq. (4)."""
    centers = []
    for members in rep_clusters:
        total = [0.0] * len(representatives[0])
        for member in members:
            total = [t + float(r) for t, r in zip(total, representatives[member], strict=True)]
        centers.append([t / len(members) for t in total])
    return centers


def neighborhoods(representatives, n_candidates):
    """Pre-step 2: each representative and its K' = `n_candidates` nearest others, nearest first."""
    return [
        [
            name,
            *closest(
                r, representatives, [other for other in range(len(representatives)) if other != name], n_candidates
            ),
        ]
        for name, r in enumerate(representatives)
    ]


def starts(rows, representatives, rep_clusters, centers):
    """Steps 1 and 2: the nearest representative inside the nearest rep-cluster of every row."""
    found = []
    for x in rows:
        (nearest,) = closest(x, centers, range(len(centers)), 1)
        found += closest(x, representatives, rep_clusters[nearest], 1)
    return found


def approximate(rows, representatives, rep_clusters, centers, n_candidates, n_neighbors):
    """Steps 1 to 3: the K nearest among the start of a row and its K' nearest representatives, nearest first."""
    candidates = neighborhoods(representatives, n_candidates)
    return [
        closest(x, representatives, candidates[start], n_neighbors)
        for x, start in zip(rows, starts(rows, representatives, rep_clusters, centers), strict=True)
    ]


def distances(rows, representatives, nearest):
    """Distances of every row to its nearest representatives."""
    return [[distance(x, representatives[name]) for name in names] for x, names in zip(rows, nearest, strict=True)]


def recall(found, truth):
    """Share of the true neighbours that were found."""
    hits = sum(len(set(some) & set(true)) for some, true in zip(found, truth, strict=True))
    return hits / sum(len(true) for true in truth)
