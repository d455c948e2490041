"""Hypothesis strategies that several test modules draw from."""

import dask.array as da
import numpy as np
from hypothesis import strategies as st

__all__ = ["chunkings", "labelings", "pairs_of_labelings", "rechunked", "tables"]


@st.composite
def chunkings(draw: st.DrawFn, n_rows: int) -> tuple[int, ...]:
    """Row chunks of n_rows rows: one, uneven ones, single rows, and empty ones among them."""
    kind = draw(st.sampled_from(["one", "single rows", "uneven"]))
    if kind == "one" or n_rows == 0:
        return (n_rows,)
    if kind == "single rows" and n_rows <= 40:
        return (1,) * n_rows
    borders = sorted(draw(st.lists(st.integers(0, n_rows), max_size=6)))
    return tuple(np.diff([0, *borders, n_rows]).tolist())


def labelings(n_rows: int, n_labels: int = 5) -> st.SearchStrategy[np.ndarray]:
    """Labels (n_rows,) int64 from -1 to n_labels - 2."""
    return st.lists(st.integers(-1, n_labels - 2), min_size=n_rows, max_size=n_rows).map(
        lambda labels: np.array(labels, np.int64)
    )


@st.composite
def pairs_of_labelings(draw: st.DrawFn, min_rows: int = 0, max_rows: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Two labelings of the same rows, independent or with much in common."""
    n_rows = draw(st.integers(min_rows, max_rows))
    first = draw(labelings(n_rows, draw(st.integers(1, 6))))
    second = draw(labelings(n_rows, draw(st.integers(1, 6))))
    if draw(st.booleans()):
        changed = np.array(draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows)), bool)
        second = np.where(changed, second, first)
    return first, second


def tables(largest: int = 30) -> st.SearchStrategy[np.ndarray]:
    """Contingency tables of up to 5 by 5 labels; rows, columns or all may be empty."""
    shapes = st.tuples(st.integers(1, 5), st.integers(1, 5))
    return shapes.flatmap(
        lambda shape: st.lists(st.integers(0, largest), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
            lambda counts: np.array(counts, np.int64).reshape(shape)
        )
    )


@st.composite
def rechunked(draw: st.DrawFn, array: np.ndarray) -> da.Array:
    """The array as a dask array in drawn row chunks."""
    chunks = draw(chunkings(len(array)))
    return da.from_array(array, chunks=(chunks, *((length,) for length in array.shape[1:])))
