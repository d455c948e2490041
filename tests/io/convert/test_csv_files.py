"""Delimited text turned into Zarr arrays."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

from daskcluster.io.convert import convert

VALUES = np.random.default_rng(0).normal(size=(100, 3))


def test_csv_with_header(tmp_path, out):
    (tmp_path / "x.csv").write_text("a,b,c\n" + "\n".join(",".join(map(repr, map(float, row))) for row in VALUES))
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
    (tmp_path / "x.csv").write_text("")
    (tmp_path / "x.csv").write_text(text, encoding="utf-8", newline="")
    np.testing.assert_array_equal(convert(tmp_path / "x.csv", out, header=header)[...], expected)


def test_csv_columns_by_name_and_number(tmp_path, out):
    (tmp_path / "x.csv").write_text("id,x,y,kind\n7,1,2,cat\n8,3,4,dog\n")
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
    (tmp_path / "iris.csv").write_text("5.1,3.5,setosa\n4.9,3.0,setosa\n")
    with pytest.raises(ValueError, match="column 2 is not numeric: 'setosa' in row 0"):
        convert(tmp_path / "iris.csv", out)
    np.testing.assert_array_equal(convert(tmp_path / "iris.csv", out, columns=["0", "1"])[...], [[5.1, 3.5], [4.9, 3]])


def test_csv_index_of_pandas_is_not_taken_for_a_feature(tmp_path, out):
    (tmp_path / "x.csv").write_text(",a\n0,1.5\n1,2.5\n")
    with pytest.raises(ValueError, match="column 0 has no name in the header"):
        convert(tmp_path / "x.csv", out)
    np.testing.assert_array_equal(convert(tmp_path / "x.csv", out, columns=["a"])[...], [[1.5], [2.5]])


def test_csv_text_far_behind_the_head(tmp_path, out):
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n" * 500 + "1,oops\n")
    with pytest.raises(ValueError, match=r"'x\.csv': column 'b' cannot be read as numbers: .*'oops'"):
        convert(tmp_path / "x.csv", out)
    assert os.listdir(tmp_path) == ["x.csv"]


def test_csv_that_is_no_table(tmp_path, out):
    for text in ("", "\n", "# nothing\n", "a,b\n"):
        (tmp_path / "x.csv").write_text(text)
        with pytest.raises(ValueError, match=r"'x\.csv' holds no rows"):
            convert(tmp_path / "x.csv", out)
    (tmp_path / "x.csv").write_text("1,2\n3,4,5\n")
    with pytest.raises(ValueError, match=r"'x\.csv' is not a table: .*Expected 2 columns, got 3"):
        convert(tmp_path / "x.csv", out)
    (tmp_path / "x.csv").write_text("a,b\n0,1,2\n")
    with pytest.raises(ValueError, match="rows have 3 fields, and the header names 2"):
        convert(tmp_path / "x.csv", out)
    assert not out.exists()


def test_big_integers_are_exact(tmp_path, out):
    (tmp_path / "x.csv").write_text(f"{2**63 - 1}\n{-(2**63)}")
    stored = convert(tmp_path / "x.csv", out, dtype="int64")
    np.testing.assert_array_equal(stored[...], [[2**63 - 1], [-(2**63)]])
