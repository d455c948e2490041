"""A random share of the rows, block by block: what one base clusterer sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..io.inputs import Rows
from ..kernels.rows import finite_rows
from ..runtime.passes import mapped
from ..runtime.pieces import recut
from ..runtime.seeding import draw_ranks, stream

__all__ = ["RowSample", "rows_seen"]


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
        labels = recut(labels, (self.counts,))
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
    counts = mapped(_count_seen, rows.blocks, name="dc-count", samples=samples)
    return int(sum(part["counts"] for part in counts).min())


def _count_seen(block: NDArray[Any], number: int, samples: list[RowSample]) -> dict[str, Any]:
    finite = finite_rows(block)
    seen = np.ones(len(block), bool) if finite is None else finite
    return {"counts": np.array([int(seen[sample.in_block(number)].sum()) for sample in samples])}


def _take_rows(block: Any, sample: RowSample, block_id: tuple[int, ...] = (0,)) -> Any:
    return block[sample.in_block(block_id[0])]


def _spread_rows(block: NDArray[Any], sample: RowSample, block_id: tuple[int, ...] = (0,)) -> NDArray[Any]:
    number = block_id[0]
    labels = np.full(sample.lengths[number], -1, block.dtype)
    labels[sample.in_block(number)] = block
    return labels
