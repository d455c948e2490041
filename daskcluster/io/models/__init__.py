"""Fitted models as Zarr groups: plain arrays and JSON, never pickle.

A model is one Zarr group. Each array that it needs is a Zarr array of the group; everything else is JSON in
the group's attributes under ``daskcluster``::

    {"kind": "model", "format_version": 1, "class": "USPEC", "versions": {...},
     "parameters": {"n_clusters": 8, ...}, "fitted": {"bandwidth_": ..., "representatives_": {"$array": ...},
     ...}, "notes": [...], "arrays": {"representatives_": {"shape": ..., "dtype": ..., "digest": ...}, ...},
     "digest": ...}

Each array has a digest of its content, and ``digest`` is that of all the rest, so nothing is believed that is not what
was saved. Version 0.1.0 wrote neither ``arrays`` nor ``digest``.

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

store.py       save_model, load_model, model_summary: the group, its digests, what is damaged
encoding.py    estimator -> JSON and arrays
decoding.py    JSON and arrays -> estimator
classes.py     which classes may stand in a model
"""

from __future__ import annotations

from .encoding import can_be_saved
from .store import FORMAT_VERSION, load_model, model_summary, save_model, write_model

__all__ = ["FORMAT_VERSION", "can_be_saved", "load_model", "model_summary", "save_model", "write_model"]
