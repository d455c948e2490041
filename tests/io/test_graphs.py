"""What the graph of a dask array tells of what its chunks are made from."""

import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster.io.graphs import bytes_behind, bytes_inside, cached_bytes

ROWS = da.zeros((1000, 6), chunks=(100, 6))


@pytest.mark.parametrize(
    ("array", "rows"),
    [
        (ROWS, 100),
        (ROWS + 1, 100),
        (ROWS.rechunk((300, 6)), 300),
        (ROWS.rechunk((100, 2)), 100),
        (ROWS + ROWS[::-1], 200),
        (da.from_array(np.zeros((1000, 6)), chunks=(250, 6)), 250),
    ],
    ids=["plain", "mapped", "merged", "columns", "two sources", "NumPy"],
)
def test_rows_behind_a_chunk(array, rows):
    assert bytes_behind(array) == rows * 6 * 8


def test_a_store_is_read_by_its_chunks(tmp_path):
    zarr.create_array(str(tmp_path / "x.zarr"), shape=(1000, 6), chunks=(100, 6), dtype="f8")
    assert bytes_behind(da.from_zarr(str(tmp_path / "x.zarr"))) == 100 * 6 * 8


def test_the_plan_has_the_partitions_of_a_dataframe_on_their_way():
    """Arrow's table and pandas' copies of it, and what lies in the graph: of one partition of 16 MB."""
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame = pd.DataFrame(np.zeros((1_000_000, 4), np.float32), columns=list("abcd"))
    plans = [dc.KMeans(2).plan(X).peak_bytes for X in (da.zeros(frame.shape, dtype="f4", chunks=(1_000_000, 4)),)]
    plans.append(dc.KMeans(2).plan(dd.from_pandas(frame, npartitions=1)).peak_bytes)
    partition = frame.memory_usage(index=False).sum()
    assert plans[1] - plans[0] >= 5 * partition
    lazy = da.from_array(frame.to_numpy(), chunks=(1000, 4))
    assert bytes_inside(lazy) == partition
    assert bytes_inside(da.zeros((1000, 4))) == 0


def test_pixels_of_a_raster_need_a_strip_of_it():
    """Chunks of 100 x 100 in a raster of 400 columns: no chunk of pixels is made of less than four of each band."""
    pixels = da.zeros((6, 200, 400), chunks=(1, 100, 100)).reshape(6, -1).T
    assert set(pixels.chunks[0]) == {100 * 100}
    assert bytes_behind(pixels) == 6 * 4 * 100 * 100 * 8


def test_the_plan_has_the_strip_and_the_index():
    """Of a raster that is stacked into pixels."""
    xarray = pytest.importorskip("xarray")
    raster = da.zeros((6, 2000, 4000), chunks=(1, 1000, 1000), dtype=np.float32)
    stacked = xarray.DataArray(raster, dims=("band", "y", "x")).stack(pixel=("y", "x")).transpose("pixel", "band")
    model, n_samples = dc.KMeans(3), 2000 * 4000
    plain = da.zeros((n_samples, 6), chunks=(1_000_000, 6), dtype=np.float32)
    more = model.plan(stacked).peak_bytes - model.plan(plain).peak_bytes
    index = stacked.indexes["pixel"].nbytes
    strip = 6 * 4 * 1000 * 1000 * 4
    assert more >= index + 2 * strip


@pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")  # affine, of rasterio
@pytest.mark.parametrize(("limit", "cached"), [(2**20, 2**20), (3_000_000, 4 * 512 * 512 * 2)], ids=["limit", "file"])
def test_the_plan_has_what_gdal_caches_of_a_scene(limit, cached, tmp_path, monkeypatch):
    """Each process keeps up to 5 % of the machine's memory of the files that it reads, or what the user allows."""
    xarray, rioxarray = pytest.importorskip("xarray"), pytest.importorskip("rioxarray")
    monkeypatch.setattr("rasterio.env.get_gdal_config", lambda name, **_: limit if name == "GDAL_CACHEMAX" else None)
    scene = xarray.DataArray(np.zeros((4, 512, 512), np.int16), dims=("band", "y", "x"))
    scene = scene.assign_coords(y=np.arange(512.0), x=np.arange(512.0))
    scene.rio.to_raster(tmp_path / "scene.tif", tiled=True)
    opened = rioxarray.open_rasterio(tmp_path / "scene.tif", chunks={"y": 256, "x": 256})
    assert cached_bytes(opened.data) == cached
    in_memory = opened.copy(data=da.zeros(opened.shape, chunks=opened.chunks, dtype=opened.dtype))
    more = dc.KMeans(2).plan(opened).peak_bytes - dc.KMeans(2).plan(in_memory).peak_bytes
    assert more == cached
