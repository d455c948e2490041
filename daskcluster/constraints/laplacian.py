"""Constraints -> Laplacians projected onto the representatives (p, p)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..kernels.constraints import add_labelled_rows, add_pairs
from ..pipeline.bipartite import BipartiteGraph, EdgesOf, linked_rows
from ..runtime.execution import tiles
from ..runtime.passes import reduced
from ..runtime.pieces import as_column
from ..runtime.threads import one_blas_thread
from .links import named_rows
from .row_constraints import RowConstraints
from .sampling import gather_rows

__all__ = ["Projection", "check_grouped_rows", "check_n_classes", "project_constraints"]

#: Sums over classes that take more than this are not made: T p numbers a task.
MOST_CLASS_BYTES = 16 * 2**20
#: Rows whose groups' sums are dense at a time: at most 8 p bytes a row.
GROUP_TILE_ROWS = 2**11
#: Rows in groups, at most: the groups' sums are in memory, 16 K bytes a row.
MOST_GROUPED_ROWS = 2**24


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
    n_constrained : int
        Rows that a constraint names.
    """

    gram: NDArray[np.float64]
    must_link: NDArray[np.float64]
    cannot_link: NDArray[np.float64]
    masses: NDArray[np.float64]
    n_constrained: int = 0


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


def check_grouped_rows(n_rows: int) -> None:
    """Check that the sums over groups of so many rows fit into memory.

    Raises
    ------
    ValueError
        If they are more than 2**24.
    """
    if n_rows > MOST_GROUPED_ROWS:
        raise ValueError(
            f"groups has {n_rows} rows in groups of two or more, at most {MOST_GROUPED_ROWS} with FastCSC: give a part "
            "of the groups, -1 for the others"
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

    Groups whose rows must not meet are classes without must-links between them: their cannot-links have the first of
    these sums. They may be millions, each of few rows, so s_t is kept where it is not 0: 16 bytes for each of the K
    edges of a row, at most.

    For pairs the edges of the rows that they name are gathered, 12 K bytes each, and each pair adds
    w (z_i - z_j) (z_i - z_j)^T. A task needs 24 p**2 + 8 T p bytes with labels and 8 p**2 without; its partial result
    32 bytes, or 16, for each pair of representatives that share a row.
    """
    p, n_classes = graph.n_right, constraints.n_classes
    held, masses, n_constrained = graph.held, np.empty(0), 0
    if constraints.codes is not None and n_classes:
        labels = _labels_beside(held, constraints)
        weigh = partial(_weigh_classes_block, n_classes=n_classes)
        weighed = reduced(weigh, _add_parts, labels, name="dc-classes")
        masses = weighed["masses"]
        n_constrained = _n_in_pairs(weighed["counts"], constraints.apart)
        held = _attach_labels(held, labels)
    kernel = _project_groups if constraints.apart and n_classes else _project_block
    task = partial(kernel, edges_of=graph.edges_of, n_right=p, masses=masses)
    found = reduced(task, _add_parts, held, name="dc-constraints")
    products = _unpacked(found, p)
    must, cannot = np.zeros((p, p)), np.zeros((p, p))
    if "sums" in found:
        cannot += products[:, :, 1] - _squared_sums(found["sum_places"], found["sums"], n_classes, p)
    elif len(masses):
        with one_blas_thread():
            sums = found["class_sums"]
            inside = sums.T @ sums
            every = sums.sum(axis=0)
            must += products[:, :, 1] - inside
            cannot += products[:, :, 2] - (np.outer(every, every) - inside)
    for links, laplacian in ((constraints.must_link, must), (constraints.cannot_link, cannot)):
        if len(links):
            _project_pairs(graph, links, laplacian)
    n_constrained += len(named_rows(constraints.must_link, constraints.cannot_link))
    gram, must, cannot = (_both_triangles(matrix) for matrix in (products[:, :, 0], must, cannot))
    return Projection(gram, must, cannot, found["column_sums"], n_constrained)


def _both_triangles(upper: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.triu(upper) + np.triu(upper, 1).T


def _labels_beside(held: da.Array, constraints: RowConstraints) -> da.Array:
    """Class and bits of the float32 weight of each row that is there: lazy (n, 2) int32."""
    others = [as_column(part) for part in (constraints.codes, constraints.confidences) if part is not None]
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
    masses = np.bincount(codes[there], confidences[there], n_classes).astype(np.float64)
    return {"masses": masses, "counts": np.bincount(codes[there], minlength=n_classes)}


def _n_in_pairs(counts: NDArray[np.int64], apart: bool) -> int:
    """Rows that have a pair: of groups those of two rows or more, of classes all, if there are two in all."""
    if apart:
        return int(counts[counts > 1].sum())
    total = int(counts.sum())
    return total if total > 1 else 0


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


def _project_groups(
    block: NDArray[Any], edges_of: EdgesOf, n_right: int, masses: NDArray[np.float64]
) -> dict[str, Any]:
    """The same for groups: their sums are kept where they are not 0."""
    found: dict[str, Any] = {"products": np.zeros((n_right, n_right, 3)), "column_sums": np.zeros(n_right)}
    sums = []
    for start in range(0, len(block), GROUP_TILE_ROWS):
        rows, codes, confidences = _detach_block(block[start : start + GROUP_TILE_ROWS])
        groups, local = np.unique(codes, return_inverse=True)  # -1 first, if it is there
        groups, local = groups[groups >= 0], local.ravel().astype(np.int32) - np.int32((groups < 0).sum())
        group_sums = np.zeros((len(groups), n_right))
        column_sums = found["column_sums"]
        masses_here = masses[groups] if len(groups) else np.zeros(1)  # no masses would be no labels
        if not len(groups):
            group_sums = np.zeros((1, n_right))
        add_labelled_rows(*edges_of(rows), local, confidences, masses_here, found["products"], group_sums, column_sums)
        group, u = np.nonzero(group_sums)
        if len(group):
            sums.append({"sum_places": groups[group].astype(np.int64) * n_right + u, "sums": group_sums[group, u]})
    none = {"sum_places": np.empty(0, np.int64), "sums": np.empty(0)}
    return _packed(found) | _add_places(sums or [none], "sum_places", "sums")


def _squared_sums(places: NDArray[np.int64], sums: NDArray[np.float64], n_groups: int, p: int) -> NDArray[np.float64]:
    """sum_t s_t s_t^T (p, p) of sums at places t p + u."""
    matrix = scipy.sparse.csr_array((sums, np.divmod(places, p)), shape=(n_groups, p))
    return np.asarray((matrix.T @ matrix).todense())


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
    packed = [names for names in (("places", "values"), ("sum_places", "sums")) if names[0] in parts[0]]
    total = {key: parts[0][key].copy() for key in parts[0].keys() - {name for names in packed for name in names}}
    for part in parts[1:]:
        for key in total:
            total[key] += part[key]
    for names in packed:
        total |= _add_places(parts, *names)
    return total


def _add_places(parts: list[dict[str, Any]], places_name: str, values_name: str) -> dict[str, Any]:
    """Sum of values at places."""
    places = np.unique(np.concatenate([part[places_name] for part in parts]))
    values = np.zeros((len(places), *parts[0][values_name].shape[1:]))
    for part in parts:
        values[np.searchsorted(places, part[places_name])] += part[values_name]
    return {places_name: places, values_name: values}


def _project_pairs(graph: BipartiteGraph, links: Any, laplacian: NDArray[np.float64]) -> None:
    """Add the pairs' Laplacian to the upper triangle."""
    rows = named_rows(links)
    indices, weights32 = graph.edges_of(gather_rows(graph.held, rows, name="dc-named-rows"))
    weights = weights32.astype(np.float64)
    weights[indices < 0] = 0
    degrees = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, degrees, out=np.zeros_like(weights), where=degrees > 0)
    first, second = np.searchsorted(rows, links.first), np.searchsorted(rows, links.second)
    add_pairs(first, second, links.weights, indices, shares, laplacian)
