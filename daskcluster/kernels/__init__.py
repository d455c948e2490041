"""Functions of one block: arrays in, arrays out, no dask, no threads of their own, the GIL released."""
