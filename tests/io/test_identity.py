"""The identity of stored input: another one whenever its values may be others, None where nothing tells."""

from __future__ import annotations

from dataclasses import replace

import dask.array as da
import numpy as np
import zarr

from daskcluster.io.identity import identity_of
from daskcluster.io.inputs import open_source
from daskcluster.io.nodata import declared

ROWS = np.arange(40.0).reshape(20, 2)


def stored(tmp_path):
    return zarr.create_array(tmp_path / "x.zarr", data=ROWS, chunks=(5, 2))


def test_stored_rows_have_one_that_changes_with_a_chunk(tmp_path):
    array = stored(tmp_path)
    before = identity_of(open_source(str(tmp_path / "x.zarr")))
    assert before is not None
    assert identity_of(open_source(str(tmp_path / "x.zarr"))) == before
    array[7] = -1
    assert identity_of(open_source(str(tmp_path / "x.zarr"))) != before


def test_functions_of_the_user_have_none(tmp_path):
    """Their names stay when their code, or what it reads, changes."""
    stored(tmp_path)
    lazy = da.from_zarr(str(tmp_path / "x.zarr"))
    assert identity_of(open_source(lazy)) is not None
    assert identity_of(open_source(lazy.rechunk((10, 2))[2:])) is not None
    assert identity_of(open_source(lazy.map_blocks(np.sqrt, dtype=float))) is None


def test_what_is_declared_as_no_data_counts(tmp_path):
    stored(tmp_path)
    source = open_source(str(tmp_path / "x.zarr"))
    found = [
        identity_of(replace(source, declared=declared("X", np.dtype(float), {"_FillValue": value}, {}, label=False)))
        for value in (5.0, 7.0)
    ]
    assert None not in found
    assert found[0] != found[1]


def test_maps_of_files_have_none(tmp_path):
    """Who writes through one changes no time of the file before its pages are written."""
    rows = np.memmap(tmp_path / "x", np.float64, "w+", shape=ROWS.shape)
    assert identity_of(open_source(rows)) is None
