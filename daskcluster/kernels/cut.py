"""Stages 4 and 5 on one block: the small graph of the transfer cut, the lift of its eigenvectors, nearest centres."""

from __future__ import annotations

import numpy as np

from .jit import jit, jit_fast

__all__ = ["LABEL_COLUMNS", "label_lifted", "lift_rows", "small_graph"]

#: The centres of a clustering are padded to a multiple of this, a whole number of vector registers.
LABEL_COLUMNS = 8

_LARGEST_BITS = np.int32(np.iinfo(np.int32).max)


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
    K (K + 1) / 2 additions a row, in row order, so the sum depends on nothing but the block.
    """
    n_rows, n_neighbors = indices.shape
    for i in range(n_rows):
        degree = 0.0
        for a in range(n_neighbors):
            if indices[i, a] >= 0:
                degree += np.float64(weights[i, a])
        if degree <= 0:
            continue
        for a in range(n_neighbors):
            u = indices[i, a]
            if u < 0:
                continue
            share = np.float64(weights[i, a]) / degree
            for b in range(a, n_neighbors):
                v = indices[i, b]
                if v >= 0:
                    small[min(u, v), max(u, v)] += share * weights[i, b]


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
def _add_two(out, one, rows, i, other, j):
    """Add multiples of two rows of a matrix (p, c) to a row (c,)."""
    for c in range(out.shape[0]):
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
def label_lifted(indices, weights, vectors, linked, products, half, widths, starts, names, labels):
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
    labels : (n, m) int, written
        Of equally near centres the first one.

    Notes
    -----
    A lifted row h is a weighted mean of K vectors, so its products with all centres are the same mean of K rows of
    `products`: K c operations a row instead of the q c of distances in the embedding. The nearest centre to h / abs(h)
    is that of the smallest abs(h) * half - product. The length of the first q columns is that of whole fours of them,
    then of the rest, so a clustering's labels do not depend on those beside it. Indices are unsigned, and no rows are
    sliced: the loops vectorise, and no references are counted.
    """
    n_rows, n_neighbors = indices.shape
    row = np.empty(vectors.shape[1], np.float32)
    n_fours = row.shape[0] // 4
    lengths = np.empty(n_fours + 1)
    dots = np.empty(products.shape[1], np.float32)
    scores = np.empty(products.shape[1], np.float32)
    bits = scores.view(np.int32)
    shares = np.zeros(n_neighbors + 1, np.float32)
    rights = np.zeros(n_neighbors + 1, np.uint64)
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
        shares[n_edges] = 0
        rights[n_edges] = 0
        for a in range(n_edges):
            shares[a] /= degree  # first: all weights of a row can be tiny
        for c in range(row.shape[0]):
            row[c] = 0
        for c in range(dots.shape[0]):
            dots[c] = 0
        for a in range(0, n_edges, 2):
            _add_two(row, shares[a], vectors, rights[a], shares[a + 1], rights[a + 1])
            _add_two(dots, shares[a], products, rights[a], shares[a + 1], rights[a + 1])
        lengths[0] = 0
        for b in range(n_fours):
            total = 0.0
            for c in range(4 * b, 4 * b + 4):
                total += np.float64(row[c]) * np.float64(row[c])
            lengths[b + 1] = lengths[b] + total
        for j in range(widths.shape[0]):
            whole = widths[j] // 4
            sqnorm = lengths[whole]
            for c in range(4 * whole, widths[j]):
                sqnorm += np.float64(row[c]) * np.float64(row[c])
            norm = np.float32(np.sqrt(sqnorm)) if sqnorm > 0 else np.float32(1)
            labels[i, j] = names[_nearest(scores, bits, dots, half, norm, starts[j], starts[j + 1])]
