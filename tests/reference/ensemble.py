"""Base clusterings and their agreement by plain loops."""

import numpy as np


def bipartite(labels):
    """B of uspec_usenc_2019, eq. (18) and (19): dense (n, c), base clusters by base clustering and label."""
    columns = []
    for column in labels.T:
        for value in sorted({int(value) for value in column if value >= 0}):
            columns.append([float(label == value) for label in column])
    return np.array(columns).T


def agreement(labels, consensus):
    """Mean over a row's labels of the share of that base cluster which lies in the row's consensus cluster."""
    out = np.full(len(labels), np.nan)
    for x in range(len(labels)):
        shares = []
        for column in range(labels.shape[1]):
            if labels[x, column] >= 0:
                members = labels[:, column] == labels[x, column]
                shares.append(np.mean(consensus[members] == consensus[x]))
        if shares and consensus[x] >= 0:
            out[x] = np.mean(shares)
    return out


def members(labels):
    """Base clustering, label and rows of each base cluster, in the order of the columns of `bipartite`."""
    out = []
    for column in range(labels.shape[1]):
        for value in sorted({int(value) for value in labels[:, column] if value >= 0}):
            out.append((column, value, np.flatnonzero(labels[:, column] == value)))
    return out


def entropies(labels):
    """Entropy of each base cluster in each base clustering that labels any of its rows, their mean; LWGP."""
    out = []
    for _, _, rows in members(labels):
        found = []
        for column in range(labels.shape[1]):
            seen = [int(value) for value in labels[rows, column] if value >= 0]
            if seen:
                shares = [seen.count(value) / len(seen) for value in set(seen)]
                found.append(-sum(share * np.log2(share) for share in shares))
        out.append(np.mean(found))
    return np.array(out)


def local_cut(labels, theta, n_clusters):
    """LWGP's embedding of the rows by a dense eigenproblem, rows at unit length (n, k)."""
    B = bipartite(labels) * np.exp(-entropies(labels) / theta)
    small = B.T @ (B / B.sum(axis=1, keepdims=True))
    roots = np.sqrt(small.sum(axis=1))
    values, vectors = (part[..., -n_clusters:] for part in np.linalg.eigh(small / roots[:, None] / roots))
    lifted = B @ (vectors / roots[:, None] / np.sqrt(values))
    return lifted / np.linalg.norm(lifted, axis=1, keepdims=True)


def confidence(labels, consensus, n_steps):
    """`daskcluster.metrics.consensus_confidence` by its definition, row by row."""
    every = [rows for _, _, rows in members(labels)]
    shared = np.array([[len(np.intersect1d(one, other)) for other in every] for one in every], float)
    step = shared / shared.sum(axis=1, keepdims=True)
    walk = np.eye(len(every))
    for _ in range(n_steps):
        walk = walk @ step
    out = np.full(len(labels), np.nan)
    for x in range(len(labels)):
        own = [c for c, rows in enumerate(every) if x in rows]
        if consensus[x] >= 0 and own:
            inside = np.array([np.sum(consensus[rows] == consensus[x]) for rows in every])
            shares = [inside[c] / len(every[c]) for c in range(len(every))]
            out[x] = np.mean([np.minimum(walk[c] * shares, inside / inside.sum()).sum() for c in own])
    return out
