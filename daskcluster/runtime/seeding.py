"""Seeds: one root integer, one stream a purpose, draws by global row number."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from ..typing import Seed

__all__ = ["draw_ranks", "root_seed", "stream"]


def root_seed(random_state: Seed) -> int:
    """The integer from which every stream of a fit derives.

    An integer stands for itself; a RandomState or Generator gives its next number; None draws a fresh one.

    Raises
    ------
    ValueError
        If `random_state` is none of these, or a negative integer.
    """
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must be >= 0, got {random_state}")
        return int(random_state)
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    from sklearn.utils import check_random_state  # takes a second, which processes that only work do without

    return int(check_random_state(random_state).randint(2**32, dtype=np.uint32))


def stream(root: int, purpose: str, *numbers: int) -> np.random.Generator:
    """Generator of one purpose; equal (root, purpose, numbers) give equal draws, whatever else was drawn."""
    return np.random.default_rng(np.random.SeedSequence([root, zlib.crc32(purpose.encode()), *numbers]))


def draw_ranks(rng: np.random.Generator, n_samples: int, size: int) -> NDArray[np.int64]:
    """Draw `size` of 0..n_samples-1 without replacement, ascending; a small draw takes little memory."""
    if size >= n_samples:
        return np.arange(n_samples, dtype=np.int64)
    return np.sort(rng.choice(n_samples, size, replace=False, shuffle=False)).astype(np.int64)
