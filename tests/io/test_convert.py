"""Files of other formats turned into Zarr arrays."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from daskcluster.io import convert as module
from daskcluster.io.convert import convert
from daskcluster.io.zarr import open_rows

VALUES = np.random.default_rng(0).normal(size=(100, 3))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.zarr"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Make readers yield many blocks, of lengths that chunks do not divide."""
    monkeypatch.setattr(module, "_BLOCK_BYTES", 7 * 24)


def write(path: Path, text: str) -> Path:
    path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return path


# -- npy and npz


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u1", ">f4", "?"])
def test_npy(tmp_path, out, order, dtype):
    values = np.asarray(VALUES * 10, dtype=dtype, order=order)
    np.save(tmp_path / "x.npy", values)
    stored = convert(tmp_path / "x.npy", out, chunk_rows=33)
    np.testing.assert_array_equal(stored[...], values)
    assert stored.dtype == (np.uint8 if dtype == "?" else np.dtype(dtype).newbyteorder("="))
    assert stored.chunks == (33, 3)
    assert stored.attrs.asdict() == {"source": "x.npy"}


def test_npy_of_one_dimension_and_of_one_column(tmp_path, out):
    np.save(tmp_path / "y.npy", np.arange(50, dtype=np.int32))
    np.testing.assert_array_equal(convert(tmp_path / "y.npy", out)[...], np.arange(50))
    np.save(tmp_path / "x.npy", VALUES)
    np.testing.assert_array_equal(
        convert(tmp_path / "x.npy", out, columns=[2, 0], overwrite=True)[...], VALUES[:, [2, 0]]
    )
    with pytest.raises(ValueError, match="columns: the array has one dimension"):
        convert(tmp_path / "y.npy", out, columns=[0], overwrite=True)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npz(tmp_path, out, save, order):
    save(tmp_path / "x.npz", X=np.asarray(VALUES, order=order), y=np.arange(100))
    np.testing.assert_array_equal(convert(tmp_path / "x.npz", out)[...], VALUES)  # the only table
    stored = convert(tmp_path / "x.npz", out, member="y", overwrite=True)
    np.testing.assert_array_equal(stored[...], np.arange(100))


def test_npz_needs_a_member_where_it_holds_several(tmp_path, out):
    np.savez(tmp_path / "x.npz", a=VALUES, b=VALUES)
    with pytest.raises(ValueError, match=r"member: 'x\.npz' holds a \(100, 3\) float64, b .*name one"):
        convert(tmp_path / "x.npz", out)
    with pytest.raises(ValueError, match=r"member: no array 'c' in 'x\.npz'; it holds a"):
        convert(tmp_path / "x.npz", out, member="c")
    np.testing.assert_array_equal(convert(tmp_path / "x.npz", out, member="b")[...], VALUES)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array(["a", "b"]), "holds <U1, not numbers"),
        (np.zeros((2, 2), complex), "holds complex128, not numbers"),
        (np.zeros(3, [("x", "f4")]), "not numbers"),
        (np.zeros((2, 2, 2)), r"has shape \(2, 2, 2\); expected rows and columns"),
        (np.zeros((0, 2)), r"holds no rows: its shape is \(0, 2\)"),
        (np.float64(3), "expected rows and columns"),
        (np.array([None]), "not"),
    ],
)
@pytest.mark.parametrize("format", ["npy", "npz"])
def test_arrays_that_are_no_tables(tmp_path, out, values, message, format):
    path = tmp_path / f"x.{format}"
    np.save(path, values) if format == "npy" else np.savez(path, X=values)
    with pytest.raises(ValueError, match=message):
        convert(path, out)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("format", ["npy", "npz", "parquet"])
def test_files_that_are_not_what_their_name_says(tmp_path, out, format):
    write(tmp_path / f"x.{format}", "certainly not")
    with pytest.raises(ValueError, match=rf"'x\.{format}' is not an? {format} file"):
        convert(tmp_path / f"x.{format}", out)


def test_truncated_npy(tmp_path, out):
    np.save(tmp_path / "x.npy", VALUES)
    data = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(data[:-100])
    with pytest.raises(ValueError, match=r"x\.npy"):
        convert(tmp_path / "x.npy", out)
    assert not out.exists()


# -- csv


def test_csv_with_header(tmp_path, out):
    write(tmp_path / "x.csv", "a,b,c\n" + "\n".join(",".join(map(repr, map(float, row))) for row in VALUES))
    stored = convert(tmp_path / "x.csv", out, chunk_rows=33)
    np.testing.assert_array_equal(stored[...], VALUES)
    assert stored.chunks == (33, 3)
    assert stored.attrs.asdict() == {"source": "x.csv", "columns": ["a", "b", "c"]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
def test_delimiters_comments_and_no_header(tmp_path, out, delimiter):
    np.savetxt(tmp_path / "x.txt", VALUES, fmt="%.17g", delimiter=delimiter, header="made by numpy\nx y z")
    stored = convert(tmp_path / "x.txt", out)
    np.testing.assert_array_equal(stored[...], VALUES)
    assert stored.attrs.asdict() == {"source": "x.txt"}


def test_compressed_csv(tmp_path, out):
    with gzip.open(tmp_path / "x.csv.gz", "wt") as file:
        file.write("a,b\n1,2\n3,4\n")
    np.testing.assert_array_equal(convert(tmp_path / "x.csv.gz", out)[...], [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "header", "expected"),
    [
        ("1,2\n3,4", None, [[1, 2], [3, 4]]),
        ("1,2\n3,4", True, [[3, 4]]),
        ("\ufeffa, b\r\n1, 2\r\n3, 4\r\n", None, [[1, 2], [3, 4]]),
        ('"a","b"\n"1","2"\n', None, [[1, 2]]),
        ("\n\n1,2\n\n3,4\n\n", None, [[1, 2], [3, 4]]),
        ("x\n1\n2", None, [[1], [2]]),
        ("a,b\n1,\nNA,2\nnan,-inf", None, [[1, np.nan], [np.nan, 2], [np.nan, -np.inf]]),
        ("1e3,-.5\n1.,+2", None, [[1000, -0.5], [1, 2]]),
    ],
)
def test_csv_forms(tmp_path, out, text, header, expected):
    write(tmp_path / "x.csv", "")
    (tmp_path / "x.csv").write_text(text, encoding="utf-8", newline="")
    np.testing.assert_array_equal(convert(tmp_path / "x.csv", out, header=header)[...], expected)


def test_csv_columns_by_name_and_number(tmp_path, out):
    write(tmp_path / "x.csv", "id,x,y,kind\n7,1,2,cat\n8,3,4,dog\n")
    with pytest.raises(ValueError, match=r"'x\.csv': column 'kind' is not numeric: 'cat' in row 0; choose others"):
        convert(tmp_path / "x.csv", out)
    stored = convert(tmp_path / "x.csv", out, columns=["y", 1])
    np.testing.assert_array_equal(stored[...], [[2, 1], [4, 3]])
    assert stored.attrs["columns"] == ["y", "x"]
    for columns, message in {
        ("z",): "no column 'z'; there are 'id', 'x', 'y', 'kind'",
        (4,): "numbers from 0 to 3, got 4",
        ("x", 1): "expected different columns",
        (): "expected different columns",
    }.items():
        with pytest.raises(ValueError, match=f"columns: .*{message}"):
            convert(tmp_path / "x.csv", out, columns=columns, overwrite=True)  # type: ignore[arg-type]


def test_csv_with_a_text_column_and_no_header(tmp_path, out):
    write(tmp_path / "iris.csv", "5.1,3.5,setosa\n4.9,3.0,setosa\n")
    with pytest.raises(ValueError, match="column 2 is not numeric: 'setosa' in row 0"):
        convert(tmp_path / "iris.csv", out)
    np.testing.assert_array_equal(convert(tmp_path / "iris.csv", out, columns=["0", "1"])[...], [[5.1, 3.5], [4.9, 3]])


def test_csv_index_of_pandas_is_not_taken_for_a_feature(tmp_path, out):
    write(tmp_path / "x.csv", ",a\n0,1.5\n1,2.5\n")
    with pytest.raises(ValueError, match="column 0 has no name in the header"):
        convert(tmp_path / "x.csv", out)
    np.testing.assert_array_equal(convert(tmp_path / "x.csv", out, columns=["a"])[...], [[1.5], [2.5]])


def test_csv_text_far_behind_the_head(tmp_path, out):
    write(tmp_path / "x.csv", "a,b\n" + "1,2\n" * 500 + "1,oops\n")
    with pytest.raises(ValueError, match=r"'x\.csv': column 'b' cannot be read as numbers: .*'oops'"):
        convert(tmp_path / "x.csv", out)
    assert os.listdir(tmp_path) == ["x.csv"]


def test_csv_that_is_no_table(tmp_path, out):
    for text in ("", "\n", "# nothing\n", "a,b\n"):
        write(tmp_path / "x.csv", text)
        with pytest.raises(ValueError, match=r"'x\.csv' holds no rows"):
            convert(tmp_path / "x.csv", out)
    write(tmp_path / "x.csv", "1,2\n3,4,5\n")
    with pytest.raises(ValueError, match=r"'x\.csv' is not a table: .*Expected 2 columns, got 3"):
        convert(tmp_path / "x.csv", out)
    write(tmp_path / "x.csv", "a,b\n0,1,2\n")
    with pytest.raises(ValueError, match="rows have 3 fields, and the header names 2"):
        convert(tmp_path / "x.csv", out)
    assert not out.exists()


# -- parquet


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


# -- all formats


@pytest.mark.parametrize(
    ("dtype", "values", "message"),
    [
        ("u1", [[1.0], [300.0]], r"uint8 cannot hold 300\.0 \(row 1, column 0\)"),
        ("i4", [[1.5], [2.0]], r"int32 cannot hold 1\.5 \(row 0, column 0\)"),
        ("i4", [[np.nan], [2.0]], "int32 cannot hold nan"),
        ("u4", [[-1], [2]], "uint32 cannot hold -1"),
        ("f4", [[1.0], [1e300]], r"float32 cannot hold 1e\+300 \(row 1, column 0\)"),
    ],
)
def test_values_that_the_type_cannot_hold_are_refused(tmp_path, out, dtype, values, message):
    np.save(tmp_path / "x.npy", np.array(values))
    with pytest.raises(ValueError, match=message):
        convert(tmp_path / "x.npy", out, dtype=dtype)
    np.savetxt(tmp_path / "x.csv", np.array(values))
    with pytest.raises(ValueError, match=message.replace("-1", r"-1\.0")):
        convert(tmp_path / "x.csv", out, dtype=dtype)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i8", "u1", ">i4"])
def test_dtype(tmp_path, out, dtype):
    values = np.array([[1.0, 2.0], [3.0, 200.0]])
    np.save(tmp_path / "x.npy", values)
    write(tmp_path / "x.csv", "1,2\n3,200")
    write_parquet(tmp_path / "x.parquet", a=values[:, 0], b=values[:, 1])
    for format in ("npy", "csv", "parquet"):
        stored = convert(tmp_path / f"x.{format}", out, dtype=dtype, overwrite=True)
        assert stored.dtype == np.dtype(dtype).newbyteorder("=")
        np.testing.assert_array_equal(stored[...], values)


def test_big_integers_are_exact(tmp_path, out):
    write(tmp_path / "x.csv", f"{2**63 - 1}\n{-(2**63)}")
    stored = convert(tmp_path / "x.csv", out, dtype="int64")
    np.testing.assert_array_equal(stored[...], [[2**63 - 1], [-(2**63)]])


def test_arguments_are_checked_first(tmp_path, out):
    with pytest.raises(FileNotFoundError, match=r"no file at .*x\.csv"):
        convert(tmp_path / "x.csv", out)
    write(tmp_path / "x.csv", "1,2")
    for arguments, message in [
        ({"format": "xls"}, "format: expected one of npy, npz, csv, parquet, got 'xls'"),
        ({"dtype": "str"}, "dtype: expected integers or floating numbers"),
        ({"dtype": "nonsense"}, "dtype: expected a numeric type"),
        ({"chunk_rows": 0}, "chunk_rows: expected at least 1, got 0"),
        ({"member": "X"}, "member: serves npz files only, and this one is csv"),
        ({"format": "npy", "header": True}, "header: serves csv files only"),
    ]:
        with pytest.raises(ValueError, match=message):
            convert(tmp_path / "x.csv", out, **arguments)  # type: ignore[arg-type]
    (tmp_path / "x.dat").touch()
    with pytest.raises(ValueError, match=r"'x\.dat': the name does not tell the format; give format="):
        convert(tmp_path / "x.dat", out)
    convert(tmp_path / "x.csv", out)
    with pytest.raises(FileExistsError, match=r"out\.zarr' exists"):
        convert(tmp_path / "x.csv", out)


def test_format_may_be_named(tmp_path, out):
    write(tmp_path / "x.dat", "1,2\n3,4")
    np.testing.assert_array_equal(convert(tmp_path / "x.dat", out, format="csv")[...], [[1, 2], [3, 4]])


def test_missing_packages_name_the_extra(tmp_path, out, monkeypatch):
    write(tmp_path / "x.csv", "1,2")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"csv files needs pyarrow.*pip install 'daskcluster\[convert\]'"):
        convert(tmp_path / "x.csv", out)


def test_failure_while_reading_leaves_the_old_array(tmp_path, out):
    write(tmp_path / "x.csv", "1,2")
    convert(tmp_path / "x.csv", out)
    write(tmp_path / "x.csv", "1,2\n" * 300 + "1,x")
    with pytest.raises(ValueError, match="cannot be read"):
        convert(tmp_path / "x.csv", out, overwrite=True)
    assert open_rows(out).shape == (1, 2)
    assert sorted(os.listdir(tmp_path)) == ["out.zarr", "x.csv"]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak memory from /proc")
@pytest.mark.parametrize("format", ["npy", "npz", "csv", "parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path, format):
    """Peak memory of a process of its own, for n and 4 n rows."""
    program = """
    import re, sys
    from daskcluster.io.convert import convert
    convert(sys.argv[1], sys.argv[2], chunk_rows=2**17)
    print(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
    """
    peaks = []
    for n in (1_000_000, 4_000_000):
        values = np.random.default_rng(0).integers(0, 1000, size=(n, 2)).astype(np.float64)
        path = tmp_path / f"x{n}.{format}"
        if format == "npy":
            np.save(path, values)
        elif format == "npz":
            np.savez(path, X=values)
        elif format == "csv":
            import pandas as pd

            pd.DataFrame(values).to_csv(path, index=False, header=False)
        else:
            pa = pytest.importorskip("pyarrow")
            import pyarrow.parquet as pq

            pq.write_table(pa.table({"a": values[:, 0], "b": values[:, 1]}), path, row_group_size=n)
        del values
        output = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), str(path), str(tmp_path / f"x{n}.zarr")],
            check=True,
            capture_output=True,
            cwd=Path(module.__file__).parents[2],
        )
        peaks.append(int(output.stdout))
    assert peaks[1] < 1.1 * peaks[0], peaks
