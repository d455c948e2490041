"""U-SPEC base clusterings (n, m), several at a time: they share the reads of the rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..io.inputs import Rows, sizes_of
from ..kernels.lloyd import plus_plus_rows
from ..pipeline.affinity import distance_sum, gaussian_affinity, mean_distance
from ..pipeline.bipartite import BipartiteGraph
from ..pipeline.cut import LiftedRows, cut_small_graph, small_affinity
from ..pipeline.discretize import assign_block
from ..pipeline.lloyd import lloyd_in_memory
from ..pipeline.model import SpectralModel
from ..pipeline.neighbors import Link, RepresentativeIndex, nearest_block
from ..pipeline.representatives import Represent
from ..pipeline.scan import RowScan, Scan
from ..runtime.execution import FAN_IN, beside, map_rows
from ..runtime.forecast import Cost, Sizes, place_products
from ..runtime.products import Products, budget_bytes
from ..runtime.seeding import draw_ranks, stream
from ..runtime.stages import Run
from .members import MakeMembers, Member, Members, label_dtype, like_labels, member_name

__all__ = ["ScanPool", "SpectralMembers", "center_rows"]

#: The rows from which base clusterings draw their candidates take so many bytes at most.
POOL_BYTES = 256 * 2**20
#: A block's part of a small graph, packed, for each representative: it shares rows with some dozens of others.
SMALL_GRAPH_BYTES = 2**11
#: Lloyd passes on the candidates of a base clustering: half of what U-SPEC makes, for most of its time goes there when
#: there are many features, and more passes add nothing to the consensus.
CANDIDATE_ITER = 5
#: Sampled rows on which a base clustering places its centres, and so many for each of its clusters at least.
CENTER_ROWS = 2**13
ROWS_PER_CENTER = 64
#: Lloyd passes on these, and the movement of the centres, relative to the mean variance, at which they end.
CENTER_ITER = 20
CENTER_TOL = 1e-3

_NO_WEIGHTS = np.empty(0)


def group_size(n_samples: int, n_neighbors: int, n_base_clusterings: int) -> int:
    """Base clusterings that are made together: as many as their edges, 8 K bytes a row, fit into the budget."""
    return int(np.clip(budget_bytes() // (8 * n_neighbors * n_samples), 1, n_base_clusterings))


@dataclass(frozen=True)
class ScanPool(Scan):
    """Stage 0 of U-SPEC base clusterings: the sample is the pool from which all of them draw their candidates.

    Attributes
    ----------
    n_candidates : int
        Rows that one of them draws.
    n_base_clusterings : int
    """

    n_candidates: int = 1
    n_base_clusterings: int = 1

    def sample_rows(self, row_bytes: int) -> int:
        """As many rows as are drawn in all, where these fit; at least `n_sampled`."""
        most = max(POOL_BYTES // row_bytes, self.n_candidates)
        return max(self.n_sampled, min(self.n_base_clusterings * self.n_candidates, most))


def center_rows(most_clusters: int) -> int:
    """Sampled rows on which a base clustering places so many centres."""
    return max(CENTER_ROWS, ROWS_PER_CENTER * most_clusters)


@dataclass(frozen=True)
class SpectralMembers(MakeMembers):
    """U-SPEC base clusterings; section 3.2.1 of uspec_usenc_2019.

    Attributes
    ----------
    represent : Represent
    link : Link
        The stages of each of them.

    Notes
    -----
    Departures from m runs of U-SPEC: candidates are drawn from a common pool of m p' random rows, fewer where these
    would take more than `POOL_BYTES`; the centres of the discretisation come from one k-means++ start on a sample and
    are not moved by passes over all rows; and there are `CANDIDATE_ITER` passes over the candidates. A base clustering
    is one opinion among m, and need not be the best one.

    Groups of base clusterings (`group_size`) share one read of the rows and hold 8 K bytes a row each until their
    labels are made; the edges of an earlier group are gone by then. The eigenproblems and the placing of centres of a
    group run as tasks beside each other, and so does the choice of representatives, for as many base clusterings as
    their indexes fit into twice the budget.
    """

    represent: Represent = field(kw_only=True)
    link: Link = field(kw_only=True)

    def check(self) -> None:
        """Refuse parameters that U-SPEC refuses."""
        super().check()
        self.represent.check()
        self.link.check()

    def __call__(self, run: Run, found: RowScan, guide: Any = None) -> Members:
        """Make them. Products ``base-000``, ``base-000-labels`` and so on; what a named store has is not made again."""
        k_range, numbers, seeds = self._drawn(found.n_valid, found.n_valid, run.seed)
        stored = {i: member for i in range(len(numbers)) if (member := self._stored(run, found, i, numbers, seeds))}
        made = self._make(run, found, [i for i in range(len(numbers)) if i not in stored], numbers, seeds)
        return Members([(stored | made)[i] for i in range(len(numbers))], k_range, numbers, seeds)

    def _stored(self, run: Run, found: RowScan, i: int, numbers: list[int], seeds: list[int]) -> Member | None:
        name, products = member_name(i), run.products
        labels = products.kept_rows(f"{name}-labels", like_labels(run.rows, numbers[i]))
        # The labels come after the model: where they are, it is too, unless it was damaged.
        arrays = None if labels is None else products.kept_small(name)
        return None if labels is None or arrays is None else Member(labels, self._model(arrays, found, seeds[i]))

    def _model(self, arrays: dict[str, Any], found: RowScan, seed: int) -> SpectralModel:
        n_neighbors = self.link.width(len(arrays["representatives"]), found.n_valid)
        arrays = arrays | {key: kind(arrays[key]) for key, kind in (("neighborhood", int), ("bandwidth", float))}
        return SpectralModel(**arrays, n_neighbors=n_neighbors, form=found.form, seed=seed)

    def _make(
        self, run: Run, found: RowScan, missing: list[int], numbers: list[int], seeds: list[int]
    ) -> dict[int, Member]:
        members: dict[int, Member] = {}
        size = group_size(run.rows.n_samples, self.link.n_neighbors, len(numbers))
        p = min(self.represent.n_representatives, run.rows.n_samples)
        index_bytes = self.link.index_bytes(sizes_of(run.rows).with_graph(p, 0, 0), doubled=0)
        ahead = max(size, min(len(numbers), 2 * budget_bytes() // index_bytes))
        begun: dict[int, dict[str, Any]] = {}
        for begin in range(0, len(missing), size):
            group = missing[begin : begin + size]
            run.detail(f"{group[0] + 1} to {group[-1] + 1} of {len(numbers)}")
            if group[0] not in begun or group[-1] not in begun:
                soon = [i for i in missing[begin : begin + ahead] if i not in begun]
                found_out = self._beginnings(run.rows, found, [numbers[i] for i in soon], [seeds[i] for i in soon])
                begun.update(zip(soon, found_out, strict=True))
            beginnings = [begun.pop(i) for i in group]
            made = self._group(run.rows, beginnings, [numbers[i] for i in group], [seeds[i] for i in group])
            for i, (arrays, lazy) in zip(group, made, strict=True):
                # Bound now: `small` may call it at once or not at all.
                stored = run.products.small(member_name(i), partial(dict, arrays))
                labels, _ = run.products.rows(f"{member_name(i)}-labels", lazy)
                members[i] = Member(labels, self._model(stored, found, seeds[i]))
        return members

    def _group(
        self, rows: Rows, begun: list[dict[str, Any]], numbers: list[int], seeds: list[int]
    ) -> list[tuple[dict[str, Any], da.Array]]:
        """Models and lazy labels of base clusterings that share a read of the rows."""
        indexes = [part["index"] for part in begun]
        widths = [part["edges"].shape[1] // 2 for part in begun]
        borders = np.concatenate([[0], np.cumsum([2 * width for width in widths])])
        lazy = map_rows(
            _nearest_to_all,
            rows.blocks,
            name="dc-nearest",
            columns=int(borders[-1]),
            dtype=np.int32,
            indexes=dask.delayed(indexes, pure=False, traverse=False),
            widths=widths,
        )
        # Edges are scaffolding: they go to a scratch store where memory is short, never to the named store.
        held, sums = Products(None, "edges", {}, 0).rows("nearest", lazy, partial(_distance_sums, borders=borders))
        graphs, bandwidths = [], []
        for i, part in enumerate(begun):
            bandwidth = mean_distance([block["sums"][i] for block in sums])
            edges = held[:, borders[i] : borders[i + 1]]
            graphs.append(gaussian_affinity(edges, bandwidth, part["index"].points))
            bandwidths.append(bandwidth)
        finished = _finishes(graphs, [part["edges"] for part in begun], numbers, seeds)
        made = []
        for part, graph, bandwidth, number, finish in zip(begun, graphs, bandwidths, numbers, finished, strict=True):
            points = LiftedRows(graph.edges_of, finish["vectors"])
            labels = map_rows(
                _narrow_labels,
                graph.held,
                name="dc-assign",
                columns=None,
                dtype=label_dtype(number),
                points=points,
                centers=finish["centers"],
                dtype_=label_dtype(number),
            )
            model = {
                "representatives": part["representatives"],
                "neighborhood": part["neighborhood"],
                "bandwidth": bandwidth,
                **finish,
            }
            made.append((model, labels))
        return made

    def _beginnings(self, rows: Rows, found: RowScan, numbers: list[int], seeds: list[int]) -> list[dict[str, Any]]:
        """Representatives, search index and sample edges of base clusterings."""
        begin = partial(_begin, represent=self.represent, link=self.link)
        if self.represent.selection == "kmeans":  # passes over all rows, one base clustering after the other
            return [begin(number, seed, rows, found) for number, seed in zip(numbers, seeds, strict=True)]
        return beside(begin, "dc-represent", list(zip(numbers, seeds, strict=True)), rows=None, found=found)

    def cost(self, sizes: Sizes) -> Cost:
        """A read of the input a group; then the edges of each, 8 K bytes a row, are read for its cut and its labels."""
        n, m, d = sizes.n_samples, self.n_base_clusterings, sizes.n_features
        p = min(self.represent.n_representatives, n)
        n_neighbors = self.link.width(p, n)
        own = sizes.with_graph(p, n_neighbors, 8 * n_neighbors)
        size = group_size(n, n_neighbors, m)
        groups, most = -(-m // size), self._most_clusters(n)
        index, index_now = self.link.index_bytes(own), self.link.index_bytes(own, doubled=0)
        edges = 8 * n_neighbors * n * size
        _, in_memory, on_disk = place_products(None, [edges])
        choice = self.represent.cost(own) * m
        nearest = own.over_input(
            own.block_rows * 8 * n_neighbors * (size + 1) + own.tile_rows * (own.prepared_bytes + 24 * n_neighbors),
            times=groups,
            written_bytes=groups * on_disk,
        )
        solved = (FAN_IN + 1) * 8 * p * p + center_rows(most) * (12 * most + 20 * n_neighbors)
        cut = own.over_held(solved + own.tile_rows * 20 * n_neighbors, times=m)
        labels = own.over_held(own.tile_rows * (20 * n_neighbors + 12 * most), times=m, written_bytes=2 * m * n)
        at_once = min(m, max(size, 2 * budget_bytes() // index_now))
        total = (
            replace(choice, task_bytes=max(choice.task_bytes, choice.eager_bytes), eager_bytes=0)
            + nearest
            + cut
            + labels
        )
        return replace(
            total,
            eager_bytes=in_memory + at_once * (index + 8 * p * d),
            held=(2 * n,) * m,
            small_bytes=m * p * 8 * (d + most + 1),
        )

    @property
    def kept(self) -> tuple[str, ...]:
        """Of each its model and its labels."""
        names = [member_name(i) for i in range(self.n_base_clusterings)]
        return tuple(name + end for name in names for end in ("", "-labels"))


def _begin(n_clusters: int, seed: int, rows: Any, found: RowScan, represent: Represent, link: Link) -> dict[str, Any]:
    representatives = represent.choose(rows, found, seed, CANDIDATE_ITER)
    drawn = draw_ranks(stream(seed, "center rows"), len(found.sample), center_rows(n_clusters))
    sample = found.sample[drawn]
    index, neighborhood = link.search(representatives, found, sample, seed)
    edges = nearest_block(sample, index, link.width(len(representatives), found.n_valid))
    return {"representatives": representatives, "neighborhood": neighborhood, "index": index, "edges": edges}


def _nearest_to_all(block: NDArray[Any], indexes: list[RepresentativeIndex], widths: list[int]) -> NDArray[np.int32]:
    """Packed edges of a raw block to the representatives of several base clusterings, side by side."""
    return np.concatenate(
        [nearest_block(block, index, width) for index, width in zip(indexes, widths, strict=True)], axis=1
    )


def _distance_sums(edges: NDArray[np.int32], borders: NDArray[np.int64]) -> dict[str, Any]:
    return {"sums": [distance_sum(edges[:, low:high]) for low, high in pairwise(borders)]}


def _finishes(
    graphs: list[BipartiteGraph], samples: list[NDArray[np.int32]], numbers: list[int], seeds: list[int]
) -> list[dict[str, Any]]:
    """Cuts and centres of base clusterings: small graphs by passes over the edges, then the eager problems."""
    n_blocks = graphs[0].held.numblocks[0]
    at_once = max(1, 2 * budget_bytes() // (SMALL_GRAPH_BYTES * graphs[0].n_right * min(n_blocks, 2 * FAN_IN)))
    finished: list[dict[str, Any]] = []
    for begin in range(0, len(graphs), at_once):
        part = slice(begin, begin + at_once)
        arguments = [
            (small_affinity(graph).to_delayed().item(), graph.edges_of, graph.points, sample, number, seed)
            for graph, sample, number, seed in zip(graphs[part], samples[part], numbers[part], seeds[part], strict=True)
        ]
        finished += beside(_finish, "dc-eigenproblem", arguments)
    return finished


def _finish(
    found: dict[str, Any],
    edges_of: Any,
    points: NDArray[np.float64],
    sample: NDArray[np.int32],
    n_clusters: int,
    seed: int,
) -> dict[str, Any]:
    cut = cut_small_graph(found, n_clusters, points)
    embedded, _ = LiftedRows(edges_of, cut.vectors)(sample)
    rng = stream(seed, "discretize")
    # One trial a step: greedy trials cost more than they gain here.
    starts = embedded[plus_plus_rows(embedded, _NO_WEIGHTS, rng.random((n_clusters, 1)))].astype(np.float64)
    centers, _ = lloyd_in_memory(embedded, starts, max_iter=CENTER_ITER, tol=CENTER_TOL)
    return {"vectors": cut.vectors, "eigenvalues": cut.eigenvalues, "centers": centers.centers}


def _narrow_labels(
    block: NDArray[Any], points: LiftedRows, centers: NDArray[np.float64], dtype_: np.dtype[Any]
) -> NDArray[Any]:
    return assign_block(block, points, centers).astype(dtype_)
