"""Base clusterer, m seeds -> base clusterings (n, m).

Every base clustering has its own root seed and its own number of clusters. U-SPEC clusterings are made several at a
time: they share the reads of the rows, and their small problems run beside each other. Any other clusterer is fitted m
times.
"""

from __future__ import annotations

import inspect
import logging
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..errors import FewerClustersWarning
from ..io.models import can_be_saved
from ..kernels.lloyd import plus_plus_rows
from ..kernels.neighbors import WIDE_FEATURES
from ..kernels.rows import compute_dtype, finite_rows
from ..pipeline.affinity import distance_sum, gaussian_edges, mean_distance
from ..pipeline.bipartite import BipartiteGraph
from ..pipeline.cut import LiftedRows, cut_small_graph, small_affinity
from ..pipeline.discretize import assign_block
from ..pipeline.kmeans import lloyd_in_memory
from ..pipeline.neighbors import RepresentativeIndex, choose_neighborhood, nearest_block
from ..pipeline.representatives import choose_representatives
from ..pipeline.rows import Rows, RowScan
from ..runtime.boundary import Boundary, budget_bytes
from ..runtime.execution import FAN_IN, compute, map_rows, map_to_objects
from ..runtime.progress import Progress
from ..runtime.seeding import draw_ranks, stream
from ..runtime.threads import one_blas_thread

__all__ = [
    "Member",
    "RowSample",
    "SpectralBase",
    "beside",
    "draw_numbers",
    "drawn_range",
    "fit_members",
    "group_size",
    "index_bytes",
    "member_seeds",
    "pool_size",
    "predict_finite",
    "rows_seen",
    "spectral_members",
    "takes",
]

logger = logging.getLogger("daskcluster")

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


@dataclass(frozen=True)
class SpectralBase:
    """Parameters of U-SPEC base clusterings; see `USPEC`."""

    n_representatives: int
    n_neighbors: int
    selection: str
    neighbors: str
    candidate_factor: int
    neighbor_factor: int
    n_candidates: int
    max_iter: int


@dataclass(frozen=True)
class Member:
    """One base clustering.

    Attributes
    ----------
    labels : dask array (n,) int
        Held; -1 for rows without a label.
    model : dict or estimator or None
        What labels new rows: the arrays of a U-SPEC model, or a fitted estimator; None if nothing does.
    warned : sequence of warnings.WarningMessage
        What the clusterer had to say.
    """

    labels: da.Array
    model: Any
    warned: Sequence[warnings.WarningMessage] = ()


def member_seeds(seed: int, n_base_clusterings: int) -> list[int]:
    """Root seeds of the base clusterings."""
    return [int(stream(seed, "base clustering", i).integers(2**32)) for i in range(n_base_clusterings)]


def drawn_range(k_range: tuple[int, int], n_clusters: int, n_valid: int) -> tuple[int, int]:
    """The range of numbers of clusters for n rows: what was asked for, or less where rows are few.

    Notes
    -----
    At most 2 sqrt(n), or `n_clusters` when that is more, so that a base cluster has sqrt(n) / 2 rows on average: base
    clusterings into single rows would tell nothing. The papers' ranges are used as they are from n = 900 on.
    """
    most = min(n_valid, max(n_clusters, int(2 * np.sqrt(n_valid))))
    low, high = min(k_range[0], most), min(k_range[1], most)
    if (low, high) != tuple(k_range):
        logger.info("k_range %s is more than %d rows allow: %s is used", tuple(k_range), n_valid, (low, high))
    return low, high


def draw_numbers(k_range: tuple[int, int], n_base_clusterings: int, seed: int) -> list[int]:
    """Numbers of clusters k_i = floor(tau (k_max - k_min)) + k_min, tau uniform; eq. (14) of uspec_usenc_2019.

    Notes
    -----
    The paper's tau may be 1, so that k_max has probability zero; here all numbers of the range are equally likely.
    """
    low, high = k_range
    return [int(stream(seed, "number of clusters", i).integers(low, high + 1)) for i in range(n_base_clusterings)]


# -- U-SPEC ------------------------------------------------------------------------------------------------------------


def pool_size(base: SpectralBase, n_base_clusterings: int, least: int, row_bytes: int) -> int:
    """Rows of the pool from which all base clusterings draw: as many as they draw in all, where these fit."""
    most = max(POOL_BYTES // row_bytes, base.n_candidates)
    return max(least, min(n_base_clusterings * base.n_candidates, most))


def group_size(n_samples: int, n_neighbors: int, n_base_clusterings: int) -> int:
    """Base clusterings that are made together: as many as their edges, 8 K bytes a row, fit into the budget."""
    return int(np.clip(budget_bytes() // (8 * n_neighbors * n_samples), 1, n_base_clusterings))


def spectral_members(
    rows: Rows,
    found: RowScan,
    base: SpectralBase,
    numbers: Sequence[int],
    seeds: Sequence[int],
    boundary: Boundary,
    progress: Progress,
) -> list[Member]:
    """U-SPEC base clusterings; section 3.2.1 of uspec_usenc_2019.

    Parameters
    ----------
    rows : Rows
    found : RowScan
        Its sample is the pool, see `pool_size`.
    base : SpectralBase
    numbers : sequence of int
        Numbers of clusters.
    seeds : sequence of int
        Root seeds.
    boundary : Boundary
        Products ``base-000``, ``base-000-labels`` and so on; what a named store has is not made again.
    progress : Progress

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
    members: dict[int, Member] = {}
    missing = []
    for i, number in enumerate(numbers):
        name = _name(i)
        # The labels come after the model: where they are, it is too.
        if boundary.has(f"{name}-labels"):
            labels, _ = boundary.rows(f"{name}-labels", _like_labels(rows, number))
            members[i] = Member(labels, boundary.small(name, _nothing))
        else:
            missing.append(i)
    size = group_size(rows.n_samples, base.n_neighbors, len(numbers))
    ahead = max(size, min(len(numbers), 2 * budget_bytes() // index_bytes(base, rows)))
    begun: dict[int, dict[str, Any]] = {}
    for begin in range(0, len(missing), size):
        group = missing[begin : begin + size]
        if group[0] not in begun or group[-1] not in begun:
            soon = [i for i in missing[begin : begin + ahead] if i not in begun]
            with progress.stage(_shown("representatives of", soon)):
                found_out = _beginnings(rows, found, base, [numbers[i] for i in soon], [seeds[i] for i in soon])
            begun.update(zip(soon, found_out, strict=True))
        with progress.stage(_shown("", group)):
            beginnings = [begun.pop(i) for i in group]
            made = _spectral_group(rows, base, beginnings, [numbers[i] for i in group], [seeds[i] for i in group])
            for i, (model, lazy) in zip(group, made, strict=True):
                # Bound now: `small` may call it at once or not at all.
                stored = boundary.small(_name(i), partial(dict, model))
                labels, _ = boundary.rows(f"{_name(i)}-labels", lazy)
                members[i] = Member(labels, stored)
    return [members[i] for i in range(len(numbers))]


def index_bytes(base: SpectralBase, rows: Rows) -> int:
    """Bytes of one base clustering's search index, at most."""
    computing = compute_dtype(rows.blocks.dtype)
    d, p = rows.n_features, min(base.n_representatives, rows.n_samples)
    n_near = min(p, base.neighbor_factor * base.n_neighbors + 1)
    return 2 * p * d * 8 + p * n_near * (4 + min(d, WIDE_FEATURES) * computing.itemsize)


def _shown(what: str, group: list[int]) -> str:
    numbers = f"clusterings {group[0] + 1} to {group[-1] + 1}" if len(group) > 1 else f"clustering {group[0] + 1}"
    return f"{what} base {numbers}".strip()


def _name(i: int) -> str:
    return f"base-{i:03d}"


def _nothing() -> dict[str, Any]:
    raise RuntimeError("a stored base clustering has no model")


def _label_dtype(n_clusters: int) -> np.dtype[Any]:
    """The smallest integer dtype that holds the labels 0 to n_clusters - 1, and -1."""
    return np.result_type(np.int8, np.min_scalar_type(-max(n_clusters, 1)))


def _like_labels(rows: Rows, n_clusters: int) -> da.Array:
    return da.zeros((rows.n_samples,), chunks=(rows.blocks.chunks[0],), dtype=_label_dtype(n_clusters))


def _spectral_group(
    rows: Rows, base: SpectralBase, begun: list[dict[str, Any]], numbers: list[int], seeds: list[int]
) -> list[tuple[dict[str, Any], da.Array]]:
    """Models and lazy labels of base clusterings that share a read of the rows."""
    indexes = [part["index"] for part in begun]
    widths = [min(base.n_neighbors, len(part["representatives"])) for part in begun]
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
    held, sums = Boundary(None, "edges", {}, 0).rows("nearest", lazy, partial(_distance_sums, borders=borders))
    graphs, bandwidths = [], []
    for i, part in enumerate(begun):
        bandwidth = mean_distance([block["sums"][i] for block in sums])
        edges = held[:, borders[i] : borders[i + 1]]
        graphs.append(BipartiteGraph(edges, partial(gaussian_edges, bandwidth=bandwidth), len(part["representatives"])))
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
            dtype=_label_dtype(number),
            points=points,
            centers=finish["centers"],
            dtype_=_label_dtype(number),
        )
        model = {
            "representatives": part["representatives"],
            "neighborhood": part["neighborhood"],
            "bandwidth": bandwidth,
            **finish,
        }
        made.append((model, labels))
    return made


def beside(function: Callable[..., Any], name: str, arguments: Sequence[tuple[Any, ...]], **shared: Any) -> list[Any]:
    """Call a function for each tuple of arguments, as tasks beside each other; `shared` arguments travel once."""
    task = dask.delayed(partial(_limited, function), pure=False)
    once = {key: dask.delayed(value, pure=False, traverse=False) for key, value in shared.items()}
    calls = [task(*each, **once, dask_key_name=f"{name}-{uuid.uuid4().hex}") for each in arguments]
    return list(compute(*calls))


def _limited(function: Callable[..., Any], *arguments: Any, **shared: Any) -> Any:
    with one_blas_thread():
        return function(*arguments, **shared)


def _beginnings(
    rows: Rows, found: RowScan, base: SpectralBase, numbers: list[int], seeds: list[int]
) -> list[dict[str, Any]]:
    """Representatives, search index and sample edges of base clusterings."""
    if base.selection == "kmeans":  # passes over all rows, one base clustering after the other
        return [_begin(number, seed, rows, found, base) for number, seed in zip(numbers, seeds, strict=True)]
    return beside(_begin, "dc-represent", list(zip(numbers, seeds, strict=True)), rows=None, found=found, base=base)


def _begin(n_clusters: int, seed: int, rows: Any, found: RowScan, base: SpectralBase) -> dict[str, Any]:
    representatives = choose_representatives(
        rows,
        found,
        base.n_representatives,
        n_candidates=base.n_candidates,
        selection=base.selection,
        max_iter=base.max_iter,
        candidate_iter=CANDIDATE_ITER,
        seed=seed,
    )
    n_neighbors = min(base.n_neighbors, len(representatives))
    size = max(CENTER_ROWS, ROWS_PER_CENTER * n_clusters)
    sample = found.sample[draw_ranks(stream(seed, "center rows"), len(found.sample), size)]
    index, neighborhood = choose_neighborhood(
        representatives,
        found.form,
        sample,
        n_neighbors,
        neighbors=base.neighbors,
        neighbor_factor=base.neighbor_factor,
        seed=seed,
    )
    edges = nearest_block(sample, index, n_neighbors)
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
            (small_affinity(graph).to_delayed().item(), graph.edges_of, sample, number, seed)
            for graph, sample, number, seed in zip(graphs[part], samples[part], numbers[part], seeds[part], strict=True)
        ]
        finished += beside(_finish, "dc-eigenproblem", arguments)
    return finished


def _finish(
    found: dict[str, Any], edges_of: Any, sample: NDArray[np.int32], n_clusters: int, seed: int
) -> dict[str, Any]:
    cut = cut_small_graph(found, n_clusters)
    points, _ = LiftedRows(edges_of, cut.vectors)(sample)
    rng = stream(seed, "discretize")
    # One trial a step: greedy trials cost more than they gain here.
    starts = points[plus_plus_rows(points, _NO_WEIGHTS, rng.random((n_clusters, 1)))].astype(np.float64)
    centers, _ = lloyd_in_memory(points, starts, max_iter=CENTER_ITER, tol=CENTER_TOL)
    return {"vectors": cut.vectors, "eigenvalues": cut.eigenvalues, "centers": centers.centers}


def _narrow_labels(
    block: NDArray[Any], points: LiftedRows, centers: NDArray[np.float64], dtype_: np.dtype[Any]
) -> NDArray[Any]:
    return assign_block(block, points, centers).astype(dtype_)


# -- any clusterer -----------------------------------------------------------------------------------------------------


def fit_members(
    rows: Rows,
    base: Any,
    numbers: Sequence[int | None],
    seeds: Sequence[int],
    boundary: Boundary,
    progress: Progress,
    *,
    lazy: bool,
    sample_rate: float = 1.0,
    predict_unsampled: bool = False,
    guide: Callable[[RowSample | None], dict[str, Any]] = lambda taken: {},
) -> list[Member]:
    """Base clusterings by fitting clones of a clusterer.

    Parameters
    ----------
    rows : Rows
    base : estimator
        With `fit_predict`.
    numbers : sequence of int or None
        Numbers of clusters; None leaves the clusterer's own.
    seeds : sequence of int
        Root seeds, given as `random_state`.
    boundary : Boundary
        Products ``base-000-labels`` and so on; what a named store has is not made again. Beside them the models
        ``base-000``, of clusterers of this package that label new rows.
    progress : Progress
    lazy : bool
        Whether the clusterer is of this package and takes chunked rows; else it gets the finite ones in memory.
    sample_rate : float
        Share of the rows of every block that each base clustering sees, drawn anew for each: the row segmentation of
        sec_2015, section 5.
    predict_unsampled : bool
        Give the other rows the label that the fitted clusterer predicts, not -1.
    guide : callable
        RowSample, or None for all rows -> what else the clusterer's fit gets.
    """
    # A model comes before its labels: where they are, it is too.
    keeps = lazy and hasattr(base, "predict") and can_be_saved(base)
    members = []
    for i, (number, seed) in enumerate(zip(numbers, seeds, strict=True)):
        name = _name(i)
        with progress.stage(f"base clustering {i + 1}"):
            if boundary.has(f"{name}-labels"):
                labels, _ = boundary.rows(f"{name}-labels", _like_labels(rows, 1))
                members.append(Member(labels, boundary.model(name, (type(base),)) if keeps else None))
                continue
            clusterer = _prepared(base, number, seed)
            taken = None if sample_rate >= 1 else RowSample(sample_rate, seed, rows)
            with warnings.catch_warnings(record=True) as warned:
                # Whoever fits an ensemble hears once of what its base clusterers say m times.
                warnings.simplefilter("always", UserWarning)
                warnings.simplefilter("always", RuntimeWarning)
                # The number of clusters was drawn, nobody asked for it.
                warnings.simplefilter("ignore", FewerClustersWarning)
                labels = _fit_one(rows, clusterer, taken, lazy, predict_unsampled, guide(taken))
            if keeps:
                boundary.keep_model(name, clusterer)
            held, _ = boundary.rows(f"{name}-labels", labels)
            members.append(Member(held, clusterer if hasattr(clusterer, "predict") else None, warned))
    return members


def _prepared(base: Any, number: int | None, seed: int) -> Any:
    clusterer = clone(base)
    known = clusterer.get_params(deep=False)
    if number is not None:
        clusterer.set_params(n_clusters=number)
    if "random_state" in known:
        clusterer.set_params(random_state=seed)
    return clusterer


def _fit_one(
    rows: Rows,
    clusterer: Any,
    taken: RowSample | None,
    lazy: bool,
    predict_unsampled: bool,
    fit_parameters: dict[str, Any],
) -> da.Array:
    """Fit one clusterer; its labels (n,), lazy, of the smallest integer dtype that holds them."""
    blocks = rows.blocks if taken is None else taken.take(rows.blocks)
    predicted = predict_unsampled and taken is not None
    if lazy:
        clusterer.fit(blocks, **fit_parameters)
        labels = clusterer.predict(rows.blocks) if predicted else clusterer.labels_
        labels = labels.astype(_label_dtype(clusterer.n_clusters_))
        del clusterer.labels_
    else:
        found = _fit_in_memory(blocks, clusterer, fit_parameters)
        if predicted:
            # A clusterer may predict labels that its own rows did not get.
            dtype = np.promote_types(found.dtype, np.int32)
            labels = map_rows(
                predict_finite,
                rows.blocks,
                name="dc-predict",
                columns=None,
                dtype=dtype,
                clusterer=clusterer,
                as_dtype=dtype,
            )
        else:
            labels = da.from_array(found, name=False)
    if taken is None or predicted:
        return labels.rechunk((rows.blocks.chunks[0],))
    return taken.spread(labels)


def _fit_in_memory(blocks: da.Array, clusterer: Any, fit_parameters: dict[str, Any]) -> NDArray[np.signedinteger[Any]]:
    raw = np.asarray(compute(blocks)[0])
    finite = finite_rows(raw)
    inside = raw if finite is None else raw[finite]
    if finite is not None and fit_parameters:
        raise ValueError(
            f"constraints name rows of the whole, but {type(clusterer).__name__} gets only the {len(inside)} of "
            f"{len(raw)} rows without NaN or infinity"
        )
    found = _checked_labels(clusterer.fit_predict(inside, **fit_parameters), len(inside), clusterer)
    labels = np.full(len(raw), -1, _label_dtype(int(found.max(initial=0)) + 1))
    labels[slice(None) if finite is None else finite] = found
    return labels


def _checked_labels(found: Any, n_rows: int, clusterer: Any) -> NDArray[np.int64]:
    """Labels as a clusterer of another package gives them, as int64; -1 for all negative ones."""
    found = np.asarray(found)
    if found.shape != (n_rows,) or found.dtype.kind not in "iub":
        raise TypeError(
            f"base must give one whole number a row, got shape {found.shape} and dtype {found.dtype} "
            f"from {type(clusterer).__name__} for {n_rows} rows"
        )
    if found.dtype == np.uint64 and n_rows and found.max() >= 2**63:
        raise ValueError(f"base must give labels below 2**63, got {found.max()} from {type(clusterer).__name__}")
    return np.maximum(found.astype(np.int64), -1)


def predict_finite(block: NDArray[Any], clusterer: Any, as_dtype: Any = np.int64) -> NDArray[np.signedinteger[Any]]:
    """Labels of a raw block by a clusterer that takes finite rows in memory; -1 for the others."""
    finite = finite_rows(block)
    labels = np.full(len(block), -1, as_dtype)
    inside = block if finite is None else block[finite]
    if len(inside):
        found = _checked_labels(clusterer.predict(inside), len(inside), clusterer)
        if found.max() > np.iinfo(as_dtype).max:
            raise ValueError(
                f"base must predict labels like those that it gave in fit, got {found.max()} from "
                f"{type(clusterer).__name__}"
            )
        labels[slice(None) if finite is None else finite] = found
    return labels


class RowSample:
    """A random share of every row block, by the seed and the block's number; a picklable object.

    Parameters
    ----------
    rate : float
        Share, 0 < rate <= 1; over all rows it is kept to half a row.
    seed : int
    rows : Rows
    """

    def __init__(self, rate: float, seed: int, rows: Rows) -> None:
        self.seed = seed
        self.lengths = rows.blocks.chunks[0]
        ends = np.rint(rate * np.cumsum(self.lengths)).astype(np.int64)
        self.counts = tuple(int(count) for count in np.diff(ends, prepend=0))

    def in_block(self, number: int) -> NDArray[np.int64]:
        """Places of the taken rows in a block, ascending."""
        return draw_ranks(stream(self.seed, "rows of a block", number), self.lengths[number], self.counts[number])

    def places(self) -> NDArray[np.int64]:
        """Numbers of all taken rows, ascending."""
        starts = np.cumsum((0, *self.lengths[:-1]))
        return np.concatenate([start + self.in_block(number) for number, start in enumerate(starts)])

    def take(self, blocks: da.Array) -> da.Array:
        """The taken rows of blocks (n, ...), lazy."""
        chunks = (self.counts, *blocks.chunks[1:])
        return blocks.map_blocks(
            _take_rows, dtype=blocks.dtype, meta=blocks._meta, chunks=chunks, sample=self, token="dc-take"
        )

    def spread(self, labels: da.Array) -> da.Array:
        """Labels of the taken rows -> labels (n,) of all, lazy; -1 for the others."""
        labels = labels.rechunk((self.counts,))
        return labels.map_blocks(
            _spread_rows,
            dtype=labels.dtype,
            meta=labels._meta,
            chunks=(self.lengths,),
            sample=self,
            token="dc-spread",
        )

    def __dask_tokenize__(self) -> Any:
        return ("daskcluster-row-sample", self.seed, self.lengths, self.counts)


def rows_seen(rows: Rows, rate: float, seeds: Sequence[int], n_valid: int) -> int:
    """Rows without NaN or infinity in the smallest of the samples that base clusterings with these seeds see."""
    if rate >= 1:
        return n_valid
    samples = [RowSample(rate, seed, rows) for seed in seeds]
    if n_valid == rows.n_samples:
        return sum(samples[0].counts)
    counts = compute(map_to_objects(_count_seen, rows.blocks, name="dc-count", samples=samples))[0]
    return int(sum(part["counts"] for part in counts).min())


def _count_seen(block: NDArray[Any], number: int, samples: list[RowSample]) -> dict[str, Any]:
    finite = finite_rows(block)
    seen = np.ones(len(block), bool) if finite is None else finite
    return {"counts": np.array([int(seen[sample.in_block(number)].sum()) for sample in samples])}


def _take_rows(block: NDArray[Any], sample: RowSample, block_id: tuple[int, ...] = (0,)) -> NDArray[Any]:
    return np.asarray(block)[sample.in_block(block_id[0])]


def _spread_rows(block: NDArray[Any], sample: RowSample, block_id: tuple[int, ...] = (0,)) -> NDArray[Any]:
    number = block_id[0]
    labels = np.full(sample.lengths[number], -1, block.dtype)
    labels[sample.in_block(number)] = block
    return labels


def takes(clusterer: Any, name: str) -> bool:
    """Whether a clusterer's `fit` has a parameter of this name."""
    fit = getattr(clusterer, "fit", None)
    return fit is not None and name in inspect.signature(fit).parameters
