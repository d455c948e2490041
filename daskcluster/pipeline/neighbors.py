"""Stage 2: rows, representatives -> K nearest representatives and their distances (n, K)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..io.inputs import Rows
from ..kernels.lloyd import assign_rows
from ..kernels.nearest_points import ProductTable, product_table, tile_bytes
from ..kernels.neighbors import (
    LONG_STRIP,
    NEAREST_IN_NEIGHBORHOODS,
    PAD_COLUMNS,
    SHORT_FEATURES,
    SHORT_STRIP,
    WIDE_FEATURES,
    ExactSearch,
    exact_search,
    nearest_in_neighborhoods_wide,
    nearest_starts,
    nearest_starts_wide,
    order_by_start,
)
from ..kernels.rows import compute_dtype, finite_rows
from ..kernels.sparse_rows import SparsePoints, SparseRows, is_sparse
from ..runtime.execution import map_rows
from ..runtime.forecast import Cost, Sizes
from ..runtime.pieces import once
from ..runtime.seeding import stream
from ..runtime.stages import Run, Stage
from ..runtime.threads import one_blas_thread
from ..validation import check_integer, check_option
from .affinity import AFFINITIES, affinity_graph, distance_sum, mean_distance, n_held
from .bipartite import BipartiteGraph, pack_edges
from .kmeans import center_starts
from .lloyd import lloyd_in_memory
from .rows import RowForm, scatter_rows
from .scan import RowScan

__all__ = [
    "NEIGHBORS",
    "Link",
    "Linked",
    "RepresentativeIndex",
    "choose_neighborhood",
    "index_representatives",
    "nearest_block",
    "nearest_representatives",
    "recall",
    "search_scratch",
]

#: Names of the ways to find the nearest representatives.
NEIGHBORS = ("approximate", "exact")
#: Lloyd passes that group the representatives into rep-clusters.
GROUP_ITER = 20
#: The neighbourhoods are doubled up to twice while a check on so many rows finds a recall below this.
LEAST_RECALL = 0.98
RECALL_ROWS = 512
#: K is at least so much where there are fewer than so many rows a representative.
FEW_NEIGHBORS = 5
FEW_ROWS = 4
#: Bytes of a number of sparse representatives in a search: by rows, by columns, and a copy of both on the way.
SPARSE_INDEX_BYTES = 72
#: Neighbourhoods are stored with their coordinates up to so many bytes.
MOST_COORDINATE_BYTES = 64 * 2**20
#: Neighbourhoods of more bytes do not fit into the cache: rows of one start are looked at one after the other then, a
#: gain of a fifth at 8 MiB and of two fifths at 16. Of fewer bytes it is a loss, for rows are no longer in their order.
CACHE_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Linked:
    """What stage 2 found.

    Attributes
    ----------
    index : RepresentativeIndex
    neighborhood : int
        K' of the search; p - 1 for an exact one.
    n_neighbors : int
        K, at most p.
    nearest : dask array (n, 2 K') int32
        Held packed edges with distances; K' = K, or K + 1 where the affinity asks for it.
    bandwidth : float
        sigma, between prepared rows.
    affinity : str
    """

    index: RepresentativeIndex
    neighborhood: int
    n_neighbors: int
    nearest: da.Array
    bandwidth: float
    affinity: str

    @property
    def graph(self) -> BipartiteGraph:
        """The bipartite graph with affinities."""
        return affinity_graph(self.nearest, self.bandwidth, self.index.points, self.affinity)

    def edges_of(self, sample: NDArray[Any]) -> NDArray[np.int32]:
        """Packed edges of raw rows in memory."""
        return nearest_block(sample, self.index, self.nearest.shape[1] // 2)


@dataclass(frozen=True)
class Link(Stage):
    """Stage 2: the K nearest representatives of every row, and the bandwidth of their affinities.

    Attributes
    ----------
    n_neighbors : int
        K.
    neighbors : {"approximate", "exact"}
    neighbor_factor : int
        K' / K of the approximate search.
    n_clusters : int
        Where rows are few, K follows from it; see `width`.
    affinity : {"gaussian", "adaptive"}
        See `affinity_graph`.
    """

    title = "nearest representatives"
    n_neighbors: int
    neighbors: str
    neighbor_factor: int
    n_clusters: int
    affinity: str = "gaussian"

    def check(self) -> None:
        """Refuse counts below 1 and an unknown search."""
        check_integer("n_neighbors", self.n_neighbors, 1)
        check_option("neighbors", self.neighbors, NEIGHBORS)
        check_integer("neighbor_factor", self.neighbor_factor, 1)
        check_option("affinity", self.affinity, AFFINITIES)

    def __call__(self, run: Run, representatives: NDArray[np.float64], found: RowScan) -> Linked:
        """Link the rows to representatives (p, d)."""
        n_rows, p = found.n_valid, len(representatives)
        index, neighborhood = self.search(representatives, found, found.sample, run.seed)
        lazy = nearest_representatives(run.rows, index, self.held(p, n_rows))
        nearest, sums = run.products.rows("nearest", lazy, distance_sum)
        return Linked(index, neighborhood, self.width(p, n_rows), nearest, mean_distance(sums), self.affinity)

    def width(self, n_representatives: int, n_rows: int) -> int:
        """K that is used, for so many representatives and rows.

        Departure from the papers, whose rows are many. With fewer than `FEW_ROWS` rows a representative it is
        `FEW_NEIGHBORS` at least: representatives share few rows then, and clusters would fall apart. And it is at most
        p, and at most the rows of an average cluster, but for 2: with more, most neighbors would be of other clusters,
        and they would make the bandwidth.
        """
        few = n_rows < FEW_ROWS * n_representatives
        wanted = max(self.n_neighbors, FEW_NEIGHBORS) if few else self.n_neighbors
        return min(wanted, n_representatives, max(2, n_rows // self.n_clusters))

    def held(self, n_representatives: int, n_rows: int) -> int:
        """Neighbors that are found of each row, see `n_held`."""
        return n_held(self.width(n_representatives, n_rows), n_representatives, self.affinity)

    def search(
        self, representatives: NDArray[np.float64], found: RowScan, sample: NDArray[Any], seed: int
    ) -> tuple[RepresentativeIndex, int]:
        """`choose_neighborhood` with these parameters."""
        return choose_neighborhood(
            representatives,
            found.form,
            sample,
            self.held(len(representatives), found.n_valid),
            neighbors=self.neighbors,
            neighbor_factor=self.neighbor_factor,
            seed=seed,
        )

    def index_bytes(self, sizes: Sizes, *, doubled: int = 2) -> int:
        """Bytes of a search index, with the neighbourhoods doubled so many times."""
        p, d = sizes.n_right, sizes.n_features
        if sizes.row_entries is not None:
            return SPARSE_INDEX_BYTES * sizes.right_numbers + 32 * d
        neighborhood = min(p, 2**doubled * self.neighbor_factor * min(max(self.n_neighbors, FEW_NEIGHBORS), p) + 1)
        coordinates = neighborhood * min(d, WIDE_FEATURES) * sizes.number_bytes
        return 5 * p * d * 8 + p * (8 * neighborhood + min(coordinates, MOST_COORDINATE_BYTES // max(1, p)))

    def cost(self, sizes: Sizes) -> Cost:
        """One pass over the input, which leaves 8 K' bytes a row; the index, while it is chosen two of them."""
        n_neighbors, index = sizes.n_edges, self.index_bytes(sizes)
        products = search_scratch(sizes)
        tile = sizes.tile_rows * (sizes.prepared_bytes + 24 * n_neighbors) + products
        edges = 8 * n_neighbors * sizes.n_samples
        return sizes.over_input(
            sizes.block_rows * 8 * n_neighbors + tile,
            written_bytes=edges,
            held=(edges,),
            eager_bytes=index + products + RECALL_ROWS * sizes.prepared_bytes,
            small_bytes=index,
        )

    @property
    def kept(self) -> tuple[str, ...]:
        """The edges."""
        return ("nearest",)


def search_scratch(sizes: Sizes) -> int:
    """What a search of representatives takes besides: the products of a tile, of sparse rows those of one."""
    return tile_bytes(sizes.n_right, sizes.n_features) if sizes.row_entries is None else 24 * sizes.n_right


@dataclass(frozen=True)
class RepresentativeIndex:
    """Representatives, prepared for the search.

    Attributes
    ----------
    form : RowForm
    points : (p, d) float64
        Representatives in the form for computing: dense, or `SparseRows`.
    every : ExactSearch, SparsePoints, or None for an approximate search
    centers : (z, d) float64, or None for an exact search
        Rep-cluster centres, eq. (4).
    sizes, members, starts_coordinates : arrays, or None for an exact search
        Rep-clusters, as `nearest_starts` or `nearest_starts_wide` read them.
    neighbors, reach, coordinates : arrays, or None for an exact search
        Neighbourhoods, as `NEAREST_IN_NEIGHBORHOODS` or `nearest_in_neighborhoods_wide` read them.
    """

    form: RowForm
    points: NDArray[np.float64]
    every: ExactSearch | SparsePoints | None
    centers: NDArray[np.float64] | None = None
    sizes: NDArray[np.intp] | None = None
    members: NDArray[np.int32] | None = None
    starts_coordinates: NDArray[np.floating] | list[ProductTable] | None = None
    neighbors: NDArray[np.int32] | None = None
    reach: NDArray[np.float32] | None = None
    coordinates: NDArray[np.floating] | None = None

    @property
    def exact(self) -> bool:
        """Whether every row is compared with every representative."""
        return self.every is not None

    @property
    def wide(self) -> bool:
        """Whether the loops run over features."""
        return self.coordinates is not None and self.coordinates.ndim == 2

    def search(self, rows: NDArray[np.floating], n_neighbors: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """K nearest representatives of prepared rows (n, d): indices (n, K) and Euclidean distances (n, K)."""
        if isinstance(self.every, SparsePoints):
            return self.every(rows if is_sparse(rows) else SparseRows.of(rows, np.float64), n_neighbors)  # type: ignore[arg-type]
        if self.every is not None:
            return self.every(rows, n_neighbors)
        there: Any = self  # the arrays of an approximate search are
        starts_of: Any = nearest_starts_wide if self.wide else nearest_starts
        nearest = nearest_in_neighborhoods_wide if self.wide else NEAREST_IN_NEIGHBORHOODS[there.coordinates.shape[3]]
        groups = assign_rows(rows, there.centers)
        starts = starts_of(rows, groups, self.sizes, self.members, self.starts_coordinates)
        n_points, far = len(self.points), there.coordinates.nbytes > CACHE_BYTES and not self.wide
        order = order_by_start(starts, n_points) if far else np.arange(len(rows), dtype=np.int32)
        indices, distances = nearest(
            rows, starts, order, self.neighbors, self.reach, self.coordinates, self.points, n_neighbors
        )
        return indices, distances


@one_blas_thread()
def index_representatives(
    representatives: NDArray[np.float64],
    form: RowForm,
    dtype: np.dtype[Any],
    n_neighbors: int,
    *,
    neighborhood: int,
    seed: int = 0,
) -> RepresentativeIndex:
    """Prepare the search; pre-steps 1 and 2 of uspec_usenc_2019 section 3.1.2.

    Parameters
    ----------
    representatives : (p, d) float64
        In the units of the input.
    form : RowForm
    dtype : dtype
        Of the raw rows.
    n_neighbors : int
        K, at most p.
    neighborhood : int
        K', the neighbours that each representative keeps; with K' + 1 >= p the search is exact.
    seed : int
        Root seed.

    Notes
    -----
    z1 = floor(sqrt(p)) rep-clusters by k-means. Eager: p**2 d multiplications; 4 p K' bytes and the coordinates, at
    most `MOST_COORDINATE_BYTES` + 8 p d bytes.
    """
    computing = compute_dtype(dtype)
    points = form.prepare_points(representatives)
    if is_sparse(points):
        return RepresentativeIndex(form, points, SparsePoints(points))
    if neighborhood + 1 >= len(points):
        return RepresentativeIndex(form, points, exact_search(points, computing, n_neighbors))
    return _approximate_index(form, points, computing, max(neighborhood, n_neighbors), *_rep_clusters(points, seed))


@one_blas_thread()
def choose_neighborhood(
    representatives: NDArray[np.float64],
    form: RowForm,
    sample: NDArray[Any],
    n_neighbors: int,
    *,
    neighbors: str = "approximate",
    neighbor_factor: int = 10,
    seed: int = 0,
) -> tuple[RepresentativeIndex, int]:
    """The index and its K' for a data set.

    Parameters
    ----------
    representatives, form, n_neighbors, seed
        As in `index_representatives`.
    sample : (s, d)
        Raw finite rows on which the recall is checked.
    neighbors : {"approximate", "exact"}
    neighbor_factor : int
        K' = neighbor_factor * K, as in the paper, is tried first.

    Returns
    -------
    index : RepresentativeIndex
    neighborhood : int
        K', p - 1 for an exact search.

    Notes
    -----
    Departure from uspec_usenc_2019: K' is doubled, twice at most, and then the search becomes exact, as long as it
    finds less than `LEAST_RECALL` of the true K nearest for `RECALL_ROWS` sampled rows. In few dimensions, and
    wherever the rows lie near a manifold, the paper's K' is kept; structureless data in many dimensions would lose a
    third of its neighbours to it. Sparse rows are compared with all representatives: their columns tell which share a
    number with them, and those are few.
    """
    n_points = len(representatives)
    dtype = sample.dtype
    computing = compute_dtype(dtype)
    exact = index_representatives(representatives, form, dtype, n_neighbors, neighborhood=n_points - 1)
    size = neighbor_factor * n_neighbors
    if neighbors == "exact" or size + 1 >= n_points or is_sparse(exact.points):
        return exact, n_points - 1
    rows = form.prepare(sample[:: max(1, len(sample) // RECALL_ROWS)][:RECALL_ROWS])
    truth = exact.search(rows, n_neighbors)[0]
    groups = _rep_clusters(exact.points, seed)
    for _ in range(3):
        if size + 1 >= n_points:
            break
        index = _approximate_index(form, exact.points, computing, size, *groups)
        if recall(index.search(rows, n_neighbors)[0], truth) >= LEAST_RECALL:
            return index, size
        size *= 2
    return exact, n_points - 1


def recall(found: NDArray[np.int32], truth: NDArray[np.int32]) -> float:
    """Share of the true neighbours (n, K) that were found."""
    return float(np.asarray(found[:, :, None] == truth[:, None, :]).any(axis=1).mean())


def _rep_clusters(points: NDArray[np.float64], seed: int) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Rep-cluster centres (z, d), and the rep-cluster of each representative (p,)."""
    starts = center_starts(points, int(np.sqrt(len(points))), stream(seed, "rep-clusters"))
    found, labels = lloyd_in_memory(points, starts, max_iter=GROUP_ITER, refill=False)
    taken, groups = np.unique(labels, return_inverse=True)  # a rep-cluster without members has no start to offer
    return found.centers[taken], groups.astype(np.int32)


def _approximate_index(
    form: RowForm,
    points: NDArray[np.float64],
    computing: np.dtype[Any],
    size: int,
    centers: NDArray[np.float64],
    labels: NDArray[np.int32],
) -> RepresentativeIndex:
    typed = points.astype(computing)
    n_points, n_features = points.shape
    neighbors: Any
    reach: Any
    neighbors, reach = exact_search(points, computing, size + 1)(typed, size + 1)
    wide = n_features > WIDE_FEATURES or n_points * n_features * (size + 1) * computing.itemsize > MOST_COORDINATE_BYTES
    sizes = np.bincount(labels, minlength=len(centers))
    if not wide:
        sizes = -(-sizes // PAD_COLUMNS) * PAD_COLUMNS
    members = np.zeros((len(centers), sizes.max()), np.int32)
    tables = []
    columns = np.full((0 if wide else len(centers), n_features, sizes.max()), np.inf, computing)
    for c in range(len(centers)):
        inside = np.flatnonzero(labels == c)
        members[c, : len(inside)] = inside
        if wide:
            tables.append(product_table(points[inside], 1))
        else:
            columns[c, :, : len(inside)] = typed[inside].T
    coordinates = typed
    if not wide:
        strip = SHORT_STRIP if n_features <= SHORT_FEATURES else LONG_STRIP
        padding = -(size + 1) % strip
        padded = np.full((n_points, size + 1 + padding, n_features), np.inf, computing)
        padded[:, : size + 1] = typed[neighbors]
        # An infinite column is never among the nearest; its name is a representative all the same.
        neighbors, reach = (np.pad(array, ((0, 0), (0, padding)), mode="edge") for array in (neighbors, reach))
        strips = padded.reshape(n_points, -1, strip, n_features)
        coordinates = np.ascontiguousarray(strips.transpose(0, 1, 3, 2))  # (p, s, d, w)
    starts_of = tables if wide else columns
    return RepresentativeIndex(form, points, None, centers, sizes, members, starts_of, neighbors, reach, coordinates)


def nearest_block(block: NDArray[Any], index: RepresentativeIndex, n_neighbors: int) -> NDArray[np.int32]:
    """Raw row block -> packed edges (n, 2 K): K nearest representatives and distances; -1 for rows that are missing.

    With ``metric="cosine"`` (unit-length rows) the distance is 1 - cos = sqdist / 2, and 1 for a row of zeros. All
    are as far from that one, so rounding would choose: it is linked to the representatives nearest to the first.
    """
    finite = finite_rows(block)
    rows = index.form.prepare(block if finite is None else block[finite])
    with one_blas_thread():
        indices, distances = index.search(rows, n_neighbors)
    if index.form.unit_length:
        distances = np.float32(0.5) * distances * distances
        undirected = ~rows.any(axis=1)
        if undirected.any():
            first = index.points[:1].astype(rows.dtype)
            indices[undirected], distances[undirected] = index.search(first, n_neighbors)[0], 1
    edges = pack_edges(indices, distances)
    if finite is None:
        return edges
    absent = pack_edges(np.full((1, n_neighbors), -1, np.int32), np.zeros((1, n_neighbors), np.float32))
    return scatter_rows(edges, np.flatnonzero(finite), len(block), absent)


def nearest_representatives(rows: Rows, index: RepresentativeIndex, n_neighbors: int) -> da.Array:
    """K nearest representatives of every row; uspec_usenc_2019 section 3.1.2.

    Returns
    -------
    dask array (n, 2 K) int32
        Lazy packed edges whose numbers are distances between prepared rows (see `RowForm`); chunked like `rows`.

    Notes
    -----
    A task holds the raw block, its prepared copy, and 16 K bytes a row; the index travels once to each worker.
    """
    return map_rows(
        nearest_block,
        rows.blocks,
        name="dc-nearest",
        columns=2 * n_neighbors,
        dtype=np.int32,
        index=once(index, "index", pure=True),
        n_neighbors=n_neighbors,
    )
