"""Stage 0: Zarr or array X -> checked canonical row blocks (n, d), and one first pass over them."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from os import PathLike
from typing import Any

import dask.array as da
import numpy as np
import zarr
from numpy.typing import NDArray

from ..io.zarr import open_rows
from ..kernels.rows import compute_dtype, finite_rows, prepare_rows, scan_rows
from ..runtime.execution import compute, map_to_objects, runs_in_process
from ..runtime.seeding import draw_ranks
from ..validation import check_dense, check_table

__all__ = [
    "RowForm",
    "RowScan",
    "Rows",
    "block_rows",
    "check_finite_block",
    "check_rows",
    "check_weights",
    "is_chunked",
    "scan",
]

logger = logging.getLogger("daskcluster")

#: A canonical block holds so many bytes of computing dtype at most, and so many rows at most and at least.
BLOCK_BYTES = 8 * 2**20
MOST_BLOCK_ROWS = 2**17
LEAST_BLOCK_ROWS = 2**8
#: Rows of the sample whose median is the shift.
SHIFT_ROWS = 512


def block_rows(n_features: int, dtype: np.dtype[Any]) -> int:
    """Rows of a canonical block: a power of two that depends on the number of features and the dtype only."""
    rows = BLOCK_BYTES // (n_features * compute_dtype(dtype).itemsize)
    return int(min(max(2 ** (max(rows, 1).bit_length() - 1), LEAST_BLOCK_ROWS), MOST_BLOCK_ROWS))


@dataclass(frozen=True)
class Rows:
    """The input as canonical row blocks.

    Attributes
    ----------
    blocks : dask array (n, d)
        Raw values; every block but the last has `block_rows` rows.
    missing : {"raise", "label"}
        What rows with NaN or infinity get.
    chunked : bool
        Whether the user's input was chunked, so that outputs are to be lazy.
    sized_as : dtype, optional
        The dtype that decides the size of the blocks, when it is not their own.
    """

    blocks: da.Array
    missing: str
    chunked: bool
    sized_as: np.dtype[Any] | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows, missing ones included."""
        return int(self.blocks.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.blocks.shape[1])

    @property
    def block_rows(self) -> int:
        """Rows of a full block."""
        return block_rows(self.n_features, self.blocks.dtype if self.sized_as is None else self.sized_as)


def is_chunked(X: Any) -> bool:
    """Whether `X` is chunked input: dask array or dataframe, zarr.Array, a path, or an xarray object over dask."""
    return (
        isinstance(X, str | PathLike | da.Array | zarr.Array | zarr.Group)
        or hasattr(X, "to_dask_array")
        or (type(X).__module__.startswith("xarray") and isinstance(getattr(X, "data", None), da.Array))
    )


def check_rows(X: Any, missing: str = "raise", sized_as: np.dtype[Any] | None = None) -> Rows:
    """Bring the input into canonical row blocks; rejects what has the wrong shape or type before any pass.

    Parameters
    ----------
    X : NumPy array, dask array or dataframe, zarr.Array, or a path to one, (n, d)
    missing : {"raise", "label"}
    sized_as : dtype, optional
        Decides the size of the blocks instead of the input's own dtype.

    Raises
    ------
    ValueError
        If `X` is not a table of real numbers with at least one row and one feature, or its store cannot be read by
        the processes of the active scheduler.
    FileNotFoundError
        If `X` is a path without an array.

    Notes
    -----
    Lazy, except that the lengths of unknown chunks are counted by one computation, which is logged. The size of the
    blocks depends on d and the dtype only (`block_rows`), so every sum over blocks is the same for any chunking.
    """
    chunked = is_chunked(X)
    if isinstance(X, str | PathLike | zarr.Group):
        X = open_rows(X)  # says that a group is no array
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array()
    if type(X).__module__.startswith("xarray"):
        X = X.data
    check_dense(X, fill="NaN" if sized_as is None else "-1")
    if isinstance(X, da.Array):
        check_table(X.shape, X.dtype)  # before rows are counted
        X = _count_rows(X)
    elif not isinstance(X, zarr.Array):
        X = np.asarray(X)
    check_table(X.shape, X.dtype)
    size = block_rows(X.shape[1], X.dtype if sized_as is None else sized_as)
    if isinstance(X, zarr.Array):
        array = _read_zarr(X, size)
    elif isinstance(X, da.Array):
        array = X
    else:
        # Without a name dask would hash the whole array.
        array = da.from_array(X, chunks=(size, X.shape[1]), name=False)
    canonical = (size, X.shape[1])
    if array.chunks != da.core.normalize_chunks(canonical, X.shape, dtype=X.dtype):
        array = array.rechunk(canonical, method="tasks")  # never "p2p", which stalls where workers come and go
    return Rows(array, missing, chunked, sized_as)


def _count_rows(X: da.Array) -> da.Array:
    """The same array with known chunk lengths."""
    if X.ndim != 2 or not any(np.isnan(length) for axis in X.chunks for length in axis):
        return X
    n_columns = X.shape[1]
    if np.isnan(n_columns):
        raise ValueError(f"X must have a known number of features, got chunks {X.chunks}")
    first = X.blocks[:, 0] if X.numblocks[1] > 1 else X
    lengths = [found["rows"] for found in compute(map_to_objects(_length, first, name="dc-count"))[0]]
    logger.info("counted the rows of %d chunks of unknown length: %d rows", len(lengths), sum(lengths))
    return X.map_blocks(_same, dtype=X.dtype, meta=np.empty((0, 0), X.dtype), chunks=(tuple(lengths), X.chunks[1]))


def _length(block: NDArray[Any], number: int) -> dict[str, Any]:
    return {"rows": len(block)}


def _same(block: NDArray[Any]) -> NDArray[Any]:
    return block


def _read_zarr(array: zarr.Array[Any], size: int) -> da.Array:
    """Lazy reads of a store: straight into canonical blocks, or whole chunks first when those are much larger."""
    if isinstance(array.store, zarr.storage.MemoryStore) and not runs_in_process():
        raise ValueError(
            "X lives in a zarr MemoryStore, which the worker processes of the active scheduler cannot read; "
            "save it to a folder and pass the path"
        )
    stored = (array.shards or array.chunks)[0]
    rows = size if stored <= 2 * size else stored
    return da.from_array(array, chunks=(rows, array.shape[1]), name=f"dc-read-{da.core.tokenize(_token(array), rows)}")


def _token(array: zarr.Array[Any]) -> tuple[str, ...]:
    import uuid

    # The content of a store can change under the same path, so no name may outlive this call.
    return (str(array.store_path), uuid.uuid4().hex)


@dataclass(frozen=True)
class RowForm:
    """How raw rows become the numbers that all stages compute with; part of the model.

    Attributes
    ----------
    shift : (d,) float64
    scale : float
    unit_length : bool
    """

    shift: NDArray[np.float64]
    scale: float
    unit_length: bool

    def prepare(self, block: NDArray[Any]) -> NDArray[np.floating]:
        """Form of finite rows (n, d) for computing."""
        return prepare_rows(block, self.shift, self.scale, self.unit_length)

    def prepare_points(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """The same form of representatives or centres (p, d), in float64."""
        prepared = prepare_rows(np.asarray(points, np.float64), self.shift, self.scale, self.unit_length)
        return prepared.astype(np.float64, copy=False)

    def restore(self, points: NDArray[np.floating]) -> NDArray[np.float64]:
        """Points (p, d) in the units of the input."""
        restored: NDArray[np.float64] = points.astype(np.float64)
        return restored if self.unit_length else restored / self.scale + self.shift


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
        pieces = map_to_objects(_take_valid, rows.blocks, name="dc-sample", ranks=ranks, offsets=offsets)
        sample = np.concatenate([part["sample"] for part in compute(pieces)[0]])
    else:
        sample = np.concatenate([part["sample"] for part in found])
    minimum = np.min([part["minimum"] for part in found], axis=0)
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


def check_weights(sample_weight: Any, rows: Rows) -> da.Array | None:
    """Sample weights as a dask array (n,) float64, chunked like the rows; their values are checked by `scan`.

    Raises
    ------
    ValueError
        If the length or the dtype does not fit.
    """
    if sample_weight is None:
        return None
    if not isinstance(sample_weight, da.Array):
        sample_weight = np.asarray(sample_weight)
        if sample_weight.ndim == 0:
            sample_weight = np.full(rows.n_samples, sample_weight)
        if sample_weight.shape == (rows.n_samples,):
            sample_weight = da.from_array(sample_weight, chunks=(rows.block_rows,), name=False)
    if sample_weight.shape != (rows.n_samples,):
        raise ValueError(f"sample_weight.shape must be ({rows.n_samples},), got {sample_weight.shape}")
    if sample_weight.dtype.kind not in "biuf":
        raise ValueError(f"sample_weight must hold real numbers, got dtype {sample_weight.dtype}")
    return sample_weight.astype(np.float64).rechunk((rows.blocks.chunks[0],), method="tasks")


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
    parts = compute(map_to_objects(_draw_block, rows.blocks, name="dc-sample", weights=weights, size=size, seed=seed))[
        0
    ]
    keys = np.concatenate([part["keys"] for part in parts])
    chosen = np.sort(np.argsort(-keys, kind="stable")[:size])
    sample = np.concatenate([part["rows"] for part in parts])[chosen]
    if n_weighted > size:
        return sample, np.empty(0)
    return sample, np.concatenate([part["weights"] for part in parts])[chosen]


def _draw_block(block: NDArray[Any], number: int, weights: NDArray[np.float64], size: int, seed: int) -> dict[str, Any]:
    uniforms = np.random.default_rng(np.random.SeedSequence([seed, number])).random(len(block))
    finite = finite_rows(block)
    able = np.flatnonzero(weights[:, 0] > 0 if finite is None else (weights[:, 0] > 0) & finite)
    keys = np.log1p(-uniforms[able]) / weights[able, 0]
    best = np.sort(np.argsort(-keys, kind="stable")[:size])
    return {"keys": keys[best], "rows": np.asarray(block)[able[best]], "weights": weights[able[best], 0]}


def _scan_blocks(
    rows: Rows, ranks: NDArray[np.int64], weights: da.Array | None, fingerprint: bool
) -> list[dict[str, Any]]:
    parts = map_to_objects(
        _scan_block,
        rows.blocks,
        name="dc-check",
        weights=weights,
        ranks=ranks,
        size=rows.block_rows,
        fingerprint=fingerprint,
    )
    return list(compute(parts)[0])


def _scan_block(
    block: NDArray[Any],
    number: int,
    ranks: NDArray[np.int64],
    size: int,
    fingerprint: bool,
    weights: NDArray[np.float64] | None = None,
) -> dict[str, Any]:
    block = np.asarray(block)
    minimum = np.full(block.shape[1], np.inf)
    maximum = np.full(block.shape[1], -np.inf)
    n_finite, row, column = scan_rows(np.ascontiguousarray(block, dtype=compute_dtype(block.dtype)), minimum, maximum)
    low, high = np.searchsorted(ranks, [number * size, number * size + len(block)])
    digest = hashlib.blake2b(digest_size=16)
    if fingerprint:
        # Native byte order; a long double has bytes without meaning.
        dtype = block.dtype.newbyteorder("=") if block.dtype.itemsize <= 8 else np.dtype(np.float64)
        digest.update(np.ascontiguousarray(block, dtype=dtype).data)
        if weights is not None:
            digest.update(np.ascontiguousarray(weights).data)
    finite = None if weights is None else finite_rows(block)
    return {
        "finite": n_finite,
        "row": row,
        "column": column,
        "value": float(block[row, column]) if row >= 0 else 0.0,
        "minimum": minimum,
        "maximum": maximum,
        "sample": block[ranks[low:high] - number * size],
        "digest": digest.digest(),
        "bad_weights": weights is not None and not (np.isfinite(weights).all() and (weights >= 0).all()),
        "weighted": 0 if weights is None else int((weights[:, 0][... if finite is None else finite] > 0).sum()),
    }


def _take_valid(
    block: NDArray[Any], number: int, ranks: NDArray[np.int64], offsets: NDArray[np.int64]
) -> dict[str, Any]:
    low, high = np.searchsorted(ranks, offsets[number : number + 2])
    mask = finite_rows(block)
    valid = np.arange(len(block)) if mask is None else np.flatnonzero(mask)
    return {"sample": np.asarray(block)[valid[ranks[low:high] - offsets[number]]]}


def _raise_first_bad(rows: Rows, found: list[dict[str, Any]]) -> None:
    for number, part in enumerate(found):
        if part["row"] >= 0:
            raise _bad_value(part["value"], number * rows.block_rows + part["row"], part["column"])


def _bad_value(value: float, row: int, column: int) -> ValueError:
    name = "NaN" if np.isnan(value) else "infinity (inf)"
    return ValueError(
        f"X contains {name} at row {row}, column {column}; pass missing='label' to give such rows the label -1"
    )


def check_finite_block(block: NDArray[Any], first_row: int) -> None:
    """Raise the error that names the first value of a block that is NaN or infinite."""
    finite = finite_rows(block)
    if finite is not None:
        row = int(np.argmin(finite))
        column = int(np.argmin(np.isfinite(block[row])))
        raise _bad_value(float(block[row, column]), first_row + row, column)


def _choose_form(
    sample: NDArray[Any], minimum: NDArray[np.float64], maximum: NDArray[np.float64], unit_length: bool
) -> RowForm:
    dtype = compute_dtype(sample.dtype)
    n_features = sample.shape[1]
    if unit_length:
        return RowForm(np.zeros(n_features), 1.0, True)
    few = sample[:: max(1, len(sample) // SHIFT_ROWS)].astype(dtype)
    middle = (len(few) - 1) // 2  # the lower median, which is a value of the data: a mean of two can overflow
    shift = np.partition(few, middle, axis=0)[middle].astype(np.float64)
    with np.errstate(over="ignore"):
        largest = np.maximum(maximum - shift, shift - minimum).max()
    if not np.isfinite(largest):
        raise ValueError("X spans more than the range of float64; scale it first")
    most = 120 if dtype == np.float32 else 1000
    scale = 1.0 if largest == 0 else float(2.0 ** -int(np.clip(np.frexp(largest)[1], -most, most)))
    return RowForm(shift, scale, False)
