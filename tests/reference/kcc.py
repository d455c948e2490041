"""k-means-based consensus clustering with dense rows and plain loops, from the distances of Wu et al. (TKDE 2015)."""

import numpy as np

from tests.reference.sec import blocks_of


def shares(labels, partition, n_clusters):
    """Means of the binary rows over the rows that the base clustering labels (k, c); zeros without such rows."""
    out = []
    for k in range(n_clusters):
        parts = []
        for block in blocks_of(labels):
            inside = (partition == k) & (block.sum(axis=1) > 0)
            parts.append(block[inside].mean(axis=0) if inside.any() else np.zeros(block.shape[1]))
        out.append(np.concatenate(parts))
    return np.array(out)


def distance(x, m, utility, p):
    """Of a binary row x to the mean m in one base clustering."""
    if utility == "categorical":
        return ((x - m) ** 2).sum()
    if utility == "entropy" and not m.any():
        return np.log2(len(m))  # of these rows nothing is known
    if utility == "entropy":
        return np.inf if m[x == 1][0] == 0 else -np.log2(m[x == 1][0])
    if utility == "cosine":
        return 1 - x @ m / np.linalg.norm(m) if m.any() else 1.0
    return 1 - (x * m ** (p - 1)).sum() / np.linalg.norm(m, p) ** (p - 1) if m.any() else 1.0


def distances(labels, means, utility, p):
    """Sums over the base clusterings that label the row (n, k)."""
    out = np.zeros((len(labels), len(means)))
    begin = 0
    for block in blocks_of(labels):
        stop = begin + block.shape[1]
        for x in range(len(labels)):
            if block[x].any():
                for k in range(len(means)):
                    out[x, k] += distance(block[x], means[k, begin:stop], utility, p)
        begin = stop
    return out


def objective(labels, partition, utility, p):
    """Sum of the distances of the rows to the means of their own clusters."""
    found = distances(labels, shares(labels, partition, int(partition.max()) + 1), utility, p)
    return sum(found[x, k] for x, k in enumerate(partition))


def utility_form(labels, partition, utility, p):
    """The same as a constant less the utility: n_i (phi(a row) - sum_k p_k phi(m_ki)), phi convex."""
    phi = {
        "categorical": lambda m: (m**2).sum(),
        "entropy": lambda m: sum(share * np.log2(share) for share in m if share > 0),
        "cosine": np.linalg.norm,
        "lp": lambda m: np.linalg.norm(m, p),
    }[utility]
    total = 0.0
    for block in blocks_of(labels):
        rows = block.sum(axis=1) > 0
        for k in set(partition.tolist()):
            inside = rows & (partition == k)
            if inside.any():
                total += inside.sum() * (phi(block[inside][0]) - phi(block[inside].mean(axis=0)))
    return total
