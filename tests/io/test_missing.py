"""Numbers that were never read: chunks that are lost or damaged, and what Zarr leaves out on purpose."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster.files.chunks import absent_chunks, absent_parts
from daskcluster.io import open_dask, write_array
from daskcluster.io.columns import open_column
from daskcluster.io.inputs import check_rows

pytestmark = pytest.mark.usefixtures("small_blocks")

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(3, size=1000)
ROWS = (8 * TRUTH[:, None] + RNG.normal(size=(1000, 3))).astype(np.float32)

#: Layout -> the part of the store that is lost, and what is said of it.
LOSSES: dict[str, tuple[dict[str, Any], str, str]] = {
    "one chunk": ({"chunks": (100, 3)}, "c/3/0", r"1 of 10 chunks .* first at row 300; 100 rows"),
    "last chunk": ({"chunks": (300, 3)}, "c/3/0", r"1 of 4 chunks .* first at row 900; 100 rows"),
    "a column": ({"chunks": (100, 1)}, "c/2/1", r"1 of 30 chunks .* first at row 200; 100 rows"),
    "a shard": ({"chunks": (50, 3), "shards": (200, 3)}, "c/1/0", r"4 of 20 chunks .* first at row 200; 200 rows"),
    "all": ({"chunks": (100, 3)}, "c", r"10 of 10 chunks .* first at row 0; 1,000 rows"),
    "format 2": ({"chunks": (100, 3), "zarr_format": 2}, "4.0", r"1 of 10 chunks .* first at row 400; 100 rows"),
}


def store(path: Path, values: Any = ROWS, **layout: Any) -> str:
    zarr.create_array(str(path), data=np.asarray(values), **layout)
    return str(path)


def lose(path: str, part: str) -> None:
    target = Path(path, part)
    shutil.rmtree(target) if target.is_dir() else target.unlink()


@pytest.mark.parametrize("case", LOSSES)
def test_lost_chunks_are_counted_in_one_warning_before_any_work(case, tmp_path):
    layout, part, words = LOSSES[case]
    path = store(tmp_path / "X.zarr", **layout)
    lose(path, part)
    for form in (path, zarr.open_array(path, mode="r"), da.from_zarr(path), da.from_zarr(path)[10:] + 1):
        with pytest.warns(dc.MissingChunksWarning, match=f"^X: {words} .* fill value 0.0.*--strict") as caught:
            check_rows(form)
        assert len(caught) == 1
        with (
            dask.config.set({"daskcluster.missing-chunks": "refuse"}),
            pytest.raises(dc.MissingChunksError, match=f"^X: {words}.*'refuse'"),
        ):
            check_rows(form)


def test_a_fit_and_a_prediction_warn_once_at_the_users_line(tmp_path):
    path = store(tmp_path / "X.zarr", chunks=(100, 3))
    model = dc.KMeans(3, random_state=0).fit(path)
    lose(path, "c/3/0")
    for call in (model.fit, model.predict, model.plan):
        with pytest.warns(dc.MissingChunksWarning) as caught:
            call(path)
        assert [warning.filename for warning in caught] == [__file__]


def test_whole_stores_are_silent(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, (layout, _, _) in enumerate(LOSSES.values()):
            check_rows(store(tmp_path / f"{number}.zarr", **layout))


def test_chunks_that_a_shard_left_out_are_missing(tmp_path):
    path = store(tmp_path / "X.zarr", chunks=(50, 3), shards=(200, 3))
    zarr.open_array(path)[250:300] = 0  # zarr does not store what is all fill value
    with pytest.warns(dc.MissingChunksWarning, match=r"1 of 20 chunks .* first at row 250; 50 rows"):
        check_rows(path)


@pytest.mark.parametrize("location", ["start", "end"])
def test_the_index_of_a_shard_is_read_wherever_it_is(location, tmp_path):
    array = zarr.create_array(
        str(tmp_path / "X.zarr"),
        shape=(10, 6),
        chunks=(2, 3),
        shards={"shape": (4, 6), "index_location": location},
        dtype="f4",
    )
    array[:] = 1
    array[2:4, :3] = 0
    array[8:, 3:] = 0
    missing = absent_parts(array, absent_chunks(array))
    np.testing.assert_array_equal(np.argwhere(missing), [[1, 0], [4, 1]])


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (ROWS, {"fill_value": np.nan}),
        (ROWS, {"fill_value": -1.0, "attributes": {"_FillValue": -1.0}}),
        ((ROWS * 10).astype("i2"), {"fill_value": -32768, "attributes": {"missing_value": -32768}}),
    ],
    ids=["NaN", "nodata", "integers"],
)
def test_rows_of_missing_chunks_are_missing_rows_where_the_fill_value_is_none(values, options, tmp_path):
    path = store(tmp_path / "X.zarr", values, chunks=(100, 3), **options)
    lose(path, "c/3/0")
    with pytest.warns(dc.MissingChunksWarning, match="which means no value"):
        labels = np.asarray(dc.KMeans(3, missing="label", random_state=0).fit(path).labels_)
    np.testing.assert_array_equal(np.flatnonzero(labels == -1), np.arange(300, 400))
    with (
        pytest.warns(dc.MissingChunksWarning),
        pytest.raises(ValueError, match="X contains NaN at row 300, column 0"),
    ):
        dc.KMeans(3, random_state=0).fit(path)


def test_labels_weights_constraints_and_base_clusterings_come_through_the_same_door(tmp_path):
    def lost(name: str, values: np.ndarray) -> str:
        path = store(tmp_path / f"{name}.zarr", values, chunks=(100, *values.shape[1:]))
        lose(path, "c/3" if values.ndim == 1 else "c/3/0")
        return path

    weights = lost("weights", np.ones(1000))
    labels = lost("labels", TRUTH + 1)
    base = lost("base", np.stack([TRUTH, TRUTH], axis=1) + 1)
    for name, call in {
        "sample_weight": lambda: dc.KMeans(3).fit(ROWS, sample_weight=weights),
        "y": lambda: dc.FastCSC(3, n_representatives=50).fit(ROWS, labels),
        "X": lambda: dc.SEC(3).fit(base),
    }.items():
        with pytest.warns(dc.MissingChunksWarning, match=f"^{name}: 1 of 10 chunks"):
            call()


def test_what_this_package_writes_has_all_its_chunks(tmp_path):
    labels = da.zeros(1000, chunks=100, dtype=np.int32)
    write_array(labels, tmp_path / "labels.zarr", chunks=100)
    write_array(labels, tmp_path / "shards.zarr", chunks=50, shards=200)
    with dask.config.set({"daskcluster.missing-chunks": "refuse"}):
        for name in ("labels", "shards"):
            assert not open_dask(tmp_path / f"{name}.zarr").compute().any()
            open_column("y", tmp_path / f"{name}.zarr")


def test_an_unknown_setting_is_refused(tmp_path):
    path = store(tmp_path / "X.zarr", chunks=(100, 3))
    with (
        dask.config.set({"daskcluster.missing-chunks": "ignore"}),
        pytest.raises(ValueError, match=r"daskcluster\.missing-chunks must be one of 'warn', 'refuse'"),
    ):
        check_rows(path)


def test_a_chunk_that_goes_between_two_passes_is_an_error(tmp_path):
    path = store(tmp_path / "X.zarr", chunks=(100, 3))
    rows = check_rows(path)
    lose(path, "c/7/0")
    with pytest.raises(dc.MissingChunksError, match=r"process .* does not find chunk 'c/7/0' \(rows 700 to 799\)"):
        rows.blocks.compute()


def test_a_chunk_of_a_whole_store_that_holds_zeros_is_no_error(tmp_path):
    values = ROWS.copy()
    values[200:500] = 0
    path = store(tmp_path / "X.zarr", values, chunks=(100, 3), config={"write_empty_chunks": True})
    np.testing.assert_array_equal(check_rows(path).blocks.compute(), values)


# -- damage ------------------------------------------------------------------------------------------------------------


def flip(content: bytes) -> bytes:
    return bytes(16) + content[16:-16] + bytes(16)  # where codecs and shards have their heads and ends


def cut(content: bytes) -> bytes:
    return content[: len(content) // 3]


def empty(content: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [flip, cut, empty])
@pytest.mark.parametrize(
    ("layout", "part", "words"),
    [
        ({"chunks": (100, 3)}, "c/4/0", r"chunk 'c/4/0' \(rows 400 to 499\)"),
        ({"chunks": (300, 3)}, "c/3/0", r"chunk 'c/3/0' \(rows 900 to 999\)"),
        ({"chunks": (100, 1)}, "c/4/2", r"chunk 'c/4/2' \(rows 400 to 499\)"),
        ({"chunks": (50, 3), "shards": (200, 3)}, "c/1/0", r"chunk 'c/1/0' \(rows 200 to 399\)"),
        ({"chunks": (100, 3), "zarr_format": 2}, "4.0", r"chunk '4.0' \(rows 400 to 499\)"),
        ({"chunks": (100, 3), "compressors": zarr.codecs.BloscCodec()}, "c/4/0", r"chunk 'c/4/0'"),
    ],
    ids=["chunk", "last", "column", "shard", "format 2", "blosc"],
)
def test_a_damaged_chunk_is_named(layout, part, words, damage, tmp_path):
    path = store(tmp_path / "X.zarr", **layout)
    file = Path(path, part)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(dc.UnreadableChunkError, match=rf"'{path}' cannot be read: {words}.* is damaged \(\w+: "):
        dc.KMeans(3, random_state=0).fit(path)


def test_a_truncated_chunk_without_codec_is_named(tmp_path):
    path = store(tmp_path / "X.zarr", chunks=(100, 3), compressors=None)
    file = Path(path, "c/9/0")
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(dc.UnreadableChunkError, match=r"chunk 'c/9/0' \(rows 900 to 999\)"):
        dc.USPEC(3, n_representatives=50, random_state=0).fit(path)


def test_an_empty_shard_is_never_read_as_zeros(tmp_path):
    """As a full disk leaves it; zarr reads zeros where a whole shard is asked for."""
    path = store(tmp_path / "X.zarr", chunks=(16, 3), shards=(32, 3))
    Path(path, "c/3/0").write_bytes(b"")
    for form in (path, open_dask(path)):
        with pytest.raises((dc.UnreadableChunkError, dc.MissingChunksError), match=r"chunk 'c/3/0' \(rows 96 to 127\)"):
            dc.KMeans(3).fit(form)
