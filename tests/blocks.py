"""Small canonical blocks, so that a few hundred rows are many of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

__all__ = ["blocks_of"]

#: The constant that bounds the rows of a canonical block: the one place that knows its name.
MOST_ROWS = "daskcluster.io.inputs.MOST_BLOCK_ROWS"


@contextmanager
def blocks_of(rows: int) -> Iterator[None]:
    """Canonical blocks of so many rows, a power of two; the fixture `small_blocks` is this for one test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MOST_ROWS, rows)
        yield
