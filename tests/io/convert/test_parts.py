"""Folders of part files: one table, in the order in which dask and people count."""

from __future__ import annotations

import gzip

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import zarr

from daskcluster.io.convert import convert

VALUES = np.arange(66.0).reshape(33, 2) + 0.25
FRAME = pd.DataFrame(VALUES, columns=["a", "b"])


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # dask's
@pytest.mark.parametrize("n_parts", [3, 12])
def test_a_folder_that_dask_wrote(tmp_path, out, n_parts):
    parts = dd.from_pandas(FRAME, npartitions=n_parts)
    parts.to_parquet(tmp_path / "parquet")
    np.testing.assert_array_equal(convert(tmp_path / "parquet", out)[...], VALUES)
    parts.to_csv(str(tmp_path / "csv"), index=False)
    stored = convert(tmp_path / "csv", out, overwrite=True)
    np.testing.assert_array_equal(stored[...], VALUES)
    assert stored.attrs["columns"] == ["a", "b"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "csv.gz"])
@pytest.mark.parametrize("name", ["part.{}", "part-{}", "{}", "2024-1-{}.v7", "Part {}"])
def test_numbers_in_names_count_as_numbers(tmp_path, out, name, suffix):
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in (11, 2, 0, 10, 1):
        rows = FRAME[number * 3 : number * 3 + 3] if number < 11 else FRAME[12:15]
        path = folder / f"{name.format(number)}.{suffix}"
        if suffix == "parquet":
            rows.to_parquet(path, index=False)
        else:
            rows.to_csv(path, index=False)
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.csv").write_text("no rows\n")
    (folder / "_metadata.parquet").write_text("no rows")
    expected = np.vstack([VALUES[:9], VALUES[30:], VALUES[12:15]])
    np.testing.assert_array_equal(convert(folder, out)[...], expected)


def test_the_header_of_the_first_file_may_stand_in_others(tmp_path, out):
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "1.csv").write_text("a,b\n1,2\n")
    (folder / "2.csv").write_text("3,4\n")
    (folder / "3.csv").write_text("")
    (folder / "4.csv").write_text("a,b\n")
    (folder / "10.csv").write_text("# a comment\na,b\n5,6\n")
    np.testing.assert_array_equal(convert(folder, out)[...], [[1, 2], [3, 4], [5, 6]])
    (folder / "11.csv").write_text("b,a\n7,8\n")
    with pytest.raises(ValueError, match=r"'11\.csv': its columns are 'b', 'a', and those of '1\.csv' 'a', 'b'"):
        convert(folder, out, overwrite=True)
    (folder / "11.csv").write_text("7,8,9\n")
    with pytest.raises(ValueError, match=r"'11\.csv' has 3 columns, and '1\.csv' has 2"):
        convert(folder, out, overwrite=True)
    np.testing.assert_array_equal(convert(folder / "10.csv", out, overwrite=True)[...], [[5, 6]])


def test_parts_without_a_header(tmp_path, out):
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in range(12):
        with gzip.open(folder / f"x{number}.txt.gz", "wt") as file:
            file.write(f"{number}.5 1e{number}\n")
    np.testing.assert_array_equal(convert(folder, out)[:, 0], np.arange(12) + 0.5)


def test_a_zarr_group_is_named_as_what_it_is(tmp_path, out):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    group.create_group("X", attributes={"encoding-type": "csr_matrix", "shape": [3, 2]})
    with pytest.raises(ValueError, match=r"a.zarr/X' is a sparse matrix of AnnData \(csr_matrix\)"):
        convert(tmp_path / "a.zarr/X", out)
    group.create_array("Y", data=np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"is a Zarr array already"):
        convert(tmp_path / "a.zarr/Y", out)


def test_folders_without_rows(tmp_path, out):
    for name in ("year=2023", "year=2024"):
        (tmp_path / "hive" / name).mkdir(parents=True)
    words = "is a folder without .parquet files; it has folders, such as 'year=2023': convert each of them"
    with pytest.raises(ValueError, match=words):
        convert(tmp_path / "hive", out)
    assert not out.exists()
