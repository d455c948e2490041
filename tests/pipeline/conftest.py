"""Small canonical blocks, so that a few hundred rows are many of them."""

from collections.abc import Iterator

import dask
import pytest

from daskcluster.pipeline import rows


@pytest.fixture(scope="module")
def small_blocks() -> Iterator[None]:
    """Canonical blocks of 32 rows, computed one after the other."""
    with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="synchronous"):
        patch.setattr(rows, "MOST_BLOCK_ROWS", 32)
        yield
