"""Arrays on disk, complete or absent: the ground floor, which computes nothing.

arrays.py    open Zarr arrays for reading; create empty ones
atomic.py    outputs that appear under their names only when they are complete
"""

from __future__ import annotations

from .arrays import choose_chunk_rows, create_array, open_rows
from .atomic import atomic_path, check_output, local_path

__all__ = [
    "atomic_path",
    "check_output",
    "choose_chunk_rows",
    "create_array",
    "local_path",
    "open_rows",
]
