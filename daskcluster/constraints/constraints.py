"""`Constraints`: pairs, partial labels or groups, checked, in one form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..io.columns import open_column
from ..io.inputs import Rows
from ..markup import html_table
from ..validation import check_integer
from .closure import Contradiction, close_pairs, find_components, find_contradictions
from .labels import check_labels, check_weights, known_labels, labels_in_memory, open_confidence, open_groups
from .links import MOST_ENTRIES, NO_LINKS, Links, check_links, expand_groups, expand_labels
from .row_constraints import RowConstraints, labels_on_rows, links_on_rows
from .satisfaction import Satisfaction, open_assignment, satisfaction_of_labels, satisfaction_of_links

__all__ = ["Constraints"]


class Constraints:
    """Must-link and cannot-link constraints between rows; made by `from_labels`, `from_groups` or `from_pairs`.

    Attributes
    ----------
    labels : NumPy or dask array (n,), or None
        Partial labels as they were given.
    groups : NumPy or dask array (n,), or None
        Groups of rows that must not meet, -1 for none.
    weight : number, NumPy or dask array, or None
        Confidence of the labels or groups.
    must_link, cannot_link : (m, 2) int64
        Pairs of rows, smaller row first, each once; empty for constraints from labels and groups, which are never
        expanded.
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
        groups: NDArray[Any] | da.Array | None = None,
        weight: Any = None,
        must: Links | None = None,
        cannot: Links | None = None,
        n_samples: int | None = None,
    ) -> None:
        self.labels = labels
        self.groups = groups
        self.weight = weight
        self.n_samples = n_samples
        self._must = NO_LINKS if must is None else must
        self._cannot = NO_LINKS if cannot is None else cannot

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
            weight = open_confidence(weight, len(labels))
            if isinstance(labels, np.ndarray) and isinstance(weight, np.ndarray):
                check_weights(weight, 0, known_labels(labels))
        return cls(labels=labels, weight=weight, n_samples=len(labels))

    @classmethod
    def from_groups(cls, groups: Any, *, weight: Any = None) -> Constraints:
        """No two rows of one group belong together: objects of one image, calls of one site, members of one team.

        Parameters
        ----------
        groups : (n,) NumPy array, dask array, zarr.Array or path of one
            Number of each row's group, of any values from 0 up; negative or NaN for a row of none, as are the masked
            entries of a masked array. A chunked one is read block by block, when a fit needs it.
        weight : number or (n,) array, optional
            Confidence of each row's group, in (0, 1]; a pair's weight is the product of its rows'. 1 by default. What
            stands at rows without a group is not looked at.

        Returns
        -------
        Constraints

        Raises
        ------
        ValueError
            If a group is no whole number, a weight is not in (0, 1], or a shape does not fit. If one of the two is
            chunked, what it holds is checked when it is read.

        Notes
        -----
        Nothing is said of rows of different groups, and a group of one row says nothing. Pairs are never formed: as for
        labels, sums over the groups serve, which may be many and small.

        Examples
        --------
        >>> import daskcluster as dc
        >>> dc.Constraints.from_groups([0, 0, -1, 1, 1]).satisfaction([0, 1, 0, 2, 2])
        Satisfaction(must_link=1.0, cannot_link=0.5, n_must_link=0, n_cannot_link=2)
        """
        column = open_groups(groups)
        if weight is not None:
            weight = open_confidence(weight, len(column), "groups")
            if isinstance(column, np.ndarray) and isinstance(weight, np.ndarray):
                check_weights(weight, 0, known_labels(column))
        return cls(groups=column, weight=weight, n_samples=len(column))

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
        must = check_links("must_link", must_link, must_link_weight)
        cannot = check_links("cannot_link", cannot_link, cannot_link_weight)
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
        if self.groups is not None:
            return f"Constraints.from_groups(<{len(self.groups)} rows>)"
        return f"Constraints.from_pairs(<{len(self._must)} must-links>, <{len(self._cannot)} cannot-links>)"

    def _repr_html_(self) -> str:
        """What was given as a table, which notebooks show; nothing is read."""
        kind = "partial labels" if self.labels is not None else "groups" if self.groups is not None else "pairs"
        of = "" if self.n_samples is None else f" of {self.n_samples:,} rows"
        return html_table(self._facts(), ("given", "value"), f"Constraints: {kind}{of}", n_texts=2)

    def _facts(self) -> Iterator[tuple[str, str]]:
        column = self.column
        if column is None:
            for name, links in (("must-links", self._must), ("cannot-links", self._cannot)):
                yield name, f"{len(links):,}{_range_text(links.weights)}"
            return
        if isinstance(column, da.Array):
            yield "rows with one", f"not counted: in {column.npartitions:,} chunks, which a fit reads"
        else:
            known = known_labels(column)
            yield "rows with one", f"{int(known.sum()):,}"
            yield "classes" if self.groups is None else "groups", f"{len(np.unique(column[known])):,}"
        if isinstance(self.weight, np.ndarray) and self.weight.ndim and not isinstance(column, da.Array):
            yield "weights", f"one a row{_range_text(self.weight[known])}"
        elif self.weight is not None:
            yield "weights", "one a row" if np.ndim(self.weight) else f"{float(self.weight):g} each"

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
        labels = labels_in_memory(self.labels)
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
        Constraints from labels or groups are closed, and returned as they are.
        """
        if self.labels is not None or self.groups is not None:
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
        if self.labels is not None:
            must, cannot = expand_labels(self.labels, self.weight)
        elif self.groups is not None:
            must, cannot = expand_groups(self.groups, self.weight)
        else:
            must, cannot = self._must, self._cannot
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
        column = open_assignment(labels)
        if self.n_samples is not None and len(column) != self.n_samples:
            raise ValueError(f"labels must have one entry for each of the {self.n_samples} rows, got {len(column)}")
        self._check_range(len(column))
        if self.labels is not None:
            return satisfaction_of_labels(self.labels, self.weight, column)
        if self.groups is not None:
            return satisfaction_of_labels(self.groups, self.weight, column, apart=True)
        return satisfaction_of_links(self._must, self._cannot, column)

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
        self.check_n_rows(rows.n_samples, "X")
        if self.labels is not None:
            return labels_on_rows(self.labels, self.weight, rows, fingerprint=fingerprint)
        if self.groups is not None:
            return labels_on_rows(self.groups, self.weight, rows, fingerprint=fingerprint, apart=True)
        return links_on_rows(self._must, self._cannot, fingerprint=fingerprint)

    @property
    def column(self) -> NDArray[Any] | da.Array | None:
        """Labels or groups, a number a row; None for pairs."""
        return self.labels if self.groups is None else self.groups

    @property
    def parts(self) -> tuple[Any, ...]:
        """All that they are made of."""
        links = (self.must_link, self.must_link_weight, self.cannot_link, self.cannot_link_weight)
        return (self.labels, self.groups, self.weight, *links)

    def with_column(self, column: Any, weight: Any, n_samples: int) -> Constraints:
        """Constraints of the same kind from other labels or groups, which are not checked."""
        kind = "labels" if self.groups is None else "groups"
        return type(self)(**{kind: column}, weight=weight, n_samples=n_samples)

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
            if self.labels is not None or self.groups is not None:
                name = "y" if self.labels is not None else "groups"
                raise ValueError(
                    f"{name} must have one entry for each of the {n_samples} rows of {of}, got {self.n_samples}"
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


def _range_text(weights: NDArray[Any]) -> str:
    """What is said of weights beside their number; nothing where all are 1."""
    low, high = (weights.min(), weights.max()) if len(weights) else (1.0, 1.0)
    return "" if low == high == 1 else f", weight {low:g}" if low == high else f", weights from {low:g} to {high:g}"
