"""Fitted models saved as Zarr, pickled and copied: as large as their small arrays, and as able as before."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import dask.array as da
import joblib
import numpy as np
import pytest

import daskcluster as dc
from tests.estimators.cases import BLOBS, CASES, CLASSES, chunked_reference, every, fitted, of_ids, reference

pytestmark = pytest.mark.usefixtures("small_blocks")

SAVED = [case for case in CASES if not case.foreign]

#: Attributes with an entry a row of the fit.
LONG = ("labels_", "agreement_", "base_labels_")


def assert_as_able(twin: Any, model: Any, case: Any) -> None:
    """The same model as far as it can be asked: parameters, small attributes, what it says of rows."""
    assert type(twin) is type(model)
    assert str(twin.get_params()) == str(model.get_params())
    assert hasattr(twin, "predict") == case.predicts
    if case.predicts:
        np.testing.assert_array_equal(twin.predict(case.X), reference(case).labels_)
        np.testing.assert_array_equal(twin.transform(case.X), reference(case).transform(case.X))
        chunked = da.from_array(case.X, chunks=(70, -1))
        np.testing.assert_array_equal(twin.predict(chunked).compute(), reference(case).labels_)


def small(model: Any) -> dict[str, Any]:
    """Fitted attributes, without those with an entry a row; of models inside too."""
    return without_long(fitted(model))


def without_long(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: without_long(value) for name, value in values.items() if name not in LONG}
    return [without_long(value) for value in values] if isinstance(values, list) else values


@every(SAVED, options=False)
def test_a_loaded_model_is_the_saved_one(case, tmp_path):
    model = chunked_reference(case)
    model.save(tmp_path / "model.zarr")
    loaded = dc.load_model(tmp_path / "model.zarr")
    assert_as_able(loaded, model, case)
    assert not any(hasattr(loaded, name) for name in LONG)
    kept = small(loaded)
    assert {"n_clusters_", "n_features_in_"} <= kept.keys() <= small(model).keys()
    np.testing.assert_equal(kept, {name: value for name, value in small(model).items() if name in kept})
    loaded.save(tmp_path / "again.zarr")
    assert_as_able(dc.load_model(tmp_path / "again.zarr"), model, case)


@every(SAVED, options=False)
def test_the_parameters_of_a_loaded_model_make_the_same_model(case, tmp_path):
    reference(case).save(tmp_path / "model.zarr")
    again = type(case.make())(**dc.load_model(tmp_path / "model.zarr").get_params(deep=False))
    np.testing.assert_array_equal(again.fit(case.X, **case.more()).labels_, reference(case).labels_)


@every(case for case in CASES if case.foreign)
def test_a_model_with_a_clusterer_of_another_package_is_not_saved(case, tmp_path):
    with pytest.raises(TypeError, match="cannot be saved as a daskcluster model"):
        reference(case).save(tmp_path / "model.zarr")
    assert not list(tmp_path.iterdir())


@every(CASES, options=False)
def test_a_pickled_model_of_numpy_rows_is_whole(case):
    model = reference(case)
    twin = pickle.loads(pickle.dumps(model))
    assert set(vars(twin)) == set(vars(model)) - {"_record"}
    np.testing.assert_equal(fitted(twin), fitted(model))
    assert_as_able(twin, model, case)


def small_bytes(model: Any) -> int:
    """Bytes of the arrays, and something for every estimator's other values."""
    total = 4096
    for value in vars(model).values():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, np.ndarray):
                total += part.nbytes
            elif hasattr(part, "fit"):
                total += small_bytes(part)
    return total


def check_pickle_of_chunked(model: Any, case: Any) -> None:
    stored = pickle.dumps(model)
    for part in (b"dask.array", b"dask._", b"dask.highlevelgraph", b"distributed", b"_Held"):
        assert part not in stored
    twin = pickle.loads(stored)
    left = set(vars(model)) - set(vars(twin)) - {"_record"}
    assert left == {name for name in LONG if hasattr(model, name)}
    assert hasattr(model, "_record")
    assert_as_able(twin, model, case)


@every(CASES, options=False)
def test_a_pickled_model_of_chunked_rows_has_no_graph(case):
    model = chunked_reference(case)
    check_pickle_of_chunked(model, case)
    if not isinstance(model, dc.ISEC):  # which keeps the labels of all rows that it learned on
        assert len(pickle.dumps(model)) < small_bytes(model)


@every(of_ids("USPEC", "USENC", "SEC"))
def test_a_pickled_model_of_a_cluster_has_no_client(case, client_inprocess):
    model = case.fit_chunked()
    check_pickle_of_chunked(model, case)
    assert not any(type(value).__module__.startswith("distributed") for value in vars(model).values())


@every(CLASSES)
def test_a_pickled_model_of_a_named_store_has_no_graph(case, tmp_path):
    check_pickle_of_chunked(case.fit_chunked(storage=tmp_path / "run"), case)


@every(CLASSES)
def test_joblib_and_copies(case, tmp_path):
    model = chunked_reference(case)
    joblib.dump(model, tmp_path / "model.joblib")
    for twin in (joblib.load(tmp_path / "model.joblib"), copy.copy(model), copy.deepcopy(model)):
        assert repr(twin) == repr(model)
        assert_as_able(twin, model, case)


def test_a_lazy_parameter_survives_pickling():
    model = dc.KMeans(3, init=da.from_array(BLOBS[:3]))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).init, BLOBS[:3])
