"""Fitted models as Zarr groups: plain arrays and JSON, never pickle.

A model is one Zarr group. Each array that it needs is a Zarr array of the group; everything else is JSON in
the group's attributes under ``daskcluster``::

    {"kind": "model", "format_version": 1, "class": "USPEC", "versions": {...},
     "parameters": {"n_clusters": 8, ...}, "fitted": {"bandwidth_": ..., "representatives_": {"$array": ...},
     ...}, "notes": [...]}

An estimator class names what makes its model in ``_fitted_names``. Values that JSON lacks are objects with
one key that starts with ``$``:

=============  =========================================================================================
``$array``     name of a Zarr array in the group (``order`` says that it was in Fortran order)
``$scalar``    a NumPy scalar: dtype and value, so that arithmetic with it keeps its precision
``$float``     ``"nan"``, ``"inf"`` or ``"-inf"``, which JSON cannot hold
``$tuple``     a tuple, as a list
``$strings``   a one-dimensional array of strings, as a list
``$estimator`` an estimator inside another one: a pipeline's step, an ensemble's base clusterer
=============  =========================================================================================

Reading needs no code from the file: classes are looked up by name in this package and in a fixed table.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import math
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import zarr

from ..files import atomic_path, check_output, create_array
from ..registry import find_class
from ..typing import PathInput

__all__ = ["FORMAT_VERSION", "can_be_saved", "load_model", "model_summary", "save_model"]

#: Version of the format that `save_model` writes. Raise it when older versions of the package would misread a
#: model.
FORMAT_VERSION = 1

# Classes of other packages that may stand in a model, with their fitted attributes. `load_model` imports
# nothing else, whatever a file says.
_SCALERS = {
    "StandardScaler": ("mean_", "var_", "scale_", "n_samples_seen_"),
    "RobustScaler": ("center_", "scale_"),
    "MinMaxScaler": ("data_min_", "data_max_", "data_range_", "min_", "scale_", "n_samples_seen_"),
}
_FOREIGN: dict[str, tuple[str, ...]] = {
    "sklearn.pipeline.Pipeline": (),
    **{f"dask_ml.preprocessing.{name}": fitted for name, fitted in _SCALERS.items()},
    **{f"sklearn.preprocessing.{name}": fitted for name, fitted in _SCALERS.items()},
}

# Set by scikit-learn's own input checks; kept with every model that has them.
_COMMON_NAMES = ("n_features_in_", "feature_names_in_")

Node = Any  # a JSON value


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
        Replace an existing store. The old one stays until the new one is complete.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the estimator, or a step of the pipeline, is not fitted.
    FileExistsError
        If `path` exists and `overwrite` is false.
    TypeError
        If the class or one of its parameters cannot be stored as arrays and JSON: a function, for one.

    Notes
    -----
    A random generator given as ``random_state`` is not stored: the loaded model has None there and predicts
    the same. ``labels_`` is no part of the model; it is as long as the data.
    """
    check_output(path, overwrite=overwrite)
    writer = _Encoder()
    description = writer.estimator(estimator, "", must_be_fitted=True)
    with atomic_path(path, overwrite=overwrite) as temporary:
        group = zarr.create_group(str(temporary))
        for name, array in writer.arrays.items():
            stored = create_array(temporary / name, array.shape, array.dtype)
            stored[...] = array
        group.attrs["daskcluster"] = {
            "kind": "model",
            "format_version": FORMAT_VERSION,
            **description,
            "notes": writer.notes,
            "versions": _versions(),
        }


def can_be_saved(estimator: Any) -> bool:
    """Tell whether an estimator, fitted or not, is of a class and has parameters that `save_model` takes."""
    try:
        _Encoder().estimator(estimator, "", must_be_fitted=False)
    except TypeError:
        return False
    return True


class _Encoder:
    """Turns an estimator into JSON, and collects its arrays by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.notes: list[str] = []

    def estimator(self, estimator: Any, prefix: str, *, must_be_fitted: bool) -> dict[str, Node]:
        """Encode parameters and, where it is fitted, the fitted attributes of an estimator."""
        name, fitted_names = _class_of(estimator)
        # A pipeline has no attributes of its own: it is as fitted as its steps.
        is_pipeline = name == "sklearn.pipeline.Pipeline"
        parameters = {
            key: self.value(value, f"{prefix}{key}", must_be_fitted=must_be_fitted and is_pipeline)
            for key, value in estimator.get_params(deep=False).items()
        }
        description: dict[str, Node] = {"class": name, "parameters": parameters}
        missing = [attribute for attribute in fitted_names if not hasattr(estimator, attribute)]
        if missing and must_be_fitted:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(estimator).__name__} is not fitted: it has no {', '.join(missing)}")
        if fitted_names and not missing:
            kept = [*fitted_names, *(extra for extra in _COMMON_NAMES if hasattr(estimator, extra))]
            description["fitted"] = {
                attribute: self.value(getattr(estimator, attribute), f"{prefix}{attribute}", must_be_fitted=True)
                for attribute in dict.fromkeys(kept)
            }
        return description

    def value(self, value: Any, where: str, *, must_be_fitted: bool) -> Node:
        """Encode one value; `where` names it, in messages and as an array of the group."""
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if isinstance(value, int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": str(value)}
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, np.random.RandomState | np.random.Generator | np.random.SeedSequence):
            self.notes.append(f"{where} was a {type(value).__name__}, which is not stored")
            return None
        if isinstance(value, list | tuple):
            is_step = _is_step(value)
            items = [
                self.value(item, where if is_step else f"{where}.{_name(item, index)}", must_be_fitted=must_be_fitted)
                for index, item in enumerate(value)
            ]
            return {"$tuple": items} if isinstance(value, tuple) else items
        if isinstance(value, Mapping) and all(isinstance(key, str) and key[:1] != "$" for key in value):
            return {
                key: self.value(item, f"{where}.{key}", must_be_fitted=must_be_fitted) for key, item in value.items()
            }
        if hasattr(value, "get_params") and not isinstance(value, type):
            return {"$estimator": self.estimator(value, f"{where}.", must_be_fitted=must_be_fitted)}
        raise TypeError(f"{where}: a {type(value).__name__} cannot be stored in a model (numbers, strings, arrays can)")

    def _scalar(self, value: np.generic, where: str) -> Node:
        if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
            raise TypeError(f"{where}: a scalar of type {value.dtype} cannot be stored in a model")
        return {
            "$scalar": {
                "dtype": value.dtype.name,
                "value": self.value(value.item(), where, must_be_fitted=False),
            }
        }

    def _array(self, value: np.ndarray[Any, Any], where: str) -> Node:
        if value.dtype.kind in "UO" and value.ndim == 1 and all(isinstance(item, str) for item in value):
            return {"$strings": [str(item) for item in value]}
        if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
            raise TypeError(f"{where}: an array of type {value.dtype} cannot be stored in a model")
        self.arrays[where] = value
        # Matrix products round differently in the two memory orders, and a loaded model predicts what it did
        # before.
        fortran = value.flags.f_contiguous and not value.flags.c_contiguous
        return {"$array": where, "order": "F"} if fortran else {"$array": where}


def _is_step(value: Any) -> bool:
    """Tell whether a value is a pipeline's step: a name and an estimator."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and hasattr(value[1], "fit")


def _name(item: Any, index: int) -> str:
    """Name an item of a sequence: a pipeline's step by its own name, others by their number."""
    return str(item[0]) if _is_step(item) else str(index)


def _class_of(estimator: Any) -> tuple[str, tuple[str, ...]]:
    """Return the name under which a class is stored, and the names of its fitted attributes."""
    cls = type(estimator)
    names = getattr(cls, "_fitted_names", None)
    if names is not None:
        return cls.__name__, tuple(names)
    for qualified, names in _FOREIGN.items():
        module, _, name = qualified.rpartition(".")
        # An object of the class can exist only if its module has been imported.
        if name == cls.__name__ and getattr(sys.modules.get(module), name, None) is cls:
            return qualified, names
    raise TypeError(f"a {cls.__module__}.{cls.__qualname__} cannot be saved as a daskcluster model")


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
    ValueError
        If `path` is not a model, was written by a newer version in another format, or holds an unknown class.
    """
    group, description = _open_model(path)
    decoder = _Decoder(os.fspath(path), group, {cls.__name__: cls for cls in classes})
    return decoder.estimator(description)


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
    group, description = _open_model(path)
    arrays = {name: {"shape": list(array.shape), "dtype": str(array.dtype)} for name, array in sorted(group.arrays())}
    return {**{key: value for key, value in description.items() if key != "kind"}, "arrays": arrays}


def _open_model(path: PathInput) -> tuple[zarr.Group, dict[str, Any]]:
    name = os.fspath(path)
    try:
        node = zarr.open(name, mode="r")
    except (OSError, ValueError, KeyError) as error:
        if "://" not in name and not os.path.exists(name):
            raise FileNotFoundError(f"no model at {name!r}: nothing exists there") from error
        raise ValueError(f"{name!r} is not a saved model: {error}") from error
    if not isinstance(node, zarr.Group):
        raise ValueError(f"{name!r} is a Zarr array, not a saved model")
    description = node.attrs.get("daskcluster")
    if not isinstance(description, dict) or description.get("kind") != "model":
        raise ValueError(f"{name!r} is a Zarr group, but not a model that daskcluster saved")
    version = description.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        written_by = description.get("versions", {}).get("daskcluster", "a newer version")
        raise ValueError(
            f"{name!r} has model format {version}, written by daskcluster {written_by}; "
            f"this version reads formats up to {FORMAT_VERSION}"
        )
    return node, description


class _Decoder:
    """Turns JSON and arrays back into an estimator."""

    def __init__(self, path: str, group: zarr.Group, classes: Mapping[str, type]) -> None:
        self.path = path
        self.group = group
        self.classes = classes

    def estimator(self, description: Mapping[str, Any]) -> Any:
        """Make an estimator and set its fitted attributes."""
        cls = self._find_class(description["class"])
        parameters = {key: self.value(node) for key, node in description["parameters"].items()}
        try:
            estimator = cls(**parameters)
        except TypeError as error:  # a parameter that another version of the class has
            raise ValueError(f"{self.path!r} does not fit this version's {cls.__name__}: {error}") from error
        for name, node in description.get("fitted", {}).items():
            setattr(estimator, name, self.value(node))
        return estimator

    def _find_class(self, name: str) -> type:
        if name in self.classes:
            return self.classes[name]
        if name in _FOREIGN:
            module, _, attribute = name.rpartition(".")
            foreign: type = getattr(importlib.import_module(module), attribute)
            return foreign
        cls = find_class(name)
        if cls is None or not hasattr(cls, "_fitted_names"):
            raise ValueError(f"{self.path!r} holds a {name!r}, which this version of daskcluster does not know")
        return cls

    def value(self, node: Node) -> Any:
        """Decode one JSON value."""
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$array" in node:
            array = self.group.get(node["$array"])
            if not isinstance(array, zarr.Array):
                raise ValueError(f"{self.path!r} is damaged: its array {node['$array']!r} is missing")
            return np.asarray(array[...], dtype=array.dtype, order=node.get("order", "C"))
        if "$scalar" in node:
            return np.dtype(node["$scalar"]["dtype"]).type(self.value(node["$scalar"]["value"]))
        if "$float" in node:
            return float(node["$float"])
        if "$tuple" in node:
            return tuple(self.value(item) for item in node["$tuple"])
        if "$strings" in node:
            return np.array(node["$strings"], dtype=object)
        if "$estimator" in node:
            return self.estimator(node["$estimator"])
        return {key: self.value(item) for key, item in node.items()}
