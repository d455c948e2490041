"""Turn npy, npz, csv, parquet and HDF5 files into Zarr arrays, in bounded memory.

Each format has a reader: it looks at the head of the file, checks all that can be checked there, and yields
blocks of rows in file order. One writer gathers the blocks into whole chunks. So the memory is a few chunks
for any file, and the file is read once.

copy.py             `convert`: chooses the reader, casts and stores what it yields
rows.py             what is asked of a reader, and what it answers; the choice of columns
numpy_files.py      npy, npz
csv_files.py        csv and other delimited text, one file or a folder of them
csv_header.py       whether the first line of such text names the columns
parquet_files.py    parquet, one file or a folder of them
hdf5_files.py       one dataset of an HDF5, h5ad or NetCDF 4 file
parts.py            the files of a folder, in the order of their rows
arrow.py            what csv and parquet share
"""

from __future__ import annotations

from .copy import FORMATS, convert

__all__ = ["FORMATS", "convert"]
