"""xarray's grids: the labels of their pixels, whatever the order of dimensions, the chunks and the form."""

from __future__ import annotations

import importlib.util
import logging
import pickle
from typing import Any

import dask.array as da
import numpy as np
import pytest

import daskcluster as dc
from daskcluster.io import rasters
from daskcluster.io.inputs import block_rows, cut_rows, open_source
from daskcluster.io.rasters import grid_rows
from tests.cli.calls import as_json, fail, succeed
from tests.slow import slowly

xarray: Any = pytest.importorskip("xarray")

pytestmark = [
    pytest.mark.usefixtures("small_blocks"),
    # Of xarray, which writes texts and consolidated metadata in format 3.
    pytest.mark.filterwarnings("ignore:Consolidated metadata", "ignore:The data type"),
    pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning"),  # affine, of rasterio
]

RNG = np.random.default_rng(0)
HEIGHT, WIDTH, BANDS = 40, 30, ["blue", "green", "red"]
#: Three plains of other brightness, band by band.
VALUES = (RNG.random((3, HEIGHT, WIDTH)) + 4 * (np.arange(HEIGHT) // 14)[None, :, None]).astype(np.float32)
ROWS = VALUES.reshape(3, -1).T.copy()


def scene(values: np.ndarray = VALUES, **encoding: Any) -> Any:
    coords = {
        "band": BANDS,
        "y": 10.0 * np.arange(HEIGHT),
        "x": np.arange(WIDTH),
        "lat": (("y", "x"), RNG.random((HEIGHT, WIDTH))),
        "height": 3.0,
    }
    attributes = {"crs": "EPSG:32633", "units": "W m-2"}
    found = xarray.DataArray(values, dims=("band", "y", "x"), coords=coords, attrs=attributes, name="light")
    found.encoding.update(encoding)
    return found


def kmeans(**parameters: Any) -> dc.KMeans:
    return dc.KMeans(3, random_state=0, **parameters)


def uspec() -> dc.USPEC:
    return dc.USPEC(3, n_representatives=40, random_state=0)


def assert_labels(found: Any, expected: Any) -> None:
    assert isinstance(found, xarray.DataArray)
    assert (found.name, found.dtype) == ("labels", np.int32)
    np.testing.assert_array_equal(found.values.ravel(), expected)


FORMS = {
    "band first": lambda X: X,
    "band last": lambda X: X.transpose("y", "x", "band"),
    "band between": lambda X: X.transpose("y", "band", "x"),
    "band by band": lambda X: X.chunk(band=1, y=11, x=13),
    "tiles": lambda X: X.chunk(y=7, x=8),
    "tiles, band last": lambda X: X.transpose("y", "x", "band").chunk(y=40, x=1, band=2),
    "variables": lambda X: X.to_dataset("band"),
    "variables, chunked": lambda X: X.to_dataset("band").chunk(y=9, x=30),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", [kmeans, *slowly(uspec)])
def test_labels_are_those_of_the_rows_on_the_grid(form, make):
    X = FORMS[form](scene())
    model, expected = make().fit(X), make().fit(ROWS)
    labels = model.labels_
    assert_labels(labels, expected.labels_)
    assert labels.dims == ("y", "x")
    assert set(labels.coords) == {"y", "x", "lat", "height"}
    xarray.testing.assert_equal(labels.lat.drop_vars("lat").compute(), X.lat.drop_vars("lat").compute())
    assert list(model.feature_names_in_) == BANDS
    assert labels.attrs["flag_meanings"] == "cluster_0 cluster_1 cluster_2"
    assert "units" not in labels.attrs
    chunks = dict(X.chunksizes)
    assert dict(labels.chunksizes) == {dim: chunks[dim] for dim in ("y", "x") if chunks}
    assert isinstance(labels.data, da.Array if chunks else np.ndarray)
    xarray.testing.assert_identical(model.predict(X).compute(), labels.compute())
    points = model.transform(X)
    assert points.dims == ("y", "x", "component")
    np.testing.assert_array_equal(points.values.reshape(len(ROWS), -1), expected.transform(ROWS))
    assert not chunks or not hasattr(pickle.loads(pickle.dumps(model)), "labels_")


def test_fit_predict_and_fit_transform_answer_on_the_grid():
    X = scene().chunk(y=7, x=8)
    assert_labels(kmeans().fit_predict(X, sample_dims=("y", "x")), kmeans().fit(ROWS).labels_)
    model = kmeans()
    assert model.fit_transform(X, feature_dim="band").dims == ("y", "x", "component")
    assert model.labels_.dims == ("y", "x")


def test_rows_run_in_the_order_of_the_sample_dimensions():
    X = scene().chunk(y=7, x=8)
    expected = kmeans().fit(VALUES.transpose(2, 1, 0).reshape(-1, 3)).labels_
    labels = kmeans().fit(X, sample_dims=("x", "y")).labels_
    assert labels.dims == ("x", "y")
    assert_labels(labels, expected)


def test_time_is_one_more_sample_dimension():
    series = np.stack([VALUES, VALUES[:, ::-1] + 1])
    X = xarray.DataArray(series, dims=("time", "band", "y", "x")).chunk(time=1, y=17, x=9)
    labels = kmeans().fit(X).labels_
    assert labels.dims == ("time", "y", "x")
    assert_labels(labels, kmeans().fit(np.moveaxis(series, 1, -1).reshape(-1, 3)).labels_)


def test_features_first_in_memory_are_not_copied():
    found = grid_rows(scene().drop_vars("band"))
    assert found is not None
    assert np.shares_memory(found.rows, VALUES)


def test_every_chunk_of_the_raster_is_read_once_a_pass():
    reads: list[Any] = []

    def read(block: np.ndarray, block_info: Any = None) -> np.ndarray:
        reads.append(block_info[0]["chunk-location"])
        return block

    tiles = da.from_array(VALUES, chunks=(1, 11, 13)).map_blocks(read, dtype=np.float32, meta=np.empty((0, 0, 0), "f4"))
    found = grid_rows(xarray.DataArray(tiles, dims=("band", "y", "x")))
    assert found is not None
    rows = cut_rows(open_source(found.rows))
    assert rows.blocks.numblocks[0] == -(-len(ROWS) // block_rows(3, np.dtype(np.float32))) > 1
    np.testing.assert_array_equal(rows.blocks.compute(), ROWS)
    assert sorted(reads) == sorted(np.ndindex(3, 4, 3))


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("form", ["nan", "fill"])
def test_no_data_is_minus_one(form, chunked):
    rows = ROWS.astype(np.float64).round(2) * 100
    rows[[0, 77, len(rows) - 1]] = np.nan
    values = rows.T.reshape(VALUES.shape)
    X = scene(values) if form == "nan" else scene(np.nan_to_num(values, nan=-9).astype(np.int16), _FillValue=-9)
    X = X.chunk(y=9, x=9) if chunked else X
    labels = kmeans(missing="label").fit(X).labels_
    expected = kmeans(missing="label").fit(rows if form == "nan" else rows.astype(np.float32)).labels_
    assert_labels(labels, expected)
    assert (expected == -1).sum() == 3
    assert labels.attrs["flag_values"].tolist() == [-1, 0, 1, 2]
    with pytest.raises(ValueError, match="missing"):
        kmeans().fit(X)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_stored_labels_open_as_integers_with_flags(zarr_format, tmp_path):
    values = VALUES.copy()
    values[:, 3, 4] = np.nan
    labels = kmeans(missing="label").fit(scene(values).chunk(y=20, x=15)).labels_
    labels.to_zarr(tmp_path / "labels.zarr", zarr_format=zarr_format)
    again = xarray.open_zarr(tmp_path / "labels.zarr")["labels"]
    assert again.dtype == np.int32
    xarray.testing.assert_equal(again.compute(), labels.compute())
    assert int(again[3, 4]) == -1
    assert list(again.attrs["flag_values"]) == [-1, 0, 1, 2]
    assert again.attrs["crs"] == "EPSG:32633"


@pytest.mark.parametrize("chunked", [False, True])
def test_another_scene_has_the_same_features_by_name(chunked):
    model = kmeans().fit(scene())
    other = scene()[:, 5:25, ::-1]
    other = other.chunk(y=6) if chunked else other
    assert_labels(model.predict(other), model.predict(rows_of(other)).ravel())
    assert model.predict(other).x.values.tolist() == other.x.values.tolist()
    variables = other.to_dataset("band")
    assert_labels(model.predict(variables), model.predict(other).values.ravel())
    with pytest.raises(ValueError, match=r"same order as they were in fit: blue, green, red; .*ds\[names\]"):
        model.predict(variables[BANDS[::-1]])
    names = list(model.feature_names_in_)
    assert_labels(model.predict(other[::-1].sel(band=names)), model.predict(other).values.ravel())
    with pytest.raises(ValueError, match="nir"):
        model.predict(variables.rename(red="nir"))


def rows_of(X: Any) -> Any:
    import pandas

    return pandas.DataFrame(X.values.reshape(3, -1).T, columns=BANDS)


def test_weights_lie_on_the_grid_in_any_order_of_dimensions():
    weights = RNG.random((HEIGHT, WIDTH))
    given = xarray.DataArray(weights, dims=("y", "x")).transpose("x", "y")
    expected = kmeans().fit(ROWS, sample_weight=weights.ravel())
    for X, w in ((scene(), given), (scene().chunk(y=7, x=8), given.chunk(x=7))):
        model = kmeans().fit(X, sample_weight=w)
        assert_labels(model.labels_, expected.labels_)
        assert model.inertia_ == expected.inertia_
    with pytest.raises(ValueError, match=r"sample_weight must have the dimensions \('y', 'x'\)"):
        kmeans().fit(scene(), sample_weight=given.rename(x="column"))
    with pytest.raises(ValueError, match="sample_weight must have the coordinates of X along 'y'"):
        kmeans().fit(scene(), sample_weight=given.assign_coords(y=np.arange(HEIGHT)))


def test_what_is_guessed_is_said(caplog):
    with caplog.at_level(logging.INFO, logger="daskcluster"):
        kmeans().plan(scene())
    assert "X: features along 'band', samples along ('y', 'x')" in caplog.text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "not clear which one holds the features; say feature_dim="),
        ({"sample_dims": ("v",)}, "not clear which one holds the features"),
        ({"sample_dims": ("v", "z")}, "sample_dims must name dimensions of X.*no dimension 'z'"),
        ({"sample_dims": ("v", "v")}, "one dimension twice"),
        ({"feature_dim": "band"}, "feature_dim must name dimensions of X.*no dimension 'band'"),
        ({"sample_dims": ("v",), "feature_dim": "u"}, "together must name each dimension of X"),
    ],
)
def test_unclear_dimensions_are_one_error(given, message):
    X = xarray.DataArray(VALUES, dims=("u", "v", "w"))
    with pytest.raises(ValueError, match=message):
        kmeans().fit(X, **given)


def test_keywords_need_named_dimensions():
    with pytest.raises(TypeError, match="sample_dims and feature_dim name dimensions of an xarray"):
        kmeans().fit(ROWS, sample_dims=("y", "x"))


def test_variables_lie_along_the_same_dimensions():
    ds = scene().to_dataset("band")
    with pytest.raises(ValueError, match="got 'line' along"):
        kmeans().fit(ds.assign(line=("y", np.arange(HEIGHT))))
    with pytest.raises(ValueError, match="features of a Dataset are its variables"):
        kmeans().fit(ds, feature_dim="band")


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
def test_command_line(suffix, tmp_path):
    path = tmp_path / f"scene{suffix}"
    if suffix == ".nc":
        pytest.importorskip("h5netcdf")
        scene().to_netcdf(path, engine="h5netcdf")
    else:
        scene().chunk(y=20, x=15).to_zarr(path)
    labels, model = tmp_path / "labels.zarr", tmp_path / "model.zarr"
    fitting = ("fit", path, "-k", 3, "--algorithm", "kmeans", "--labels", labels)
    found = as_json(*fitting, "--model", model)
    assert (found["n_samples"], found["n_features"]) == (HEIGHT * WIDTH, 3)
    opened = xarray.open_zarr(labels)["labels"]
    assert_labels(opened, kmeans().fit(ROWS).labels_)
    assert opened.y.values.tolist() == scene().y.values.tolist()
    again = tmp_path / "again.zarr"
    predicting = ("predict", path, "--model", model, "--labels", again, "--feature-dim", "band")
    assert as_json(*predicting)["cluster_sizes"] == found["cluster_sizes"]
    assert_labels(xarray.open_zarr(again)["labels"], opened.values.ravel())
    assert "1,200 rows x 3 features" in succeed("plan", path, "-k", 3, "--sample-dims", "y,x").stdout
    assert "no variable 'dark'; it has light" in fail(2, "plan", path, "-k", 3, "--variable", "dark")
    succeed(*fitting, "--overwrite")


@pytest.mark.parametrize("stored", [{}, {"chunksizes": (1, 20, 15)}], ids=["in one piece", "chunked"])
def test_a_large_variable_of_a_file_is_read_in_pieces(stored, tmp_path, monkeypatch):
    pytest.importorskip("h5netcdf")
    path = tmp_path / "scene.nc"
    X = scene().drop_encoding()
    X.to_netcdf(path, engine="h5netcdf", encoding={"light": stored})
    monkeypatch.setattr(rasters, "WHOLE_BYTES", 1000)
    monkeypatch.setattr(rasters, "PIECE_BYTES", 4 * WIDTH * 8)
    names = set()
    for _ in range(2):
        with xarray.open_dataset(path, engine="h5netcdf") as opened:
            found = grid_rows(opened["light"])
            assert found is not None
            assert found.grid.chunks is not None
            assert found.grid.chunks[0][0] == (20 if stored else 8)
            names.add(rasters.cut_stored(opened["light"]).data.name)
            assert not opened["light"].variable._in_memory
            np.testing.assert_array_equal(found.rows, ROWS)
    assert len(names) == 1
    about = as_json("info", path)["variables"]["light"]
    assert about["chunks"] == ([1, 20, 15] if stored else [1, 8, WIDTH])


def test_partial_labels_on_the_grid(tmp_path):
    scene().chunk(y=9).drop_vars("band").to_zarr(tmp_path / "scene.zarr")
    y = np.where(RNG.random((HEIGHT, WIDTH)) < 0.1, np.arange(HEIGHT)[:, None] // 14, -1).astype(np.int32)
    known = xarray.DataArray(y, dims=("y", "x"), coords={"y": scene().y, "x": scene().x}, name="classes")
    known.transpose("x", "y").to_dataset().to_zarr(tmp_path / "y.zarr")
    fit = ["fit", tmp_path / "scene.zarr", "-k", 3, "--algorithm", "fastcsc", "--labels", tmp_path / "l.zarr"]
    fit += ["--representatives", 60, "--seed", 0]
    succeed(*fit, "--partial-labels", tmp_path / "y.zarr")
    expected = dc.FastCSC(3, n_representatives=60, random_state=0).fit(ROWS, y.ravel()).labels_
    with xarray.open_zarr(tmp_path / "l.zarr") as labels:
        assert_labels(labels["labels"], expected)
    known[1:].to_dataset().to_zarr(tmp_path / "other.zarr")
    message = fail(2, *fit, "--overwrite", "--partial-labels", tmp_path / "other.zarr")
    assert "--partial-labels must have the shape (40, 30) of the pixels, got (39, 30)" in message


def test_a_chunk_of_one_cluster_is_not_missing(tmp_path):
    plains = scene(np.repeat(np.arange(HEIGHT) // 20, WIDTH).reshape(1, HEIGHT, WIDTH) + np.zeros((3, 1, 1)))
    plains.chunk(y=20).drop_vars("band").to_zarr(tmp_path / "scene.zarr")
    fit = ("fit", tmp_path / "scene.zarr", "-k", 2, "--algorithm", "kmeans", "--labels", tmp_path / "l.zarr")
    assert as_json(*fit)["cluster_sizes"] == {"0": 600, "1": 600}


@pytest.fixture
def geotiff(tmp_path):
    """Three bands of int16 with a reference system, a dozen pixels of which are no data."""
    rasterio: Any = pytest.importorskip("rasterio")
    values = (100 * VALUES).astype(np.int16)
    values[:, :3, :4] = -9999
    place = rasterio.transform.from_origin(5e5, 5.2e6, 10, 10)  # y runs down
    about = {"crs": "EPSG:32633", "transform": place, "nodata": -9999, "dtype": "int16"}
    path = tmp_path / "scene.tif"
    with rasterio.open(path, "w", driver="GTiff", height=HEIGHT, width=WIDTH, count=3, **about) as file:
        file.write(values)
    return path


@pytest.mark.parametrize("how", [{}, {"masked": True, "chunks": {"y": 7, "x": 9}}, {"band_as_variable": True}], ids=str)
def test_geotiff(how, geotiff, tmp_path):
    rioxarray: Any = pytest.importorskip("rioxarray")
    model = kmeans(missing="label").fit(rioxarray.open_rasterio(geotiff, **how))
    rows = (100 * ROWS).astype(np.int16).astype(np.float32)
    rows.reshape(HEIGHT, WIDTH, 3)[:3, :4] = np.nan
    labels = model.labels_
    assert_labels(labels, kmeans(missing="label").fit(rows).labels_)
    assert (labels.values[:3, :4] == -1).all()
    labels.rio.to_raster(tmp_path / "labels.tif")
    again = rioxarray.open_rasterio(tmp_path / "labels.tif")[0]
    np.testing.assert_array_equal(again, labels)
    assert (again.dtype, again.rio.crs) == (np.int32, "EPSG:32633")
    assert again.rio.transform() == rioxarray.open_rasterio(geotiff).rio.transform()


def test_geotiff_on_the_command_line(geotiff, tmp_path):
    rioxarray: Any = pytest.importorskip("rioxarray")
    fit = ("fit", geotiff, "-k", 3, "--algorithm", "kmeans", "--missing", "label", "--labels", tmp_path / "l.zarr")
    assert as_json(*fit)["cluster_sizes"]["-1"] == 12
    expected = kmeans(missing="label").fit(rioxarray.open_rasterio(geotiff)).labels_
    with xarray.open_zarr(tmp_path / "l.zarr", decode_coords="all") as labels:
        assert_labels(labels["labels"], expected.values.ravel())
        assert labels["labels"].rio.crs == "EPSG:32633"
    about = as_json("info", geotiff)
    assert (about["kind"], about["shape"]) == ("raster", [HEIGHT * WIDTH, 3])
    assert about["dims"] == {"band": 3, "y": HEIGHT, "x": WIDTH}
    text = succeed("info", tmp_path / "l.zarr").stdout
    assert "(y, x) 40 x 30 int32" in text
    assert "spatial_ref " not in text


def test_files_say_what_reads_them(tmp_path):
    (tmp_path / "scene.tif").write_bytes(b"II*")
    if importlib.util.find_spec("rioxarray") is None:
        assert "pip install 'daskcluster[raster]'" in fail(2, "plan", tmp_path / "scene.tif", "-k", 3)
    table = tmp_path / "table.zarr"
    da.from_array(ROWS).to_zarr(table)
    assert "are for rasters that xarray opens" in fail(2, "plan", table, "-k", 3, "--feature-dim", "band")
    scene().chunk().drop_vars("band").to_zarr(tmp_path / "scene.zarr")
    scaled = ("fit", tmp_path / "scene.zarr", "-k", 3, "--labels", tmp_path / "l.zarr", "--scale", "standard")
    assert "--scale is not for rasters" in fail(2, *scaled)


def every_estimator() -> list[Any]:
    """One of each that clusters rows, at a small size."""
    graph: dict[str, Any] = {"n_representatives": 60, "random_state": 0}
    return [
        dc.USPEC(3, **graph),
        dc.USENC(3, n_base_clusterings=3, n_graphs=1, k_range=(3, 6), **graph),
        dc.Ensemble(3, base=dc.KMeans(3), n_base_clusterings=3, k_range=(3, 6), random_state=0),
        dc.FastCSC(3, **graph),
        dc.FastCSPML(3, n_landmarks=60, random_state=0),
    ]


@pytest.mark.parametrize("model", every_estimator(), ids=lambda model: type(model).__name__)
def test_every_estimator_answers_on_the_grid(model):
    y = np.full(HEIGHT * WIDTH, -1)
    y[::7] = np.arange(HEIGHT * WIDTH)[::7] // WIDTH // 14
    given = {"y": xarray.DataArray(y.reshape(HEIGHT, WIDTH), dims=("y", "x"))} if "CS" in type(model).__name__ else {}
    column = {name: value.values.ravel() for name, value in given.items()}
    found = model.fit(scene().chunk({"y": 16, "x": 11, "band": 2}), **given)
    labels, agreement = found.labels_, getattr(found, "agreement_", None)
    expected = model.fit(da.from_array(ROWS, chunks=(200, -1)), **column)
    assert_labels(labels, np.asarray(expected.labels_))
    if agreement is not None:
        assert (agreement.name, agreement.dims) == ("agreement", ("y", "x"))
        np.testing.assert_array_equal(agreement.values.ravel(), np.asarray(expected.agreement_))


def test_a_dataset_of_bands_is_not_one_feature():
    with pytest.raises(ValueError, match="has a dimension of features, 'band': give"):
        kmeans().fit(scene().to_dataset(name="light"))


def test_a_store_with_a_reference_system_and_other_codecs(tmp_path):
    stored = scene().assign_coords(spatial_ref=0).chunk({"y": 16}).to_dataset(name="light").reset_coords("spatial_ref")
    stored.drop_vars("band").to_zarr(tmp_path / "scene.zarr", zarr_format=2)
    succeed("fit", tmp_path / "scene.zarr", "-k", "3", "--algorithm", "kmeans", "--labels", tmp_path / "l.zarr")
    with xarray.open_zarr(tmp_path / "l.zarr") as labels:
        assert labels["labels"].dims == ("y", "x")
        assert {"lat", "x", "y", "spatial_ref"} <= set(labels.coords) | set(labels.data_vars)


def test_numbers_of_bands_are_names():
    """Another order of bands, or other bands, are other features."""
    numbered = scene().assign_coords(band=[1, 2, 3])
    model = kmeans().fit(numbered)
    for other in (numbered.isel(band=[2, 1, 0]), numbered.assign_coords(band=[4, 5, 6])):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(other)
    assert_labels(model.predict(numbered), model.labels_.values.ravel())


def test_an_image_without_features_is_no_table():
    with pytest.raises(ValueError, match="of an image, and none of features"):
        kmeans().fit(scene()[0])
    assert kmeans().fit(scene()[0].to_dataset(name="red")).labels_.dims == ("y", "x")


def test_a_stored_table_is_clustered_by_its_rows(tmp_path):
    xarray.DataArray(ROWS, dims=("sample", "feature")).to_dataset(name="X").to_zarr(tmp_path / "t.zarr")
    fit = ["fit", tmp_path / "t.zarr", "-k", "3", "--algorithm", "kmeans", "--labels", tmp_path / "l.zarr"]
    succeed(*fit)
    with xarray.open_zarr(tmp_path / "l.zarr") as labels:
        assert labels["labels"].dims == ("sample",)
        np.testing.assert_array_equal(labels["labels"].values, kmeans().fit(ROWS).labels_)


def test_the_keywords_are_where_a_user_looks_for_them():
    for name in ("fit", "plan", "predict", "transform"):
        method = getattr(dc.USPEC, name)
        parameters = method.__doc__.partition("Parameters")[2].partition("\n\n")[0]
        assert "\nsample_dims : str" in parameters, name
        assert method.__doc__.count("feature_dim : str, optional") == 1, name
    assert "sample_dims" not in dc.KMeans(3).get_metadata_routing().fit.requests
