"""What workers have from the beginning that are forked (see `tests.killing`)."""

import distributed.worker  # noqa: F401

from daskcluster.preload import dask_setup

dask_setup(None)
