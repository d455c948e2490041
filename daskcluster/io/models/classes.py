"""Which classes may stand in a model: those of this package, and a fixed table of others."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["COMMON_NAMES", "FOREIGN", "PIPELINE", "class_of"]

PIPELINE = "sklearn.pipeline.Pipeline"

# Classes of other packages that may stand in a model, with their fitted attributes. `load_model` imports
# nothing else, whatever a file says.
_SCALERS = {
    "StandardScaler": ("mean_", "var_", "scale_", "n_samples_seen_"),
    "RobustScaler": ("center_", "scale_"),
    "MinMaxScaler": ("data_min_", "data_max_", "data_range_", "min_", "scale_", "n_samples_seen_"),
}
FOREIGN: dict[str, tuple[str, ...]] = {
    PIPELINE: (),
    **{f"dask_ml.preprocessing.{name}": fitted for name, fitted in _SCALERS.items()},
    **{f"sklearn.preprocessing.{name}": fitted for name, fitted in _SCALERS.items()},
}

# Set by scikit-learn's own input checks, or younger than the first models; kept with every model that has them.
COMMON_NAMES = ("n_features_in_", "feature_names_in_", "n_neighbors_", "gamma_", "_places", "_affinities", "_centers")


def class_of(estimator: Any) -> tuple[str, tuple[str, ...]]:
    """Return the name under which a class is stored, and the names of its fitted attributes."""
    cls = type(estimator)
    names = getattr(cls, "_fitted_names", None)
    if names is not None:
        return cls.__name__, tuple(names)
    for qualified, names in FOREIGN.items():
        module, _, name = qualified.rpartition(".")
        # An object of the class can exist only if its module has been imported.
        if name == cls.__name__ and getattr(sys.modules.get(module), name, None) is cls:
            return qualified, names
    raise TypeError(f"a {cls.__module__}.{cls.__qualname__} cannot be saved as a daskcluster model")
