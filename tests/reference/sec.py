"""Spectral ensemble clustering with dense matrices and plain loops; sec_2015.

Labels (n, m) are whole numbers, -1 for none.
"""

import numpy as np


def blocks_of(labels):
    """The binary matrices b(x)_i of each base clustering, a column a label, in ascending order."""
    blocks = []
    for column in labels.T:
        values = sorted({int(value) for value in column if value >= 0})
        blocks.append(
            np.array([[float(value == label) for label in values] for value in column]).reshape(len(column), -1)
        )
    return blocks


def incidence(labels):
    """B (n, c)."""
    return np.hstack(blocks_of(labels))


def co_association(labels):
    """S (n, n): in how many base clusterings two rows have the same label."""
    n = len(labels)
    S = np.zeros((n, n))
    for x in range(n):
        for y in range(n):
            S[x, y] = sum(1 for a, b in zip(labels[x], labels[y], strict=True) if a == b and a >= 0)
    return S


def trace(labels, partition):
    """tr(Z^T D^-1/2 S D^-1/2 Z) of eq. (1), Z = D^1/2 H (H^T D H)^-1/2."""
    S = co_association(labels)
    degrees = S.sum(axis=1)
    total = 0.0
    for k in set(partition.tolist()):
        inside = partition == k
        total += S[np.ix_(inside, inside)].sum() / degrees[inside].sum()
    return total


def centers(labels, partition, n_clusters):
    """m_k of Theorem 5 (k, c): blocks over the rows that the base clustering labels; zero without such rows."""
    w = co_association(labels).sum(axis=1)
    out = []
    for k in range(n_clusters):
        parts = []
        for block in blocks_of(labels):
            inside = (partition == k) & (block.sum(axis=1) > 0)
            mass = w[inside].sum()
            parts.append(block[inside].sum(axis=0) / mass if mass > 0 else np.zeros(block.shape[1]))
        out.append(np.concatenate(parts))
    return np.array(out)


def distances(labels, means):
    """w |b/w - m_k|^2 over the blocks that are there (n, k), as in Theorem 5."""
    w = co_association(labels).sum(axis=1)
    blocks = blocks_of(labels)
    out = np.zeros((len(labels), len(means)))
    for x in range(len(labels)):
        begin = 0
        for block in blocks:
            stop = begin + block.shape[1]
            if block[x].sum() > 0:
                for k in range(len(means)):
                    out[x, k] += w[x] * ((block[x] / w[x] - means[k, begin:stop]) ** 2).sum()
            begin = stop
    return out


def objective(labels, partition):
    """sum_x f(x) of a partition with its own centres."""
    found = distances(labels, centers(labels, partition, int(partition.max()) + 1))
    return sum(found[x, k] for x, k in enumerate(partition))


def utility_form(labels, partition):
    """The same by contingency tables: sum_x n_labels / w - n sum_i p_i ... of eq. (4) and (8)."""
    n = len(labels)
    w = co_association(labels).sum(axis=1)
    constant = sum((labels[x] >= 0).sum() / w[x] for x in range(n))
    utility = 0.0
    for block in blocks_of(labels):
        there = block.sum(axis=1) > 0
        n_i = there.sum()
        for k in set(partition.tolist()):
            inside = there & (partition == k)
            if inside.any():
                n_k, w_k = inside.sum(), w[inside].sum()
                p_k = n_k / n_i
                p_kj = block[inside].sum(axis=0) / n_i
                utility += (n_i / n) * (n_k / w_k) * p_k * ((p_kj / p_k) ** 2).sum()
    return constant - n * utility
