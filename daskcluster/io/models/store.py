"""The Zarr group of a model: written whole, and compared with its digests before anything in it is believed."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zarr
from numpy.typing import NDArray

from ...errors import DamagedStoreError
from ...files import atomic_path, check_output, check_outside, create_array, create_group, kind_of, place_at
from ...files.digests import Damage, check_digest, describe_content, json_digest, read_arrays, reading
from ...files.nodes import found_at_url, is_nothing, no_node, open_node, zip_of
from ...files.places import NAMES, expand
from ...files.urls import is_url
from ...typing import PathInput
from .classes import PIPELINE
from .decoding import Decoder, UnknownClass
from .encoding import Encoder

__all__ = ["FORMAT_VERSION", "load_model", "model_summary", "save_model", "write_model"]

#: Version of the format that `save_model` writes. Raise it when older versions of the package would misread a
#: model. The digest of the description is made in the same way in every format.
FORMAT_VERSION = 1


# -- saving --------------------------------------------------------------------------------------------------


def save_model(estimator: Any, path: PathInput, overwrite: bool = False) -> None:
    """Store a fitted estimator as a Zarr group.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this package, or a scikit-learn `Pipeline` of standard, robust or min-max
        scalers and one: then the scaling belongs to the model.
    path : str or os.PathLike
        The group to be.
    overwrite : bool
        Replace an existing model, and nothing else. The old one stays until the new one is complete.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the estimator, or a step of the pipeline, is not fitted.
    FileExistsError
        If `path` exists and `overwrite` is false, or it is something else than a model; or if it lies inside a Zarr
        array, another model or the storage of a fit.
    DiskFullError
        If the disk is full.
    TypeError
        If the class or one of its parameters cannot be stored as arrays and JSON: a function, for one.

    Notes
    -----
    A random generator given as ``random_state`` is not stored: the loaded model has None there and predicts
    the same. ``labels_`` is no part of the model; it is as long as the data.
    """
    check_outside(place_at(path), os.fspath(path))
    check_output(path, overwrite=overwrite, kind="model")
    write_model(estimator, path, overwrite)


def write_model(estimator: Any, path: PathInput, overwrite: bool = False) -> None:
    """Store a fitted estimator wherever `path` is, inside a named store too; see `save_model`."""
    encoder = Encoder()
    encoded = encoder.estimator(estimator, "", must_be_fitted=True)
    description = {
        "kind": "model",
        "format_version": FORMAT_VERSION,
        **encoded,
        "notes": encoder.notes,
        "versions": _versions(),
        "arrays": describe_content(encoder.arrays),
    }
    description = json.loads(json.dumps(description))  # as it is read again: the digest is of that
    needed = sum(array.nbytes for array in encoder.arrays.values()) + len(json.dumps(description))
    with atomic_path(path, overwrite=overwrite, kind="model", needed_bytes=needed) as temporary:
        group = create_group(temporary)
        for name, array in encoder.arrays.items():
            create_array(temporary / name, array.shape, array.dtype)[...] = array
        group.attrs["daskcluster"] = {**description, "digest": json_digest(description)}


def _versions() -> dict[str, str]:
    """Return the versions that matter when a model is read years later."""
    own = sys.modules[__name__.partition(".")[0]]
    versions = {"daskcluster": str(own.__version__), "python": platform.python_version()}
    return versions | {package: importlib.metadata.version(package) for package in ("numpy", "scikit-learn", "zarr")}


# -- loading -------------------------------------------------------------------------------------------------


def load_model(path: PathInput, *, classes: Iterable[type] = ()) -> Any:
    """Read an estimator that `save_model` stored.

    Parameters
    ----------
    path : str or os.PathLike
        Path or URL of the group.
    classes : iterable of type
        Estimator classes of your own that the model may hold, beside this package's.

    Returns
    -------
    estimator
        Fitted, with equal parameters, and equal predictions to the last bit. A model that was fitted on
        scaled rows comes as a scikit-learn `Pipeline`, so that `predict` scales new rows too.

    Raises
    ------
    FileNotFoundError
        If nothing exists under `path`.
    DamagedStoreError
        If anything of it is not what was saved: its files are compared with the digests that were stored with them.
        (It is a ValueError. Models of version 0.1.0 have no digests; of them what cannot be read is found.)
    ValueError
        If `path` is not a model, was written by a newer version in another format, or holds an unknown class.
    """
    stored = _read(path)
    decoder = Decoder(stored.path, stored.arrays, {cls.__name__: cls for cls in classes})
    if stored.has_digest:
        return decoder.estimator(stored.description)
    with _naming(stored.path), reading("its description"):
        try:
            return decoder.estimator(stored.description)
        except UnknownClass as error:
            unknown = error
    raise unknown


def model_summary(path: PathInput) -> dict[str, Any]:
    """Describe a stored model without importing its class.

    Parameters
    ----------
    path : str or os.PathLike
        Path or URL of the group.

    Returns
    -------
    dict
        JSON values: ``class``, ``format_version``, ``parameters``, ``fitted``, ``notes``, ``versions``; and
        ``arrays``, the shape and dtype of each array by name.
    """
    stored = _read(path)
    arrays = {name: {"shape": list(array.shape), "dtype": str(array.dtype)} for name, array in stored.arrays.items()}
    own = {key: value for key, value in stored.description.items() if key not in ("kind", "arrays", "digest")}
    return {**own, "arrays": arrays}


# -- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stored:
    """What stands in the group of a model; compared with its digests where it has some."""

    path: str
    description: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    has_digest: bool


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Make an error of damage that names the model, and says what to do."""
    try:
        yield
    except Damage as damage:
        raise DamagedStoreError(
            f"model {path!r} is damaged: {damage}; take another copy of it, or fit and save it again"
        ) from damage


def _read(path: PathInput) -> _Stored:
    expand(path)  # refuses what is no path
    name = os.fspath(path)
    with _naming(name):
        group = _open(name)
        with reading("its description"):
            description = group.attrs.asdict().get("daskcluster")
        if not isinstance(description, dict) or description.get("kind") != "model":
            if any(_is_description(value) for value in group.attrs.values()):
                raise Damage("its description is not what was saved")
            raise ValueError(f"{name!r} is a Zarr group, but not a model that daskcluster saved")
        has_digest = check_digest(description, "its description", since="arrays")
        _check_form(name, description, has_digest)
        arrays = read_arrays(group, description["arrays"] if has_digest else None)
    return _Stored(name, description, arrays, has_digest)


def _open(name: str) -> zarr.Group:
    """Open the group of a model, or say what else stands there."""
    where = expand(name)
    if is_url(where) or zip_of(where)[0] is not None:
        try:
            node = open_node(where)
        except (ImportError, PermissionError, ConnectionError) as error:
            raise no_node(name, error) from error
        except (OSError, ValueError, KeyError) as error:
            if is_url(where) and is_nothing(error):
                raise FileNotFoundError(f"no model at {name!r}: {found_at_url(where)}") from error
            raise ValueError(f"{name!r} is not a saved model: {error}") from error
    else:
        _check_standing(name, Path(where))
        with reading("its zarr.json"):
            node = zarr.open(where, mode="r")
    if not isinstance(node, zarr.Group):
        raise ValueError(f"{name!r} is a Zarr array, not a saved model")
    return node


def _check_standing(name: str, path: Path) -> None:
    """Raise what a path deserves under which no Zarr group stands."""
    standing = kind_of(path)
    if standing is None:
        raise FileNotFoundError(f"no model at {name!r}: nothing exists there")
    if standing in ("model", "group"):
        return
    if path.is_dir() and any(path.glob("*/zarr.json")):  # arrays of a model, and nothing that tells of them
        raise Damage("its zarr.json is missing, or not what was saved")
    if standing == "broken":
        raise Damage("its zarr.json cannot be read")
    if standing == "array":
        raise ValueError(f"{name!r} is a Zarr array, not a saved model")
    what = "an empty folder" if standing == "empty" else NAMES[standing]
    raise ValueError(f"{name!r} is not a saved model, but {what}")


def _is_description(value: Any) -> bool:
    return isinstance(value, dict) and bool({"format_version", "class", "digest"} & value.keys())


def _check_form(name: str, description: dict[str, Any], has_digest: bool) -> None:
    """Refuse a newer format, and a description without what every one has."""
    version = description.get("format_version")
    if has_digest and isinstance(version, int) and version > FORMAT_VERSION:
        written_by = description.get("versions", {}).get("daskcluster", "a newer version")
        raise ValueError(
            f"{name!r} has model format {version}, written by daskcluster {written_by}; "
            f"this version reads formats up to {FORMAT_VERSION}"
        )
    kinds = {"format_version": int, "class": str, "parameters": dict, "versions": dict, "notes": list}
    wrong = [key for key, kind in kinds.items() if not isinstance(description.get(key), kind)]
    if wrong or not 1 <= description["format_version"] <= FORMAT_VERSION:
        raise Damage(f"its description has no proper {', '.join(wrong or ['format_version'])}")
    if description["class"] != PIPELINE and not isinstance(description.get("fitted"), dict):
        raise Damage("its description has no fitted attributes")
