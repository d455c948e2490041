"""Parquet files turned into Zarr arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from daskcluster.io.convert import convert

VALUES = np.random.default_rng(0).normal(size=(100, 3))


def write_parquet(path: Path, **columns) -> Path:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, row_group_size=40)
    return path


def test_parquet(tmp_path, out):
    write_parquet(tmp_path / "x.parquet", a=VALUES[:, 0], b=VALUES[:, 1].astype("f4"), c=np.arange(100, dtype="i2"))
    stored = convert(tmp_path / "x.parquet", out, chunk_rows=33)
    np.testing.assert_array_equal(stored[:, 0], VALUES[:, 0])
    np.testing.assert_array_equal(stored[:, 1], VALUES[:, 1].astype("f4"))
    np.testing.assert_array_equal(stored[:, 2], np.arange(100))
    assert stored.dtype == np.float64
    assert stored.attrs["columns"] == ["a", "b", "c"]
    stored = convert(tmp_path / "x.parquet", out, columns=["c"], overwrite=True)
    assert stored.dtype == np.int16
    stored = convert(tmp_path / "x.parquet", out, columns=["c", 1], overwrite=True)
    np.testing.assert_array_equal(stored[:, 0], np.arange(100))


def test_parquet_missing_values(tmp_path, out):
    write_parquet(tmp_path / "x.parquet", a=[1, None, 3], b=[True, False, True])
    np.testing.assert_array_equal(convert(tmp_path / "x.parquet", out)[...], [[1, 1], [np.nan, 0], [3, 1]])
    with pytest.raises(ValueError, match=r"dtype: int32 cannot hold nan \(row 1, column 'a'\)"):
        convert(tmp_path / "x.parquet", out, dtype="int32", overwrite=True)
    stored = convert(tmp_path / "x.parquet", out, columns=["b"], overwrite=True)
    assert stored.dtype == np.uint8


def test_parquet_decimals_and_halves(tmp_path, out):
    from decimal import Decimal

    write_parquet(tmp_path / "x.parquet", a=[Decimal("1.25"), Decimal("2.50")], b=np.array([0.5, 1.5], "f2"))
    np.testing.assert_array_equal(convert(tmp_path / "x.parquet", out)[...], [[1.25, 0.5], [2.5, 1.5]])


def test_parquet_text_columns(tmp_path, out):
    write_parquet(tmp_path / "x.parquet", a=[1.5, 2.5], name=["x", "y"])
    with pytest.raises(ValueError, match="column 'name' is not numeric, it holds string; choose others with columns="):
        convert(tmp_path / "x.parquet", out)
    np.testing.assert_array_equal(convert(tmp_path / "x.parquet", out, columns=["a"])[...], [[1.5], [2.5]])


def test_parquet_index_of_pandas_is_not_taken_for_a_feature(tmp_path, out):
    pd = pytest.importorskip("pandas")
    pd.DataFrame({"a": [1.5, 2.5]}, index=[10, 20]).to_parquet(tmp_path / "x.parquet")
    np.testing.assert_array_equal(convert(tmp_path / "x.parquet", out)[...], [[1.5], [2.5]])


def test_parquet_folder(tmp_path, out):
    (tmp_path / "many").mkdir()
    with pytest.raises(ValueError, match=r"is a folder without \.parquet files"):
        convert(tmp_path / "many", out)
    write_parquet(tmp_path / "many" / "1.parquet", a=[3.0])
    write_parquet(tmp_path / "many" / "0.parquet", a=[1.0, 2.0])
    np.testing.assert_array_equal(convert(tmp_path / "many", out)[...], [[1], [2], [3]])
    write_parquet(tmp_path / "many" / "2.parquet", b=[3.0])
    with pytest.raises(ValueError, match=r"'2\.parquet' has other columns or types than '0\.parquet'"):
        convert(tmp_path / "many", out, overwrite=True)


@pytest.mark.parametrize("fixed", [True, False])
def test_parquet_embeddings(tmp_path, out, fixed):
    pa = pytest.importorskip("pyarrow")
    kind = pa.list_(pa.float32(), 3) if fixed else pa.list_(pa.float32())
    vectors = pa.array(VALUES.astype("f4").tolist(), kind)
    write_parquet(tmp_path / "x.parquet", text=["a"] * 100, vector=vectors)
    stored = convert(tmp_path / "x.parquet", out, columns=["vector"])
    np.testing.assert_array_equal(stored[...], VALUES.astype("f4"))
    assert stored.dtype == np.float32


@pytest.mark.parametrize(
    "lists",
    [[[1.0, 2.0], [3.0]], [[1.0], [2.0, 3.0, 4.0]], [[1.0, 2.0], None], [[1.0, 2.0]] * 60 + [[1.0]] * 2],
)
def test_parquet_lists_of_different_lengths(tmp_path, out, lists):
    write_parquet(tmp_path / "x.parquet", vector=lists)
    with pytest.raises(ValueError, match=r"column 'vector': .*lists of"):
        convert(tmp_path / "x.parquet", out)
    assert not out.exists()
