"""JSON and arrays -> estimator."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ...files.nodes import CSR
from ...registry import find_class
from .classes import FOREIGN
from .encoding import Node

__all__ = ["Decoder", "UnknownClass"]


class UnknownClass(ValueError):
    """A model names a class that this version does not know."""


class Decoder:
    """Turns JSON and arrays back into an estimator."""

    def __init__(self, path: str, arrays: Mapping[str, NDArray[Any]], classes: Mapping[str, type]) -> None:
        self.path = path
        self.arrays = arrays
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
        if name in FOREIGN:
            module, _, attribute = name.rpartition(".")
            foreign: type = getattr(importlib.import_module(module), attribute)
            return foreign
        cls = find_class(name)
        if cls is None or not hasattr(cls, "_fitted_names"):
            raise UnknownClass(f"{self.path!r} holds a {name!r}, which this version of daskcluster does not know")
        return cls

    def _matrix(self, node: Mapping[str, Any]) -> Any:
        parts = tuple(self.value(node[part]) for part in CSR)
        try:
            matrix = csr_array(parts, shape=tuple(node["shape"]), copy=False)
            matrix.check_format(full_check=True)  # kernels go where the numbers point
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.path!r} holds a damaged sparse matrix: {error}") from error
        return matrix

    def value(self, node: Node) -> Any:
        """Decode one JSON value."""
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$array" in node:
            if node["$array"] not in self.arrays:
                raise ValueError(f"{self.path!r} has no array {node['$array']!r}, which its description names")
            return np.asarray(self.arrays[node["$array"]], order=node.get("order", "C"))
        if "$csr" in node:
            return self._matrix(node["$csr"])
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
