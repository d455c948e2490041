"""Spectral base clusterings (n, m) of a few graphs: several a graph, and several graphs a read of the rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..io.inputs import Rows, sizes_of
from ..kernels.cut import LABEL_COLUMNS
from ..kernels.points import packed_points, unpacked_points
from ..pipeline.affinity import affinity_graph, distance_sum, mean_distance
from ..pipeline.bipartite import BipartiteGraph
from ..pipeline.cut import cut_small_graph, lazy_affinity, small_affinity
from ..pipeline.kmeans import center_starts
from ..pipeline.lift import LiftedLabels, LinkedRows
from ..pipeline.lloyd import lloyd_in_memory
from ..pipeline.model import SpectralModel
from ..pipeline.neighbors import Link, RepresentativeIndex, nearest_block, search_scratch
from ..pipeline.representatives import Represent
from ..pipeline.scan import RowScan, Scan
from ..runtime.execution import FAN_IN, beside, map_rows
from ..runtime.forecast import Cost, Sizes, place_products
from ..runtime.parts import current_parts
from ..runtime.pieces import column_range, once
from ..runtime.products import budget_bytes
from ..runtime.seeding import draw_ranks, stream
from ..runtime.stages import Run
from .members import MakeMembers, Member, Members, label_dtype, like_labels

__all__ = ["ScanPool", "SpectralMembers", "center_rows"]

#: The rows from which base clusterings draw their candidates take so many bytes at most.
POOL_BYTES = 256 * 2**20
#: A block's part of a small graph, packed, for each representative: it shares rows with some dozens of others.
SMALL_GRAPH_BYTES = 2**11
#: Sampled rows on which a base clustering places its centres, and so many for each of its clusters at least; those of
#: them among which its centres start.
CENTER_ROWS = 2**13
ROWS_PER_CENTER = 64
START_SHARE = 4
#: Lloyd passes on these, and the movement of the centres, relative to the mean variance, at which they end.
CENTER_ITER = 10
CENTER_TOL = 1e-3

#: Where rows are few: rows of a base cluster and of a representative at least, and how many times the clusters of the
#: consensus base clusterings may have, so that it is worth while to have more of them.
ROWS_PER_BASE_CLUSTER = 50
ROWS_PER_REPRESENTATIVE = 5
WIDE = 4
#: Eigenvectors of eigenvalues below this tell unlinked parts apart: every base clustering uses all of them.
UNLINKED = 1e-10


def _delayed_affinity(graph: BipartiteGraph) -> Any:
    return lazy_affinity(graph).to_delayed().item()


def group_size(n_samples: int, n_neighbors: int, n_graphs: int) -> int:
    """Graphs that are made together: as many as their edges, 8 K bytes a row, fit into the budget."""
    return int(np.clip(budget_bytes() // (8 * n_neighbors * n_samples), 1, n_graphs))


def few_rows_range(k_range: tuple[int, int], n_clusters: int, n_rows: int) -> tuple[int, int]:
    """The range of numbers of clusters for n rows: what was asked for, or less where rows are few.

    Notes
    -----
    Departure from the papers, whose rows are many. At most n / 50, the smallest number lowered by the same share; and
    all numbers are `n_clusters` where n / 50 is less than four times that: base clusters of few rows end at the gaps
    that a sample has by chance, all of them at the same ones, and nothing is left that links the pieces of a cluster.
    """
    low, high = k_range
    most = n_rows // ROWS_PER_BASE_CLUSTER
    if high <= max(most, n_clusters):
        return low, high
    if most < WIDE * n_clusters:
        return n_clusters, n_clusters
    return max(min(low, n_clusters), low * most // high), most


@dataclass(frozen=True)
class ScanPool(Scan):
    """Stage 0 of spectral base clusterings: the sample is the pool from which their graphs draw candidates.

    Attributes
    ----------
    n_candidates : int
        Rows that a graph draws.
    n_graphs : int
    """

    n_candidates: int = 1
    n_graphs: int = 1

    def sample_rows(self, rows: Rows | Sizes) -> int:
        """As many rows as are drawn in all, where these fit; at least `n_sampled`."""
        most = max(POOL_BYTES // rows.row_bytes, self.n_candidates)
        return max(self.n_sampled, min(self.n_graphs * self.n_candidates, most))


def center_rows(most_clusters: int) -> int:
    """Sampled rows on which a base clustering places so many centres."""
    return max(CENTER_ROWS, ROWS_PER_CENTER * most_clusters)


@dataclass(frozen=True)
class GraphMembers:
    """The base clusterings of one graph.

    Attributes
    ----------
    number : int
        Of the graph.
    members : list of int
        Their numbers among all.
    n_clusters : list of int
        Of each.
    seeds : list of int
        Root seed of each; the first one is the graph's.
    """

    number: int
    members: list[int]
    n_clusters: list[int]
    seeds: list[int]

    @property
    def name(self) -> str:
        """Name of its products."""
        return graph_name(self.number)

    @property
    def seed(self) -> int:
        """Root seed of the graph."""
        return self.seeds[0]

    @property
    def most(self) -> int:
        """Clusters of the largest one."""
        return max(self.n_clusters)


def graph_name(number: int) -> str:
    """Name of a graph's products."""
    return f"graph-{number:03d}"


@dataclass(frozen=True)
class SpectralMembers(MakeMembers):
    """Base clusterings by the first eigenvectors of a few bipartite graphs.

    Attributes
    ----------
    represent : Represent
    link : Link
        The stages of each graph.
    n_graphs : int
        At most m. Consecutive base clusterings share a graph.

    Notes
    -----
    With m graphs section 3.2.1 of uspec_usenc_2019: a U-SPEC a base clustering. With fewer, each graph is cut once, and
    a base clustering into k_j clusters is k-means on the first k_j eigenvectors, rows at unit length: with one graph as
    in the ensembles of one anchor graph (FSEC, Information Fusion 113, 2025, 102587), with several as in LSEC (2023).

    Departures from m runs of U-SPEC: candidates are drawn from a common pool of p' random rows a graph, fewer where
    these would take more than `POOL_BYTES`; and the centres of the discretisation come from one greedy k-means++ start
    on a sample and are not moved by passes over all rows. (The start is greedy since one without trials leaves base
    clusters that span two clusters.) A base clustering is one opinion among m, and need not be the best one. A graph
    in more unlinked parts than the clusters of the *consensus* has its nearest parts joined, so that base clusters do
    not mix far parts; and a base clustering uses the eigenvectors that tell unlinked parts apart even where it has
    fewer clusters.

    Groups of graphs (`group_size`) share one read of the rows and hold 8 K bytes a row each until their labels are
    made; the edges of an earlier group are gone by then. The eigenproblems and the placing of centres of a group run as
    tasks beside each other, and so does the choice of representatives, for as many graphs as their indexes fit into
    twice the budget.
    """

    represent: Represent = field(kw_only=True)
    link: Link = field(kw_only=True)
    n_graphs: int = field(kw_only=True)

    def check(self) -> None:
        """Refuse parameters that U-SPEC refuses."""
        super().check()
        self.represent.check()
        self.link.check()

    def __call__(self, run: Run, found: RowScan, guide: Any = None) -> Members:
        """Make them. Products ``graph-000``, ``graph-000-labels`` and so on; what is in a named store stays."""
        k_range, numbers, seeds = self._drawn(found.n_valid, found.n_valid, run.seed)
        graphs = self._graphs(numbers, seeds)
        made = {graph.number: stored for graph in graphs if (stored := self._stored(run, found, graph))}
        made |= self._make(run, found, graphs, made.keys())
        run.products.sweep("edges-", "group-")
        models = [model for graph in graphs for model in made[graph.number][0]]
        held = [made[graph.number][1] for graph in graphs]
        return Members([Member(model) for model in models], held, k_range, numbers, seeds)

    def _allowed(self, asked: tuple[int, int], n_seen: int) -> tuple[int, int]:
        """The range that so many rows, and the representatives, allow; see `few_rows_range`."""
        low, high = super()._allowed(asked, n_seen)
        most = self.represent.n_representatives
        return few_rows_range((min(low, most), min(high, most)), self.n_clusters, n_seen)

    def _chosen(self, n_rows: int) -> Represent:
        """How each graph chooses its representatives, of so many rows.

        Where base clusterings have more than k clusters, a representative stands for `ROWS_PER_REPRESENTATIVE` rows at
        least: their means are spaced evenly, while single rows leave gaps at which every base clustering would split.
        """
        most = n_rows // ROWS_PER_REPRESENTATIVE
        if self._most_clusters(n_rows) <= self.n_clusters or most >= self.represent.n_representatives:
            return self.represent
        return replace(self.represent, n_representatives=most)

    def _graphs(self, numbers: list[int], seeds: list[int]) -> list[GraphMembers]:
        m = len(numbers)
        borders = [g * m // self.n_graphs for g in range(self.n_graphs + 1)]
        return [
            GraphMembers(g, list(range(low, high)), numbers[low:high], seeds[low:high])
            for g, (low, high) in enumerate(pairwise(borders))
        ]

    def _stored(self, run: Run, found: RowScan, graph: GraphMembers) -> tuple[list[SpectralModel], da.Array] | None:
        like = like_labels(run.rows, graph.most, len(graph.members))
        labels = run.products.kept_rows(f"{graph.name}-labels", like)
        # The labels come after the model: where they are, it is too, unless it was damaged.
        arrays = None if labels is None else run.products.kept_small(graph.name)
        return None if labels is None or arrays is None else (self._models(arrays, found, graph), labels)

    def _models(self, arrays: dict[str, Any], found: RowScan, graph: GraphMembers) -> list[SpectralModel]:
        """Models of the base clusterings of a graph, which share its arrays."""
        models, points = [], unpacked_points("representatives", arrays)
        for i in range(len(graph.members)):
            centers = arrays[f"centers-{i}"]
            models.append(
                SpectralModel(
                    representatives=points,
                    neighborhood=int(arrays["neighborhood"]),
                    n_neighbors=self.link.width(len(points), found.n_valid),
                    bandwidth=float(arrays["bandwidth"]),
                    vectors=arrays["vectors"][:, : centers.shape[1]],
                    eigenvalues=arrays["eigenvalues"][: centers.shape[1]],
                    centers=centers,
                    form=found.form,
                    seed=graph.seed,
                    affinity=self.link.affinity,
                )
            )
        return models

    def _make(
        self, run: Run, found: RowScan, graphs: list[GraphMembers], stored: Collection[int]
    ) -> dict[int, tuple[list[SpectralModel], da.Array]]:
        """Make the graphs that are not `stored`."""
        made: dict[int, tuple[list[SpectralModel], da.Array]] = {}
        p = min(self._chosen(found.n_valid).n_representatives, run.rows.n_samples)
        size = group_size(run.rows.n_samples, self.link.held(p, run.rows.n_samples), self.n_graphs)
        own = sizes_of(run.rows).with_graph(p, 0, 0, self.represent.rows_behind(run.rows.n_samples))
        index_bytes = self.link.index_bytes(own, doubled=0)
        ahead = max(size, min(self.n_graphs, 2 * budget_bytes() // index_bytes))
        begun: dict[int, dict[str, Any]] = {}
        # The same groups in each run: their edges are in a named store until all their labels are.
        groups = [graphs[begin : begin + size] for begin in range(0, self.n_graphs, size)]
        groups = [group for group in groups if any(graph.number not in stored for graph in group)]
        missing = [graph for group in groups for graph in group]
        for number, group in enumerate(groups):
            run.detail(f"{group[0].members[0] + 1} to {group[-1].members[-1] + 1} of {self.n_base_clusterings}")
            if group[0].number not in begun or group[-1].number not in begun:
                soon = [graph for graph in missing[number * size :][:ahead] if graph.number not in begun]
                found_out = self._beginnings(run.rows, found, soon)
                begun.update(zip((graph.number for graph in soon), found_out, strict=True))
            beginnings = [begun.pop(graph.number) for graph in group]
            edges = f".edges-{group[0].number:03d}"
            with run.products.making(f"group-{group[0].number:03d}"):
                for graph, (arrays, lazy) in zip(group, self._group(run, edges, beginnings, group), strict=True):
                    # Bound now: `small` may call it at once or not at all.
                    small = run.products.small(graph.name, partial(dict, arrays))
                    labels, _ = run.products.rows(f"{graph.name}-labels", lazy)
                    made[graph.number] = self._models(small, found, graph), labels
            run.products.discard(edges)
        return made

    def _group(
        self, run: Run, name: str, begun: list[dict[str, Any]], group: list[GraphMembers]
    ) -> list[tuple[dict[str, Any], da.Array]]:
        """Models and lazy labels of graphs that share a read of the rows; `name` is that of their edges."""
        indexes = [part["index"] for part in begun]
        widths = [part["edges"].shape[1] // 2 for part in begun]
        borders = np.concatenate([[0], np.cumsum([2 * width for width in widths])])
        lazy = map_rows(
            _nearest_to_all,
            run.rows.blocks,
            name="dc-nearest",
            columns=int(borders[-1]),
            dtype=np.int32,
            indexes=once(indexes, "indexes"),
            widths=widths,
        )
        held, sums = run.products.scaffolding(name, lazy, partial(_distance_sums, borders=borders))
        graphs, bandwidths = [], []
        for i, part in enumerate(begun):
            bandwidth = mean_distance([block["sums"][i] for block in sums])
            edges = column_range(held, int(borders[i]), int(borders[i + 1]))
            graphs.append(affinity_graph(edges, bandwidth, part["index"].points, self.link.affinity))
            bandwidths.append(bandwidth)
        finished = self._finishes(graphs, [part["edges"] for part in begun], group)
        made = []
        for part, graph, bandwidth, members, finish in zip(begun, graphs, bandwidths, group, finished, strict=True):
            dtype = label_dtype(members.most)
            labels = map_rows(
                LiftedLabels(LinkedRows(graph.edges_of, finish["vectors"]), finish["centers"], dtype),
                graph.held,
                name="dc-assign",
                columns=len(members.members),
                dtype=dtype,
            )
            model = {
                **packed_points("representatives", part["representatives"]),
                "neighborhood": part["neighborhood"],
                "bandwidth": bandwidth,
                "vectors": finish["vectors"],
                "eigenvalues": finish["eigenvalues"],
                **{f"centers-{i}": centers for i, centers in enumerate(finish["centers"])},
            }
            made.append((model, labels))
        return made

    def _beginnings(self, rows: Rows, found: RowScan, graphs: list[GraphMembers]) -> list[dict[str, Any]]:
        """Representatives, search index and sample edges of graphs."""
        begin = partial(_begin, represent=self._chosen(found.n_valid), link=self.link)
        arguments = [(graph.most, graph.seed) for graph in graphs]
        if self.represent.selection == "kmeans":  # passes over all rows, one graph after the other
            return [begin(*each, rows, found) for each in arguments]
        return beside(begin, "dc-represent", arguments, rows=None, found=found)

    def _finishes(
        self, graphs: list[BipartiteGraph], samples: list[NDArray[np.int32]], group: list[GraphMembers]
    ) -> list[dict[str, Any]]:
        """Cuts and centres: small graphs by passes over the edges, then the eager problems."""
        n_blocks = graphs[0].held.numblocks[0]
        at_once = max(1, 2 * budget_bytes() // (SMALL_GRAPH_BYTES * graphs[0].n_right * min(n_blocks, 2 * FAN_IN)))
        finish = partial(_finish, n_clusters=self.n_clusters)
        # Lazy, many graphs share a computation; in a named store each sum is kept by itself.
        small_of = _delayed_affinity if current_parts() is None else small_affinity
        finished: list[dict[str, Any]] = []
        for begin in range(0, len(graphs), at_once):
            part = slice(begin, begin + at_once)
            arguments = [
                (small_of(graph), graph.edges_of, graph.points, sample, members)
                for graph, sample, members in zip(graphs[part], samples[part], group[part], strict=True)
            ]
            finished += beside(finish, "dc-eigenproblem", arguments)
        return finished

    def cost(self, sizes: Sizes) -> Cost:
        """A read of the input a group; then the edges of each graph, 8 K bytes a row, are read for cut and labels."""
        n, m, g = sizes.n_samples, self.n_base_clusterings, self.n_graphs
        p = min(self._chosen(n).n_representatives, n)
        n_neighbors = self.link.held(p, n)
        own = sizes.with_graph(p, n_neighbors, 8 * n_neighbors, self.represent.rows_behind(n))
        size = group_size(n, n_neighbors, g)
        groups, most, members = -(-g // size), self._most_clusters(n), -(-m // g)
        index, index_now = self.link.index_bytes(own), self.link.index_bytes(own, doubled=0)
        edges = 8 * n_neighbors * n * size
        _, in_memory, on_disk = place_products(None, [edges])
        choice = self._chosen(n).cost(own) * g
        nearest = own.over_input(
            own.block_rows * 8 * n_neighbors * (size + 1)
            + own.tile_rows * (own.prepared_bytes + 24 * n_neighbors)
            + search_scratch(own),
            times=groups,
            written_bytes=groups * on_disk,
        )
        tables = p * members * 4 * (most + LABEL_COLUMNS)
        solved = (FAN_IN + 1) * 8 * p * p + center_rows(most) * (12 * most + 20 * n_neighbors) + 3 * tables
        cut = own.over_held(solved + own.tile_rows * 20 * n_neighbors, times=g)
        label_task = own.tile_rows * (20 * n_neighbors + 4 * members) + own.block_rows * 2 * members + 3 * tables
        labels = own.over_held(label_task, times=g, written_bytes=2 * m * n)
        at_once = min(g, max(size, 2 * budget_bytes() // index_now))
        total = (
            replace(choice, task_bytes=max(choice.task_bytes, choice.eager_bytes), eager_bytes=0)
            + nearest
            + cut
            + labels
        )
        return replace(
            total,
            eager_bytes=in_memory + at_once * (index + own.point_bytes * own.right_numbers),
            held=(2 * n * members,) * g,
            small_bytes=g * (own.point_bytes * own.right_numbers + 8 * p * (most + 1)) + m * 8 * most * most,
        )

    @property
    def kept(self) -> tuple[str, ...]:
        """Of each graph its models and its labels."""
        names = [graph_name(number) for number in range(self.n_graphs)]
        return tuple(name + end for name in names for end in ("", "-labels"))


def _begin(n_clusters: int, seed: int, rows: Any, found: RowScan, represent: Represent, link: Link) -> dict[str, Any]:
    representatives = represent.choose(rows, found, seed)
    drawn = draw_ranks(stream(seed, "center rows"), len(found.sample), center_rows(n_clusters))
    sample = found.sample[drawn]
    index, neighborhood = link.search(representatives, found, sample, seed)
    edges = nearest_block(sample, index, link.held(len(representatives), found.n_valid))
    return {"representatives": representatives, "neighborhood": neighborhood, "index": index, "edges": edges}


def _nearest_to_all(block: NDArray[Any], indexes: list[RepresentativeIndex], widths: list[int]) -> NDArray[np.int32]:
    """Packed edges of a raw block to the representatives of several graphs, side by side."""
    return np.concatenate(
        [nearest_block(block, index, width) for index, width in zip(indexes, widths, strict=True)], axis=1
    )


def _distance_sums(edges: NDArray[np.int32], borders: NDArray[np.int64]) -> dict[str, Any]:
    return {"sums": [distance_sum(edges[:, low:high]) for low, high in pairwise(borders)]}


def _finish(
    small: dict[str, Any],
    edges_of: Any,
    points: NDArray[np.float64],
    sample: NDArray[np.int32],
    members: GraphMembers,
    n_clusters: int,
) -> dict[str, Any]:
    """Cut of a graph, and the centres of its base clusterings."""
    cut = cut_small_graph(small, max(members.most, n_clusters), points, n_clusters)
    least = int(np.sum(cut.eigenvalues < UNLINKED))
    width = max(members.most, least)
    vectors = cut.vectors[:, :width]
    centers = []
    for number, seed in zip(members.n_clusters, members.seeds, strict=True):
        embedded, _ = LinkedRows(edges_of, vectors[:, : max(number, least)])(sample)
        centers.append(_place_centers(embedded, number, stream(seed, "discretize")))
    return {"vectors": vectors, "eigenvalues": cut.eigenvalues[:width], "centers": centers}


def _place_centers(embedded: NDArray[np.float32], n_clusters: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Centres by k-means on sampled rows of the embedding, which start among a part of them."""
    few = max(len(embedded) // START_SHARE, min(len(embedded), ROWS_PER_CENTER * n_clusters))
    begin = embedded[draw_ranks(rng, len(embedded), few)]
    starts = center_starts(begin, n_clusters, rng)
    found, _ = lloyd_in_memory(embedded, starts, max_iter=CENTER_ITER, tol=CENTER_TOL)
    return found.centers
