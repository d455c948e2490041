"""Base clusterings (n, m) -> bipartite graph (n, m) edges to c base clusters.

Labels are any whole numbers, -1 for none. One pass finds which there are and how many rows each has; a second one
writes them as codes 0..K_i - 1 within each base clustering, one to four bytes a label, and everything later reads the
codes.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..io.identity import identity_of
from ..io.inputs import Rows, check_rows
from ..kernels.incidence import count_labels, encode_labels, label_edges, label_weights
from ..pipeline.bipartite import BipartiteGraph, EdgesOf
from ..runtime.execution import FAN_IN, map_rows
from ..runtime.forecast import Cost, Sizes
from ..runtime.passes import mapped, reduced
from ..runtime.seeding import draw_ranks
from ..runtime.stages import Run, Stage

__all__ = [
    "BaseClusters",
    "Coded",
    "LabelBook",
    "LabelScan",
    "check_base_clusterings",
    "check_label_block",
    "code_labels",
    "draw_labelled",
    "incidence_edges",
    "incidence_graph",
    "label_sizes",
    "row_weights",
    "scan_labels",
    "weighted_edges",
]

logger = logging.getLogger("daskcluster")

#: Label blocks have the size of blocks of this dtype, whatever the labels' own is: the same sums for any of them.
LABEL_DTYPE = np.dtype(np.float32)
#: Base clusters of one base clustering at most; more are row numbers rather than clusters.
MOST_CLUSTERS = 2**16
#: A base clustering whose labels span no more than this is coded by a table of all labels in between.
MOST_SPAN = 2**20


@dataclass(frozen=True)
class LabelBook:
    """The base clusters of an ensemble: which labels name them, and how many rows each has.

    Attributes
    ----------
    values : (c,) int64
        Labels, ascending within each base clustering.
    offsets : (m + 1,) int64
        ``values[offsets[i]:offsets[i + 1]]`` are those of base clustering i.
    sizes : (c,) int64
        Rows.
    """

    values: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @property
    def n_base_clusterings(self) -> int:
        """Number of base clusterings, m."""
        return len(self.offsets) - 1

    @property
    def n_base_clusters(self) -> int:
        """Number of base clusters of all of them, c."""
        return len(self.values)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest integer dtype that holds every code."""
        most = int(np.diff(self.offsets).max(initial=0))
        return np.dtype(np.int8 if most <= 2**7 else np.int16 if most <= 2**15 else np.int32)


@dataclass(frozen=True)
class LabelScan:
    """What the first pass over the base clusterings found.

    Attributes
    ----------
    book : LabelBook
    labelled : (n_blocks,) int64
        Rows of each block with at least one label.
    fingerprint : str
        Hash of the labels; "" when not asked for. The same for any chunking, dtype or kind of store.
    """

    book: LabelBook
    labelled: NDArray[np.int64]
    fingerprint: str

    @property
    def n_labelled(self) -> int:
        """Rows with at least one label."""
        return int(self.labelled.sum())

    def as_product(self) -> dict[str, Any]:
        """As a product of small arrays, without the fingerprint."""
        return {**vars(self.book), "labelled": self.labelled}

    @classmethod
    def of_product(cls, made: dict[str, Any]) -> LabelScan:
        """From such a product."""
        return cls(LabelBook(made["values"], made["offsets"], made["sizes"]), made["labelled"], "")


@dataclass(frozen=True)
class Coded:
    """Base clusterings as codes, which everything later reads.

    Attributes
    ----------
    codes : dask array (n, m) int8, int16 or int32
        Held; -1 for no label.
    book : LabelBook
    labelled : (n_blocks,) int64
        Rows of each block with at least one label.
    """

    codes: da.Array
    book: LabelBook
    labelled: NDArray[np.int64]

    @property
    def n_labelled(self) -> int:
        """Rows with at least one label."""
        return int(self.labelled.sum())

    @property
    def graph(self) -> BipartiteGraph:
        """Bipartite graph of rows and base clusters."""
        return incidence_graph(self.codes, self.book)

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Codes (s, m) of rows with a label, drawn without replacement, in row order; all when fewer."""
        return draw_labelled(self.codes, self.labelled, size, rng)


@dataclass(frozen=True)
class BaseClusters(Stage):
    """Find the base clusters and their sizes, and code the labels.

    Attributes
    ----------
    n_clusters : int
        At least so many rows must have a label.
    later : tuple of Stage
        Stages that may have to refuse the number of rows with a label.
    opens : bool
        Whether to open the named store for these labels.
    """

    title = "base clusters"
    n_clusters: int
    later: tuple[Stage, ...] = ()
    opens: bool = True

    def __call__(self, run: Run, rows: Rows, nothing: str = "X has no row with a label: every label is -1") -> Coded:
        """Code the labels of `rows`; `nothing` is the error when there are none."""
        found = self._scan(run, rows)
        if found.n_labelled == 0:
            raise ValueError(nothing)
        if self.opens:
            run.products.open(found.fingerprint)
        if self.n_clusters > found.n_labelled:
            raise ValueError(
                f"n_clusters must be at most the number of rows with a label, got n_clusters={self.n_clusters} "
                f"and {found.n_labelled} such rows"
            )
        for stage in self.later:
            stage.check_size(found.n_labelled)
        codes, _ = run.products.rows("codes", code_labels(rows, found.book))
        return Coded(codes, found.book, found.labelled)

    def _scan(self, run: Run, rows: Rows) -> LabelScan:
        if self.opens:
            with run.products.scanning(partial(identity_of, rows.source)):
                return scan_labels(rows, fingerprint=run.products.hashes)
        made = run.products.small("base-clusters", lambda: scan_labels(rows).as_product())
        return LabelScan.of_product(made)

    def cost(self, sizes: Sizes) -> Cost:
        """Two passes over the labels; the codes stay."""
        codes = sizes.n_samples * sizes.held_bytes
        task = sizes.block_rows * (sizes.n_features * 17 + sizes.held_bytes) + 48 * sizes.n_right * FAN_IN
        cost = sizes.over_input(
            task, times=2, reduced=True, written_bytes=codes, held=(codes,), small_bytes=64 * sizes.n_right
        )
        return cost if self.opens else replace(cost, input_passes=0)  # of an ensemble: labels that are held

    @property
    def kept(self) -> tuple[str, ...]:
        """The codes, and which base clusters there are where the labels are no input."""
        return ("codes",) if self.opens else ("base-clusters", "codes")


#: Base clusters of an ensemble that a forecast assumes for each base clustering; they are known after a pass.
LIKELY_CLUSTERS = 40


def label_sizes(sizes: Sizes) -> Sizes:
    """Lengths of base clusterings with the graph of rows and base clusters."""
    m = sizes.n_features
    return sizes.with_graph(LIKELY_CLUSTERS * m, m, m)


def check_base_clusterings(X: Any) -> Rows:
    """Bring base clusterings (n, m) into canonical blocks, whose size depends on m only; see `check_rows`."""
    return check_rows(X, "label", LABEL_DTYPE)


def scan_labels(rows: Rows, *, fingerprint: bool = False) -> LabelScan:
    """Pass over all labels once: check them, find the base clusters and their sizes.

    Parameters
    ----------
    rows : Rows
        Of `check_base_clusterings`.
    fingerprint : bool
        Hash the labels as well.

    Raises
    ------
    ValueError
        If a label is no whole number >= -1 (its row and column are named), or if a base clustering has more than
        `MOST_CLUSTERS` clusters.
    """
    found = reduced(partial(_scan_block, fingerprint=fingerprint), _join_scans, rows.blocks, name="dc-count")
    if found["bad"] is not None:
        raise _bad_label(*found["bad"])
    lengths = [len(values) for values in found["values"]]
    if max(lengths) > MOST_CLUSTERS:
        column = int(np.argmax(lengths))
        raise ValueError(
            f"X must hold base clusterings of at most {MOST_CLUSTERS} clusters, got more in column {column}: "
            "are these row numbers?"
        )
    labelled = np.concatenate(found["labelled"])
    digest = hashlib.blake2b(b"".join(found["digests"]) + str(rows.blocks.shape).encode(), digest_size=16)
    book = LabelBook(
        np.concatenate(found["values"]),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate(found["sizes"]),
    )
    return LabelScan(book, labelled, digest.hexdigest() if fingerprint else "")


def _whole_numbers(block: NDArray[Any]) -> tuple[NDArray[np.int64], tuple[int, int, str] | None]:
    """Labels of a block as int64, and place and text of the first one that is no label."""
    block = np.asarray(block)
    if block.dtype.kind == "f":
        block = block.astype(np.promote_types(block.dtype, np.float32), copy=False)  # float16 ends far below 2**63
        with np.errstate(invalid="ignore"):
            good = (block >= -1) & (block < 2.0**63) & (np.floor(block) == block)
    elif block.dtype == np.uint64:
        good = block < 2**63
    elif block.dtype.kind == "i":
        good = block >= -1
    else:
        good = None
    if good is None or good.all():
        return np.ascontiguousarray(block, dtype=np.int64), None
    row, column = np.unravel_index(np.argmin(good), good.shape)
    value = block[row, column]
    return np.zeros((0, block.shape[1]), np.int64), (int(row), int(column), str(value))


def _bad_label(row: int, column: int, value: str) -> ValueError:
    return ValueError(
        "X must hold labels, whole numbers >= 0 and below 2**63, or -1 for no label; "
        f"got {value} at row {row}, column {column}"
    )


def check_label_block(block: NDArray[Any], first_row: int) -> None:
    """Refuse labels that are none; raises as `scan_labels`."""
    _, bad = _whole_numbers(block)
    if bad is not None:
        row, column, value = bad
        raise _bad_label(first_row + row, column, value)


def _scan_block(block: NDArray[Any], fingerprint: bool) -> dict[str, Any]:
    labels, bad = _whole_numbers(block)
    n_columns = block.shape[1]
    lowest, starts, lengths = np.zeros((3, n_columns), np.int64)
    if len(labels):
        few = np.asarray(block) if block.dtype.kind == "i" and bad is None else labels  # the same in fewer bytes
        lowest = np.where(few >= 0, few, few.dtype.type(np.iinfo(few.dtype).max)).min(axis=0).astype(np.int64)
        highest = few.max(axis=0).astype(np.int64)
        spans = np.where(highest >= 0, highest - lowest, -1)
        near = spans < max(MOST_SPAN // 8, 8 * len(labels))
        lengths = np.where(near, spans + 1, 0)
    starts = np.cumsum(lengths) - lengths
    if len(labels):
        starts[~near] = -1
    counts = np.zeros(int(lengths.sum()), np.int64)
    n_labelled = count_labels(labels, lowest, starts, counts)
    values, sizes = [], []
    for column in range(n_columns):
        if starts[column] < 0:
            found, size = np.unique(labels[:, column][labels[:, column] >= 0], return_counts=True)
        else:
            size = counts[starts[column] : starts[column] + lengths[column]]
            there = np.flatnonzero(size)
            found, size = there + lowest[column], size[there]
        # A column of row numbers is refused later; until then its values would fill the memory.
        values.append(found[: MOST_CLUSTERS + 1])
        sizes.append(size[: MOST_CLUSTERS + 1])
    return {
        "rows": len(block),
        "bad": bad,
        "values": values,
        "sizes": sizes,
        "labelled": [np.array([n_labelled], np.int64)],
        "digests": [hashlib.blake2b(labels.data, digest_size=16).digest()] if fingerprint else [],
    }


def _join_scans(parts: list[dict[str, Any]]) -> dict[str, Any]:
    total = dict(parts[0])
    for part in parts[1:]:
        if total["bad"] is None and part["bad"] is not None:
            row, column, value = part["bad"]
            total["bad"] = (total["rows"] + row, column, value)
        total["rows"] += part["rows"]
    for key in ("labelled", "digests"):
        total[key] = [item for part in parts for item in part[key]]
    if len(parts) > 1:
        merged = [
            _merge(column) for column in zip(*(zip(p["values"], p["sizes"], strict=True) for p in parts), strict=True)
        ]
        total["values"] = [values for values, _ in merged]
        total["sizes"] = [sizes for _, sizes in merged]
    return total


def _merge(
    tables: tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Add tables of values and their counts."""
    values, places = np.unique(np.concatenate([values for values, _ in tables]), return_inverse=True)
    sizes = np.zeros(len(values), np.int64)
    np.add.at(sizes, places, np.concatenate([sizes for _, sizes in tables]))
    return values[: MOST_CLUSTERS + 1], sizes[: MOST_CLUSTERS + 1]


class LabelCoder:
    """Block of labels -> their codes (n, m); a picklable callable.

    Parameters
    ----------
    book : LabelBook

    Notes
    -----
    A label that the book does not have, and -1, gets -1.
    """

    def __init__(self, book: LabelBook) -> None:
        self.book = book
        n_columns = book.n_base_clusterings
        self.lowest = np.zeros(n_columns, np.int64)
        self.lengths = np.zeros(n_columns, np.int64)
        self.starts = np.zeros(n_columns, np.int64)
        tables: list[NDArray[np.int32]] = []
        for column in range(n_columns):
            values = self._values(column)
            self.starts[column] = sum(len(table) for table in tables)
            if len(values) == 0:
                continue
            self.lowest[column] = values[0]
            span = int(values[-1]) - int(values[0]) + 1
            if span > MOST_SPAN:
                self.starts[column] = -1
                continue
            table = np.full(span, -1, np.int32)
            table[values - values[0]] = np.arange(len(values))
            self.lengths[column] = span
            tables.append(table)
        self.table = np.concatenate(tables) if tables else np.empty(0, np.int32)
        # Codes of labels 0, 1, 2 ... of every base clustering are these themselves.
        plain = all(np.array_equal(self._values(j), np.arange(n)) for j, n in enumerate(np.diff(book.offsets)))
        self.most = np.diff(book.offsets).astype(np.int32) - 1 if plain else None

    def _values(self, column: int) -> NDArray[np.int64]:
        return self.book.values[self.book.offsets[column] : self.book.offsets[column + 1]]

    def __call__(self, block: NDArray[Any]) -> NDArray[Any]:
        """Code a block of labels, see `check_label_block`."""
        if self.most is not None and block.dtype.kind == "i" and block.dtype.itemsize <= self.book.dtype.itemsize:
            most = self.most.astype(block.dtype)
            return np.where((block >= 0) & (block <= most), block, block.dtype.type(-1)).astype(self.book.dtype)
        labels, _ = _whole_numbers(block)
        codes = np.empty(labels.shape, self.book.dtype)
        encode_labels(labels, self.lowest, self.starts, self.lengths, self.table, codes)
        for column in range(len(self.starts)):
            if self.starts[column] >= 0:
                continue
            values = self._values(column)
            places = np.searchsorted(values, labels[:, column]).clip(0, len(values) - 1)
            codes[:, column] = np.where(values[places] == labels[:, column], places, -1)
        return codes


def code_labels(rows: Rows, book: LabelBook) -> da.Array:
    """Codes of the labels, lazy (n, m) int8, int16 or int32."""
    return map_rows(
        LabelCoder(book),
        rows.blocks,
        name="dc-code",
        columns=book.n_base_clusterings,
        dtype=book.dtype,
    )


def incidence_edges(codes: NDArray[Any], offsets: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Codes of a block -> base clusters (n, m) and edge weights of 1, eq. (19) of uspec_usenc_2019."""
    edges = label_edges(codes, offsets)
    return edges, np.ones(edges.shape, np.float32)


def weighted_edges(
    codes: NDArray[Any], offsets: NDArray[np.int64], weights: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Codes of a block -> base clusters (n, m), and as edge weights those (c,) of the base clusters."""
    edges = label_edges(codes, offsets)
    return edges, weights[edges]  # that of a missing edge is never read


def incidence_graph(codes: da.Array, book: LabelBook, weights: NDArray[np.float64] | None = None) -> BipartiteGraph:
    """Bipartite graph of rows and base clusters, eq. (17) to (19) of uspec_usenc_2019.

    Parameters
    ----------
    codes : dask array (n, m) int
    book : LabelBook
    weights : (c,) float64, optional
        Of the edges to each base cluster, instead of 1.
    """
    edges_of: EdgesOf = partial(incidence_edges, offsets=book.offsets)
    if weights is not None:
        edges_of = partial(weighted_edges, offsets=book.offsets, weights=weights.astype(np.float32))
    return BipartiteGraph(codes, edges_of, book.n_base_clusters)


def row_weights(codes: da.Array, book: LabelBook, unit: float = 1.0) -> da.Array:
    """Row sums of the co-association matrix, lazy (n,) float64, divided by `unit`; sec_2015, Theorem 1."""
    return map_rows(
        _weights_block,
        codes,
        name="dc-weigh",
        columns=None,
        dtype=np.float64,
        offsets=book.offsets,
        sizes=book.sizes,
        unit=unit,
    )


def _weights_block(
    block: NDArray[Any], offsets: NDArray[np.int64], sizes: NDArray[np.int64], unit: float
) -> NDArray[np.float64]:
    return label_weights(block, offsets, sizes) / unit


def draw_labelled(codes: da.Array, labelled: NDArray[np.int64], size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Codes (s, m) of rows drawn without replacement from those with a label, in row order; all when fewer.

    Parameters
    ----------
    codes : dask array (n, m) int
    labelled : (n_blocks,) int64
        Such rows of each block.
    size : int
    rng : numpy.random.Generator
    """
    ranks = draw_ranks(rng, int(labelled.sum()), size)
    borders = np.concatenate([[0], np.cumsum(labelled)])
    taken = mapped(_take_labelled, codes, name="dc-sample", ranks=ranks, borders=borders)
    return np.concatenate([part["rows"] for part in taken])


def _take_labelled(
    block: NDArray[Any], number: int, ranks: NDArray[np.int64], borders: NDArray[np.int64]
) -> dict[str, Any]:
    low, high = np.searchsorted(ranks, borders[number : number + 2])
    places = ranks[low:high] - borders[number]
    if len(places) and borders[number + 1] - borders[number] < len(block):
        places = np.flatnonzero((block >= 0).any(axis=1))[places]
    return {"rows": np.asarray(block[places])}
