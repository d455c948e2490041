"""Files: Zarr arrays, saved models, and other formats turned into Zarr.

zarr.py      open Zarr arrays; write them aligned to their chunks and atomically
models.py    fitted model <-> Zarr group of plain arrays and JSON
convert.py   npy, npz, csv, parquet -> Zarr, in bounded memory; import the function from there
"""

from __future__ import annotations

from .models import load_model, model_summary, save_model
from .zarr import atomic_path, check_output, create_array, open_dask, open_rows, write_array

__all__ = [
    "atomic_path",
    "check_output",
    "create_array",
    "load_model",
    "model_summary",
    "open_dask",
    "open_rows",
    "save_model",
    "write_array",
]
