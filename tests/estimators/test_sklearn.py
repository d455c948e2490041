"""The estimators as scikit-learn's: its own checks, cloning, pipelines, pandas."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import daskcluster as dc
from tests.estimators.cases import BLOBS, CASES, CLASSES, assert_equal_fits, every, of_ids, reference

pytestmark = pytest.mark.usefixtures("small_blocks")

CHUNKED = da.from_array(BLOBS, chunks=(77, 2))

#: Those of rows that can be a step of a pipeline, each class once.
ROWS = [case for case in CLASSES if case.predicts and not case.consensus]


def expected_failures(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, dc.KMeans):
        reason = (
            "shuffles the weighted rows; clusters are numbered by their first row and starts are drawn by row number, "
            "so the order of the rows shows in the labels"
        )
        return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    return {}


def two_clusters(*ids: str) -> list[Any]:
    return [case.make(n_clusters=2) for case in of_ids(*ids)]


# Ensembles have their own in test_ensemble.py.
@parametrize_with_checks(two_clusters("KMeans", "FastCSC"), expected_failed_checks=expected_failures)
def test_checks_of_scikit_learn(estimator, check):
    pass_check(estimator, check)


@pytest.mark.slow
@parametrize_with_checks([*two_clusters("USPEC", "CSPML", "FastCSPML"), dc.USPEC()])
def test_checks_of_scikit_learn_for_others(estimator, check):
    pass_check(estimator, check)


def pass_check(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no constraints", category=UserWarning)
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
        "affinity": "gaussian",
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


# -- the protocol ----------------------------------------------------------------------------------------------------


@every(CASES)
def test_the_constructor_stores_what_it_gets(case):
    for name in case.make().get_params(deep=False):
        odd = object()
        model = case.make(**{name: odd})
        assert getattr(model, name) is odd
        assert model.get_params(deep=False)[name] is odd


@every(CASES)
def test_only_n_clusters_is_positional(case):
    parameters = list(inspect.signature(type(case.make())).parameters.values())
    assert (parameters[0].name, parameters[0].default) == ("n_clusters", 8)
    assert parameters[0].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters[1:])
    assert ("missing" in type(case.make())().get_params()) == (not case.consensus)


@every(CLASSES)
def test_clone_copies_parameters_and_nothing_else(case):
    twin = clone(reference(case))
    assert str(twin.get_params()) == str(reference(case).get_params())
    assert set(vars(twin)) == set(twin.get_params(deep=False))
    if case.predicts:
        with pytest.raises(NotFittedError):
            twin.predict(case.X)
    assert_equal_fits(twin.fit(case.X, **case.more()), reference(case))


@every(case for case in CLASSES if not case.more())
def test_y_is_ignored(case):
    assert_equal_fits(case.make().fit(case.X, np.arange(len(case.X))), reference(case))


@every(CASES)
def test_representations(case):
    name = type(case.make()).__name__
    assert repr(case.make(n_clusters=5)).startswith(f"{name}(")
    assert "n_clusters=5" in repr(case.make(n_clusters=5))
    for shown in (case.make(), reference(case)):
        html = shown._repr_html_()
        assert name in html
        assert "n_clusters" in html


@every(CASES)
def test_tags(case):
    tags = get_tags(case.make())
    assert tags.estimator_type == "clusterer"
    assert tags.input_tags.sparse == (case.predicts and not case.consensus)
    assert not tags.input_tags.allow_nan
    if not case.consensus:
        assert get_tags(case.make(missing="label")).input_tags.allow_nan


# -- pipelines and pandas --------------------------------------------------------------------------------------------


@every(ROWS)
def test_pipeline(case):
    stretched = BLOBS * [1.0, 1000.0]
    pipeline = make_pipeline(StandardScaler(), case.make())
    labels = pipeline.fit_predict(stretched)
    np.testing.assert_array_equal(labels, case.make().fit(StandardScaler().fit_transform(stretched)).labels_)
    np.testing.assert_array_equal(pipeline.predict(stretched), labels)
    assert pipeline.set_params(**{f"{pipeline.steps[1][0]}__n_clusters": 2}).fit(stretched)[-1].n_clusters_ == 2


def test_pipeline_as_a_feature_step():
    pipeline = make_pipeline(*(case.make() for case in of_ids("USPEC", "KMeans")))
    assert set(pipeline.fit_predict(BLOBS)) == {0, 1, 2}
    assert list(pipeline[:-1].get_feature_names_out()) == ["uspec0", "uspec1", "uspec2"]


@every(ROWS)
def test_pipeline_with_lazy_scaling_stays_lazy(case):
    from dask_ml.preprocessing import StandardScaler as LazyScaler

    pipeline = make_pipeline(LazyScaler(), case.make()).fit(CHUNKED)
    labels = pipeline.predict(CHUNKED)
    assert isinstance(labels, da.Array)
    np.testing.assert_array_equal(labels, pipeline[-1].labels_)


@every(ROWS)
def test_set_output_gives_dataframes(case):
    frame = pd.DataFrame(BLOBS, columns=["east", "north"], index=np.arange(600) + 1000)
    model = case.make().set_output(transform="pandas")
    points = model.fit_transform(frame)
    assert isinstance(points, pd.DataFrame)
    assert list(points.columns) == list(model.get_feature_names_out())
    assert list(points.columns) == [f"{type(model).__name__.lower()}{i}" for i in range(points.shape[1])]
    assert points.index.equals(frame.index)
    np.testing.assert_array_equal(points, case.make().fit(frame).transform(frame))


@every(ROWS)
def test_feature_names_of_dataframes(case):
    frame = pd.DataFrame(BLOBS, columns=["east", "north"])
    model = case.make().fit(frame)
    assert list(model.feature_names_in_) == ["east", "north"]
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["north", "east"]])
    model.fit(CHUNKED)
    assert not hasattr(model, "feature_names_in_")
    model.fit(frame).fit(BLOBS)
    assert not hasattr(model, "feature_names_in_")


@every(ROWS)
def test_feature_names_of_dask_dataframes(case):
    import dask.dataframe as dd

    frame = pd.DataFrame(BLOBS, columns=["east", "north"])
    lazy = dd.from_pandas(frame, npartitions=4)
    model = case.make().fit(lazy)
    assert list(model.feature_names_in_) == ["east", "north"]
    np.testing.assert_array_equal(model.predict(lazy), model.labels_)
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    for wrong in (lazy[["north", "east"]], frame[["north", "east"]]):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(wrong)
    with pytest.raises(ValueError, match="now missing:\n- north"):
        model.predict(lazy[["east"]])
