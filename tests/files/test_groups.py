"""Arrays put into Zarr groups that others made: seen there by all readers, and nothing else is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster.io import write_array
from daskcluster.io.convert import convert

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")

N = 60
LABELS = np.arange(N, dtype=np.int32) % 3


def make_group(path: Path, zarr_format: Any, *, named: bool = True, consolidated: bool = True) -> Path:
    """A group as xarray writes them: a table of named dimensions, a coordinate, a scalar, attributes."""
    group = zarr.create_group(str(path), zarr_format=zarr_format, attributes={"title": "mine"})
    for name, shape, axes in (("X", (N, 2), ("pixel", "band")), ("pixel", (N,), ("pixel",)), ("crs", (), ())):
        more: dict[str, Any] = {}
        if named:
            more = {"dimension_names": axes} if zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": list(axes)}}
        values = np.random.default_rng(0).normal(size=shape)
        group.create_array(name, data=np.asarray(values), chunks=tuple(min(25, size) for size in shape), **more)
    if consolidated:
        zarr.consolidate_metadata(str(path), zarr_format=zarr_format)
    return path


def content(path: Path) -> dict[str, bytes]:
    """Every file under a folder."""
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def axes_of(array: zarr.Array[Any]) -> Any:
    if array.metadata.zarr_format == 3:
        return array.metadata.dimension_names
    found = array.attrs.get("_ARRAY_DIMENSIONS")
    return None if found is None else tuple(found)  # type: ignore[arg-type]


formats = pytest.mark.parametrize("zarr_format", [2, 3])


@formats
@pytest.mark.parametrize("consolidated", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_labels_are_seen_in_the_group(tmp_path, zarr_format, consolidated, named):
    path = make_group(tmp_path / "g.zarr", zarr_format, named=named, consolidated=consolidated)
    before = content(path)
    write_array(da.from_array(LABELS, chunks=25), path / "labels", attributes={"made": "here"})
    groups = [zarr.open_group(str(path), mode="r", use_consolidated=False), zarr.open_group(str(path), mode="r")]
    if consolidated:
        groups.append(zarr.open_consolidated(str(path)))
    for group in groups:
        assert group.attrs.asdict() == {"title": "mine"}
        assert sorted(group.array_keys()) == ["X", "crs", "labels", "pixel"]
        labels = group["labels"]
        assert isinstance(labels, zarr.Array)
        assert labels.metadata.zarr_format == zarr_format
        assert axes_of(labels) == (("pixel",) if named else None)
        assert labels.attrs["made"] == "here"
        np.testing.assert_array_equal(labels[...], LABELS)
        np.testing.assert_array_equal(group["X"][...], np.random.default_rng(0).normal(size=(N, 2)))
    after = {name: data for name, data in content(path).items() if not name.startswith("labels/")}
    changed = {name for name in before if before[name] != after[name]}
    assert before.keys() == after.keys()
    assert changed == ({".zmetadata" if zarr_format == 2 else "zarr.json"} if consolidated else set())


@formats
def test_the_entries_are_those_of_zarr_itself(tmp_path, zarr_format):
    path = make_group(tmp_path / "g.zarr", zarr_format)
    write_array(da.from_array(LABELS, chunks=25), path / "labels")
    name = ".zmetadata" if zarr_format == 2 else "zarr.json"
    found = json.loads((path / name).read_text())
    zarr.consolidate_metadata(str(path), zarr_format=zarr_format)
    assert found == json.loads((path / name).read_text())


@formats
def test_an_overwrite_replaces_the_entry(tmp_path, zarr_format):
    path = make_group(tmp_path / "g.zarr", zarr_format)
    write_array(da.from_array(LABELS, chunks=25), path / "labels")
    write_array(da.from_array(LABELS[:7].astype(float), chunks=25), path / "labels", overwrite=True)
    labels = zarr.open_consolidated(str(path))["labels"]
    assert isinstance(labels, zarr.Array)
    assert (labels.shape, labels.dtype) == ((7,), np.float64)
    assert axes_of(labels) == ("labels_dim_0",)  # no rows are so many
    points = da.from_array(np.ones((N, 2)), chunks=(25, 2))
    write_array(points, path / "points")
    assert axes_of(zarr.open_array(str(path / "points"))) == ("pixel", "points_dim_1")


@formats
def test_groups_inside_groups(tmp_path, zarr_format):
    outer = make_group(tmp_path / "g.zarr", zarr_format, consolidated=False)
    inner = make_group(outer / "sub", zarr_format, consolidated=False)
    zarr.consolidate_metadata(str(outer), zarr_format=zarr_format)
    write_array(da.from_array(LABELS, chunks=25), inner / "labels")
    assert "labels" in dict(zarr.open_consolidated(str(outer))["sub"].members())  # type: ignore[union-attr]
    np.testing.assert_array_equal(zarr.open_consolidated(str(outer))["sub/labels"][...], LABELS)
    assert "sub/X" in zarr.open_consolidated(str(outer))


@formats
def test_models_and_converted_files_are_listed_too(tmp_path, zarr_format):
    path = make_group(tmp_path / "g.zarr", zarr_format)
    np.savetxt(tmp_path / "y.csv", np.arange(N) + 0.5)
    convert(tmp_path / "y.csv", path / "y", chunk_rows=25)  # which does not know its length when it begins
    y = zarr.open_consolidated(str(path))["y"]
    assert isinstance(y, zarr.Array)
    assert (y.shape, axes_of(y)) == ((N, 1), ("pixel", "y_dim_1"))
    dc.KMeans(2, random_state=0).fit(np.arange(10.0)[:, None]).save(path / "model")
    assert zarr.open_consolidated(str(path)).attrs["title"] == "mine"
    np.testing.assert_array_equal(dc.load_model(path / "model").predict([[0.0], [9.0]]), [0, 1])


def test_format_2_has_no_shards(tmp_path):
    path = make_group(tmp_path / "g.zarr", 2)
    before = content(path)
    with pytest.raises(ValueError, match=r"shards: '.*g\.zarr' is a group of Zarr format 2, which has none"):
        write_array(da.from_array(LABELS, chunks=25), path / "labels", chunks=5, shards=10)
    assert content(path) == before


def test_a_failed_write_leaves_the_group_as_it_was(tmp_path):
    path = make_group(tmp_path / "g.zarr", 3)
    before = content(path)
    broken = da.from_array(LABELS, chunks=25).map_blocks(lambda block: block[1 // 0], dtype=int, meta=LABELS[:0])
    with pytest.raises(ZeroDivisionError):
        write_array(broken, path / "labels")
    assert content(path) == before


@formats
def test_xarray_opens_the_group(tmp_path, zarr_format):
    xarray = pytest.importorskip("xarray")
    path = make_group(tmp_path / "g.zarr", zarr_format)
    write_array(da.from_array(LABELS, chunks=25), path / "labels")
    data = xarray.open_zarr(str(path))
    assert data["labels"].dims == ("pixel",)
    np.testing.assert_array_equal(data["labels"], LABELS)
