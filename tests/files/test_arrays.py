"""Opening arrays, and creating empty ones."""

from __future__ import annotations

import os

import numpy as np
import pytest
import zarr

from daskcluster.files import choose_chunk_rows, create_array, open_rows

# -- opening


def test_open_rows_takes_arrays_paths_and_urls(tmp_path):
    stored = create_array(tmp_path / "x.zarr", (4, 2), "f4")
    assert open_rows(stored) is stored
    for source in (tmp_path / "x.zarr", str(tmp_path / "x.zarr"), f"file://{tmp_path}/x.zarr"):
        array = open_rows(source)
        assert array.shape == (4, 2)
        assert array.read_only


def test_open_rows_opens_format_2_and_arrays_in_groups(tmp_path):
    zarr.create_array(str(tmp_path / "old.zarr"), shape=(3, 2), dtype="f8", chunks=(3, 2), zarr_format=2)
    group = zarr.create_group(str(tmp_path / "group.zarr"))
    group.create_array("X", shape=(5, 2), dtype="f4", chunks=(5, 2))
    assert open_rows(tmp_path / "old.zarr").shape == (3, 2)
    assert open_rows(tmp_path / "group.zarr" / "X").shape == (5, 2)


def test_open_rows_says_what_it_found(tmp_path):
    missing = tmp_path / "missing.zarr"
    with pytest.raises(FileNotFoundError, match=r"missing\.zarr.*nothing exists there"):
        open_rows(missing)
    with pytest.raises(ValueError, match="is a folder, not a Zarr array"):
        open_rows(tmp_path)
    (tmp_path / "x.npy").write_bytes(b"")
    with pytest.raises(ValueError, match=r"x\.npy' is a file.*daskcluster convert"):
        open_rows(tmp_path / "x.npy")
    (tmp_path / "broken.zarr").mkdir()
    (tmp_path / "broken.zarr" / "zarr.json").write_text("{")
    with pytest.raises(ValueError, match="metadata that cannot be read"):
        open_rows(tmp_path / "broken.zarr")
    with pytest.raises(TypeError, match="got list"):
        open_rows([1, 2])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no Zarr array at 'memory://nothing'"):
        open_rows("memory://nothing")


def test_open_rows_lists_the_arrays_of_a_group(tmp_path):
    group = zarr.create_group(str(tmp_path / "group.zarr"))
    with pytest.raises(ValueError, match="is an empty Zarr group"):
        open_rows(tmp_path / "group.zarr")
    group.create_array("X", shape=(5, 2), dtype="f4", chunks=(5, 2))
    group.create_group("deep").create_array("y", shape=(5,), dtype="i4", chunks=(5,))
    with pytest.raises(ValueError, match=r"it holds X \(5, 2\), deep/y \(5,\)\. Name one.*group\.zarr/X'"):
        open_rows(tmp_path / "group.zarr")
    with pytest.raises(ValueError, match=r"^'/.*group\.zarr' is a Zarr group, not an array; it holds X"):
        open_rows(group)


# -- creating


@pytest.mark.parametrize(
    ("row_bytes", "n_rows", "expected"),
    [
        (8, None, 2**20),
        (64, None, 2**19),
        (100, None, 2**18),
        (10**9, None, 1),
        (8, 5, 5),
        (8, 0, 1),
        (0, None, 2**20),
    ],
)
def test_choose_chunk_rows(row_bytes, n_rows, expected):
    assert choose_chunk_rows(row_bytes, n_rows) == expected


def test_create_array_uses_zarr_format_3_and_its_own_codecs(tmp_path):
    array = create_array(tmp_path / "x.zarr", (10, 2), ">f4", attributes={"a": [1, None, "b"]})
    assert array.metadata.zarr_format == 3
    assert all(type(codec).__module__.startswith("zarr.codecs") for codec in array.metadata.codecs)
    assert array.dtype == np.dtype(">f4")
    assert array.attrs.asdict() == {"a": [1, None, "b"]}
    values = np.random.default_rng(0).normal(size=(10, 2)).astype(np.float32)
    array[...] = values
    np.testing.assert_array_equal(array[...], values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "U5"}, "dtype: expected booleans"),
        ({"dtype": "O"}, "dtype: expected booleans"),
        ({"dtype": "c8"}, "dtype: expected booleans"),
        ({"chunks": 0}, "chunks: expected 2 positive lengths"),
        ({"chunks": (5, 2, 2)}, "chunks: expected 2 positive lengths"),
        ({"shards": 10}, "shards: name the chunks"),
        ({"chunks": 3, "shards": 10}, "shards: expected multiples of the chunks"),
        ({"attributes": {"x": float("nan")}}, "attributes: expected JSON"),
        ({"attributes": {"x": object()}}, "attributes: expected JSON"),
    ],
)
def test_create_array_refuses(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        create_array(tmp_path / "x.zarr", **{"shape": (20, 2), "dtype": "f4", **arguments})
    assert os.listdir(tmp_path) == []
