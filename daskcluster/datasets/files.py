"""The real data sets of the papers, read from a folder of files."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..typing import Array

__all__ = ["load_benchmark"]

#: Environment variable that names the folder.
VARIABLE = "DASKCLUSTER_DATA"


def load_benchmark(name: str) -> tuple[Array | scipy.sparse.csr_matrix, NDArray[np.int32]]:
    """Load a benchmark set with its classes.

    Parameters
    ----------
    name : str
        Name of a file without its ending: "pendigits", "mnist", ...; a text set such as "tr11"; or a pool of
        base clusterings, "pools/pendigits".

    Returns
    -------
    X : ndarray (n, d) or scipy.sparse.csr_matrix (n, d), or ndarray (n, m) int32
        Features in the dtype of the file (small integers stay small); sparse counts for text sets; one base
        clustering a column for pools.
    y : ndarray (n,), int32
        Classes, from 0.

    Raises
    ------
    FileNotFoundError
        If the folder is missing (the message names it and the variable that chooses it), or it has no such
        set (the message lists those it has).
    ValueError
        If `name` leads out of the folder, or the file holds something else.

    Notes
    -----
    The folder is the one that the environment variable ``DASKCLUSTER_DATA`` names; by default
    ``../shared/data`` beside the checkout of this package, or beside the current folder if the package is
    installed elsewhere. Dense files hold `X` and `y`, pools `labels` and `y`, text sets what
    ``scipy.sparse.save_npz`` writes, and `y`.
    """
    folder = data_folder()
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or PurePosixPath(name).is_absolute():
        raise ValueError(f"name must be that of a set inside the data folder, got {name!r}")
    path = folder.joinpath(*parts[:-1], f"{parts[-1]}.npz")
    if not path.is_file():
        known = ", ".join(_names(folder)) or "none"
        raise FileNotFoundError(f"no set {name!r} in {folder} ({VARIABLE} names that folder); sets there: {known}")
    with np.load(path, allow_pickle=False) as stored:
        kinds = {key: kind for key, kind in _KINDS.items() if key in stored}
        if "y" not in stored or len(kinds) != 1:
            raise ValueError(f"{path} must hold y and one of {', '.join(_KINDS)}, got {', '.join(stored)}")
        y = stored["y"].astype(np.int32)
        (key,) = kinds
        X: Any = scipy.sparse.csr_matrix(scipy.sparse.load_npz(path)) if key == "indptr" else stored[key]
    if key == "labels":
        X = X.astype(np.int32)
    if X.ndim != 2 or y.shape != (X.shape[0],):
        raise ValueError(f"{path} must hold one class for each row, got shapes {X.shape} and {y.shape}")
    return X, y


#: What a file is, by an array that only files of this kind hold.
_KINDS = {"X": "dense features", "indptr": "sparse features", "labels": "base clusterings"}


def data_folder() -> Path:
    named = os.environ.get(VARIABLE)
    if named:
        folder = Path(named).expanduser()
    else:
        checkout = Path(__file__).resolve().parents[2]
        beside = checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()
        folder = beside.parent / "shared" / "data"
    if not folder.is_dir():
        told = f"{VARIABLE}={named}" if named else f"{VARIABLE} is not set, so the default was tried"
        raise FileNotFoundError(
            f"the benchmark data are missing: there is no folder {folder} ({told}). "
            f"Set the environment variable {VARIABLE} to the folder that holds them"
        )
    return folder


def _names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("**/*.npz"))
