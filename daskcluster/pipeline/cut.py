"""Stage 4: bipartite graph -> transfer cut, embedding (n, k)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.cut import small_graph
from ..linalg import largest_eigenpairs
from ..runtime.execution import FAN_IN, map_rows, reduce_blocks, tiles
from ..runtime.forecast import Cost, Sizes
from ..runtime.passes import reduced
from ..runtime.stages import Run, Stage
from .bipartite import BipartiteGraph, EdgesOf
from .lift import LiftedRows, LinkedRows, embed_block
from .parts import LEAST_LINK, joining_edges, parts_of, without_specks

__all__ = [
    "Cut",
    "TransferCut",
    "add_packed",
    "cut_small_graph",
    "graph_bytes",
    "lift_embedding",
    "pack_matrix",
    "small_affinity",
    "sum_packed",
    "transfer_cut",
]

#: Components whose eigenvalue 1 - lambda of the small graph is below this carry nothing but rounding.
LEAST_EIGENVALUE = 1e-12


@dataclass(frozen=True)
class TransferCut:
    """Eigenvectors of the small graph, ready for the lift.

    Attributes
    ----------
    vectors : (p, q) float64
        v / (1 - gamma), one column an eigenvector; zeros for right vertices that are left out. q <= n_components.
    eigenvalues : (q,) float64
        lambda of eq. (9), ascending, the first one 0 up to rounding.
    n_linked : int
        Right vertices in the cut.
    places, affinities : (s,) int64, (s,) float64
        The small graph before parts were left out or joined, packed as by `pack_matrix`; empty where nobody asks for
        more of it.
    """

    vectors: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    n_linked: int
    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    affinities: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def with_graph(self, packed: dict[str, Any]) -> TransferCut:
        """The same, and the small graph."""
        return replace(self, places=packed["places"].astype(np.int64), affinities=packed["values"])

    def points(self, graph: BipartiteGraph) -> LiftedRows:
        """Block of the graph -> embedding of its rows."""
        kind = LiftedRows if graph.points is None else LinkedRows
        return kind(graph.edges_of, self.vectors)


@dataclass(frozen=True)
class Cut(Stage):
    """Stage 4: the first eigenvectors of the normalized cut of a bipartite graph.

    Attributes
    ----------
    n_clusters : int
    product : str
        Its name in a named store.
    holds_graph : bool
        Whether the small graph is of use after the cut, for `Spectrum`.
    """

    title = "transfer cut"
    n_clusters: int
    product: str = "cut"
    holds_graph: bool = False

    def __call__(self, run: Run, graph: BipartiteGraph, found: Any = None) -> TransferCut:
        """Cut the graph; what the scan found is of no account."""
        return TransferCut(**run.products.small(self.product, lambda: vars(self._cut(graph))))

    def _cut(self, graph: BipartiteGraph) -> TransferCut:
        packed = small_affinity(graph)
        cut = cut_small_graph(packed, self.n_clusters, graph.points)
        return cut.with_graph(packed) if self.holds_graph else cut

    def cost(self, sizes: Sizes) -> Cost:
        """One pass; a task of the sum has up to `FAN_IN` partial results and their sum, 8 p**2 bytes each."""
        matrix = 8 * sizes.n_right**2
        n_parts = min(sizes.n_blocks, FAN_IN)
        task = sizes.tile_rows * 20 * sizes.n_edges + (n_parts + 1) * matrix
        small = 16 * sizes.n_right * self.n_clusters
        if self.holds_graph:
            small += graph_bytes(sizes)
        return sizes.over_held(task, eager_bytes=5 * matrix, small_bytes=small)

    @property
    def kept(self) -> tuple[str, ...]:
        """The cut."""
        return (self.product,)


def graph_bytes(sizes: Sizes) -> int:
    """Bytes of a packed small graph: 16 for each pair of right vertices that share a row."""
    p, n_edges = sizes.n_right, sizes.n_edges
    return 8 * min(p * (p + 1), sizes.n_samples * n_edges * (n_edges + 1))


def _small_graph_block(block: NDArray[Any], edges_of: EdgesOf, n_right: int) -> dict[str, Any]:
    small = np.zeros((n_right, n_right))
    for tile in tiles(len(block)):
        small_graph(*edges_of(block[tile]), small)
    return pack_matrix(small)


def add_packed(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Add packed matrices, in block order: the combining step of `reduce_blocks` for them."""
    return pack_matrix(sum_packed(parts))


def pack_matrix(small: NDArray[np.float64]) -> dict[str, Any]:
    """The entries of a small matrix that are not 0: most are, and many partial results wait for each other."""
    places = np.flatnonzero(small)
    return {"n_right": len(small), "places": places, "values": small.ravel()[places]}


def sum_packed(parts: list[dict[str, Any]]) -> NDArray[np.float64]:
    """Sum of packed matrices (p, p), in their order."""
    n_right = parts[0]["n_right"]
    total = np.zeros(n_right * n_right)
    for part in parts:
        total[part["places"]] += part["values"]
    return total.reshape(n_right, n_right)


def transfer_cut(graph: BipartiteGraph, n_components: int) -> TransferCut:
    """Eigenvectors of the first normalized cuts of a bipartite graph, found on its right-hand side.

    Parameters
    ----------
    graph : BipartiteGraph
    n_components : int
        Eigenvectors wanted, at least 1; fewer come back when fewer right vertices have edges.

    Returns
    -------
    TransferCut

    Notes
    -----
    One pass over the rows: E_R = B^T D_X^-1 B, then the generalized problem L_R v = lambda D_R v, eq. (9) of
    uspec_usenc_2019, as the symmetric one of D_R^-1/2 E_R D_R^-1/2, whose eigenvalues are 1 - lambda. Eq. (10),
    gamma (2 - gamma) = lambda, gives (1 - gamma)**2 = 1 - lambda; the columns are divided by 1 - gamma here so that the
    lift of eq. (12) is one product. Departures: right vertices without edges are dropped; eigenvectors with
    1 - lambda below `LEAST_EIGENVALUE` are dropped; and while the graph has more unlinked parts than clusters wanted,
    which leaves the cut open, parts below `SPECK` of an equal share are dropped, smallest first. A few outliers are
    such parts: they would take the clusters of the rest. Their rows follow what other links they have. Then, where the
    right vertices have places, the parts that are nearest to each other are linked until there are as many as clusters:
    few rows, or few neighbors a row, leave gaps inside clusters.

    A task needs 8 p**2 bytes, and its partial result 16 bytes for each pair of right vertices that share a row; the
    eager problem needs 24 p**2 bytes. Source of the method: Li, Wu, Chang, CVPR 2012.
    """
    return cut_small_graph(small_affinity(graph), n_components, graph.points)


def small_affinity(graph: BipartiteGraph) -> dict[str, Any]:
    """The upper triangle of E_R = B^T D_X^-1 B, packed, for `cut_small_graph`."""
    return dict(reduced(*_affinity_task(graph), graph.held, name="dc-affinities"))


def lazy_affinity(graph: BipartiteGraph) -> da.Array:
    """The same, lazy: 0-d; of many graphs together, which no named store keeps."""
    return reduce_blocks(*_affinity_task(graph), graph.held, name="dc-affinities")


def _affinity_task(graph: BipartiteGraph) -> tuple[Any, Any]:
    return partial(_small_graph_block, edges_of=graph.edges_of, n_right=graph.n_right), add_packed


def cut_small_graph(
    packed: dict[str, Any],
    n_components: int,
    points: NDArray[np.float64] | None = None,
    n_clusters: int | None = None,
) -> TransferCut:
    """The eigenproblem of `transfer_cut`, from the value of `small_affinity` and the right vertices' places.

    `n_clusters` are those of which the graph has too many parts, if not as many as `n_components`.
    """
    n_clusters = n_components if n_clusters is None else n_clusters
    n_right = packed["n_right"]
    small = sum_packed([packed])
    row, column = np.divmod(packed["places"], n_right)
    small[column, row] = small[row, column]
    degrees = small.sum(axis=1)
    linked = np.flatnonzero(degrees > 0)
    roots = np.sqrt(degrees[linked])
    symmetric = small if len(linked) == n_right else small[np.ix_(linked, linked)]
    symmetric /= roots[:, None]  # in place: the matrix may be the largest thing of the fit
    symmetric /= roots
    parts = parts_of(symmetric > LEAST_LINK)
    large = without_specks(parts, degrees[linked], n_clusters)
    if not large.all():
        linked, roots, symmetric = linked[large], roots[large], symmetric[np.ix_(large, large)]
        parts = np.unique(parts[large], return_inverse=True)[1].astype(np.int32)
    if points is not None:
        _join_parts(symmetric, roots, joining_edges(parts, points[linked], n_clusters))
    values, vectors = largest_eigenpairs(symmetric, min(n_components, len(linked)))
    kept = values > LEAST_EIGENVALUE
    kept[0] = True
    values, vectors = values[kept], vectors[:, kept]
    lifted = np.zeros((n_right, len(values)))
    lifted[linked] = vectors / roots[:, None] / np.sqrt(np.maximum(values, LEAST_EIGENVALUE))
    return TransferCut(lifted, np.clip(1.0 - values, 0.0, 1.0), len(linked))


def _join_parts(symmetric: NDArray[np.float64], roots: NDArray[np.float64], edges: list[tuple[int, int]]) -> None:
    """Link pairs of vertices, each as firmly as the weaker one is linked to all others; in place."""
    if not edges:
        return
    symmetric *= roots[:, None] * roots
    degrees = roots**2
    for i, j in edges:
        weight = min(degrees[i], degrees[j])
        symmetric[[i, j], [j, i]] += weight
        roots[[i, j]] = np.sqrt(roots[[i, j]] ** 2 + weight)
    symmetric /= roots[:, None] * roots


def lift_embedding(graph: BipartiteGraph, cut: TransferCut) -> da.Array:
    """Embedding of the rows, lazy (n, q) float32; NaN for rows without edges.

    Notes
    -----
    h = T v / (1 - gamma), eq. (12), T = D_X^-1 B, and each row scaled to unit length as the authors' program does and
    the paper does not say; the scaling makes the division by D_X superfluous.
    """
    points = LiftedRows(graph.edges_of, cut.vectors)
    return map_rows(
        embed_block, graph.held, name="dc-lift", columns=cut.vectors.shape[1], dtype=np.float32, points=points
    )
