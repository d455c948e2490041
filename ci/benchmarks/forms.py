"""Every form of input: peak memory of one fit against its plan, and labels against those of the NumPy array.

    ci/benchmarks/run forms                            all forms, 16 million rows of 4 numbers
    ci/benchmarks/run forms --rows 4000000 zarr npy    some of them, fewer rows
    ci/benchmarks/run forms --method USPEC

Each fit runs in a process of its own on two threads. Files are written before, by another process. "Beside" is what an
object takes beside its rows, such as the names of cells: it is the user's, so the peak, from the fit on, may be above
the plan by that. The exit code is the number of forms whose peak is above the plan, or whose labels differ.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import peak_megabytes

D = 4
THREADS = 2
NAMES = list("abcd")
#: Rows of a chunk, where a form has any.
CHUNK = 2**20


def make(n: int) -> Any:
    """Two far apart clusters."""
    rng = np.random.default_rng(0)
    X = rng.random((n, D), dtype=np.float32)
    X += 10 * rng.integers(2, size=(n, 1)).astype(np.float32)
    return X


def side(n: int) -> int:
    """Length of a square raster of so many pixels."""
    return round(n**0.5)


# -- files, written once before the fits ------------------------------------------------------------------------------


def write_zarr(path: str, X: Any) -> None:
    import zarr

    zarr.create_array(path, data=X, chunks=(CHUNK, D))


def write_hdf5(path: str, X: Any) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(2**16, D))


def write_frame(path: str, X: Any, **options: Any) -> None:
    import pandas as pd

    pd.DataFrame(X, columns=NAMES).to_parquet(path, **options)


def write_parts(path: str, X: Any) -> None:
    os.makedirs(path)
    for number, start in enumerate(range(0, len(X), CHUNK)):
        write_frame(f"{path}/part.{number:03}.parquet", X[start : start + CHUNK])


def write_mixed(path: str, X: Any) -> None:
    """Integers of two lengths, float32 and float64; as numbers what they were."""
    import pandas as pd

    whole = X.astype(np.int64)
    frame = pd.DataFrame({"a": whole[:, 0], "b": whole[:, 1].astype(np.int16), "c": X[:, 2], "d": X[:, 3].astype("f8")})
    frame.to_parquet(path)


def write_csv(path: str, X: Any) -> None:
    import pandas as pd

    pd.DataFrame(X, columns=NAMES).to_csv(path, index=False, chunksize=100_000)


def _raster(X: Any) -> Any:
    import xarray

    length = side(len(X))
    bands = np.ascontiguousarray(X.T).reshape(D, length, length)
    return xarray.DataArray(bands, dims=("band", "y", "x"), coords={"band": np.arange(D)}, name="scene")


def write_netcdf(path: str, X: Any) -> None:
    _raster(X).to_netcdf(path, engine="h5netcdf")


def write_tiff(path: str, X: Any) -> None:
    import rioxarray

    assert rioxarray
    _raster(X).rio.to_raster(path, tiled=True)


def _anndata() -> Any:
    import anndata

    if hasattr(anndata.settings, "allow_write_nullable_strings"):
        anndata.settings.allow_write_nullable_strings = True  # of pandas 3
    return anndata


def write_adata(path: str, X: Any) -> None:
    anndata = _anndata()
    anndata.AnnData(obsm={"X_pca": X}).write_h5ad(path)


def write_sparse(path: str, X: Any) -> None:
    import scipy.sparse

    anndata = _anndata()
    anndata.AnnData(X=scipy.sparse.csr_matrix(X)).write_zarr(path)


def write_sparse_h5ad(path: str, X: Any) -> None:
    import scipy.sparse

    anndata = _anndata()
    anndata.AnnData(X=scipy.sparse.csr_matrix(X)).write_h5ad(path)


def write_csr_parts(path: str, X: Any) -> None:
    import scipy.sparse

    os.makedirs(path)
    for number, start in enumerate(range(0, len(X), CHUNK)):
        rows = scipy.sparse.csr_array(X[start : start + CHUNK])
        scipy.sparse.save_npz(f"{path}/{number:03}.npz", rows, compressed=False)


# -- forms: how the rows are opened -----------------------------------------------------------------------------------


def _frame(path: str, **options: Any) -> Any:
    import dask.dataframe as dd

    return dd.read_parquet(path, **options)


def _text(path: str) -> Any:
    import dask.dataframe as dd

    return dd.read_csv(path, dtype=np.float32, blocksize="32MB")


def _from_pandas(path: str) -> Any:
    import dask.dataframe as dd
    import pandas as pd

    return dd.from_pandas(pd.DataFrame(np.load(path), columns=NAMES), npartitions=4)


def _from_numpy(path: str) -> Any:
    import dask.array as da

    return da.from_array(np.load(path), chunks=(CHUNK, D))


def _from_zarr(path: str) -> Any:
    import dask.array as da

    return da.from_zarr(path)


def _csr(path: str) -> Any:
    import anndata

    return anndata.read_zarr(path).X


def _lazy_csr(path: str) -> Any:
    import dask
    import dask.array as da
    import scipy.sparse

    meta = scipy.sparse.csr_array((0, D), dtype=np.float32)
    parts = [dask.delayed(scipy.sparse.load_npz)(part) for part in sorted(Path(path).iterdir())]
    return da.concatenate([da.from_delayed(part, (np.nan, D), meta=meta) for part in parts])


def _netcdf(path: str) -> Any:
    import xarray

    return xarray.open_dataarray(path, engine="h5netcdf", chunks={})


def _dataset(path: str) -> Any:
    return _netcdf(path).chunk(band=1, y=1000, x=1000).to_dataset("band").rename({k: NAMES[k] for k in range(D)})


def _tiff(path: str) -> Any:
    import rioxarray

    return rioxarray.open_rasterio(path, chunks={"y": 1024, "x": 1024})


def _adata(path: str, backed: str | None = None) -> Any:
    import anndata

    return anndata.read_h5ad(path, backed=backed)


OBSM = {"obsm": "X_pca"}
#: Form -> file, who writes it (None: it is another form's, or the array itself), how it is opened, options of fit.
FORMS: dict[str, tuple[str, Callable[..., None] | None, Callable[[str], Any], dict[str, str]]] = {
    "numpy": ("X.npy", None, np.load, {}),
    "memory map": ("X.npy", None, lambda path: np.load(path, mmap_mode="r"), {}),
    "npy": ("X.npy", None, str, {}),
    "zarr": ("X.zarr", write_zarr, str, {}),
    "parquet": ("one.parquet", write_frame, str, {}),
    "hdf5": ("X.h5", write_hdf5, str, {}),
    "netcdf": ("scene.nc", write_netcdf, _netcdf, {}),
    "dataset": ("scene.nc", write_netcdf, _dataset, {}),
    "geotiff": ("scene.tif", write_tiff, _tiff, {}),
    "dask array": ("X.zarr", write_zarr, _from_zarr, {}),
    "dask array of numpy": ("X.npy", None, _from_numpy, {}),
    "frame of parquet, 1": ("one.parquet", write_frame, _frame, {}),
    "frame of parquet, many": ("parts", write_parts, _frame, {}),
    "frame of parquet, mixed": ("mixed.parquet", write_mixed, _frame, {}),
    "frame of csv": ("X.csv", write_csv, _text, {}),
    "frame of pandas": ("X.npy", None, _from_pandas, {}),
    "anndata": ("cells.h5ad", write_adata, _adata, OBSM),
    "anndata, backed": ("cells.h5ad", write_adata, lambda path: _adata(path, "r"), OBSM),
    "csr": ("cells.zarr", write_sparse, _csr, {}),
    "csr group": ("cells.zarr", write_sparse, lambda path: f"{path}/X", {}),
    "csr of h5ad": ("counts.h5ad", write_sparse_h5ad, lambda path: f"{path}/X", {}),
    "csr of h5ad, backed": ("counts.h5ad", write_sparse_h5ad, lambda path: _adata(path, "r").X, {}),
    "dask array of csr": ("csr", write_csr_parts, _lazy_csr, {}),
}


# -- one fit in a process of its own ----------------------------------------------------------------------------------


def model_of(method: str) -> Any:
    """The estimator that is measured."""
    import daskcluster as dc

    parameters: dict[str, Any] = {"max_iter": 2} if method == "KMeans" else {"n_representatives": 100}
    return getattr(dc, method)(2, random_state=0, **parameters)


def fit(form: str, method: str, folder: str) -> dict[str, Any]:
    """Fit one form; megabytes of the peak, of the plan, and a mark of the labels."""
    import dask

    file, _, opened, options = FORMS[form]
    dask.config.set({"num_workers": THREADS, "temporary-directory": folder})
    small = make(3000)
    sparse = "csr" in form
    if sparse:
        import scipy.sparse

        small = scipy.sparse.csr_array(small)
    model_of(method).fit(small)  # compiled kernels are read from their cache
    before = resident()
    X = opened(os.path.join(folder, file))
    gc.collect()
    rows = X.obsm["X_pca"] if options else X
    beside = resident() - before - (in_memory(rows) if not isinstance(rows, np.memmap) else 0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
    model = model_of(method)
    plan = model.plan(rows).peak_bytes / 2**20
    labels = np.asarray(model.fit(X, **options).labels_).ravel()
    mark = zlib.crc32(np.ascontiguousarray(labels, np.int32))
    return {"peak": peak_megabytes(), "plan": plan, "beside": max(0.0, beside / 2**20), "mark": mark}


def resident() -> int:
    """Bytes of this process in memory."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def in_memory(rows: Any) -> int:
    """Bytes of rows that are in this process."""
    parts = [getattr(rows, part, None) for part in ("data", "indices", "indptr")] if hasattr(rows, "indptr") else [rows]
    return sum(part.nbytes for part in parts if type(part) is np.ndarray)


def child(*arguments: str) -> str:
    """Run this program once more; what it says."""
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True)
    lines = done.stderr.strip().splitlines()
    return done.stdout if done.returncode == 0 else json.dumps({"error": lines[-1] if lines else "killed"})


def main() -> int:
    """Print the table; the number of forms that are not as they should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forms", nargs="*", help="some of the forms; all by default")
    parser.add_argument("--rows", type=int, default=16_000_000, help="a square number")
    parser.add_argument("--method", default="KMeans", choices=["KMeans", "USPEC"])
    parser.add_argument("--folder", help="where files are kept for the next call; else they are removed")
    parser.add_argument("--one", choices=["write", "fit"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if side(given.rows) ** 2 != given.rows:
        parser.error("rows must be a square number: they are the pixels of a raster as well")
    if given.one == "fit":
        print(json.dumps(fit(given.forms[0], given.method, given.folder)))
    elif given.one == "write":
        file, write, *_ = FORMS[given.forms[0]]
        X = make(given.rows)
        write(os.path.join(given.folder, file), X) if write else np.save(os.path.join(given.folder, file), X)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            return table(given.forms or list(FORMS), given.rows, given.method, given.folder or scratch)
    return 0


def table(forms: list[str], rows: int, method: str, folder: str) -> int:
    """Measure, and print a line a form."""
    print(f"{method}, {rows:,} rows x {D} float32 ({rows * D * 4 / 2**20:.0f} MiB), {THREADS} threads; MiB")
    print(f"{'form':<26}{'peak':>8}{'beside':>8}{'plan':>8}{'/ plan':>8}  labels", flush=True)
    wrong, mark = 0, None
    options = ["--rows", str(rows), "--method", method, "--folder", folder]
    for form in ["numpy", *(form for form in forms if form != "numpy")]:
        path = Path(folder, FORMS[form][0])
        if not path.exists() and (said := child("--one", "write", *options, form)):
            print(f"{form:<26}  {json.loads(said)['error'][:100]}", flush=True)
            wrong += 1
            continue
        found = json.loads(child("--one", "fit", *options, form))
        if "error" in found:
            print(f"{form:<26}  {found['error'][:100]}", flush=True)
            wrong += 1
            continue
        mark = found["mark"] if mark is None else mark
        same = found["mark"] == mark
        top, beside, plan = found["peak"], found["beside"], found["plan"]
        share = (top - beside) / plan
        wrong += not same or share > 1
        marked = "equal" if same else "DIFFER"
        print(f"{form:<26}{top:>8.0f}{beside:>8.0f}{plan:>8.0f}{share:>8.2f}  {marked}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
