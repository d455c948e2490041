"""Constraints -> Laplacians projected onto the representatives (p, p)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.constraints import add_labelled_rows, add_pairs
from ..pipeline.bipartite import BipartiteGraph, EdgesOf, linked_rows
from ..runtime.execution import compute, reduce_blocks, tiles
from ..runtime.threads import one_blas_thread
from .row_constraints import RowConstraints
from .sampling import gather_rows

__all__ = ["Projection", "check_n_classes", "project_constraints"]

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
        labels = _labels_beside(held, constraints)
        weigh = partial(_weigh_classes_block, n_classes=n_classes)
        masses = compute(reduce_blocks(weigh, _add_parts, labels, name="dc-classes"))[0]["masses"]
        held = _attach_labels(held, labels)
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


def _labels_beside(held: da.Array, constraints: RowConstraints) -> da.Array:
    """Class and bits of the float32 weight of each row that is there: lazy (n, 2) int32."""
    others = [part[:, None] for part in (constraints.codes, constraints.confidences) if part is not None]
    return da.map_blocks(
        _labels_block,
        held,
        *others,
        token="dc-labels",
        dtype=np.int32,
        meta=np.empty((0, 0), np.int32),
        chunks=(held.chunks[0], (2,)),
    )


def _labels_block(
    edges: NDArray[np.int32], codes: NDArray[np.int32], confidences: NDArray[np.float32] | None = None
) -> NDArray[np.int32]:
    if confidences is None:
        confidences = np.ones(codes.shape, np.float32)
    there = linked_rows(edges)[:, None]  # a row that is missing has no say
    return np.concatenate([np.where(there, codes, -1), confidences.view(np.int32)], axis=1)


def _attach_labels(held: da.Array, labels: da.Array) -> da.Array:
    """Held rows (n, c) with their labels as two more columns: a reduction takes one array."""
    return da.map_blocks(
        _attach_block,
        held,
        labels,
        token="dc-attach",
        dtype=np.int32,
        meta=np.empty((0, 0), np.int32),
        chunks=(held.chunks[0], (held.shape[1] + labels.shape[1],)),
    )


def _attach_block(edges: NDArray[np.int32], labels: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.concatenate([edges, labels], axis=1)


def _detach_block(block: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
    """Edges, classes and weights of what `_attach_block` made, or no edges of what `_labels_block` made."""
    codes, confidences = np.ascontiguousarray(block[:, -2]), np.ascontiguousarray(block[:, -1])
    return block[:, :-2], codes, confidences.view(np.float32)


def _weigh_classes_block(block: NDArray[np.int32], n_classes: int) -> dict[str, Any]:
    _, codes, confidences = _detach_block(block)
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
            rows, codes, confidences = _detach_block(rows)
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
    indices, weights32 = graph.edges_of(gather_rows(graph.held, rows, name="dc-named-rows"))
    weights = weights32.astype(np.float64)
    weights[indices < 0] = 0
    degrees = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, degrees, out=np.zeros_like(weights), where=degrees > 0)
    first, second = np.searchsorted(rows, links.first), np.searchsorted(rows, links.second)
    add_pairs(first, second, links.weights, indices, shares, laplacian)
