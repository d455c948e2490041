"""Checks, types and failures, for all formats."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import daskcluster
from daskcluster.files import open_rows
from daskcluster.io.convert import convert


@pytest.mark.parametrize("format", ["npy", "npz", "parquet"])
def test_files_that_are_not_what_their_name_says(tmp_path, out, format):
    (tmp_path / f"x.{format}").write_text("certainly not")
    with pytest.raises(ValueError, match=rf"'x\.{format}' is not an? {format} file"):
        convert(tmp_path / f"x.{format}", out)


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
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    values = np.array([[1.0, 2.0], [3.0, 200.0]])
    np.save(tmp_path / "x.npy", values)
    (tmp_path / "x.csv").write_text("1,2\n3,200")
    pq.write_table(pa.table({"a": values[:, 0], "b": values[:, 1]}), tmp_path / "x.parquet")
    for format in ("npy", "csv", "parquet"):
        stored = convert(tmp_path / f"x.{format}", out, dtype=dtype, overwrite=True)
        assert stored.dtype == np.dtype(dtype).newbyteorder("=")
        np.testing.assert_array_equal(stored[...], values)


def test_arguments_are_checked_first(tmp_path, out):
    with pytest.raises(FileNotFoundError, match=r"no file at .*x\.csv"):
        convert(tmp_path / "x.csv", out)
    (tmp_path / "x.csv").write_text("1,2")
    for arguments, message in [
        ({"format": "xls"}, "format: expected one of npy, npz, csv, parquet, hdf5, got 'xls'"),
        ({"dtype": "str"}, "dtype: expected integers or floating numbers"),
        ({"dtype": "nonsense"}, "dtype: expected a numeric type"),
        ({"chunk_rows": 0}, "chunk_rows must be an integer >= 1, got 0"),
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
    (tmp_path / "x.dat").write_text("1,2\n3,4")
    np.testing.assert_array_equal(convert(tmp_path / "x.dat", out, format="csv")[...], [[1, 2], [3, 4]])


def test_missing_packages_name_the_extra(tmp_path, out, monkeypatch):
    (tmp_path / "x.csv").write_text("1,2")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"csv files needs pyarrow.*pip install 'daskcluster\[convert\]'"):
        convert(tmp_path / "x.csv", out)


def test_failure_while_reading_leaves_the_old_array(tmp_path, out):
    (tmp_path / "x.csv").write_text("1,2")
    convert(tmp_path / "x.csv", out)
    (tmp_path / "x.csv").write_text("1,2\n" * 300 + "1,x")
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
            cwd=Path(daskcluster.__file__).parents[1],
        )
        peaks.append(int(output.stdout))
    assert peaks[1] < 1.1 * peaks[0], peaks
