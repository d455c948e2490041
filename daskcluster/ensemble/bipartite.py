"""Bipartite graph of rows and base clusters -> its transfer cut, where that fits into memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ..pipeline.bipartite import BipartiteGraph
from ..pipeline.cut import Cut, TransferCut, cut_small_graph, small_affinity
from ..runtime.forecast import Cost, Sizes
from ..runtime.limits import memory_limit
from ..runtime.stages import Run

__all__ = ["SMALL_BYTES", "EnsembleCut", "check_pairs_size", "cut_bytes"]

#: So many bytes are there; for more the memory is looked at.
SMALL_BYTES = 2**29


@dataclass(frozen=True)
class EnsembleCut(Cut):
    """`Cut` of an ensemble's graph, whose right-hand side is as large as the base clusterings make it.

    Attributes
    ----------
    n_components : int
        Eigenvectors, at least `n_clusters`: more of them for finer clusters, see `cut_centers`.
    """

    n_components: int = field(kw_only=True)

    def __call__(self, run: Run, graph: BipartiteGraph, found: Any = None) -> TransferCut:
        """Cut the graph."""
        check_cut_size(graph.n_right, graph.held.numblocks[0])
        return super().__call__(run, graph)

    def _cut(self, graph: BipartiteGraph) -> TransferCut:
        return cut_small_graph(small_affinity(graph), self.n_components, graph.points, self.n_clusters)

    def cost(self, sizes: Sizes) -> Cost:
        """The same, and the further eigenvectors."""
        cost, more = super().cost(sizes), 16 * sizes.n_right * (self.n_components - self.n_clusters)
        return replace(cost, small_bytes=cost.small_bytes + more)


def check_cut_size(n_base_clusters: int, n_blocks: int) -> None:
    """Refuse a transfer cut whose small graph does not fit; 8 c**2 bytes a matrix.

    Raises
    ------
    MemoryError
        Naming the bytes.
    """
    check_pairs_size("the bipartite cut", n_base_clusters, cut_bytes(n_base_clusters, n_blocks))


def check_pairs_size(what: str, n_base_clusters: int, need: int) -> None:
    """Refuse what needs so many bytes for matrices of pairs of base clusters, where they do not fit; as above."""
    if need > SMALL_BYTES and need > memory_limit() // 2:
        raise MemoryError(
            f"{what} of {n_base_clusters} base clusters needs {need / 2**30:.1f} GiB, more than half of the "
            f"memory ({memory_limit() / 2**30:.1f} GiB): use fewer or coarser base clusterings, or SEC"
        )


def cut_bytes(n_base_clusters: int, n_blocks: int) -> int:
    """Peak of the small graphs of a transfer cut: partial results, their sum, and the eigenproblem."""
    return 8 * n_base_clusters**2 * (min(n_blocks, 10) + 4)
