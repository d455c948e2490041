"""Constraints on the rows that are there, and these rows themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..pipeline.scan import RowScan
from ..runtime.execution import compute
from ..runtime.passes import mapped
from ..runtime.pieces import as_column, one_a_row
from ..runtime.products import Products
from .row_constraints import RowConstraints, say_empty

__all__ = ["Present", "on_valid_rows", "present_constraints", "present_rows", "valid_rows"]

#: Which rows of a block are there; None for all.
Present = Callable[[NDArray[Any]], NDArray[np.bool_] | None]


def present_constraints(
    method: str,
    known: RowConstraints,
    blocks: da.Array,
    present: Present,
    found: RowScan,
    products: Products,
) -> RowConstraints:
    """Constraints without those on missing rows; classes are held, for several passes read them.

    Parameters
    ----------
    method : str
        Name of the estimator, which warns when nothing is left.
    known : RowConstraints
    blocks : dask array (n, ...)
        Something that tells which rows are missing.
    present : callable
        Tells it of a block.
    found : RowScan
    products : Products
    """
    if known.empty:
        return known
    some_missing = found.n_valid < blocks.shape[0]
    if known.codes is not None:
        codes = known.codes
        if some_missing:
            columns = as_column(codes), blocks
            codes = one_a_row(_codes_of_present, *columns, name="classes", dtype=np.int32, present=present)
        codes, counts = products.rows("classes", codes, _count_labelled)
        any_left = any(count["labelled"] for count in counts)
        left = replace(known, codes=codes, n_classes=known.n_classes if any_left else 0)
    elif some_missing:
        with products.making("linked-rows", stays=True):
            rows = valid_rows(blocks, present, found)
        left = replace(known, must_link=known.must_link.among(rows), cannot_link=known.cannot_link.among(rows))
    else:
        return known
    say_empty(method, left, given=True)
    return left


def _codes_of_present(codes: NDArray[np.int32], block: NDArray[Any], present: Present) -> NDArray[np.int32]:
    there = present(block)
    return codes[:, 0] if there is None else np.where(there, codes[:, 0], np.int32(-1))


def _count_labelled(codes: NDArray[np.int32]) -> dict[str, Any]:
    return {"labelled": int((codes >= 0).sum())}


def valid_rows(
    blocks: da.Array, present: Present, found: RowScan, ranks: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Numbers of the rows that take part; of those with these ranks among them."""
    if found.n_valid == blocks.shape[0]:
        return np.arange(blocks.shape[0]) if ranks is None else ranks
    numbered = mapped(_present_numbers, blocks, name="dc-present", present=present, size=blocks.chunksize[0])
    rows: NDArray[np.int64] = np.concatenate([part["rows"] for part in numbered])
    return rows if ranks is None else rows[ranks]


def _present_numbers(block: NDArray[Any], number: int, present: Present, size: int) -> dict[str, Any]:
    there = present(block)
    return {"rows": number * size + (np.arange(len(block)) if there is None else np.flatnonzero(there))}


def on_valid_rows(known: RowConstraints, valid: NDArray[np.int64], n_rows: int) -> RowConstraints:
    """Constraints in memory, by the numbers of the rows among the valid ones."""
    codes, confidences = compute(known.codes, known.confidences)
    if len(valid) == n_rows:
        return replace(known, codes=codes, confidences=confidences)
    return replace(
        known,
        codes=None if codes is None else codes[valid],
        confidences=None if confidences is None else confidences[valid],
        must_link=known.must_link.renumbered(valid),
        cannot_link=known.cannot_link.renumbered(valid),
    )


def present_rows(block: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.intp] | None]:
    """Rows of an embedding that are there, and their numbers."""
    missing = np.isnan(block[:, 0])
    if not missing.any():
        return np.asarray(block), None
    rows = np.flatnonzero(~missing)
    return np.asarray(block)[rows], rows
