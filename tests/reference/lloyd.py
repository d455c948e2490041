"""Weighted k-means, by plain loops: Lloyd 1982; Arthur and Vassilvitskii, SODA 2007."""

import bisect
import itertools
import math

import numpy as np


def sqdist(x, y):
    return math.fsum((float(a) - float(b)) ** 2 for a, b in zip(x, y, strict=True))


def assign(points, centers):
    """The nearest centre of each point; the first of equally near ones."""
    return [min(range(len(centers)), key=lambda c: sqdist(x, centers[c])) for x in points]


def inertia(points, weights, centers, labels):
    """Weighted sum of squared distances to the assigned centres."""
    return math.fsum(w * sqdist(x, centers[c]) for x, w, c in zip(points, weights, labels, strict=True))


def potential(points, weights, centers):
    """Weighted sum of squared distances to the closest centre: phi of k-means++."""
    return math.fsum(w * min(sqdist(x, c) for c in centers) for x, w in zip(points, weights, strict=True))


def means(points, weights, centers, labels):
    """Weighted mean of each cluster; the old centre for a cluster without weight."""
    moved = []
    for c, center in enumerate(centers):
        members = [(x, w) for x, w, label in zip(points, weights, labels, strict=True) if label == c]
        mass = math.fsum(w for _, w in members)
        moved.append(
            [math.fsum(w * float(x[f]) for x, w in members) / mass for f in range(len(center))] if mass > 0 else center
        )
    return np.array(moved, float)


def lloyd(points, weights, centers, n_iter):
    """`n_iter` assignments with moves between them, or fewer when no label changes: (centers, labels)."""
    labels = assign(points, centers)
    for _ in range(n_iter - 1):
        centers = means(points, weights, centers, labels)
        previous, labels = labels, assign(points, centers)
        if labels == previous:
            break
    return np.asarray(centers, float), labels


def plus_plus(points, weights, uniforms):
    """Greedy k-means++ by given random numbers (k, trials): the chosen rows.

    A number u in [0, 1) draws the row in whose share of the total mass u falls. The mass of a row is its weight for the
    first centre, and weight times squared distance to the closest chosen one from then on. Of a step's trials that one
    is kept which leaves the lowest potential; the first centre has one trial.
    """
    chosen = []
    for step, trials in enumerate(uniforms):
        masses = [
            w * (min(sqdist(x, points[c]) for c in chosen) if chosen else 1.0)
            for x, w in zip(points, weights, strict=True)
        ]
        cumulative = list(itertools.accumulate(masses))
        if cumulative[-1] <= 0:
            break
        drawn = [bisect.bisect_right(cumulative, u * cumulative[-1]) for u in (trials if step else trials[:1])]
        chosen.append(min(drawn, key=lambda row: potential(points, weights, [points[c] for c in [*chosen, row]])))
    return chosen
