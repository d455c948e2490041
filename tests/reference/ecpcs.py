"""ECPCS-MC by sets and plain loops."""

import numpy as np

from tests.reference.ensemble import members


def jaccard(labels):
    """Similarity of base clusters over the rows that both base clusterings label."""
    found = members(labels)
    out = np.zeros((len(found), len(found)))
    for i, (a, _, one) in enumerate(found):
        for j, (b, _, other) in enumerate(found):
            here = {int(x) for x in one if labels[x, b] >= 0}
            there = {int(x) for x in other if labels[x, a] >= 0}
            if here | there:
                out[i, j] = len(here & there) / len(here | there)
    return out


def propagated(similarities, n_steps):
    """Cosines of the trajectories, written out as one long row a vertex."""
    links = similarities - np.diag(np.diag(similarities))
    steps = np.array([row / row.sum() if row.sum() > 0 else row for row in links])
    walks = [steps]
    for _ in range(n_steps - 1):
        walks.append(walks[-1] @ steps)
    paths = np.hstack(walks)
    out = np.eye(len(paths))
    for i in range(len(paths)):
        for j in range(len(paths)):
            product = np.linalg.norm(paths[i]) * np.linalg.norm(paths[j])
            if i != j and product > 0:
                out[i, j] = paths[i] @ paths[j] / product
    return out


def shares(labels, meta):
    """Of each meta-cluster's base clusters the share that holds a row (n, k)."""
    out = np.zeros((len(labels), max(meta) + 1))
    for number, (_, _, rows) in enumerate(members(labels)):
        out[rows, meta[number]] += 1
    return out / np.bincount(meta)
