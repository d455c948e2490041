"""Rows of every wrong kind, and of odd kinds that are right, given to `fit`, `predict` and `plan`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import scipy.sparse
import sparse
import zarr

import daskcluster as dc
from tests.estimators.cases import BLOBS
from tests.hostile.case import Case, refused, right

__all__ = ["CASES"]

B = BLOBS[::10].copy()
T, V = TypeError, ValueError


class WithArray:
    """What NumPy makes an array of, as it does of tensors."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return B


class WithDataframe:
    """A frame of the interchange protocol, and nothing else."""

    def __dataframe__(self, *arguments: Any, **more: Any) -> Any:
        raise AssertionError


class AnnData:
    """What annotated matrices look like."""

    X, obs, obsm = B, None, {"X_pca": B}

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise AssertionError("this takes minutes")


def chunked(X: Any) -> Any:
    return da.from_array(X, chunks=20)


TABLE = r"X: Expected 2D array \(rows, features\), got "
NUMBERS = "X must hold real numbers, got "

#: Name -> (what makes the rows, error, words).
WRONG: dict[str, tuple[Callable[[], Any], Any, str]] = {
    "None": (lambda: None, T, r"^X must be an array \(rows, features\), got None$"),
    "a number": (lambda: 3, T, "got 3$"),
    "NumPy's number": (lambda: np.float32(1.5), T, r"got np\.float32\(1\.5\)$"),
    "a boolean": (lambda: True, T, "got True$"),
    "bytes": (lambda: b"X.zarr", T, r"got bytes b'X\.zarr'$"),
    "a class": (lambda: np.ndarray, T, "got a type$"),
    "a function": (lambda: chunked, T, "got a function$"),
    "an object": (object, T, "got an object$"),
    "a generator": (lambda: (row for row in B), T, "got a generator, which can be read once only: make a list of it$"),
    "an iterator": (lambda: map(list, B), T, "got a map, which can be read once only"),
    "a set": (lambda: {1, 2}, T, "got a set: it has no order of rows$"),
    "a mapping": (lambda: {"a": [1.0]}, T, r"got dict; pass one of those it holds: \['a'\]$"),
    "AnnData": (AnnData, T, r"got AnnData; pass one of those it holds: AnnData\.obsm\['X_pca'\], AnnData\.X$"),
    "a frame of another kind": (WithDataframe, T, "got a WithDataframe$"),
    "delayed": (lambda: dask.delayed(B), T, r"got a dask Delayed: make an array of it with dask\.array\.from_delayed"),
    "a delayed call": (lambda: dask.delayed(np.zeros)((5, 2)), T, "got a dask Delayed: make an array of it"),
    "a bag": (lambda: dask.bag.from_sequence([1, 2]), T, "got a dask Bag: make a dask array or dataframe of it$"),
    "lists of unequal lengths": (lambda: [[1, 2], [3]], V, r"got \[\[1, 2\], \[3\]\]: its rows differ in length$"),
    "an empty list": (list, V, TABLE + r"1D array instead, shape \(0,\)"),
    "a range": (lambda: range(5), V, TABLE + "1D array"),
    "0-D": (lambda: np.array(1.0), V, TABLE + r"scalar array instead, shape \(\)\. Reshape your data"),
    "1-D": (
        lambda: B[:, 0],
        V,
        TABLE + r"1D array .*as with X\.reshape\(-1, 1\) for a single feature or X\.reshape\(1",
    ),
    "a series": (lambda: pd.Series([1.0, 2.0]), V, TABLE + r"1D array instead, shape \(2,\)"),
    "a lazy series": (lambda: dd.from_pandas(pd.Series([1.0, 2.0]), npartitions=1), V, TABLE + r".*shape \(\?,\)"),
    "a raster": (lambda: np.zeros((3, 4, 5)), V, r"\(band, y, x\) every pixel is a row, .* as X\.reshape\(3, -1\)\.T"),
    "a lazy raster": (lambda: da.zeros((3, 4, 5)), V, r"of one \(y, x, band\) X\.reshape\(-1, 5\) does$"),
    "4-D": (
        lambda: np.zeros((2, 3, 4, 5)),
        V,
        r"the last axis as features, all others as rows, is X\.reshape\(-1, 5\)",
    ),
    "no rows": (lambda: B[:0], V, r"^X: Found array with 0 sample\(s\) \(shape=\(0, 2\)\)"),
    "no features": (lambda: B[:, :0], V, r"^X: Found array with 0 feature\(s\) \(shape=\(60, 0\)\)|has 0 features"),
    "records": (lambda: np.zeros(5, [("a", float), ("b", float)]), V, "got records with the fields a, b; convert it"),
    "a record array": (lambda: np.rec.array(np.zeros(5, [("a", float)])), V, "records with the fields a; convert it"),
    "times": (lambda: B.astype("M8[s]"), V, NUMBERS + r"dtype datetime64\[s\]; convert it .* X\.astype\('int64'\)$"),
    "durations": (lambda: B.astype("m8[s]"), V, NUMBERS + r"dtype timedelta64\[s\]; convert it to numbers"),
    "lazy times": (lambda: chunked(B.astype("M8[s]")), V, NUMBERS + "dtype datetime64"),
    "complex": (lambda: B * 1j, V, r"Complex data not supported, got dtype complex128$"),
    "lazy complex": (lambda: chunked(B * 1j), V, "Complex data not supported"),
    "strings": (lambda: B.astype(str), V, NUMBERS + r"dtype <U\d+; bytes/strings are not read as numbers"),
    "byte strings": (lambda: B.astype("S9"), V, NUMBERS + r"dtype \|S9; bytes/strings are not read as numbers"),
    "lazy strings": (lambda: chunked(B.astype(str)), V, NUMBERS + "dtype <U"),
    "words among objects": (lambda: np.array([["a", 1]] * 9, object), V, "not all are numbers: could not convert str"),
    "objects of all kinds": (lambda: np.array([[{}, 1]] * 9, object), T, "not all are numbers: float"),
    "lazy objects": (lambda: da.from_array(B.astype(object), chunks=20), V, NUMBERS + "dtype object$"),
    "COO that is filled with ones": (lambda: sparse.COO.from_numpy(B, fill_value=1.0), V, r"got fill_value=1\.0$"),
    "masked": (lambda: np.ma.masked_less(B, 1), V, "^X must not be a masked array: fill it with NaN"),
    "chunks that are masked": (lambda: da.ma.masked_less(chunked(B), 1), V, "^X must not be a masked array"),
    "a column of words": (
        lambda: pd.DataFrame({"a": [1.0], "b": ["x"]}),
        V,
        NUMBERS + "column 'b' of dtype .*; choose",
    ),
    "a column of times": (
        lambda: pd.DataFrame({"t": pd.to_datetime(["2020"])}),
        V,
        NUMBERS + "column 't' of dtype date",
    ),
    "a lazy column of words": (
        lambda: dd.from_pandas(pd.DataFrame({"a": [1.0], "b": ["x"]}), npartitions=1),
        V,
        NUMBERS + "column 'b' of dtype",
    ),
    "sparse columns": (lambda: pd.DataFrame(B).astype(pd.SparseDtype(float)), T, r"got column 0; give X.sparse.to_coo"),
    "a column twice": (lambda: pd.DataFrame(B, columns=["a", "a"]), V, "columns of different names, got 'a' twice$"),
    "nothing there": (lambda: "nothing.zarr", FileNotFoundError, "^no Zarr array at 'nothing.zarr': nothing exists"),
    "an empty path": (lambda: "", V, "^expected a path, got ''$"),
    "a text file": (
        lambda: Path("text.txt"),
        V,
        "^'text.txt' is a file, not a Zarr array; every pass would parse its text again",
    ),
    "an HDF5 file": (lambda: "data.h5", V, "data.h5' is not an HDF5 file that can be read"),
    "a folder": (lambda: Path("folder"), V, "^'folder' is a folder, not a Zarr array: it has no Zarr metadata$"),
    "broken metadata": (lambda: "broken.zarr", V, "^'broken.zarr' has Zarr metadata that cannot be read: "),
    "an empty group": (lambda: "empty.zarr", V, "^'empty.zarr' is an empty Zarr group, not a Zarr array$"),
    "a group": (
        lambda: "group.zarr",
        V,
        r"is a Zarr group, not an array; it holds X \(60, 2\), .*such as 'group.zarr/X'$",
    ),
    "an open group": (lambda: zarr.open_group("group.zarr", mode="r"), V, "Name one of them, such as 'group.zarr/X'$"),
    "a group of AnnData": (
        lambda: "csr.zarr",
        V,
        r"csr\.zarr' is a damaged matrix: shape \(60, 2\), and arrays of \[50, 50, 50\] numbers$",
    ),
    "a model": (lambda: "model.zarr", V, r"^'model.zarr' is a saved model \(KMeans\), not a Zarr array; open it with"),
    "a stored vector": (lambda: "y.zarr", V, TABLE + r"1D array instead, shape \(60,\)"),
    "a stored raster": (lambda: "raster.zarr", V, r"\(band, y, x\) every pixel is a row"),
    "a stored number": (lambda: "scalar.zarr", V, TABLE + "scalar array"),
    "stored complex numbers": (lambda: "complex.zarr", V, "Complex data not supported"),
    "a torn zip file": (lambda: "torn.zip", V, "^'torn.zip' is not a zip file that can be read: "),
    "a protocol that nobody knows": (lambda: "nope://x", V, "^no Zarr array at 'nope://x': Protocol not known: nope$"),
    "an empty memory store": (lambda: "memory://nothing", V, "^no Zarr array at 'memory://nothing': nothing is found"),
    "a bucket without its package": (
        lambda: "gs://bucket/x.zarr",
        (ImportError, V),
        r"gs://bucket/x\.zarr': URLs of gs:// need a package that is not installed|^no Zarr array at 'gs:",
    ),
}

#: Name -> what makes rows that are those of B.
ODD: dict[str, Callable[[], Any]] = {
    "lists": lambda: B.tolist(),
    "tuples": lambda: tuple(map(tuple, B.tolist())),
    "a list of arrays": lambda: list(B),
    "what has __array__": WithArray,
    "objects that are numbers": lambda: B.astype(object),
    "Fortran order": lambda: np.asfortranarray(B),
    "backwards": lambda: B[::-1].copy()[::-1],
    "every other column": lambda: np.repeat(B, 2, axis=1)[:, ::2],
    "the other byte order": lambda: B.astype(">f8"),
    "long doubles": lambda: B.astype(np.longdouble),
    "read-only": lambda: np.broadcast_to(B, B.shape),
    "a dataframe": lambda: pd.DataFrame(B, columns=["a", "b"]),
    "a dataframe with gaps in its index": lambda: pd.DataFrame(B, index=np.arange(60) * 7),
    "nullable columns": lambda: pd.DataFrame(B, columns=["a", "b"]).astype("Float64"),
    "a lazy dataframe": lambda: dd.from_pandas(pd.DataFrame(B, columns=["a", "b"]), npartitions=3),
    "chunks of unknown length": lambda: chunked(B)[chunked(B)[:, 0] > -1e9],
    "empty chunks": lambda: da.concatenate([chunked(B[:0]), chunked(B), chunked(B[:0])]),
    "chunks across columns": lambda: da.from_array(B, chunks=(7, 1)),
    "CSR": lambda: scipy.sparse.csr_matrix(B),
    "a CSC array": lambda: scipy.sparse.csc_array(B),
    "DOK": lambda: scipy.sparse.dok_array(B),
    "COO": lambda: sparse.COO.from_numpy(B),
    "chunks of CSR": lambda: chunked(B).map_blocks(scipy.sparse.csr_matrix),
    "chunks of COO": lambda: chunked(B).map_blocks(sparse.COO.from_numpy),
    "a path": lambda: Path("X.zarr"),
    "a path in a group": lambda: "group.zarr/X",
    "a URL": lambda: f"file://{Path('X.zarr').absolute()}",
    "a zip file": lambda: "X.zip",
    "an open array": lambda: zarr.open_array("X.zarr", mode="r"),
    "a memory map": lambda: np.load("X.npy", mmap_mode="r"),
}

#: Estimators that look at rows in ways of their own.
METHODS: dict[str, Callable[[Any], Any]] = {
    "fit": lambda X: dc.KMeans(3, random_state=0).fit(X),
    "plan": lambda X: dc.USPEC(3).plan(X),
    "predict": lambda X: np.asarray(dc.load_model("model.zarr").predict(X)),
}


def _labels(X: Any) -> Any:
    return dc.KMeans(3, random_state=0).fit(X).labels_


def _of(call: Callable[[Any], Any], make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: call(make())


CASES: list[Case] = [
    *(
        refused(f"{method} {name}", _of(call, make), error, words)
        for name, (make, error, words) in WRONG.items()
        for method, call in METHODS.items()
    ),
    *(right(f"rows {name}", _of(_labels, make), _labels(B)) for name, make in ODD.items()),
]
