"""Fitted models as Zarr groups."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, ClassVar

import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

import daskcluster
from daskcluster.files.digests import json_digest
from daskcluster.io import models
from daskcluster.io.models import load_model, model_summary, save_model


class Nearest(ClusterMixin, BaseEstimator):
    """An estimator with every kind of fitted attribute."""

    _fitted_names: ClassVar[tuple[str, ...]] = (
        "centers_",
        "_lifted",
        "bandwidth_",
        "n_iter_",
        "inertia_",
        "extra_",
    )

    def __init__(self, n_clusters=2, *, k_range=(2, 3), init="k-means++", random_state=None, storage=None, base=None):
        self.n_clusters = n_clusters
        self.k_range = k_range
        self.init = init
        self.random_state = random_state
        self.storage = storage
        self.base = base

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        self.centers_ = np.asfortranarray(X[: self.n_clusters], dtype=np.float32)
        self._lifted = np.arange(6).reshape(2, 3)[:, ::2]
        self.bandwidth_ = np.float64(0.1)
        self.n_iter_ = 7
        self.inertia_ = 1 / 3
        self.extra_ = None
        self.labels_ = self.predict(X)
        return self

    def predict(self, X):
        # float32 rows, float64 scalar: the type of the scalar decides the precision
        distances = ((X[:, None, :] - self.centers_) ** 2).sum(axis=2) / self.bandwidth_
        return distances.argmin(axis=1).astype(np.int32)


ROWS = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)


def reload(model, tmp_path: Path, **options):
    save_model(model, tmp_path / "m.zarr")
    return load_model(tmp_path / "m.zarr", classes=[Nearest], **options)


def test_round_trip_keeps_parameters_types_and_predictions(tmp_path):
    model = Nearest(np.int64(3), storage=Path("run.zarr"), random_state=5).fit(ROWS)
    loaded = reload(model, tmp_path)
    assert type(loaded) is Nearest
    assert loaded.get_params() == {**model.get_params(), "storage": "run.zarr"}
    assert type(loaded.n_clusters) is np.int64
    assert type(loaded.k_range) is tuple
    for name in ("centers_", "_lifted"):
        before, after = getattr(model, name), getattr(loaded, name)
        np.testing.assert_array_equal(before, after)
        assert before.dtype == after.dtype
    assert loaded.centers_.flags.f_contiguous
    assert loaded._lifted.flags.c_contiguous
    assert loaded.bandwidth_ == model.bandwidth_
    assert type(loaded.bandwidth_) is np.float64
    assert (loaded.n_iter_, loaded.inertia_, loaded.extra_, loaded.n_features_in_) == (7, 1 / 3, None, 3)
    np.testing.assert_array_equal(loaded.predict(ROWS), model.labels_)
    assert not hasattr(loaded, "labels_")  # as long as the data


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u8", "i8", "?", ">f8", ">i2"])
def test_arrays_and_scalars_of_every_type(tmp_path, dtype):
    model = Nearest().fit(ROWS)
    model.centers_ = np.array([[0, 1], [1, 0]], dtype)
    model.extra_ = model.centers_[0, 1]
    loaded = reload(model, tmp_path)
    np.testing.assert_array_equal(loaded.centers_, model.centers_)
    assert loaded.centers_.dtype == np.dtype(dtype).newbyteorder("=")
    assert type(loaded.extra_) is type(model.extra_)
    assert loaded.extra_ == model.extra_


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 3, 4)])
def test_arrays_of_every_shape(tmp_path, shape):
    model = Nearest().fit(ROWS)
    model.extra_ = np.full(shape, 1.5)
    loaded = reload(model, tmp_path)
    assert loaded.extra_.shape == shape
    np.testing.assert_array_equal(loaded.extra_, model.extra_)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), 5e-324, 0.1 + 0.2, -0.0, 2**70])
def test_numbers_keep_every_bit(tmp_path, value):
    model = Nearest().fit(ROWS)
    model.extra_ = {"value": [value, (value,)]}
    loaded = reload(model, tmp_path).extra_
    assert repr(loaded) == repr({"value": [value, (value,)]})
    json.loads((tmp_path / "m.zarr" / "zarr.json").read_text(), parse_constant=pytest.fail)  # no NaN, no Infinity


def test_feature_names_are_kept(tmp_path):
    model = Nearest().fit(ROWS)
    model.feature_names_in_ = np.array(["mass", "größe", "c"], dtype=object)
    loaded = reload(model, tmp_path)
    assert loaded.feature_names_in_.dtype == object
    assert loaded.feature_names_in_.tolist() == ["mass", "größe", "c"]


def test_array_parameters_and_estimators_inside(tmp_path):
    base = Nearest(4)
    model = Nearest(init=ROWS[:2], base=base).fit(ROWS)
    model.extra_ = [Nearest(k).fit(ROWS) for k in (2, 3)]
    loaded = reload(model, tmp_path)
    np.testing.assert_array_equal(loaded.init, ROWS[:2])
    assert loaded.base.n_clusters == 4
    assert not hasattr(loaded.base, "centers_")
    for before, after in zip(model.extra_, loaded.extra_, strict=True):
        np.testing.assert_array_equal(before.labels_, after.predict(ROWS))


@pytest.mark.parametrize("generator", [np.random.RandomState(0), np.random.default_rng(0), np.random.SeedSequence(0)])
def test_a_generator_is_not_stored_and_the_model_says_so(tmp_path, generator):
    loaded = reload(Nearest(random_state=generator).fit(ROWS), tmp_path)
    assert loaded.random_state is None
    assert model_summary(tmp_path / "m.zarr")["notes"] == [
        f"random_state was a {type(generator).__name__}, which is not stored"
    ]


def test_nothing_is_pickled(tmp_path):
    save_model(Nearest().fit(ROWS), tmp_path / "m.zarr")
    group = zarr.open_group(str(tmp_path / "m.zarr"), mode="r")
    assert sorted(group.array_keys()) == ["_lifted", "centers_"]
    np.testing.assert_array_equal(np.asarray(group["centers_"]), ROWS[:2])  # any Zarr reader can use it
    description: Any = group.attrs["daskcluster"]
    assert description["class"] == "Nearest"
    assert description["fitted"]["n_iter_"] == 7


# -- the estimators of the package


@pytest.mark.parametrize(
    "model",
    [
        daskcluster.USPEC(4, n_representatives=20, random_state=0),
        daskcluster.USPEC(3, n_representatives=20, metric="cosine", missing="label", random_state=1),
        daskcluster.KMeans(4, init=ROWS[:4]),
    ],
    ids=["USPEC", "USPEC cosine", "KMeans"],
)
def test_estimators_predict_the_same_after_loading(tmp_path, model):
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "m.zarr")
    model.fit(ROWS)
    model.save(tmp_path / "m.zarr")
    loaded = daskcluster.load_model(tmp_path / "m.zarr")
    assert type(loaded) is type(model)
    assert str(loaded.get_params()) == str(model.get_params())
    for name in type(model)._fitted_names:
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    np.testing.assert_array_equal(loaded.predict(ROWS), model.labels_)
    np.testing.assert_array_equal(loaded.transform(ROWS), model.transform(ROWS))
    chunked = da.from_array(ROWS, chunks=(7, 3))
    np.testing.assert_array_equal(loaded.predict(chunked).compute(), model.labels_)
    again = type(model)(**loaded.get_params()).fit(ROWS)  # the parameters make the same model
    np.testing.assert_array_equal(again.labels_, model.labels_)


# -- pipelines


@pytest.mark.parametrize("name", ["StandardScaler", "RobustScaler", "MinMaxScaler"])
@pytest.mark.parametrize("package", ["sklearn", "dask_ml"])
def test_scaling_belongs_to_the_model(tmp_path, package, name):
    preprocessing = pytest.importorskip(f"{package}.preprocessing")
    X = ROWS if package == "sklearn" else da.from_array(ROWS, chunks=(20, 3))
    scaler = getattr(preprocessing, name)().fit(X)
    model = Nearest().fit(np.asarray(scaler.transform(X)))
    loaded = reload(Pipeline([("scale", scaler), ("cluster", model)]), tmp_path)
    assert type(loaded) is Pipeline
    assert type(loaded["scale"]) is type(scaler)
    np.testing.assert_array_equal(np.asarray(loaded["scale"].transform(X)), np.asarray(scaler.transform(X)))
    np.testing.assert_array_equal(loaded["cluster"].predict(np.asarray(scaler.transform(X))), model.labels_)
    arrays = model_summary(tmp_path / "m.zarr")["arrays"]
    assert {"steps.scale.scale_", "steps.cluster.centers_"} <= arrays.keys()


def test_a_pipeline_is_as_fitted_as_its_steps(tmp_path):
    from sklearn.preprocessing import StandardScaler

    with pytest.raises(NotFittedError, match="StandardScaler is not fitted"):
        save_model(Pipeline([("scale", StandardScaler()), ("cluster", Nearest().fit(ROWS))]), tmp_path / "m.zarr")
    assert os.listdir(tmp_path) == []


# -- what is refused


def test_an_estimator_that_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(NotFittedError, match="this Nearest is not fitted: it has no centers_"):
        save_model(Nearest(), tmp_path / "m.zarr")
    assert os.listdir(tmp_path) == []


def test_an_existing_path_is_refused_unless_told_otherwise(tmp_path):
    save_model(Nearest(2).fit(ROWS), tmp_path / "m.zarr")
    with pytest.raises(FileExistsError, match=r"m\.zarr' exists"):
        save_model(Nearest(3).fit(ROWS), tmp_path / "m.zarr")
    assert load_model(tmp_path / "m.zarr", classes=[Nearest]).n_clusters == 2
    save_model(Nearest(3).fit(ROWS), tmp_path / "m.zarr", overwrite=True)
    assert load_model(tmp_path / "m.zarr", classes=[Nearest]).n_clusters == 3
    assert os.listdir(tmp_path) == ["m.zarr"]


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("init", lambda X: X),
        ("extra_", object()),
        ("extra_", da.zeros(3)),
        ("extra_", np.array([1j])),
        ("extra_", np.array([object()])),
        ("extra_", np.datetime64("2020-01-01")),
        ("extra_", {1: 2}),
        ("extra_", {"$array": 2}),
        ("base", Nearest),
    ],
)
def test_values_that_are_no_arrays_or_json_are_refused(tmp_path, attribute, value):
    model = Nearest().fit(ROWS)
    setattr(model, attribute, value)
    with pytest.raises(TypeError, match=f"{attribute}: .* cannot be stored in a model"):
        save_model(model, tmp_path / "m.zarr")
    assert os.listdir(tmp_path) == []


def test_foreign_classes_are_refused(tmp_path):
    from sklearn.cluster import KMeans

    with pytest.raises(TypeError, match="KMeans cannot be saved as a daskcluster model"):
        save_model(KMeans(), tmp_path / "m.zarr")


def test_paths_that_are_no_models(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model at .*m\.zarr': nothing exists there"):
        load_model(tmp_path / "m.zarr")
    with pytest.raises(ValueError, match="is not a saved model"):
        load_model(tmp_path)
    zarr.create_array(str(tmp_path / "x.zarr"), shape=(3,), dtype="f4")
    with pytest.raises(ValueError, match="is a Zarr array, not a saved model"):
        load_model(tmp_path / "x.zarr")
    zarr.create_group(str(tmp_path / "g.zarr"), attributes={"daskcluster": {"kind": "storage"}})
    with pytest.raises(ValueError, match="is a Zarr group, but not a model"):
        load_model(tmp_path / "g.zarr")


def edit(path: Path, *, digest: bool = True, **changes) -> None:
    """Change a description, as another version of the package would write it; or without making its digest anew."""
    group = zarr.open_group(str(path), mode="r+")
    stored: Any = group.attrs["daskcluster"]
    description = {**stored, **changes}
    if digest:
        del description["digest"]
        description["digest"] = json_digest(description)
    group.attrs["daskcluster"] = description


def test_models_of_a_newer_format_and_of_unknown_classes(tmp_path):
    save_model(Nearest().fit(ROWS), tmp_path / "m.zarr")
    with pytest.raises(ValueError, match="'Nearest', which this version of daskcluster does not know"):
        load_model(tmp_path / "m.zarr")
    edit(tmp_path / "m.zarr", format_version=models.FORMAT_VERSION + 1, versions={"daskcluster": "9.9"})
    with pytest.raises(ValueError, match=r"has model format 2, written by daskcluster 9\.9; .* formats up to 1"):
        load_model(tmp_path / "m.zarr", classes=[Nearest])


@pytest.mark.parametrize("name", ["os.system", "subprocess.Popen", "__doc__", "annotations"])
def test_a_file_cannot_choose_what_is_imported(tmp_path, name):
    save_model(Nearest().fit(ROWS), tmp_path / "m.zarr")
    edit(tmp_path / "m.zarr", **{"class": name})
    with pytest.raises(ValueError, match="does not know"):
        load_model(tmp_path / "m.zarr", classes=[Nearest])


def test_models_of_another_version_of_a_class(tmp_path):
    save_model(Nearest().fit(ROWS), tmp_path / "m.zarr")
    edit(tmp_path / "m.zarr", parameters={"n_clusters": 2, "not_yet_invented": 1})
    with pytest.raises(ValueError, match=r"does not fit this version's Nearest: .*not_yet_invented"):
        load_model(tmp_path / "m.zarr", classes=[Nearest])
    edit(tmp_path / "m.zarr", parameters={}, fitted={"centers_": {"$array": "lost"}})
    with pytest.raises(ValueError, match="has no array 'lost'"):
        load_model(tmp_path / "m.zarr", classes=[Nearest])


def test_summary(tmp_path):
    save_model(Nearest(3).fit(ROWS), tmp_path / "m.zarr")
    summary = model_summary(tmp_path / "m.zarr")
    json.dumps(summary)
    assert summary["class"] == "Nearest"
    assert summary["parameters"]["n_clusters"] == 3
    assert summary["arrays"]["centers_"] == {"shape": [3, 3], "dtype": "float32"}
    assert {"python", "daskcluster", "numpy", "zarr"} <= summary["versions"].keys()
