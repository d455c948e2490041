"""Estimator -> JSON and arrays."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ...files.nodes import CSR
from .classes import COMMON_NAMES, PIPELINE, class_of

__all__ = ["Encoder", "Node", "can_be_saved"]

Node = Any  # a JSON value


def can_be_saved(estimator: Any) -> bool:
    """Tell whether an estimator, fitted or not, is of a class and has parameters that `save_model` takes."""
    try:
        Encoder().estimator(estimator, "", must_be_fitted=False)
    except TypeError:
        return False
    return True


class Encoder:
    """Turns an estimator into JSON, and collects its arrays by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.notes: list[str] = []

    def estimator(self, estimator: Any, prefix: str, *, must_be_fitted: bool) -> dict[str, Node]:
        """Encode parameters and, where it is fitted, the fitted attributes of an estimator."""
        name, fitted_names = class_of(estimator)
        # A pipeline has no attributes of its own: it is as fitted as its steps.
        is_pipeline = name == PIPELINE
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
            kept = [*fitted_names, *(extra for extra in COMMON_NAMES if hasattr(estimator, extra))]
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
        if issparse(value) and value.format == "csr":
            parts = {part: self._array(getattr(value, part), f"{where}.{part}") for part in CSR}
            return {"$csr": {"shape": [int(length) for length in value.shape], **parts}}
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
