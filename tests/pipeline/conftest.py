"""One task after the other: what these stages do with chunks is a matter of the task graph, not of threads."""

from collections.abc import Iterator

import dask
import pytest


@pytest.fixture(scope="module", autouse=True)
def _synchronous() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield
