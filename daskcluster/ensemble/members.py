"""Base clusterings: their seeds, their numbers of clusters, and what each of them leaves."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

from ..errors import warn_user
from ..io.inputs import Rows, check_rows
from ..runtime.pieces import side_by_side
from ..runtime.seeding import stream
from ..runtime.stages import Stage
from ..validation import check_integer
from .incidence import LABEL_DTYPE

__all__ = [
    "MakeMembers",
    "Member",
    "Members",
    "draw_numbers",
    "drawn_range",
    "label_dtype",
    "like_labels",
    "member_name",
    "member_seeds",
    "takes",
]

logger = logging.getLogger("daskcluster")


@dataclass(frozen=True)
class Member:
    """What made one base clustering.

    Attributes
    ----------
    model : SpectralModel or estimator or None
        What labels new rows; None if nothing does.
    warned : sequence of warnings.WarningMessage
        What the clusterer had to say.
    """

    model: Any
    warned: Sequence[warnings.WarningMessage] = ()


@dataclass(frozen=True)
class Members:
    """All base clusterings of an ensemble.

    Attributes
    ----------
    members : list of Member
    held : list of dask array (n,) or (n, m_i) int
        Their labels, side by side; -1 for rows without a label.
    k_range : pair of int, or None
        From which their numbers of clusters were drawn; None for a clusterer without such a number.
    numbers : list of int or None
    seeds : list of int
    """

    members: list[Member]
    held: list[da.Array]
    k_range: tuple[int, int] | None
    numbers: list[Any]
    seeds: list[int]

    @property
    def labels(self) -> Rows:
        """The base clusterings (n, m) in row blocks."""
        return check_rows(side_by_side(self.held, "base-labels"), "label", LABEL_DTYPE)

    def repeat_warnings(self) -> None:
        """Say once what base clusterers said, each about itself: the first of them, and how many did."""
        heard: dict[Any, list[str]] = {}
        for member in self.members:
            own = {(warned.category, warned.filename, warned.lineno): str(warned.message) for warned in member.warned}
            for what, text in own.items():
                heard.setdefault(what, []).append(text)
        for (category, *_), texts in heard.items():
            warn_user(f"in {len(texts)} of {len(self.members)} base clusterings: {texts[0]}", category)


#: With ``k_range=None`` the numbers of clusters go up to sqrt(n), as in sec_2015, but no further than this.
MOST_NUMBER = 200


@dataclass(frozen=True)
class MakeMembers(Stage):
    """Make the base clusterings of an ensemble.

    Attributes
    ----------
    n_clusters, n_base_clusterings : int
        k, m.
    k_range : pair of int, or None
        Smallest and largest number of clusters of a base clustering; None for k to the root of the rows.
    later : tuple of Stage
        Stages that may have to refuse the number of rows with a label: before any base clustering.
    """

    title = "base clusterings"
    n_clusters: int
    n_base_clusterings: int
    k_range: Any
    later: tuple[Stage, ...] = ()

    def check(self) -> None:
        """Refuse counts below 1, and a range that is none."""
        check_integer("n_base_clusterings", self.n_base_clusterings, 1)
        if self.k_range is not None:
            try:
                low, high = self.k_range
            except (TypeError, ValueError):
                raise ValueError(f"k_range must be a pair (smallest, largest) or None, got {self.k_range!r}") from None
            check_integer("k_range[0]", low, 1)
            check_integer("k_range[1]", high, int(low))

    def _asked(self, n_seen: int) -> tuple[int, int] | None:
        """The range to draw numbers from, for so many rows; None where there is no such number."""
        if self.k_range is not None:
            return int(self.k_range[0]), int(self.k_range[1])
        return self.n_clusters, max(self.n_clusters, min(int(np.sqrt(n_seen)), MOST_NUMBER))

    def _allowed(self, asked: tuple[int, int], n_seen: int) -> tuple[int, int]:
        """The range that so many rows allow."""
        return drawn_range(asked, self.n_clusters, n_seen)

    def _most_clusters(self, n_seen: int) -> int:
        asked = self._asked(n_seen)
        return MOST_NUMBER if asked is None else self._allowed(asked, n_seen)[1]

    def _drawn(self, n_seen: int, n_labelled: int, seed: int) -> tuple[tuple[int, int] | None, list[Any], list[int]]:
        """Range, numbers of clusters, and root seeds, for base clusterings that see so many rows."""
        for stage in self.later:
            stage.check_size(n_labelled)
        m = self.n_base_clusterings
        asked, seeds = self._asked(n_seen), member_seeds(seed, m)
        if asked is None:
            return None, [None] * m, seeds
        k_range = self._allowed(asked, n_seen)
        if k_range != asked:
            logger.info("k_range %s is more than %d rows allow: %s is used", asked, n_seen, k_range)
        return k_range, draw_numbers(k_range, m, seed), seeds


def member_seeds(seed: int, n_base_clusterings: int) -> list[int]:
    """Root seeds of the base clusterings."""
    return [int(stream(seed, "base clustering", i).integers(2**32)) for i in range(n_base_clusterings)]


def drawn_range(k_range: tuple[int, int], n_clusters: int, n_valid: int) -> tuple[int, int]:
    """The range of numbers of clusters for n rows: what was asked for, or less where rows are few.

    Notes
    -----
    At most 2 sqrt(n), or `n_clusters` when that is more, so that a base cluster has sqrt(n) / 2 rows on average: base
    clusterings into single rows would tell nothing. The smallest number is lowered by the same share, but not below
    `n_clusters`: base clusterings of equally many clusters are too much alike to be joined. The papers' ranges are used
    as they are from n = 900 on.
    """
    most = min(n_valid, max(n_clusters, int(2 * np.sqrt(n_valid))))
    low, high = k_range
    if high > most:
        low, high = max(min(low, n_clusters), low * most // high), most
    return low, high


def draw_numbers(k_range: tuple[int, int], n_base_clusterings: int, seed: int) -> list[int]:
    """Numbers of clusters k_i = floor(tau (k_max - k_min)) + k_min, tau uniform; eq. (14) of uspec_usenc_2019.

    Notes
    -----
    The paper's tau may be 1, so that k_max has probability zero; here all numbers of the range are equally likely.
    """
    low, high = k_range
    return [int(stream(seed, "number of clusters", i).integers(low, high + 1)) for i in range(n_base_clusterings)]


def member_name(i: int) -> str:
    """Name of a base clustering's products."""
    return f"base-{i:03d}"


def label_dtype(n_clusters: int) -> np.dtype[Any]:
    """The smallest integer dtype that holds the labels 0 to n_clusters - 1, and -1."""
    return np.result_type(np.int8, np.min_scalar_type(-max(n_clusters, 1)))


def like_labels(rows: Rows, n_clusters: int, n_columns: int | None = None) -> da.Array:
    """An array of the form that held labels have: (n,), or some columns of them."""
    shape: tuple[int, ...] = (rows.n_samples,) if n_columns is None else (rows.n_samples, n_columns)
    return da.zeros(shape, chunks=(rows.blocks.chunks[0], *shape[1:]), dtype=label_dtype(n_clusters))


def takes(clusterer: Any, name: str) -> bool:
    """Whether a clusterer's `fit` has a parameter of this name."""
    fit = getattr(clusterer, "fit", None)
    return fit is not None and name in inspect.signature(fit).parameters
