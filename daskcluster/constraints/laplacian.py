"""Constraints -> Laplacians projected onto the representatives (p, p), and the constrained cut."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..kernels.constraints import add_labelled_rows, add_pairs
from ..linalg import largest_eigenpairs
from ..pipeline.bipartite import BipartiteGraph, EdgesOf
from ..pipeline.cut import TransferCut
from ..runtime.execution import compute, map_to_objects, reduce_blocks, tiles
from ..runtime.threads import one_blas_thread
from .constraints import RowConstraints

__all__ = ["Projection", "check_n_classes", "constrained_cut", "project_constraints"]

#: Directions that carry less than this share of a representative's affinities carry nothing but rounding, which is a
#: few units of 2e-16. A direction that is dropped is missing in Theorem 4: at 1e-9 its eigenvalues were off by 2 %.
LEAST_EIGENVALUE = 1e-12
#: Added to the diagonal of the left-hand matrix, relative to its largest entry: rounding of the sums lies below.
RIDGE = 1e-12
#: Sums over classes that take more than this are not made: T p numbers a task.
MOST_CLASS_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Projection:
    """What a pass over the rows leaves of the graph and of the constraints.

    Attributes
    ----------
    gram : (p, p) float64
        Z Z^T, with the p by n matrix Z of eq. (4).
    must_link, cannot_link : (p, p) float64
        Z L Z^T of the two constraint graphs' Laplacians.
    masses : (p,) float64
        D of eq. (5), the affinity that each representative has in all; their sum is the number of rows that take part.
    """

    gram: NDArray[np.float64]
    must_link: NDArray[np.float64]
    cannot_link: NDArray[np.float64]
    masses: NDArray[np.float64]


def check_n_classes(n_classes: int, n_representatives: int) -> None:
    """Check that labels name few enough classes for `project_constraints`.

    Raises
    ------
    ValueError
        If the classes' sums would take more than 16 MiB.
    """
    if 8 * n_classes * n_representatives > MOST_CLASS_BYTES:
        raise ValueError(
            f"y has {n_classes} classes, at most {MOST_CLASS_BYTES // (8 * n_representatives)} with "
            f"{n_representatives} representatives; give groups of few rows as pairs, Constraints.from_pairs"
        )


def project_constraints(graph: BipartiteGraph, constraints: RowConstraints) -> Projection:
    """Project the graph and the constraint graphs' Laplacians onto the representatives.

    Parameters
    ----------
    graph : BipartiteGraph
    constraints : RowConstraints

        Of a number of classes that `check_n_classes` accepts.

    Returns
    -------
    Projection

    Notes
    -----
    One pass over the edges. Labels cost no more than that: with w = 1, W_t rows in class t and N in all, a row of class
    t has degree W_t in the must-link graph and N - W_t in the cannot-link graph, and with s_t the sum of z over the
    class and s over all labelled rows

        Z L_ML Z^T = sum_t W_t sum(z z^T) - sum_t s_t s_t^T
        Z L_CL Z^T = sum_t (N - W_t) sum(z z^T) - (s s^T - sum_t s_t s_t^T).

    For pairs the edges of the rows that they name are gathered, 12 K bytes each, and each pair adds
    w (z_i - z_j) (z_i - z_j)^T. A task needs 24 p**2 + 8 T p bytes with labels and 8 p**2 without; its partial result
    32 bytes, or 16, for each pair of representatives that share a row.
    """
    p, n_classes = graph.n_right, constraints.n_classes
    held, masses = graph.held, np.empty(0)
    if constraints.codes is not None and n_classes:
        narrow = _attach_labels(held[:, :1], constraints.codes, constraints.confidences)
        weigh = partial(_weigh_classes_block, n_classes=n_classes)
        masses = compute(reduce_blocks(weigh, _add_parts, narrow, name="dc-classes"))[0]["masses"]
        held = _attach_labels(held, constraints.codes, constraints.confidences)
    task = partial(_project_block, edges_of=graph.edges_of, n_right=p, masses=masses)
    (found,) = compute(reduce_blocks(task, _add_parts, held, name="dc-constraints"))
    products = _unpacked(found, p)
    must, cannot = np.zeros((p, p)), np.zeros((p, p))
    if len(masses):
        with one_blas_thread():
            sums = found["class_sums"]
            inside = sums.T @ sums
            every = sums.sum(axis=0)
            must += products[:, :, 1] - inside
            cannot += products[:, :, 2] - (np.outer(every, every) - inside)
    for links, laplacian in ((constraints.must_link, must), (constraints.cannot_link, cannot)):
        if len(links):
            _project_pairs(graph, links, laplacian)
    gram, must, cannot = (_both_triangles(matrix) for matrix in (products[:, :, 0], must, cannot))
    return Projection(gram, must, cannot, found["column_sums"])


def _both_triangles(upper: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.triu(upper) + np.triu(upper, 1).T


def _attach_labels(edges: da.Array, codes: da.Array, confidences: da.Array | None) -> da.Array:
    """Edges (n, 2 K) with two more columns: the class of the row, and the bits of its float32 weight."""
    others = [codes[:, None]] if confidences is None else [codes[:, None], confidences[:, None]]
    return da.map_blocks(
        _attach_block,
        edges,
        *others,
        token="dc-attach",
        dtype=np.int32,
        meta=np.empty((0, 0), np.int32),
        chunks=(edges.chunks[0], (edges.shape[1] + 2,)),
    )


def _attach_block(
    edges: NDArray[np.int32], codes: NDArray[np.int32], confidences: NDArray[np.float32] | None = None
) -> NDArray[np.int32]:
    if confidences is None:
        confidences = np.ones(codes.shape, np.float32)
    present = edges[:, :1] >= 0  # a row that is missing has no say
    return np.concatenate([edges, np.where(present, codes, -1), confidences.view(np.int32)], axis=1)


def _labels_of(block: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    return np.ascontiguousarray(block[:, -2]), np.ascontiguousarray(block[:, -1]).view(np.float32)


def _weigh_classes_block(block: NDArray[np.int32], n_classes: int) -> dict[str, Any]:
    codes, confidences = _labels_of(block)
    there = codes >= 0
    # Of no rows `bincount` makes integers, whatever the weights.
    return {"masses": np.bincount(codes[there], confidences[there], n_classes).astype(np.float64)}


def _project_block(block: NDArray[Any], edges_of: EdgesOf, n_right: int, masses: NDArray[np.float64]) -> dict[str, Any]:
    n_classes = len(masses)
    found = {
        "products": np.zeros((n_right, n_right, 3 if n_classes else 1)),
        "class_sums": np.zeros((n_classes, n_right)),
        "column_sums": np.zeros(n_right),
    }
    codes, confidences = np.empty(0, np.int32), np.empty(0, np.float32)
    for tile in tiles(len(block)):
        rows = block[tile]
        if n_classes:
            codes, confidences = _labels_of(rows)
            rows = rows[:, :-2]
        add_labelled_rows(*edges_of(rows), codes, confidences, masses, *found.values())
    return _packed(found)


def _packed(found: dict[str, Any]) -> dict[str, Any]:
    """The products that are not 0: most are, and many partial results wait for each other."""
    products = found.pop("products")
    products = products.reshape(-1, products.shape[2])
    places = np.flatnonzero(products[:, 0])
    return found | {"places": places, "values": products[places]}


def _unpacked(found: dict[str, Any], n_right: int) -> NDArray[np.float64]:
    products = np.zeros((n_right * n_right, found["values"].shape[1]))
    products[found["places"]] = found["values"]
    return products.reshape(n_right, n_right, -1)


def _add_parts(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum of partial results, in their order."""
    total = {key: value.copy() for key, value in parts[0].items()}
    for part in parts[1:]:
        for key in part.keys() - {"places", "values"}:
            total[key] += part[key]
    if "places" in total:
        places = np.unique(np.concatenate([part["places"] for part in parts]))
        values = np.zeros((len(places), parts[0]["values"].shape[1]))
        for part in parts:
            values[np.searchsorted(places, part["places"])] += part["values"]
        total |= {"places": places, "values": values}
    return total


def _project_pairs(graph: BipartiteGraph, links: Any, laplacian: NDArray[np.float64]) -> None:
    """Add the pairs' Laplacian to the upper triangle."""
    rows = np.unique(np.concatenate([links.first, links.second]))
    parts = compute(
        map_to_objects(
            _take_edges,
            graph.held,
            name="dc-named-rows",
            rows=dask.delayed(rows, pure=True, traverse=False),
            size=graph.held.chunksize[0],
            edges_of=graph.edges_of,
        )
    )[0]
    indices = np.concatenate([part["indices"] for part in parts])
    weights = np.concatenate([part["weights"] for part in parts]).astype(np.float64)
    weights[indices < 0] = 0
    degrees = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, degrees, out=np.zeros_like(weights), where=degrees > 0)
    first, second = np.searchsorted(rows, links.first), np.searchsorted(rows, links.second)
    add_pairs(first, second, links.weights, indices, shares, laplacian)


def _take_edges(
    block: NDArray[Any], number: int, rows: NDArray[np.int64], size: int, edges_of: EdgesOf
) -> dict[str, Any]:
    low, high = np.searchsorted(rows, [number * size, number * size + len(block)])
    indices, weights = edges_of(block[rows[low:high] - number * size])
    return {"indices": indices, "weights": weights}


def constrained_cut(projection: Projection, n_components: int, alpha: float) -> TransferCut:
    """The first nontrivial generalized eigenvectors of eq. (12) of fast_csc_and_secrp_2017, ready for the lift.

    Parameters
    ----------
    projection : Projection
    n_components : int
        k. When the representatives span no more directions, k - 1 are taken: columns of equal length that are a basis
        of the whole space would put all rows equally far apart.
    alpha : float
        Trust in the must-links against the data's own graph.

    Returns
    -------
    TransferCut
        Vectors D^-1/2 y at unit length in x = Zhat^T y, so that the lift gives step 5's embedding; eigenvalues lambda
        of L_CGD y = lambda L_CCL y, ascending.

    Notes
    -----
    With G = Zhat Zhat^T, eq. (13) is L_CGD = G - G**2 + alpha Zhat L_ML Zhat^T. The demand graph K / n with
    K_ij = d_i d_j / vol of Cucuringu et al., AISTATS 2016, is added to the cannot-link graph: the landmark graph has
    unit degrees, so it adds (G - g g^T / n) / n to L_CCL, with g = Zhat 1. Without it L_CCL is singular, and zero
    without cannot-links. At y = sqrt(masses), where x = 1, both sides vanish: this trivial vector is deflated by a
    Householder reflection. What is left is written in an orthonormal basis of the vectors x (the eigenvectors of G,
    those below `LEAST_EIGENVALUE` dropped), in which G is I, so that the sides are I - S + alpha ... and I / n + ...,
    and the largest mu = 1 / lambda of B y = mu (A + ridge I) y are found by a Cholesky factor of A. As y is orthogonal
    to g, x has mean zero; the scale of each column is 1 in the D-norm (D = I), as step 5 asks.

    Eager, 8 p**2 bytes a matrix and six of them. Representatives without affinities are dropped.
    """
    linked = np.flatnonzero(projection.masses > 0)
    masses = projection.masses[linked]
    n = float(masses.sum())
    roots = np.sqrt(masses)
    vectors = np.zeros((len(projection.masses), max(1, min(n_components, len(linked) - 1))))
    if len(linked) < 2:
        return TransferCut(vectors, np.zeros(1), len(linked))

    def projected(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        return _deflate(matrix[np.ix_(linked, linked)] / roots[:, None] / roots, reflector)

    reflector = roots / np.sqrt(n)
    reflector[0] += 1.0 if reflector[0] >= 0 else -1.0
    reflector /= np.linalg.norm(reflector)
    with one_blas_thread():
        spectrum, basis = largest_eigenpairs(projected(projection.gram), len(linked) - 1)
        kept = spectrum > LEAST_EIGENVALUE
        kept[0] = True
        spectrum, basis = spectrum[kept], basis[:, kept]
        basis /= np.sqrt(np.maximum(spectrum, LEAST_EIGENVALUE))  # (p - 1, q): columns y with x^T x = 1
        left = alpha * (basis.T @ projected(projection.must_link) @ basis)
        left[np.diag_indices_from(left)] += np.maximum(1.0 - spectrum, 0.0)
        left[np.diag_indices_from(left)] += RIDGE * max(1.0, float(left.diagonal().max()))
        right = basis.T @ projected(projection.cannot_link) @ basis
        right[np.diag_indices_from(right)] += 1.0 / n
        factor = _cholesky(left)
        reduced = scipy.linalg.solve_triangular(factor, right, trans="T", check_finite=False)
        reduced = scipy.linalg.solve_triangular(factor, reduced.T, trans="T", check_finite=False)
        n_found = n_components if n_components < len(spectrum) else min(max(1, n_components - 1), len(spectrum))
        mu, solutions = largest_eigenpairs((reduced + reduced.T) / 2, n_found)
        solutions = scipy.linalg.solve_triangular(factor, solutions, check_finite=False)  # (q, k)
        solutions /= np.linalg.norm(solutions, axis=0)
        y = np.vstack([np.zeros((1, solutions.shape[1])), basis @ solutions])
        y -= 2.0 * np.outer(reflector, reflector @ y)
    vectors = vectors[:, : y.shape[1]]
    vectors[linked] = y / roots[:, None]
    return TransferCut(vectors, 1.0 / np.maximum(mu, np.finfo(np.float64).tiny), len(linked))


def _deflate(matrix: NDArray[np.float64], reflector: NDArray[np.float64]) -> NDArray[np.float64]:
    """The matrix (p - 1, p - 1) on the complement of the vector that the reflection takes to the first axis."""
    rotated = matrix - 2.0 * np.outer(reflector, reflector @ matrix)
    rotated -= 2.0 * np.outer(rotated @ reflector, reflector)
    inside = rotated[1:, 1:]
    return np.ascontiguousarray((inside + inside.T) / 2)


def _cholesky(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Upper factor; the diagonal grows until there is one."""
    largest = max(1.0, float(matrix.diagonal().max()))
    for ridge in (0.0, RIDGE, 1e2 * RIDGE, 1e4 * RIDGE, 1e6 * RIDGE):
        try:
            return scipy.linalg.cholesky(matrix + ridge * largest * np.eye(len(matrix)), check_finite=False)
        except scipy.linalg.LinAlgError:
            continue
    raise ArithmeticError("the must-link matrix is not positive semidefinite: weights beyond the range of float64")
