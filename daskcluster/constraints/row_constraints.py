"""Constraints on the rows of one input, in its row blocks."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..errors import warn_user
from ..io.columns import cut_column
from ..io.inputs import Rows
from ..runtime.execution import map_rows
from ..runtime.passes import mapped
from ..runtime.pieces import as_column
from .labels import check_labels, check_weights, known_labels, whole_labels
from .links import NO_LINKS, Links

__all__ = ["RowConstraints", "labels_on_rows", "links_on_rows", "say_empty"]

logger = logging.getLogger("daskcluster")


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
    apart : bool
        Whether codes are of groups whose rows must not meet, and say nothing else; not of classes.
    n_coded : int
        Rows with a code.
    """

    codes: da.Array | None
    confidences: da.Array | None
    n_classes: int
    must_link: Links
    cannot_link: Links
    fingerprint: str
    apart: bool = False
    n_coded: int = 0

    @property
    def empty(self) -> bool:
        """Whether no row is named."""
        return self.n_classes == 0 and not len(self.must_link) and not len(self.cannot_link)


def say_empty(method: str, known: RowConstraints, given: bool) -> None:
    """Say that a fit is unconstrained: a warning when constraints were given, else a line of the log."""
    if known.empty:
        message = f"{method}: no constraints; the result is that of the unconstrained method"
        if given:
            warn_user(message)
        else:
            logger.info(message)


def links_on_rows(must: Links, cannot: Links, *, fingerprint: bool) -> RowConstraints:
    """Pairs as they are."""
    digest = hashlib.blake2b(digest_size=16)
    if fingerprint:
        for links in (must, cannot):
            digest.update(f"{len(links)}".encode() + links.pairs.tobytes() + links.weights.tobytes())
    return RowConstraints(None, None, 0, must, cannot, digest.hexdigest() if fingerprint else "")


def labels_on_rows(
    labels: NDArray[Any] | da.Array, weight: Any, rows: Rows, *, fingerprint: bool, apart: bool = False
) -> RowConstraints:
    """Partial labels, or groups, in the row blocks of an input, as codes of their classes.

    Parameters
    ----------
    labels : NumPy or dask array (n,)
    weight : number, NumPy or dask array (n,), or None
    rows : Rows
    fingerprint : bool
    apart : bool
        Whether they are groups, of whose rows no two may meet. Groups of one row say nothing and get no code.

    Raises
    ------
    ValueError
        Naming the first label or weight that is none.

    Notes
    -----
    One pass over chunked labels, to find their classes.
    """
    labels = cut_column(labels, rows)
    confidences = None
    if weight is not None:
        full = np.broadcast_to(np.float32(weight), rows.n_samples) if np.ndim(weight) == 0 else weight
        confidences = cut_column(full, rows)
    found = mapped(
        _classes_of_block,
        as_column(labels),
        name="dc-classes",
        weights=confidences,
        size=rows.block_rows,
        hashed=fingerprint,
        name_of="groups" if apart else "y",
    )
    classes, place = np.unique(np.concatenate([part["classes"] for part in found]), return_inverse=True)
    counts = np.bincount(place.ravel(), np.concatenate([part["counts"] for part in found]), len(classes))
    if apart:
        classes, counts = classes[counts > 1], counts[counts > 1]
    digest = hashlib.blake2b(b"groups" if apart else b"", digest_size=16)
    for part in found:
        digest.update(part["digest"])
    codes = map_rows(_codes_of_block, labels, name="dc-codes", columns=None, dtype=np.int32, classes=classes)
    if confidences is not None:
        confidences = map_rows(_narrow_block, confidences, name="dc-weights", columns=None, dtype=np.float32)
    fingerprinted = digest.hexdigest() if fingerprint else ""
    n_coded = int(counts.sum())
    return RowConstraints(codes, confidences, len(classes), NO_LINKS, NO_LINKS, fingerprinted, apart, n_coded)


def _classes_of_block(
    block: NDArray[Any],
    number: int,
    size: int,
    hashed: bool,
    weights: NDArray[Any] | None = None,
    name_of: str = "y",
) -> dict[str, Any]:
    """Distinct labels of a block (n, 1), checked."""
    block = block[:, 0]
    check_labels(block, number * size, name_of)
    known = known_labels(block)
    digest = hashlib.blake2b(digest_size=16)
    if weights is not None:
        check_weights(weights[:, 0], number * size, known)
    if hashed:
        digest.update(whole_labels(block).tobytes())
        digest.update(b"" if weights is None else np.where(known, _narrow_block(weights[:, 0]), 0).tobytes())
    classes, counts = np.unique(block[known], return_counts=True)
    return {"classes": classes.astype(np.int64), "counts": counts, "digest": digest.digest()}


def _narrow_block(weights: NDArray[Any]) -> NDArray[np.float32]:
    """Weights as float32; 1 instead of what is no weight, which only rows without a label have."""
    return np.where((weights > 0) & (weights <= 1), weights, 1).astype(np.float32)


def _codes_of_block(block: NDArray[Any], classes: NDArray[np.int64]) -> NDArray[np.int32]:
    known = known_labels(block)
    codes = np.full(len(block), -1, np.int32)
    labels = block[known].astype(np.int64)
    place = np.minimum(np.searchsorted(classes, labels), max(0, len(classes) - 1))
    codes[known] = np.where(classes[place] == labels, place, -1) if len(classes) else -1
    return codes
