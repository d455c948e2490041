"""Scaled features, by one of dask-ml's scalers; a model keeps it as its first step."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from .failures import InputError
from .inputs import open_array, open_table

if TYPE_CHECKING:
    import dask.array as da

__all__ = ["SCALES", "fit_scaler"]

SCALES = {"standard": "StandardScaler", "robust": "RobustScaler", "minmax": "MinMaxScaler"}


def fit_scaler(kind: str, path: str, missing: str) -> tuple[Any, da.Array]:
    """Fit a scaler to stored rows, if `missing` is "label" to those without NaN; return it and the scaled rows."""
    import dask.array as da
    import numpy as np
    from dask_ml import preprocessing

    from ..io.sparse import CsrGroup

    if isinstance(open_array(path, sparse=True), CsrGroup):
        raise InputError(
            f"--scale takes dense rows, and {path!r} is sparse; leave it out (--metric cosine needs no scale)"
        )
    rows = fitted_on = open_table(path)
    finite = da.isfinite(rows).all(axis=1)
    if missing == "label":
        fitted_on = rows[finite]
        fitted_on.compute_chunk_sizes()
        if not len(fitted_on):
            raise InputError(f"{path!r} has no row without NaN or infinity")
        fitted_on = fitted_on.rechunk(rows.chunksize, method="tasks")  # min() refuses empty blocks
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of NaN and infinity, which are looked for below
        scaler = getattr(preprocessing, SCALES[kind])().fit(fitted_on)
    fitted = [value for name, value in vars(scaler).items() if name.endswith("_")]
    if not all(np.isfinite(value).all() for value in fitted):
        row = int(finite.argmin().compute())
        column = int(np.argmin(np.isfinite(rows[row].compute())))
        raise InputError(
            f"X contains NaN or infinity at row {row}, column {column}; --missing label gives the label -1"
        )
    return scaler, scaler.transform(rows)
