"""Stages 4 and 5 on one block: the small graph of the transfer cut, the lift of its eigenvectors, nearest centres."""

from __future__ import annotations

import numpy as np

from .jit import jit, jit_fast

__all__ = ["LABEL_COLUMNS", "label_lifted", "lift_rows", "small_graph"]

#: The centres of a clustering are padded to a multiple of this, a whole number of vector registers.
LABEL_COLUMNS = 8

_LARGEST_BITS = np.int32(np.iinfo(np.int32).max)


@jit
def _all_equal(indices, weights):
    """Whether every edge is there and weighs 1."""
    for i in range(indices.shape[0]):
        for a in range(indices.shape[1]):
            if indices[i, a] < 0 or weights[i, a] != 1:
                return False
    return True


@jit
def _add_pairs(indices, small):
    """Add a share of 1 / K for each pair of a row's K right vertices."""
    n_rows, n_neighbors = indices.shape
    columns = np.empty((n_neighbors, n_rows), np.uint64)
    for i in range(n_rows):
        for a in range(n_neighbors):
            columns[a, i] = indices[i, a]
    share = 1.0 / n_neighbors
    for a in range(n_neighbors):
        for b in range(a, n_neighbors):
            for i in range(n_rows):
                u, v = columns[a, i], columns[b, i]
                small[min(u, v), max(u, v)] += share


@jit
def small_graph(indices, weights, small):
    """Add a block's share of E_R = B^T D_X^-1 B to the upper triangle of `small`; uspec_usenc_2019, eq. (9).

    Parameters
    ----------
    indices : (n, K) int32
        Right vertices; a negative one is a missing edge.
    weights : (n, K) float32
    small : (p, p) float64, changed in place

    Notes
    -----
    K (K + 1) / 2 additions a row. An entry's are in row order, so the sum depends on nothing but the block. Where every
    edge is there and weighs 1, as of base clusters, they are done pair of columns by pair of columns, whose entries
    stay in the cache: the same sums for columns without a common right vertex.
    """
    n_rows, n_neighbors = indices.shape
    if _all_equal(indices, weights):
        _add_pairs(indices, small)
        return
    rights = np.empty(n_neighbors, np.uint64)
    own = np.empty(n_neighbors)
    for i in range(n_rows):
        degree = 0.0
        n_edges = 0
        for a in range(n_neighbors):
            if indices[i, a] >= 0:
                rights[n_edges] = indices[i, a]
                own[n_edges] = weights[i, a]
                degree += own[n_edges]
                n_edges += 1
        if degree <= 0:
            continue
        for a in range(n_edges):
            u = rights[a]
            share = own[a] / degree
            for b in range(a, n_edges):
                v = rights[b]
                small[min(u, v), max(u, v)] += share * own[b]


@jit_fast
def lift_rows(indices, weights, vectors, linked, n_components):
    """Lift the eigenvectors to a block's rows and scale each row to unit length; uspec_usenc_2019, eq. (12).

    Parameters
    ----------
    indices : (n, K) int32
        Right vertices; a negative one is a missing edge.
    weights : (n, K) float32
    vectors : (p, q') float32
        v / (1 - gamma), one column an eigenvector, padded with zeros to a multiple of `PAD_COLUMNS`.
    linked : (p,) bool
        Right vertices that belong to the cut; edges to the others count as missing.
    n_components : int
        q <= q'.

    Returns
    -------
    (n, q) float32
        Row i is the weighted mean of the vectors of its right vertices, at unit length; zeros for a row without edges.
    """
    n_rows, n_neighbors = indices.shape
    n_padded = vectors.shape[1]
    row = np.empty(n_padded, np.float32)
    lifted = np.empty((n_rows, n_components), np.float32)
    for i in range(n_rows):
        degree = np.float32(0)
        for a in range(n_neighbors):
            if indices[i, a] >= 0 and linked[indices[i, a]]:
                degree += weights[i, a]
        for c in range(n_padded):
            row[c] = 0
        for a in range(n_neighbors):
            u = indices[i, a]
            if u >= 0 and linked[u]:
                share = weights[i, a] / degree  # first: all weights of a row can be tiny
                for c in range(n_padded):
                    row[c] += share * vectors[u, c]
        sqnorm = 0.0
        for c in range(n_padded):
            sqnorm += np.float64(row[c]) * np.float64(row[c])
        scale = np.float32(1.0 / np.sqrt(sqnorm)) if sqnorm > 0 else np.float32(0)
        for c in range(n_components):
            lifted[i, c] = row[c] * scale
    return lifted


@jit_fast
def _add_two(out, begin, end, one, rows, i, other, j):
    """Add multiples of two rows of a matrix (p, c) to a row (c,), from column `begin` to `end`."""
    for c in range(begin, end):
        out[c] += one * rows[i, c] + other * rows[j, c]


@jit_fast
def _nearest(scores, bits, products, half, norm, begin, end):
    """Place of the smallest score, from `begin` to `end`; scores are not negative, so their bits sort like they do."""
    for c in range(begin, end):
        scores[c] = max(norm * half[c] - products[c], np.float32(0))
    smallest = _LARGEST_BITS
    for c in range(begin, end):
        smallest = min(smallest, bits[c])
    place = _LARGEST_BITS
    for c in range(begin, end):
        place = min(place, np.int32(c) if bits[c] <= smallest else _LARGEST_BITS)
    return place


@jit_fast
def _without_sure(sure, rights, n_edges, found, left, widths):
    """The label on which the right vertices of a row agree, in each clustering.

    The clusterings that are left are written to `left`: their number, and the most columns that one of them has.
    """
    n_left, width = 0, 0
    for j in range(found.shape[0]):
        label = sure[rights[0], j] if n_edges > 0 else np.int32(-1)
        for a in range(1, n_edges):
            label = label if sure[rights[a], j] == label else np.int32(-1)
        found[j] = label
        if label < 0:
            left[n_left] = j
            n_left += 1
            width = max(width, widths[j])
    return n_left, width


@jit_fast
def label_lifted(indices, weights, vectors, linked, products, half, widths, starts, names, sure, labels):
    """Nearest centre of a block's rows at unit length, in several clusterings by the first columns of one embedding.

    Parameters
    ----------
    indices, weights, vectors, linked
        As `lift_rows` reads them.
    products : (p, c) float32
        Inner products of each right vertex's vector and each centre, those of one clustering after the other, each
        padded with zeros to a multiple of `LABEL_COLUMNS`.
    half : (c,) float32
        Half of the squared length of each centre, up to a constant of the clustering that keeps scores above 0;
        infinite for padding.
    widths : (m,) int64
        Columns of the embedding by which each clustering was made.
    starts : (m + 1,) uint64
        Where the centres of each begin.
    names : (c,) int32
        Label of each centre.
    sure : (p, m) int32
        The label of every row that is a mean of vectors which have the same one here; -1 for none.
    labels : (n, m) int, written
        Of equally near centres the first one.

    Notes
    -----
    A lifted row h is a weighted mean of K vectors, so its products with all centres are the same mean of K rows of
    `products`: K c operations a row instead of the q c of distances in the embedding. The nearest centre to h / abs(h)
    is that of the smallest abs(h) * half - product. The length of the first q columns is that of whole fours of them,
    then of the rest, so a clustering's labels do not depend on those beside it. Where all right vertices of a row are
    sure of the same label nothing is computed. Indices are unsigned, and no rows are sliced: the loops vectorise, and
    no references are counted.
    """
    n_rows, n_neighbors = indices.shape
    n_clusterings = widths.shape[0]
    row = np.empty(vectors.shape[1], np.float32)
    lengths = np.empty(row.shape[0] // 4 + 1)
    dots = np.empty(products.shape[1], np.float32)
    scores = np.empty(products.shape[1], np.float32)
    bits = scores.view(np.int32)
    shares = np.zeros(n_neighbors + 1, np.float32)
    rights = np.zeros(n_neighbors + 1, np.uint64)
    found = np.empty(n_clusterings, np.int32)
    left = np.empty(n_clusterings, np.int64)
    for i in range(n_rows):
        degree = np.float32(0)
        n_edges = 0
        for a in range(n_neighbors):
            u = indices[i, a]
            if u >= 0 and linked[u]:
                degree += weights[i, a]
                shares[n_edges] = weights[i, a]
                rights[n_edges] = u
                n_edges += 1
        n_left, width = _without_sure(sure, rights, n_edges, found, left, widths)
        for j in range(n_clusterings):
            labels[i, j] = found[j]
        if n_left == 0:
            continue
        shares[n_edges] = 0
        rights[n_edges] = 0
        for a in range(n_edges):
            shares[a] /= degree  # first: all weights of a row can be tiny
        n_columns = min(-(-width // 16) * 16, row.shape[0])
        for c in range(n_columns):
            row[c] = 0
        for a in range(0, n_edges, 2):
            _add_two(row, 0, n_columns, shares[a], vectors, rights[a], shares[a + 1], rights[a + 1])
        lengths[0] = 0
        for b in range(width // 4):
            total = 0.0
            for c in range(4 * b, 4 * b + 4):
                total += np.float64(row[c]) * np.float64(row[c])
            lengths[b + 1] = lengths[b] + total
        for t in range(n_left):
            j = left[t]
            whole = widths[j] // 4
            sqnorm = lengths[whole]
            for c in range(4 * whole, widths[j]):
                sqnorm += np.float64(row[c]) * np.float64(row[c])
            norm = np.float32(np.sqrt(sqnorm)) if sqnorm > 0 else np.float32(1)
            for c in range(starts[j], starts[j + 1]):
                dots[c] = 0
            for a in range(0, n_edges, 2):
                _add_two(dots, starts[j], starts[j + 1], shares[a], products, rights[a], shares[a + 1], rights[a + 1])
            labels[i, j] = names[_nearest(scores, bits, dots, half, norm, starts[j], starts[j + 1])]
