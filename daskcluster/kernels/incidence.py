"""Base clusterings on one block: counting and coding their labels, and k-means on the rows of the incidence matrix.

A row of the binary incidence matrix B (n, c) has a one for each of its m labels. It is held as these m labels, as codes
0..K_i - 1 within each base clustering i, -1 for none; ``offsets[i] + code`` is the base cluster, a column of B. Nothing
here makes a row of B: what depends on it is a sum of m entries of a table.
"""

from __future__ import annotations

import numpy as np

from .jit import jit, jit_fast

__all__ = [
    "PAD_CLUSTERS",
    "agreed_rows",
    "agreement_rows",
    "assign_labels",
    "count_labels",
    "count_together",
    "encode_labels",
    "exchange_labels",
    "label_edges",
    "label_weights",
    "lloyd_labels",
    "plus_plus_labels",
    "sqdist_labels",
]

#: Tables with a column a cluster are padded to a multiple of this, a whole number of vector registers.
PAD_CLUSTERS = 4


@jit
def count_labels(labels, lowest, starts, counts):
    """Count every label of a block into one table of consecutive labels a base clustering.

    Parameters
    ----------
    labels : (n, m) int64
        Negative ones are skipped.
    lowest : (m,) int64
        The label of each base clustering's first entry.
    starts : (m,) int64
        Where its entries start; a negative one skips the base clustering.
    counts : int64, changed in place

    Returns
    -------
    int
        Rows with a label, whichever it is.
    """
    n_rows, n_columns = labels.shape
    n_labelled = 0
    for i in range(n_rows):
        found = False
        for j in range(n_columns):
            if labels[i, j] >= 0:
                found = True
                if starts[j] >= 0:
                    counts[starts[j] + labels[i, j] - lowest[j]] += 1
        if found:
            n_labelled += 1
    return n_labelled


@jit
def encode_labels(labels, lowest, starts, lengths, table, codes):
    """Codes of a block's labels by tables of consecutive labels.

    Parameters
    ----------
    labels : (n, m) int64
    lowest, starts, lengths : (m,) int64
        First label of each base clustering's entries in `table`, where they start, and how many they are; a negative
        start skips the base clustering.
    table : int32
        Code of each label, -1 for a label without one.
    codes : (n, m) int, changed in place
        -1 for a label that is negative or not in the table.
    """
    n_rows, n_columns = labels.shape
    for i in range(n_rows):
        for j in range(n_columns):
            if starts[j] >= 0:
                place = labels[i, j] - lowest[j]
                known = labels[i, j] >= 0 and place >= 0 and place < lengths[j]
                codes[i, j] = table[starts[j] + place] if known else -1


@jit
def label_edges(codes, offsets):
    """Base clusters of each row: codes (n, m) -> columns of B (n, m) int32, -1 for none."""
    n_rows, n_columns = codes.shape
    edges = np.empty((n_rows, n_columns), np.int32)
    for i in range(n_rows):
        for j in range(n_columns):
            code = np.int64(codes[i, j])
            edges[i, j] = offsets[j] + code if code >= 0 else -1
    return edges


@jit
def label_weights(codes, offsets, sizes):
    """Weights w of the rows (n,) float64: the sums of the sizes (c,) int64 of their base clusters; sec_2015, eq. (2).

    That is the row sum of the co-association matrix, missing labels adding nothing; 0 for a row without labels.
    """
    weights = np.empty(codes.shape[0])
    for i in range(codes.shape[0]):
        total = np.int64(0)
        for j in range(codes.shape[1]):
            code = np.int64(codes[i, j])
            if code >= 0:
                total += sizes[offsets[j] + code]
        weights[i] = total
    return weights


#: Labels of a row whose table entries are added together: the sums then do not wait for each other.
TOGETHER = 4


@jit_fast
def _nearest(codes, i, offsets, sizes, inner, norms, every_norm, scores, places):
    """Cluster of row i by sec_2015, Theorem 1 and 5, its weight and the number of its labels; -1 without labels.

    Times w the squared distance to centre k is n_labels / w - 2 sum_i m_k[label_i] + w sum_i |m_ki|^2, the sums going
    over the labels that are there; the first term is the same for every k, and `scores` gets the rest.
    """
    n_columns = codes.shape[1]
    n_padded = inner.shape[1]
    nothing = inner.shape[0] - 1
    weight = np.int64(0)
    n_labels = 0
    for j in range(n_columns):
        code = np.int64(codes[i, j])
        if code >= 0:
            places[j] = offsets[j] + code
            weight += sizes[places[j]]
            n_labels += 1
        else:
            places[j] = nothing
    for c in range(n_padded):
        scores[c] = 0.0
    for j in range(0, places.shape[0], TOGETHER):
        first, second, third, fourth = places[j], places[j + 1], places[j + 2], places[j + 3]
        for c in range(n_padded):
            scores[c] += (inner[first, c] + inner[second, c]) + (inner[third, c] + inner[fourth, c])
    w = np.float64(weight)
    if n_labels == n_columns:
        for c in range(n_padded):
            scores[c] = w * every_norm[c] - 2.0 * scores[c]
    else:
        for c in range(n_padded):
            scores[c] *= -2.0
        for j in range(n_columns):
            if codes[i, j] >= 0:
                for c in range(n_padded):
                    scores[c] += w * norms[j, c]
    best = 0
    for c in range(1, n_padded):
        if scores[c] < scores[best]:
            best = c
    return (best if n_labels > 0 else -1), w, n_labels


@jit
def _room(n_columns, n_rows):
    """Places of a row's labels, padded to a multiple of `TOGETHER` with those of the row of zeros."""
    return np.full(n_columns + (-n_columns) % TOGETHER, n_rows - 1, np.int64)


@jit
def assign_labels(codes, offsets, sizes, inner, norms, every_norm):
    """Nearest centre of each row in the sense of sec_2015, Theorem 1 and 5.

    Parameters
    ----------
    codes : (n, m) int
    offsets : (m,) int64
    sizes : (c,) int64
        Rows of each base cluster.
    inner : (c + 1, k') float64
        Centres, one a column, padded with zeros to a multiple of `PAD_CLUSTERS`, and a last row of zeros.
    norms : (m, k') float64
        Squared norms of their blocks; infinite in the padding.
    every_norm : (k',) float64
        Sums of `norms` over the base clusterings.

    Returns
    -------
    (n,) int32
        The first one of equally near centres, -1 for a row without labels.
    """
    scores, places = np.empty(inner.shape[1]), _room(codes.shape[1], inner.shape[0])
    labels = np.empty(codes.shape[0], np.int32)
    for i in range(codes.shape[0]):
        labels[i] = _nearest(codes, i, offsets, sizes, inner, norms, every_norm, scores, places)[0]
    return labels


@jit
def sqdist_labels(codes, offsets, sizes, inner, norms, every_norm, n_clusters):
    """Squared distances of each row b/w to the centres (n, k) float64, over the labels that are there.

    Arguments as in `assign_labels`; NaN for a row without labels.
    """
    scores, places = np.empty(inner.shape[1]), _room(codes.shape[1], inner.shape[0])
    out = np.empty((codes.shape[0], n_clusters))
    for i in range(codes.shape[0]):
        label, w, n_labels = _nearest(codes, i, offsets, sizes, inner, norms, every_norm, scores, places)
        for c in range(n_clusters):
            out[i, c] = max(n_labels / w + scores[c], 0.0) / w if label >= 0 else np.nan
    return out


@jit
def lloyd_labels(codes, offsets, sizes, inner, norms, every_norm, counts, masses, first):
    """Add a block's rows to the sums of a Lloyd pass of spectral ensemble clustering.

    Parameters
    ----------
    codes, offsets, sizes, inner, norms, every_norm
        As in `assign_labels`.
    counts : (c, k') int64, changed in place
        Rows of each base cluster in each cluster: n_kj of sec_2015, Table 1.
    masses : (m, k') float64, changed in place
        Sum of the weights of each cluster's rows that the base clustering labels.
    first : (k',) int64, changed in place
        Smallest row number of each cluster within the block; its initial value stays for a cluster without rows.

    Returns
    -------
    float
        Sum of n_labels / w over the rows: the part of the objective that no partition changes.
    """
    scores, places = np.empty(inner.shape[1]), _room(codes.shape[1], inner.shape[0])
    constant = 0.0
    n_columns = codes.shape[1]
    whole = np.zeros(inner.shape[1])
    for i in range(codes.shape[0]):
        label, w, n_labels = _nearest(codes, i, offsets, sizes, inner, norms, every_norm, scores, places)
        if label < 0:
            continue
        constant += n_labels / w
        if n_labels == n_columns:
            whole[label] += w
            for j in range(n_columns):
                counts[places[j], label] += 1
        else:
            for j in range(n_columns):
                if codes[i, j] >= 0:
                    counts[places[j], label] += 1
                    masses[j, label] += w
        if i < first[label]:
            first[label] = i
    for j in range(n_columns):
        for c in range(whole.shape[0]):
            masses[j, c] += whole[c]
    return constant


@jit
def count_together(codes, offsets, sizes, labels, counts, masses):
    """Sums of a Lloyd pass for given labels (n,) int32; a row with a negative one is skipped.

    `counts` (c, k) int64 and `masses` (m, k) float64 are changed in place, as in `lloyd_labels`, whose result is
    returned.
    """
    constant = 0.0
    for i in range(codes.shape[0]):
        if labels[i] < 0:
            continue
        weight = np.int64(0)
        n_labels = 0
        for j in range(codes.shape[1]):
            code = np.int64(codes[i, j])
            if code >= 0:
                weight += sizes[offsets[j] + code]
                counts[offsets[j] + code, labels[i]] += 1
                n_labels += 1
        if n_labels == 0:
            continue
        w = np.float64(weight)
        constant += n_labels / w
        for j in range(codes.shape[1]):
            if codes[i, j] >= 0:
                masses[j, labels[i]] += w
    return constant


@jit
def exchange_labels(codes, offsets, sizes, labels, counts, masses):
    """Move single rows to the cluster that lowers the objective most, once through all rows; Hartigan's exchange.

    Parameters
    ----------
    codes : (n, m) int
        Rows with at least one label each.
    offsets : (m,) int64
    sizes : (c,) int64
    labels : (n,) int32, changed in place
    counts : (c, k) int64, masses : (m, k) float64, changed in place
        Sums of these labels, as `count_together` gives them.

    Returns
    -------
    int
        Rows that moved.

    Notes
    -----
    The objective is a constant less the sum over clusters k and base clusterings i of sum_j n_kj^2 / w_ki, and every
    move is judged by what it does to this sum, its own row included. A partition that stands this is a fixed point of
    Lloyd's iteration, not the other way round. m k divisions a row.
    """
    n_rows, n_columns = codes.shape
    n_clusters = counts.shape[1]
    squares = np.zeros((n_columns, n_clusters))
    for j in range(n_columns):
        for u in range(offsets[j], offsets[j + 1]):
            for k in range(n_clusters):
                squares[j, k] += np.float64(counts[u, k]) ** 2
    gains = np.empty(n_clusters)
    moved = 0
    for i in range(n_rows):
        own = labels[i]
        weight = np.int64(0)
        for j in range(n_columns):
            code = np.int64(codes[i, j])
            if code >= 0:
                weight += sizes[offsets[j] + code]
        w = np.float64(weight)
        gains[:] = 0.0
        for j in range(n_columns):
            code = np.int64(codes[i, j])
            if code < 0:
                continue
            u = offsets[j] + code
            for k in range(n_clusters):
                # What the row is worth in cluster k: the sum with it less the sum without it.
                inside = 1.0 if k == own else 0.0
                count = counts[u, k] - inside
                mass = masses[j, k] - inside * w
                square = squares[j, k] - inside * (2.0 * count + 1.0)
                without = square / mass if mass > 0.5 * w else 0.0
                gains[k] += (square + 2.0 * count + 1.0) / (mass + w) - without
        best = own
        for k in range(n_clusters):
            if gains[k] > gains[best] + 1e-12 * abs(gains[own]):
                best = k
        if best == own:
            continue
        moved += 1
        labels[i] = best
        for j in range(n_columns):
            code = np.int64(codes[i, j])
            if code >= 0:
                u = offsets[j] + code
                squares[j, own] -= 2.0 * counts[u, own] - 1.0
                squares[j, best] += 2.0 * counts[u, best] + 1.0
                counts[u, own] -= 1
                counts[u, best] += 1
                masses[j, own] -= w
                masses[j, best] += w
    return moved


@jit
def _lower_to_row(codes, weights, present, chosen, closest):
    """Lower `closest` (n,) to w times the squared distance to the row `chosen` as a centre, in place."""
    w_chosen = weights[chosen]
    for i in range(codes.shape[0]):
        both = 0
        equal = 0
        for j in range(codes.shape[1]):
            if codes[i, j] >= 0 and codes[chosen, j] >= 0:
                both += 1
                if codes[i, j] == codes[chosen, j]:
                    equal += 1
        # n_labels / w - 2 equal / w_chosen + w both / w_chosen^2, written so that equal rows give exactly 0.
        ratio = weights[i] / w_chosen
        value = ((present[i] - both) + (both - equal) * (1.0 + ratio * ratio) + equal * (1.0 - ratio) ** 2) / weights[i]
        if value < closest[i]:
            closest[i] = value


@jit
def plus_plus_labels(codes, offsets, sizes, uniforms):
    """Greedy k-means++ on the rows b/w of the incidence matrix: rows that start the clusters.

    Parameters
    ----------
    codes : (n, m) int
        Rows with at least one label each.
    offsets : (m,) int64
    sizes : (c,) int64
    uniforms : (k, trials) float64 in [0, 1)

    Returns
    -------
    (k',) intp
        k' <= k rows; fewer when every row coincides with a chosen one.

    Notes
    -----
    As `kernels.lloyd.plus_plus_rows` with the distances of sec_2015, Theorem 5. n * m * trials comparisons a step.
    """
    n_rows = codes.shape[0]
    n_clusters, n_trials = uniforms.shape
    weights = label_weights(codes, offsets, sizes)
    present = np.zeros(n_rows)
    for i in range(n_rows):
        for j in range(codes.shape[1]):
            if codes[i, j] >= 0:
                present[i] += 1.0
    chosen = np.empty(n_clusters, np.intp)
    closest = np.full(n_rows, np.inf)
    trial = np.empty(n_rows)
    best = np.empty(n_rows)
    cumulative = np.empty(n_rows)
    for step in range(n_clusters):
        total = 0.0
        for i in range(n_rows):
            total += weights[i] if step == 0 else closest[i]
            cumulative[i] = total
        if total <= 0:
            return chosen[:step]
        best_potential = np.inf
        for t in range(1 if step == 0 else n_trials):
            row = min(np.searchsorted(cumulative, uniforms[step, t] * total, side="right"), n_rows - 1)
            while row > 0 and cumulative[row] == cumulative[row - 1]:
                row -= 1  # a row at a chosen place is never drawn
            trial[:] = closest
            _lower_to_row(codes, weights, present, row, trial)
            potential = 0.0
            for i in range(n_rows):
                potential += trial[i]
            if potential < best_potential:
                best_potential = potential
                chosen[step] = row
                best[:] = trial
        closest[:] = best
    return chosen


@jit
def agreed_rows(codes, offsets, sure):
    """Label on which all base clusters of a row agree.

    Parameters
    ----------
    codes : (n, m) int
    offsets : (m + 1,) int64
    sure : (c,) int32
        Label of each base cluster; -1 for one that is not sure, -2 for one that has no say.

    Returns
    -------
    (n,) int32
        -1 where they do not agree, or none has a say.
    """
    labels = np.empty(codes.shape[0], np.int32)
    for i in range(codes.shape[0]):
        label = np.int32(-2)
        for j in range(codes.shape[1]):
            code = np.int64(codes[i, j])
            if code >= 0:
                own = sure[offsets[j] + code]
                if own != -2 and own != label:
                    label = own if label == -2 else np.int32(-1)
                    if label == -1:
                        break
        labels[i] = max(label, np.int32(-1))
    return labels


@jit
def agreement_rows(codes, offsets, labels, shares):
    """Mean over a row's labels of the share of that base cluster which lies in the row's cluster.

    Parameters
    ----------
    codes : (n, m) int
    offsets : (m,) int64
    labels : (n,) int32
    shares : (c, k) float64
        Share of each base cluster in each cluster.

    Returns
    -------
    (n,) float32
        NaN for a row with a negative label.
    """
    agreement = np.empty(codes.shape[0], np.float32)
    for i in range(codes.shape[0]):
        total = 0.0
        n_labels = 0
        for j in range(codes.shape[1]):
            code = np.int64(codes[i, j])
            if labels[i] >= 0 and code >= 0:
                total += shares[offsets[j] + code, labels[i]]
                n_labels += 1
        agreement[i] = total / n_labels if n_labels > 0 else np.nan
    return agreement
