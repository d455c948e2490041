"""Fixtures of the tests of all formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from daskcluster.io.convert import rows


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.zarr"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Make readers yield many blocks, of lengths that chunks do not divide."""
    monkeypatch.setattr(rows, "BLOCK_BYTES", 7 * 24)
