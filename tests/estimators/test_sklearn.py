"""USPEC and KMeans as scikit-learn estimators: its own checks, cloning, pipelines, pandas, pickling."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import dask.array as da
import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import daskcluster as dc

BLOBS, _ = make_blobs(600, centers=[[0, 0], [5, 5], [0, 6]], cluster_std=0.4, random_state=0)
CHUNKED = da.from_array(BLOBS, chunks=(77, 2))

ESTIMATORS = {
    "USPEC": lambda **parameters: dc.USPEC(
        **{"n_clusters": 3, "n_representatives": 60, "random_state": 0} | parameters
    ),
    "KMeans": lambda **parameters: dc.KMeans(**{"n_clusters": 3, "random_state": 0} | parameters),
}


@pytest.fixture(params=ESTIMATORS)
def make(request: pytest.FixtureRequest) -> Any:
    """Make an estimator of each class, for three clusters."""
    return ESTIMATORS[request.param]


def expected_failures(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, dc.KMeans):
        return {
            "check_sample_weight_equivalence_on_dense_data": "shuffles the weighted rows; clusters are numbered by "
            "their first row and starts are drawn by row number, so the order of the rows shows in the labels"
        }
    return {}


@parametrize_with_checks(
    [dc.KMeans(n_clusters=2), dc.USPEC(n_clusters=2, n_representatives=50), dc.USPEC()],
    expected_failed_checks=expected_failures,
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_pinned_signatures():
    def defaults(cls: type) -> dict[str, Any]:
        parameters = list(inspect.signature(cls).parameters.values())
        assert parameters[0].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters[1:])
        return {parameter.name: parameter.default for parameter in parameters}

    assert defaults(dc.USPEC) == {
        "n_clusters": 8,
        "n_representatives": 1000,
        "n_neighbors": 5,
        "selection": "hybrid",
        "neighbors": "approximate",
        "candidate_factor": 10,
        "neighbor_factor": 10,
        "metric": "euclidean",
        "n_init": 3,
        "max_iter": 100,
        "missing": "raise",
        "random_state": None,
        "storage": None,
        "verbose": False,
    }
    pinned = {"n_clusters": 8, "n_init": 1, "max_iter": 100, "tol": 1e-4}
    assert defaults(dc.KMeans).items() >= pinned.items()


def test_the_constructor_stores_what_it_gets(make):
    for name in make().get_params():
        odd = object()
        model = make(**{name: odd})
        assert getattr(model, name) is odd
        assert model.get_params()[name] is odd


def test_clone_copies_parameters_and_nothing_else(make):
    model = make(n_init=2, max_iter=7).fit(BLOBS)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        twin.predict(BLOBS)
    assert set(vars(twin)) == set(model.get_params())
    np.testing.assert_array_equal(twin.fit(BLOBS).labels_, model.labels_)


def test_set_params_and_refit_forget_the_old_fit(make):
    model = make().fit(BLOBS)
    model.set_params(n_clusters=2).fit(np.hstack([BLOBS, BLOBS]))
    fresh = make(n_clusters=2).fit(np.hstack([BLOBS, BLOBS]))
    np.testing.assert_array_equal(model.labels_, fresh.labels_)
    assert (model.n_features_in_, model.n_clusters_) == (4, 2)


@pytest.mark.parametrize("X", [BLOBS, CHUNKED], ids=["numpy", "dask"])
def test_the_four_ways_to_labels_and_points_agree(make, X):
    model = make()
    assert model.fit(X) is model
    labels = np.asarray(model.labels_)
    np.testing.assert_array_equal(make().fit_predict(X), labels)
    np.testing.assert_array_equal(model.predict(X), labels)
    np.testing.assert_array_equal(make().fit_transform(X), model.transform(X))


def test_y_is_ignored(make):
    np.testing.assert_array_equal(make().fit(BLOBS, np.arange(600)).labels_, make().fit(BLOBS).labels_)


def test_pipeline(make):
    stretched = BLOBS * [1.0, 1000.0]
    pipeline = make_pipeline(StandardScaler(), make())
    labels = pipeline.fit_predict(stretched)
    np.testing.assert_array_equal(labels, make().fit(StandardScaler().fit_transform(stretched)).labels_)
    np.testing.assert_array_equal(pipeline.predict(stretched), labels)
    assert pipeline.set_params(**{f"{pipeline.steps[1][0]}__n_clusters": 2}).fit(stretched)[-1].n_clusters_ == 2


def test_pipeline_as_a_feature_step():
    pipeline = make_pipeline(ESTIMATORS["USPEC"](), ESTIMATORS["KMeans"]())
    assert set(pipeline.fit_predict(BLOBS)) == {0, 1, 2}
    assert list(pipeline[:-1].get_feature_names_out()) == ["uspec0", "uspec1", "uspec2"]


def test_pipeline_with_lazy_scaling_stays_lazy(make):
    from dask_ml.preprocessing import StandardScaler as LazyScaler

    pipeline = make_pipeline(LazyScaler(), make()).fit(CHUNKED)
    labels = pipeline.predict(CHUNKED)
    assert isinstance(labels, da.Array)
    np.testing.assert_array_equal(labels, pipeline[-1].labels_)


def test_set_output_gives_dataframes(make):
    frame = pd.DataFrame(BLOBS, columns=["east", "north"], index=np.arange(600) + 1000)
    model = make().set_output(transform="pandas")
    points = model.fit_transform(frame)
    assert isinstance(points, pd.DataFrame)
    assert list(points.columns) == list(model.get_feature_names_out())
    assert list(points.columns) == [f"{type(model).__name__.lower()}{i}" for i in range(points.shape[1])]
    assert points.index.equals(frame.index)
    np.testing.assert_array_equal(points, make().fit(frame).transform(frame))


def test_feature_names_of_dataframes(make):
    frame = pd.DataFrame(BLOBS, columns=["east", "north"])
    model = make().fit(frame)
    assert list(model.feature_names_in_) == ["east", "north"]
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["north", "east"]])
    model.fit(CHUNKED)
    assert not hasattr(model, "feature_names_in_")
    model.fit(frame).fit(BLOBS)
    assert not hasattr(model, "feature_names_in_")


def test_feature_names_of_dask_dataframes(make):
    import dask.dataframe as dd

    frame = pd.DataFrame(BLOBS, columns=["east", "north"])
    lazy = dd.from_pandas(frame, npartitions=4)
    model = make().fit(lazy)
    assert list(model.feature_names_in_) == ["east", "north"]
    np.testing.assert_array_equal(model.predict(lazy), model.labels_)
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    for wrong in (lazy[["north", "east"]], frame[["north", "east"]]):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(wrong)
    with pytest.raises(ValueError, match="now missing:\n- north"):
        model.predict(lazy[["east"]])


def test_representations(make):
    model = make(n_clusters=5)
    name = type(model).__name__
    assert repr(model).startswith(f"{name}(n_clusters=5")
    for shown in (model, make().fit(CHUNKED)):
        html = shown._repr_html_()
        assert name in html
        assert "n_clusters" in html


def test_tags(make):
    assert not get_tags(make()).input_tags.allow_nan
    assert get_tags(make(missing="label")).input_tags.allow_nan
    assert get_tags(make()).estimator_type == "clusterer"
    assert not get_tags(make()).input_tags.sparse


# -- pickling ------------------------------------------------------------------------------------------------


def small_bytes(model: Any) -> int:
    arrays = [value for value in vars(model).values() if isinstance(value, np.ndarray)]
    return sum(array.nbytes for array in arrays)


def check_small_pickle(model: Any, X: Any, labels: np.ndarray) -> None:
    stored = pickle.dumps(model)
    assert len(stored) < small_bytes(model) + 4096
    for part in (b"dask.array", b"dask._", b"dask.highlevelgraph", b"distributed", b"_Held"):
        assert part not in stored
    loaded = pickle.loads(stored)
    assert not hasattr(loaded, "labels_")
    assert set(vars(model)) - set(vars(loaded)) == {"labels_"}
    np.testing.assert_array_equal(loaded.predict(X), labels)


def test_a_pickled_model_has_the_size_of_its_small_arrays(make):
    X, _ = dc.datasets.make_circles_gaussians(40_000, chunks=5000, random_state=0)
    model = make(n_clusters=11).fit(X)
    assert isinstance(model.labels_, da.Array)
    check_small_pickle(model, X, np.asarray(model.labels_))


def test_a_pickled_model_of_a_cluster_has_no_client_and_no_graph(make, client_inprocess):
    X, _ = dc.datasets.make_circles_gaussians(10_000, chunks=1000, random_state=0)
    model = make(n_clusters=11).fit(X)
    check_small_pickle(model, X, model.labels_.compute())
    assert not any(type(value).__module__.startswith("distributed") for value in vars(model).values())


def test_a_pickled_model_of_a_named_store_has_no_graph(make, tmp_path):
    model = make(storage=tmp_path / "run").fit(CHUNKED)
    check_small_pickle(model, CHUNKED, np.asarray(model.labels_))


def test_a_pickled_model_keeps_numpy_labels(make):
    model = make().fit(BLOBS)
    loaded = pickle.loads(pickle.dumps(model))
    assert set(vars(loaded)) == set(vars(model))
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    np.testing.assert_array_equal(loaded.transform(BLOBS), model.transform(BLOBS))


@pytest.mark.parametrize("X", [BLOBS, CHUNKED], ids=["numpy", "dask"])
def test_joblib_round_trip(make, X, tmp_path):
    model = make().fit(X)
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib")
    assert repr(loaded) == repr(model)
    np.testing.assert_array_equal(loaded.predict(BLOBS), model.labels_)


def test_copies_predict_the_same(make):
    model = make().fit(CHUNKED)
    for twin in (copy.copy(model), copy.deepcopy(model)):
        np.testing.assert_array_equal(twin.predict(BLOBS), model.labels_)


def test_a_lazy_parameter_survives_pickling():
    model = dc.KMeans(3, init=da.from_array(BLOBS[:3]))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).init, BLOBS[:3])
