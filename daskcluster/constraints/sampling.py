"""Rows of held blocks: drawn at random, or by their numbers; and k-means on those that were drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..pipeline.discretize import Discretize, Place
from ..pipeline.farthest import Points
from ..pipeline.kmeans import sample_size
from ..pipeline.lloyd import Centers, lloyd_over_blocks
from ..runtime.forecast import Cost, Sizes
from ..runtime.passes import mapped
from ..runtime.pieces import once
from ..runtime.seeding import draw_ranks, stream
from ..runtime.stages import Run
from ..validation import check_real

__all__ = ["DiscretizeSampled", "gather_rows", "sample_blocks"]


@dataclass(frozen=True)
class DiscretizeSampled(Discretize):
    """Steps 6 and 7 of Algorithm 1: k-means on sampled rows, then one pass over all for the clusters' order.

    Attributes
    ----------
    sample_rate : float
        Share of the rows, in (0, 1]; enlarged where that would be fewer than `sample_size` of k.
    """

    sample_rate: float = 1.0

    def check(self) -> None:
        """Refuse a share that is none."""
        super().check()
        if not 0 < check_real("sample_rate", self.sample_rate, 0.0) <= 1:
            raise ValueError(f"sample_rate must be above 0 and at most 1, got {self.sample_rate}")

    def _rate(self, n_samples: int) -> float:
        return max(self.sample_rate, sample_size(self.n_clusters) / n_samples)

    def _find(
        self, run: Run, held: da.Array, points: Points, draw: Callable[[], NDArray[Any]], place: Place | None
    ) -> Centers:
        rate = self._rate(held.shape[0])
        if rate >= 1:
            return super()._find(run, held, points, draw, place)
        sampled = run.products.rows("sampled", sample_blocks(held, rate, run.seed))[0]
        found = super()._find(run, sampled, points, draw, place)
        ordered = lloyd_over_blocks(held, points, found.centers, max_iter=1, limit=0.0, name="dc-order")
        return Centers(ordered.centers, ordered.inertia, found.n_iter)

    def cost(self, sizes: Sizes) -> Cost:
        """Passes over the sample, one over all rows to draw it and one for the order."""
        rate = self._rate(sizes.n_samples)
        if rate >= 1:
            return super().cost(sizes)
        n_sampled = int(np.ceil(rate * sizes.n_samples)) + sizes.n_blocks
        drawn = n_sampled * sizes.held_bytes
        on_sample = super().cost(replace(sizes, n_samples=n_sampled))
        over_all = sizes.over_held(on_sample.task_bytes, times=2, written_bytes=drawn, held=(drawn,))
        return on_sample + over_all

    @property
    def kept(self) -> tuple[str, ...]:
        """The sample, where one is drawn, and the centres."""
        return ("sampled", self.product)


def sample_blocks(held: da.Array, rate: float, seed: int) -> da.Array:
    """Sample the rows of each block at random, in row order: lazy, every full block gives equally many.

    Notes
    -----
    Departure from step 6, which draws n s rows of all: s of each block, so that memory does not grow with n.
    """
    sizes = tuple(int(np.ceil(rate * size)) for size in held.chunks[0])
    return held.map_blocks(
        _sample_block,
        token="dc-sampled",
        rate=rate,
        seed=seed,
        dtype=held.dtype,
        meta=np.empty((0, 0), held.dtype),
        chunks=(sizes, held.chunks[1]),
    )


def _sample_block(block: NDArray[Any], rate: float, seed: int, block_id: tuple[int, ...] = (0,)) -> NDArray[Any]:
    size = int(np.ceil(rate * len(block)))
    return np.asarray(block)[draw_ranks(stream(seed, "sampled", block_id[0]), len(block), size)]


def gather_rows(blocks: da.Array, rows: NDArray[np.int64], *, name: str) -> NDArray[Any]:
    """The rows of an array chunked by rows that have these numbers, which ascend; read where they lie.

    Parameters
    ----------
    blocks : dask array (n, ...)
    rows : (m,) int64
    name : str
        Of the tasks.

    Returns
    -------
    (m, ...)
    """
    if not len(rows):
        return np.empty((0, *blocks.shape[1:]), blocks.dtype)
    parts = mapped(
        _take_rows,
        blocks,
        name=name,
        rows=once(rows, "rows", pure=True),
        offsets=np.cumsum([0, *blocks.chunks[0]]),
    )
    return np.concatenate([part["rows"] for part in parts])


def _take_rows(block: NDArray[Any], number: int, rows: NDArray[np.int64], offsets: NDArray[np.int64]) -> dict[str, Any]:
    low, high = np.searchsorted(rows, offsets[number : number + 2])
    return {"rows": np.asarray(block)[rows[low:high] - offsets[number]]}
