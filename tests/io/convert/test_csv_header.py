"""The first line of a csv file: names, a row, or left to the user; never a guess that loses a row."""

from __future__ import annotations

import csv
import re

import numpy as np
import pandas as pd
import pytest

from daskcluster.io.convert import convert
from daskcluster.io.convert.csv_header import has_header

NORMAL = np.random.default_rng(0).normal(size=(50, 10))
TABLES = {
    "float64": NORMAL,
    "float32": NORMAL.astype(np.float32),
    "rounded": NORMAL.round(3),
    "integers": np.random.default_rng(0).integers(0, 256, size=(50, 10)),
    "few integers": np.random.default_rng(0).integers(0, 3, size=(50, 10)),
    "counting": np.arange(500).reshape(50, 10),
    "from zero on": np.vstack([np.arange(10), NORMAL[:5]]),
}


def told(text: str) -> bool | None:
    return has_header([row for row in csv.reader(text.splitlines()) if row])


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_no_guess_is_wrong(name, d):
    table = pd.DataFrame(TABLES[name][:, :d])
    assert told(table.to_csv(index=False)) in (True, None)
    assert told(table.to_csv(index=False, header=False)) in (False, None)
    assert told(table.add_prefix("x").to_csv(index=False)) is True
    assert told(table.to_csv()) is True  # with an index, above which no name stands


@pytest.mark.parametrize(
    ("name", "d"), [("float64", 1), ("float64", 2), ("rounded", 3), ("float32", 3), ("integers", 10)]
)
def test_the_header_that_pandas_makes_is_known(name, d):
    assert told(pd.DataFrame(TABLES[name][:, :d]).to_csv(index=False)) is True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,2019,2020\n1,0.3,0.4", True),
        ("a,1,x\nb,2,y", False),
        ("x,nan\n1,2", True),
        ("nan,1,2\n3,4,5", False),
        ("1,2\n3,4", False),
        ("0,0.5\n1,2", False),
        ("0,1,2", False),  # one line is a row
        ("0,1,2\n3,4,5\n6,7,8", False),
        ("0,1,2\n0,1,2\n3,4,5", None),
        ("0,1\n0.1,0.99\n0.2,0.95", None),  # time and a cosine, or two columns
        ("0,1\n0.1,0.99\n0.2,3.0", True),  # what writes 3.0 writes 0.0
        ("2019,2020,2021\n0.1,0.2,0.3", None),
        (",0,1\n0,3,4\n1,5,6", True),
        (",0,1\n7,3,4\n7,5,6", None),
    ],
)
def test_single_cases(text, expected):
    assert told(text) is expected


def test_a_numbered_header_is_no_row(tmp_path, out):
    pd.DataFrame(NORMAL[:, :3]).to_csv(tmp_path / "x.csv", index=False)
    stored = convert(tmp_path / "x.csv", out)
    np.testing.assert_array_equal(stored[...], NORMAL[:, :3])
    assert stored.attrs["columns"] == ["0", "1", "2"]


def test_where_lines_do_not_tell_it_must_be_said(tmp_path, out):
    (tmp_path / "x.csv").write_text("0,1\n5,3\n")
    words = "'x.csv': its first line, '0,1', may name the columns or be a row; say which with header=True"
    with pytest.raises(ValueError, match=re.escape(words)):
        convert(tmp_path / "x.csv", out)
    assert not out.exists()
    np.testing.assert_array_equal(convert(tmp_path / "x.csv", out, header=True)[...], [[5, 3]])
    stored = convert(tmp_path / "x.csv", out, header=False, overwrite=True)
    np.testing.assert_array_equal(stored[...], [[0, 1], [5, 3]])
