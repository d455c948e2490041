"""User data and results: what comes in as arrays, what goes out as stores, saved models, other formats.

inputs.py    stored arrays as lazy dask arrays
write.py     dask arrays into Zarr arrays, aligned to their chunks and atomically
models/      fitted model <-> Zarr group of plain arrays and JSON
tables.py    files of rows that are read in place
convert/     npy, npz, csv, parquet, HDF5 -> Zarr, in bounded memory; import the function from there

The plain functions of `files` that belong to them are exported here too.
"""

from __future__ import annotations

from ..files import atomic_path, check_output, create_array, open_rows
from .inputs import open_dask
from .models import load_model, model_summary, save_model
from .write import write_array

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
