"""Stage 0: one first pass over canonical row blocks: check, sample, form for computing, fingerprint."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..io.identity import identity_of
from ..io.inputs import Rows
from ..kernels.points import stacked
from ..kernels.rows import compute_dtype, finite_rows, scan_rows, scan_sparse
from ..kernels.sparse_rows import is_sparse
from ..runtime.forecast import Cost, Sizes
from ..runtime.passes import mapped
from ..runtime.seeding import draw_ranks, stream
from ..runtime.stages import Run, Stage
from ..validation import check_option
from .rows import RowForm, bad_value

__all__ = ["METRICS", "RowScan", "Scan", "scan"]

METRICS = ("euclidean", "cosine")
#: Rows of the sample whose median is the shift.
SHIFT_ROWS = 512


@dataclass(frozen=True)
class RowScan:
    """What the first pass found.

    Attributes
    ----------
    valid : (n_blocks,) int64
        Rows of each block that take part.
    sample : (s, d), raw dtype
        The drawn rows, in row order.
    form : RowForm
    fingerprint : str
        Hash of the content, weights included; "" when not asked for. The same for any chunking or kind of store.
    sample_weights : (s,) float64
        Weights of the sample; (0,) for weights of 1.
    """

    valid: NDArray[np.int64]
    sample: NDArray[Any]
    form: RowForm
    fingerprint: str
    sample_weights: NDArray[np.float64]

    @property
    def n_valid(self) -> int:
        """Number of rows that take part."""
        return int(self.valid.sum())


@dataclass(frozen=True)
class Scan(Stage):
    """Stage 0: check the rows, draw a sample, find the form for computing, and open the named store.

    Attributes
    ----------
    n_clusters : int
        At least so many rows must take part.
    n_sampled : int
        Rows to draw.
    metric : {"euclidean", "cosine"}
    """

    title = "check and sample"
    n_clusters: int
    n_sampled: int
    metric: str = "euclidean"

    def check(self) -> None:
        """Refuse an unknown metric."""
        check_option("metric", self.metric, METRICS)

    def sample_rows(self, rows: Rows | Sizes) -> int:
        """Rows to draw."""
        return self.n_sampled

    def __call__(self, run: Run, weights: da.Array | None = None, given: Any = None) -> RowScan:
        """Scan the rows; `given` are the weights as the user gave them."""
        with run.products.scanning(partial(identity_of, run.rows.source, given if given is not None else weights)):
            found = self._scan(run, weights)
        run.products.open(found.fingerprint)
        return found

    def _scan(self, run: Run, weights: da.Array | None = None) -> RowScan:
        found = scan(
            run.rows,
            self.sample_rows(run.rows),
            stream(run.seed, "sample"),
            weights=weights,
            unit_length=self.metric == "cosine",
            fingerprint=run.products.hashes,
        )
        if self.n_clusters > found.n_valid:
            raise ValueError(
                f"n_clusters must be at most the number of rows without NaN or infinity, got "
                f"n_clusters={self.n_clusters} and {found.n_valid} such rows"
            )
        return found

    def cost(self, sizes: Sizes) -> Cost:
        """One pass, and another one where rows are missing; the sample stays, once as drawn and once being joined."""
        drawn = min(self.sample_rows(sizes), sizes.n_samples) * sizes.row_bytes
        # Of sparse rows the places of bad values are looked for, and the numbers as float64.
        looked_at = sizes.n_features * sizes.number_bytes if sizes.row_entries is None else 24 * sizes.row_entries
        task = sizes.block_rows * (looked_at + 16)
        return sizes.over_input(task, eager_bytes=drawn, small_bytes=drawn)


def scan(
    rows: Rows,
    sample_size: int,
    rng: np.random.Generator,
    *,
    weights: da.Array | None = None,
    unit_length: bool = False,
    fingerprint: bool = False,
) -> RowScan:
    """Pass over all rows once: check them, draw a sample, find the form for computing, fingerprint the content.

    Parameters
    ----------
    rows : Rows
    sample_size : int
        Rows drawn without replacement from those that take part, by their number among these; all when fewer.
    rng : numpy.random.Generator
    weights : dask array (n,), optional
        Checked as well. Rows without weight do not take part in the sample. When there are more rows than the sample
        has, they are drawn with probability in proportion to the weights, and the sample then needs none.
    unit_length : bool
        Form of ``metric="cosine"``.
    fingerprint : bool
        Hash the content as well.

    Raises
    ------
    ValueError
        If `rows.missing` is "raise" and a value is NaN or infinite: its row and column are named. If no row is finite.

    Notes
    -----
    One read of every block; a second one if rows are missing, because only then their places decide which rows the
    drawn numbers mean. Peak memory of a task: the raw block, its copy in the computing dtype, and the block's share
    of the sample. The shift is a median of sampled rows, so an outlier does not cost the bulk its digits; the scale is
    the power of two that brings the largest difference to the shift below 1.
    """
    state = rng.bit_generator.state
    ranks = draw_ranks(rng, rows.n_samples, sample_size)
    found = _scan_blocks(rows, ranks, weights, fingerprint)
    valid = np.array([part["finite"] for part in found], np.int64)
    sample_weights = np.empty(0)
    if rows.missing == "raise":
        _raise_first_bad(rows, found)
    if valid.sum() == 0:
        raise ValueError("X has no row without NaN or infinity")
    if weights is not None:
        sample, sample_weights = _draw_weighted(rows, weights, found, sample_size, rng)
    elif valid.sum() < rows.n_samples:
        rng.bit_generator.state = state
        ranks = draw_ranks(rng, int(valid.sum()), sample_size)
        offsets = np.concatenate([[0], np.cumsum(valid)])
        pieces = mapped(_take_valid, rows.blocks, name="dc-sample", ranks=ranks, offsets=offsets)
        sample = stacked([part["sample"] for part in pieces])
    else:
        sample = stacked([part["sample"] for part in found])
    minimum = np.min([part["minimum"] for part in found], axis=0)  # for sparse rows of all numbers
    maximum = np.max([part["maximum"] for part in found], axis=0)
    digest = hashlib.blake2b(digest_size=16)
    for part in found:
        digest.update(part["digest"])
    digest.update(f"{rows.blocks.shape} {rows.blocks.dtype.newbyteorder('=')}".encode())
    return RowScan(
        valid=valid,
        sample=sample,
        form=_choose_form(sample, minimum, maximum, unit_length),
        fingerprint=digest.hexdigest() if fingerprint else "",
        sample_weights=sample_weights,
    )


def _draw_weighted(
    rows: Rows, weights: da.Array, found: list[dict[str, Any]], size: int, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Sample by weight, by the keys of Efraimidis and Spirakis 2006: the largest u ** (1 / weight)."""
    if any(part["bad_weights"] for part in found):
        raise ValueError("sample_weight must be finite and >= 0")
    n_weighted = sum(part["weighted"] for part in found)
    if n_weighted == 0:
        raise ValueError("sample_weight must be above zero for some row that takes part, got zeros only")
    seed = int(rng.integers(2**63))
    parts = mapped(_draw_block, rows.blocks, name="dc-sample", weights=weights, size=size, seed=seed)
    keys = np.concatenate([part["keys"] for part in parts])
    chosen = np.sort(np.argsort(-keys, kind="stable")[:size])
    sample = stacked([part["rows"] for part in parts])[chosen]
    if n_weighted > size:
        return sample, np.empty(0)
    return sample, np.concatenate([part["weights"] for part in parts])[chosen]


def _draw_block(block: NDArray[Any], number: int, weights: NDArray[np.float64], size: int, seed: int) -> dict[str, Any]:
    uniforms = np.random.default_rng(np.random.SeedSequence([seed, number])).random(len(block))
    finite = finite_rows(block)
    able = np.flatnonzero(weights[:, 0] > 0 if finite is None else (weights[:, 0] > 0) & finite)
    keys = np.log1p(-uniforms[able]) / weights[able, 0]
    best = np.sort(np.argsort(-keys, kind="stable")[:size])
    return {"keys": keys[best], "rows": block[able[best]], "weights": weights[able[best], 0]}


def _scan_blocks(
    rows: Rows, ranks: NDArray[np.int64], weights: da.Array | None, fingerprint: bool
) -> list[dict[str, Any]]:
    return mapped(
        _scan_block,
        rows.blocks,
        name="dc-check",
        weights=weights,
        ranks=ranks,
        size=rows.block_rows,
        fingerprint=fingerprint,
    )


def _scan_block(
    block: Any,
    number: int,
    ranks: NDArray[np.int64],
    size: int,
    fingerprint: bool,
    weights: NDArray[np.float64] | None = None,
) -> dict[str, Any]:
    minimum: Any
    maximum: Any
    if is_sparse(block):
        n_finite, row, column, maximum = scan_sparse(block)
        minimum = -maximum
    else:
        block = np.asarray(block)
        minimum, maximum = np.full(block.shape[1], np.inf), np.full(block.shape[1], -np.inf)
        computed = np.ascontiguousarray(block, dtype=compute_dtype(block.dtype))
        n_finite, row, column = scan_rows(computed, minimum, maximum)
    low, high = np.searchsorted(ranks, [number * size, number * size + len(block)])
    digest = hashlib.blake2b(digest_size=16)
    if fingerprint:
        # Native byte order; a long double has bytes without meaning.
        dtype = block.dtype.newbyteorder("=") if block.dtype.itemsize <= 8 else np.dtype(np.float64)
        for content in (block.indptr, block.indices) if is_sparse(block) else ():
            digest.update(np.ascontiguousarray(content).data)
        digest.update(np.ascontiguousarray(block.data if is_sparse(block) else block, dtype=dtype).data)
        if weights is not None:
            digest.update(np.ascontiguousarray(weights).data)
    finite = None if weights is None else finite_rows(block)
    return {
        "finite": n_finite,
        "row": row,
        "column": column,
        "value": _value(block, row, column) if row >= 0 else 0.0,
        "minimum": minimum,
        "maximum": maximum,
        "sample": block[ranks[low:high] - number * size],
        "digest": digest.digest(),
        "bad_weights": weights is not None and not (np.isfinite(weights).all() and (weights >= 0).all()),
        "weighted": 0 if weights is None else int((weights[:, 0][... if finite is None else finite] > 0).sum()),
    }


def _value(block: Any, row: int, column: int) -> float:
    return float((block[row : row + 1].toarray() if is_sparse(block) else block[row : row + 1])[0, column])


def _take_valid(
    block: NDArray[Any], number: int, ranks: NDArray[np.int64], offsets: NDArray[np.int64]
) -> dict[str, Any]:
    low, high = np.searchsorted(ranks, offsets[number : number + 2])
    mask = finite_rows(block)
    valid = np.arange(len(block)) if mask is None else np.flatnonzero(mask)
    return {"sample": block[valid[ranks[low:high] - offsets[number]]]}


def _raise_first_bad(rows: Rows, found: list[dict[str, Any]]) -> None:
    for number, part in enumerate(found):
        if part["row"] >= 0:
            raise bad_value(part["value"], number * rows.block_rows + part["row"], part["column"], rows.absent)


def _choose_form(
    sample: NDArray[Any], minimum: NDArray[np.float64], maximum: NDArray[np.float64], unit_length: bool
) -> RowForm:
    dtype = compute_dtype(sample.dtype)
    n_features = sample.shape[1]
    sparse = is_sparse(sample)
    if unit_length:
        return RowForm(np.zeros(n_features), 1.0, True, sparse)
    if sparse:
        shift = np.zeros(n_features)  # any other would fill the rows
    else:
        few = sample[:: max(1, len(sample) // SHIFT_ROWS)].astype(dtype)
        middle = (len(few) - 1) // 2  # the lower median, which is a value of the data: a mean of two can overflow
        shift = np.partition(few, middle, axis=0)[middle].astype(np.float64)
    with np.errstate(over="ignore"):
        largest = np.maximum(maximum - shift, shift - minimum).max()
    if not np.isfinite(largest):
        raise ValueError("X spans more than the range of float64; scale it first")
    most = 120 if dtype == np.float32 else 1000
    scale = 1.0 if largest == 0 else float(2.0 ** -int(np.clip(np.frexp(largest)[1], -most, most)))
    return RowForm(shift, scale, False, sparse)
