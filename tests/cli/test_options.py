"""Kinds of values."""

from __future__ import annotations

import pytest

from daskcluster.cli.options import Count
from tests.cli.calls import fail


@pytest.mark.parametrize(("text", "rows"), [("2M", 2_000_000), ("2_000", 2000), ("1.5k", 1500), ("1e9", 10**9)])
def test_numbers_of_rows(text, rows):
    assert Count().convert(text, None, None) == rows


@pytest.mark.parametrize("rows", ["0", "-5", "1.5", "many", "nan", "inf", ""])
def test_make_refuses_what_is_no_number_of_rows(tmp_path, rows):
    assert "is not a number of rows, such as 2000000, 2e6 or 2M" in fail(
        2, "make", "flower", tmp_path / "x", "-n", rows
    )
