"""Pairs or partial labels, checked, in one internal form."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from numbers import Number, Real
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..io.zarr import open_dask
from ..pipeline.rows import Rows, check_rows, is_chunked
from ..runtime.execution import compute, map_rows, map_to_objects
from ..validation import check_integer
from .closure import Contradiction, close_pairs, find_components, find_contradictions

if TYPE_CHECKING:
    from .satisfaction import Satisfaction

__all__ = ["Constraints", "Links", "RowConstraints", "open_column"]

#: `to_sparse` makes at most so many entries.
MOST_ENTRIES = 2**26
#: The least weight: weights of rows are float32, in which smaller ones lose their digits or are 0.
LEAST_WEIGHT = float(np.finfo(np.float32).tiny)
#: Row numbers and labels are int64.
MOST_ROWS = 2**63


@dataclass(frozen=True)
class Links:
    """Pairs of rows of one kind.

    Attributes
    ----------
    first, second : (m,) int64
        first < second, in ascending order, each pair once.
    weights : (m,) float64
        In (0, 1].
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.first)

    @property
    def pairs(self) -> NDArray[np.int64]:
        """The pairs (m, 2)."""
        return np.stack([self.first, self.second], axis=1)

    def among(self, rows: NDArray[np.int64]) -> Links:
        """The links between these rows, which ascend."""
        kept = np.isin(self.first, rows) & np.isin(self.second, rows)
        return Links(self.first[kept], self.second[kept], self.weights[kept])

    def renumbered(self, rows: NDArray[np.int64]) -> Links:
        """The links between these rows, which ascend, by their places in `rows`."""
        kept = self.among(rows)
        return Links(np.searchsorted(rows, kept.first), np.searchsorted(rows, kept.second), kept.weights)


@dataclass(frozen=True)
class RowConstraints:
    """Constraints on the rows of one input.

    Attributes
    ----------
    codes : dask array (n,) int32, or None
        Class of each row, from 0, -1 for unknown; chunked like the rows. None for pairs.
    confidences : dask array (n,) float32, or None
        Weight of each labelled row; None for weights of 1.
    n_classes : int
    must_link, cannot_link : Links
        Empty for labels.
    fingerprint : str
        Hash of the content; "" when not asked for.
    """

    codes: da.Array | None
    confidences: da.Array | None
    n_classes: int
    must_link: Links
    cannot_link: Links
    fingerprint: str

    @property
    def empty(self) -> bool:
        """Whether no row is named."""
        return self.n_classes == 0 and not len(self.must_link) and not len(self.cannot_link)


class Constraints:
    """Must-link and cannot-link constraints between rows; made by `from_labels` or `from_pairs`.

    Attributes
    ----------
    labels : NumPy or dask array (n,), or None
        Partial labels as they were given.
    weight : number, NumPy or dask array, or None
        Confidence of the labels.
    must_link, cannot_link : (m, 2) int64
        Pairs of rows, smaller row first, each once; empty for constraints from labels, which are never expanded.
    must_link_weight, cannot_link_weight : (m,) float64
    n_samples : int or None
        Rows of the input that the constraints belong to; None for pairs made without this number.

    Notes
    -----
    Nothing is wrong with constraints that contradict each other: the methods here are soft, and weigh them up.
    `contradictions` lists them, and `check_consistent` refuses them.

    Examples
    --------
    >>> import daskcluster as dc
    >>> known = dc.Constraints.from_pairs(must_link=[(0, 1), (1, 2)], cannot_link=[(2, 3)])
    >>> known.closure().cannot_link.tolist()
    [[0, 3], [1, 3], [2, 3]]
    >>> known.satisfaction([0, 0, 1, 1])
    Satisfaction(must_link=0.5, cannot_link=0.0, n_must_link=2, n_cannot_link=1)
    """

    def __init__(
        self,
        *,
        labels: NDArray[Any] | da.Array | None = None,
        weight: Any = None,
        must: Links | None = None,
        cannot: Links | None = None,
        n_samples: int | None = None,
    ) -> None:
        self.labels = labels
        self.weight = weight
        self.n_samples = n_samples
        self._must = _NO_LINKS if must is None else must
        self._cannot = _NO_LINKS if cannot is None else cannot

    @classmethod
    def from_labels(cls, y: Any, *, weight: Any = None) -> Constraints:
        """Every two rows with the same label belong together, every two with different labels apart.

        Parameters
        ----------
        y : (n,) NumPy array, dask array, zarr.Array or path of one
            Labels of any integer values from 0 up; -1 or NaN for unknown, as are the masked entries of a masked array.
            A chunked one is read block by block, when a fit needs it.
        weight : number or (n,) array, optional
            Confidence of each label, in (0, 1]; a pair's weight is the product of its rows'. 1 by default. What stands
            at rows without a label is not looked at.

        Returns
        -------
        Constraints

        Raises
        ------
        ValueError
            If a label is no whole number from -1 up, the weight of one is not in (0, 1] (or below 1.2e-38, where
            float32 ends), or a shape does not fit. If one of the two is chunked, what it holds is checked when it is
            read.

        Notes
        -----
        Pairs are never formed: what a method needs of them follows from sums over the classes, so ten labels and
        ten million cost one pass.
        """
        labels = open_column("y", y)
        if labels.dtype.kind not in "biuf":
            raise ValueError(f"Unknown label type: y must hold whole numbers, -1 for unknown, got dtype {labels.dtype}")
        if isinstance(labels, np.ndarray):
            check_labels(labels, 0)
        if weight is not None:
            weight = _open_confidence(weight, len(labels))
            if isinstance(labels, np.ndarray) and isinstance(weight, np.ndarray):
                check_weights(weight, 0, known_labels(labels))
        return cls(labels=labels, weight=weight, n_samples=len(labels))

    @classmethod
    def from_pairs(
        cls,
        must_link: Any = None,
        cannot_link: Any = None,
        must_link_weight: Any = None,
        cannot_link_weight: Any = None,
        n_samples: int | None = None,
    ) -> Constraints:
        """Pairs of rows that belong together, and pairs that belong apart.

        Parameters
        ----------
        must_link, cannot_link : (m, 2) array-like of integers, optional
            Numbers of rows. Either order; a pair given twice counts once, with the larger weight.
        must_link_weight, cannot_link_weight : number or (m,) array-like, optional
            Trust in each pair, in (0, 1], at least 1.2e-38; 1 by default.
        n_samples : int, optional
            Rows of the input; row numbers are checked against it here, else in `fit`.

        Returns
        -------
        Constraints

        Raises
        ------
        ValueError
            If a pair links a row to itself, a row number is out of range, a weight is not in (0, 1], or a shape does
            not fit.
        TypeError
            If `n_samples` is no integer.
        """
        if n_samples is not None:
            n_samples = check_integer("n_samples", n_samples, 1)
        must = _check_links("must_link", must_link, must_link_weight)
        cannot = _check_links("cannot_link", cannot_link, cannot_link_weight)
        made = cls(must=must, cannot=cannot, n_samples=n_samples)
        if n_samples is not None:
            made._check_range(n_samples)
        return made

    @property
    def must_link(self) -> NDArray[np.int64]:
        """Must-links (m, 2)."""
        return self._must.pairs

    @property
    def cannot_link(self) -> NDArray[np.int64]:
        """Cannot-links (m, 2)."""
        return self._cannot.pairs

    @property
    def must_link_weight(self) -> NDArray[np.float64]:
        """Weights of the must-links (m,)."""
        return self._must.weights

    @property
    def cannot_link_weight(self) -> NDArray[np.float64]:
        """Weights of the cannot-links (m,)."""
        return self._cannot.weights

    def __repr__(self) -> str:
        if self.labels is not None:
            return f"Constraints.from_labels(<{len(self.labels)} labels>)"
        return f"Constraints.from_pairs(<{len(self._must)} must-links>, <{len(self._cannot)} cannot-links>)"

    # -- what follows from them ---------------------------------------------------------------------------------------

    def components(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows that must-links join.

        Returns
        -------
        rows : (c,) int64
            The rows that must-links name, ascending; the labelled rows for constraints from labels.
        components : (c,) int64
            Smallest row of each one's component.
        """
        if self.labels is None:
            return find_components(self._must.first, self._must.second)
        labels = self._labels_in_memory()
        rows = np.flatnonzero(labels >= 0)
        _, first, inverse = np.unique(labels[rows], return_index=True, return_inverse=True)
        return rows, rows[first][inverse]

    def contradictions(self, limit: int = 10) -> list[Contradiction]:
        """Cannot-links between rows that a chain of must-links joins.

        Parameters
        ----------
        limit : int
            Contradictions listed, at most.

        Returns
        -------
        list of Contradiction
            Each with the shortest chain of rows. Labels never contradict each other.
        """
        return find_contradictions(self._must.first, self._must.second, self._cannot.first, self._cannot.second, limit)

    def check_consistent(self) -> Constraints:
        """Refuse constraints that no labeling can keep; returns `self`.

        Raises
        ------
        ValueError
            Naming the chain of rows of the first contradiction.

        Notes
        -----
        More clusters than must-link chains are always assumed: whether cannot-links can be kept with k labels is the
        colouring problem, and is not decided here.
        """
        found = self.contradictions(limit=1)
        if found:
            raise ValueError(f"constraints contradict each other: {found[0]}")
        return self

    def closure(self) -> Constraints:
        """All pairs that follow: rows joined by must-links, and what is apart when such rows are.

        Returns
        -------
        Constraints
            A pair's weight is the smallest one on the chain that implies it, for the best of all chains.

        Raises
        ------
        ValueError
            If the constraints contradict each other (the chain is named), or more than 2**26 pairs follow.

        Notes
        -----
        Constraints from labels are closed, and returned as they are.
        """
        if self.labels is not None:
            return self
        self.check_consistent()
        must, cannot = close_pairs(
            (self._must.first, self._must.second, self._must.weights),
            (self._cannot.first, self._cannot.second, self._cannot.weights),
            MOST_ENTRIES,
        )
        return type(self)(must=Links(*must), cannot=Links(*cannot), n_samples=self.n_samples)

    def to_sparse(self, n_samples: int | None = None) -> Any:
        """The constraint matrix Q of eq. (33) of fast_csc_and_secrp_2017 as a pydata ``sparse.COO`` (n, n).

        Parameters
        ----------
        n_samples : int, optional
            n, for pairs made without it; by default the largest row number + 1. Other constraints know it.

        Returns
        -------
        sparse.COO
            Symmetric: the weight of a must-link, minus that of a cannot-link, their difference where both are given;
            zeros on the diagonal.

        Raises
        ------
        ValueError
            If the matrix would have more than 2**26 entries: labels of thousands of rows make as many pairs; if a pair
            names a row from n up, or the constraints were made for another number of rows.
        """
        import sparse

        if n_samples is not None:
            self.check_n_rows(check_integer("n_samples", n_samples, 1), "n_samples")
        must, cannot = self._expanded()
        named = max([0, *(int(links.second.max()) + 1 for links in (must, cannot) if len(links))])
        n = n_samples or self.n_samples or named
        first = np.concatenate([must.first, cannot.first])
        second = np.concatenate([must.second, cannot.second])
        data = np.concatenate([must.weights, -cannot.weights])
        coordinates = np.stack([np.concatenate([first, second]), np.concatenate([second, first])])
        return sparse.COO(coordinates, np.concatenate([data, data]), shape=(n, n), prune=True)

    def satisfaction(self, labels: Any) -> Satisfaction:
        """Share of the constraints that a labeling keeps, weighted.

        Parameters
        ----------
        labels : (n,) array-like, dask array, zarr.Array or path
            -1 for rows without a label: their constraints do not count.

        Returns
        -------
        Satisfaction
        """
        from .satisfaction import measure_satisfaction

        return measure_satisfaction(self, labels)

    # -- for the methods ----------------------------------------------------------------------------------------------

    def on_rows(self, rows: Rows, *, fingerprint: bool = False) -> RowConstraints:
        """Check the constraints against an input, and bring labels into its row blocks.

        Raises
        ------
        ValueError
            If the number of rows is another one, or a label or weight is not acceptable.

        Notes
        -----
        Chunked labels are read once, to find their classes.
        """
        n = rows.n_samples
        self.check_n_rows(n, "X")
        digest = hashlib.blake2b(digest_size=16)
        if self.labels is None:
            if fingerprint:
                for links in (self._must, self._cannot):
                    digest.update(f"{len(links)}".encode() + links.pairs.tobytes() + links.weights.tobytes())
            return RowConstraints(None, None, 0, self._must, self._cannot, digest.hexdigest() if fingerprint else "")
        chunks = rows.blocks.chunks[0]
        labels, weight = _in_chunks(self.labels, chunks), self.weight
        confidences = None
        if weight is not None:
            full = np.broadcast_to(np.float32(weight), n) if np.ndim(weight) == 0 else weight
            confidences = _in_chunks(full, chunks)
        found = compute(
            map_to_objects(
                _classes_of_block,
                labels[:, None],
                name="dc-classes",
                weights=confidences,
                size=rows.block_rows,
                hashed=fingerprint,
            )
        )[0]
        classes = np.unique(np.concatenate([part["classes"] for part in found]))
        for part in found:
            digest.update(part["digest"])
        codes = map_rows(_codes_of_block, labels, name="dc-codes", columns=None, dtype=np.int32, classes=classes)
        if confidences is not None:
            confidences = map_rows(_narrow_block, confidences, name="dc-weights", columns=None, dtype=np.float32)
        fingerprinted = digest.hexdigest() if fingerprint else ""
        return RowConstraints(codes, confidences, len(classes), self._must, self._cannot, fingerprinted)

    def check_n_rows(self, n_samples: int, of: str) -> None:
        """Check that the constraints can belong to so many rows of something.

        Raises
        ------
        ValueError
            If they were made for another number, or a pair names a row that is not there.
        """
        if self.n_samples is not None and self.n_samples != n_samples:
            if of == "n_samples":
                raise ValueError(
                    f"n_samples must be {self.n_samples}, the rows that the constraints were made for, got {n_samples}"
                )
            if self.labels is not None:
                raise ValueError(
                    f"y must have one entry for each of the {n_samples} rows of {of}, got {self.n_samples}"
                )
            raise ValueError(
                f"constraints must have been made for the {n_samples} rows of {of}, got n_samples={self.n_samples}"
            )
        self._check_range(n_samples)

    def _check_range(self, n_samples: int) -> None:
        for name, links in (("must_link", self._must), ("cannot_link", self._cannot)):
            if len(links) and links.second.max() >= n_samples:
                bad = int(np.argmax(links.second >= n_samples))
                pair = (int(links.first[bad]), int(links.second[bad]))
                raise ValueError(f"{name} must name rows 0 to {n_samples - 1}, got the pair {pair}")

    def _labels_in_memory(self) -> NDArray[np.int64]:
        labels = self.labels if isinstance(self.labels, np.ndarray) else compute(self.labels)[0]
        check_labels(labels, 0)
        return whole_labels(labels)

    def _confidences_in_memory(self, known: NDArray[np.bool_]) -> NDArray[np.float64]:
        weight = compute(self.weight)[0] if isinstance(self.weight, da.Array) else self.weight
        full = np.broadcast_to(np.asarray(1.0 if weight is None else weight, np.float64), known.shape)
        check_weights(full, 0, known)
        return full

    def _expanded(self) -> tuple[Links, Links]:
        """All pairs, those of labels too."""
        if self.labels is None:
            return self._must, self._cannot
        labels = self._labels_in_memory()
        rows = np.flatnonzero(labels >= 0)
        if len(rows) ** 2 > MOST_ENTRIES:
            raise ValueError(f"{len(rows)} labelled rows make {len(rows) ** 2} entries, more than {MOST_ENTRIES}")
        a, b = np.triu_indices(len(rows), 1)
        first, second = rows[a], rows[b]
        confidences = self._confidences_in_memory(labels >= 0)
        weights = confidences[first] * confidences[second]
        same = labels[first] == labels[second]
        return (
            Links(first[same], second[same], weights[same]),
            Links(first[~same], second[~same], weights[~same]),
        )


_NO_LINKS = Links(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def _check_links(name: str, pairs: Any, weight: Any) -> Links:
    """Links of given pairs: smaller row first, sorted, each once with its largest weight."""
    array = np.empty((0, 2), np.int64) if pairs is None else _in_memory(name, pairs, "be pairs of rows, shape (m, 2)")
    weights = np.ones(()) if weight is None else _in_memory(f"{name}_weight", weight, "be numbers")
    if weights.dtype.kind not in "biuf":
        raise ValueError(f"{name}_weight must hold numbers, got {weight!r:.100}")
    if array.size == 0:
        if weights.size > 1:
            raise ValueError(f"{name}_weight must have one entry a pair, got {weights.size} for no pairs")
        return _NO_LINKS
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{name} must be pairs of rows, shape (m, 2), got shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must hold row numbers, got dtype {array.dtype}")

    def refuse(bad: NDArray[np.bool_], what: str) -> None:
        if bad.any():
            first, second = array[np.argmax(bad if bad.ndim == 1 else bad.any(axis=1))].tolist()
            raise ValueError(f"{name} must {what}, got the pair ({first}, {second})")

    if array.dtype.kind == "f":
        refuse(~np.isfinite(array) | (array != np.floor(array)), "hold row numbers")
    refuse(array < 0, "name rows from 0 up")
    refuse(array >= MOST_ROWS, "name rows below 2**63")
    array = array.astype(np.int64)
    refuse(array[:, 0] == array[:, 1], "not link a row to itself")
    if weights.ndim == 0:
        weights = np.full(len(array), weights)
    if weights.shape != (len(array),):
        raise ValueError(f"{name}_weight must be one number or have shape ({len(array)},), got shape {weights.shape}")
    check_weights(weights, 0, name=f"{name}_weight", of="place")
    first, second = array.min(axis=1), array.max(axis=1)
    order = np.lexsort((second, first))
    first, second, weights = first[order], second[order], weights[order].astype(np.float64)
    starts = np.flatnonzero(np.r_[True, (np.diff(first) != 0) | (np.diff(second) != 0)])
    return Links(first[starts], second[starts], np.maximum.reduceat(weights, starts))


def _in_memory(name: str, values: Any, wanted: str) -> NDArray[Any]:
    """A small array as it was given, without a mask."""
    if isinstance(values, da.Array):
        values = compute(values)[0]
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must {wanted}, without masked entries")
    return _as_array(name, values, wanted)


def _as_array(name: str, values: Any, wanted: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"{name} must {wanted}, got {values!r:.100}: {error}") from error


def check_weights(
    weights: NDArray[Any],
    first_row: int,
    known: NDArray[np.bool_] | None = None,
    *,
    name: str = "weight",
    of: str = "row",
) -> None:
    """Check weights (n,), of rows that follow each other or of pairs; those of rows without a label do not count.

    Raises
    ------
    ValueError
        Naming the first bad one and its row.
    """
    numbers = np.asarray(weights, np.float64)
    bad = ~((numbers >= LEAST_WEIGHT) & (numbers <= 1))
    if known is not None:
        bad &= known
    if bad.any():
        place = int(np.argmax(bad))
        raise ValueError(f"{_bad_weight(name, numbers[place])} at {of} {first_row + place}")


def _bad_weight(name: str, value: Any) -> str:
    least = f"at least {LEAST_WEIGHT:.2g}" if 0 < value < LEAST_WEIGHT else "above 0"
    return f"{name} must be {least} and at most 1, got {value}"


def _open_confidence(weight: Any, n_samples: int) -> Any:
    if isinstance(weight, np.ndarray) and weight.ndim == 0:
        weight = weight.item()
    if isinstance(weight, Number):
        if not isinstance(weight, Real):
            raise ValueError(f"weight must hold numbers, got {weight!r}")
        if not LEAST_WEIGHT <= float(weight) <= 1:
            raise ValueError(_bad_weight("weight", weight))
        return float(weight)
    column = open_column("weight", weight)
    if column.dtype.kind not in "biuf":
        raise ValueError(f"weight must hold numbers, got dtype {column.dtype}")
    if len(column) != n_samples:
        raise ValueError(
            f"weight must be one number or have one entry for each of the {n_samples} labels, got {len(column)}"
        )
    return column


def open_column(name: str, values: Any) -> NDArray[Any] | da.Array:
    """Labels or weights as one array (n,) of known length; a table of one column is one.

    What a mask hides is -1, or NaN among floats: unknown.
    """
    if hasattr(values, "to_dask_array"):
        values = values.to_dask_array()
    elif is_chunked(values) and not isinstance(values, da.Array):
        values = open_dask(values)
    if isinstance(values, da.Array):
        if isinstance(values._meta, np.ma.MaskedArray):
            filled = _fill_masked(np.ma.empty(0, values.dtype))
            values = values.map_blocks(_fill_masked, dtype=filled.dtype, meta=filled)
    elif np.ma.isMaskedArray(values):
        values = _fill_masked(values)
    else:
        values = _as_array(name, values, "have one entry a row, shape (n,)")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must have one entry a row, shape (n,), got shape {values.shape}")
    if isinstance(values, da.Array) and np.isnan(values.shape[0]):
        values = check_rows(values[:, None]).blocks[:, 0]  # counts the rows of unknown chunks
    return values


def _fill_masked(values: Any) -> NDArray[Any]:
    """A masked array with -1 or NaN where it is masked; integers in a dtype that has a -1."""
    kind = values.dtype.kind
    if kind == "f":
        return np.asarray(np.ma.filled(values, np.nan))
    if kind in "bu":
        values = values.astype(np.int64)
    return np.asarray(np.ma.filled(values, -1)) if kind in "biu" else np.asarray(values)


def _in_chunks(values: NDArray[Any] | da.Array, chunks: tuple[int, ...]) -> da.Array:
    if isinstance(values, np.ndarray):
        return da.from_array(values, chunks=(chunks,), name=False)
    return values.rechunk((chunks,), method="tasks")


def known_labels(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels are known: NaN and -1 are not."""
    return ~np.isnan(labels) & (labels != -1) if labels.dtype.kind == "f" else labels != -1


def whole_labels(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Checked labels as int64, -1 for unknown."""
    return np.where(known_labels(labels), labels, -1).astype(np.int64)


def check_labels(labels: NDArray[Any], first_row: int) -> None:
    """Check partial labels (n,) of rows that follow each other.

    Raises
    ------
    ValueError
        Naming the first bad one and its row.
    """
    if labels.dtype.kind == "f":
        with np.errstate(over="ignore"):  # of long doubles
            numbers = labels.astype(np.float64)
        bad = known_labels(labels) & ~((numbers >= 0) & (numbers == np.floor(numbers)) & (numbers < 2**53))
    elif labels.dtype.kind == "u":
        bad = labels >= MOST_ROWS
    else:
        bad = labels < -1 if labels.dtype.kind == "i" else np.zeros(len(labels), np.bool_)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            "y must hold whole numbers from 0 up, and -1 or NaN for unknown, "
            f"got {labels[row]} at row {first_row + row}"
        )


def _classes_of_block(
    block: NDArray[Any], number: int, size: int, hashed: bool, weights: NDArray[Any] | None = None
) -> dict[str, Any]:
    """Distinct labels of a block (n, 1), checked."""
    block = block[:, 0]
    check_labels(block, number * size)
    known = known_labels(block)
    digest = hashlib.blake2b(digest_size=16)
    if weights is not None:
        check_weights(weights[:, 0], number * size, known)
    if hashed:
        digest.update(whole_labels(block).tobytes())
        digest.update(b"" if weights is None else np.where(known, _narrow_block(weights[:, 0]), 0).tobytes())
    return {"classes": np.unique(block[known]).astype(np.int64), "digest": digest.digest()}


def _narrow_block(weights: NDArray[Any]) -> NDArray[np.float32]:
    """Weights as float32; 1 instead of what is no weight, which only rows without a label have."""
    return np.where((weights > 0) & (weights <= 1), weights, 1).astype(np.float32)


def _codes_of_block(block: NDArray[Any], classes: NDArray[np.int64]) -> NDArray[np.int32]:
    known = known_labels(block)
    codes = np.full(len(block), -1, np.int32)
    codes[known] = np.searchsorted(classes, block[known].astype(np.int64))
    return codes
