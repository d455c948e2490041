"""Labels and points of new rows: by the model alone, row by row, and for the rows of the fit its own labels."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.base import clone

from tests.estimators.cases import CASES, CLASSES, assert_equal_fits, chunked_reference, every, fitted, reference

pytestmark = pytest.mark.usefixtures("small_blocks")

PREDICTING = [case for case in CASES if case.predicts]
NOT_PREDICTING = [case for case in CASES if not case.predicts]


@every(PREDICTING, options=False)
def test_the_rows_of_the_fit_get_their_labels(case):
    model = reference(case)
    np.testing.assert_array_equal(model.predict(case.X), model.labels_)
    np.testing.assert_array_equal(chunked_reference(case).predict(case.X), model.labels_)


@every(PREDICTING, options=False)
def test_every_form_of_rows_gets_the_same(case, tmp_path):
    model, X = reference(case), case.X
    points = model.transform(X)
    zarr.create_array(str(tmp_path / "X.zarr"), data=X, chunks=(70, X.shape[1]))
    for form in (da.from_array(X, chunks=(41, -1)), da.from_array(X, chunks=(-1, 1)), tmp_path / "X.zarr"):
        for lazy, expected in ((model.predict(form), model.labels_), (model.transform(form), points)):
            assert isinstance(lazy, da.Array)
            assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_array_equal(lazy.compute(), expected)
    forms = [np.asfortranarray(X)]
    if not case.foreign:
        forms += [X.tolist(), X.astype(np.float64)]
    for form in forms:
        np.testing.assert_array_equal(model.predict(form), model.labels_)


@every(PREDICTING, options=False)
def test_a_row_is_labelled_by_itself(case):
    """Whatever other rows are beside it, and in which order."""
    model = reference(case)
    order = np.random.default_rng(0).permutation(len(case.X))
    np.testing.assert_array_equal(model.predict(case.X[order]), model.labels_[order])
    np.testing.assert_array_equal(model.predict(case.X[7:8]), model.labels_[7:8])
    np.testing.assert_array_equal(model.transform(case.X[order]), model.transform(case.X)[order])


@every(PREDICTING, options=False)
def test_points(case):
    model = reference(case)
    points = model.transform(case.X)
    assert points.shape == (len(case.X), len(model.get_feature_names_out()))
    assert np.issubdtype(points.dtype, np.floating)
    assert np.isfinite(points).all()
    assert len(np.unique(points, axis=0)) > model.n_clusters_
    np.testing.assert_array_equal(case.make().fit_transform(case.X, **case.more()), points)


@every(CLASSES)
def test_fit_and_fit_predict_give_the_same(case):
    labels = reference(case).labels_
    assert labels.dtype == np.int32
    assert labels.shape == (len(case.X),)
    np.testing.assert_array_equal(case.make().fit_predict(case.X, **case.more()), labels)


@every(CLASSES)
def test_fit_returns_the_estimator(case):
    model = case.make()
    assert model.fit(case.X, **case.more()) is model


@every(CASES, options=False)
def test_clusters_are_numbered_by_their_first_row(case):
    model = reference(case)
    names, first = np.unique(model.labels_, return_index=True)
    np.testing.assert_array_equal(names, np.arange(model.n_clusters_))
    assert (np.diff(first) > 0).all()


@every(PREDICTING, options=False)
def test_predict_is_lazy_and_leaves_the_model_as_it_was(case):
    model = case.fit()
    before = fitted(model)
    names = set(vars(model))

    def read(block):
        raise AssertionError("the rows were read")

    X = da.from_array(case.X, chunks=(70, -1)).map_blocks(read, dtype=case.X.dtype, meta=np.empty((0, 0), case.X.dtype))
    with dask.config.set(scheduler="synchronous"):
        lazy = model.predict(X), model.transform(X)
        for output in lazy:
            with pytest.raises(AssertionError, match="the rows were read"):
                output.compute()
    assert set(vars(model)) == names
    np.testing.assert_equal(fitted(model), before)


@every(NOT_PREDICTING)
def test_where_nothing_predicts_there_is_no_predict(case):
    for model in (case.make(), reference(case), clone(case.make())):
        assert not any(hasattr(model, name) for name in ("predict", "transform", "fit_transform"))
        assert hasattr(model, "fit_predict")


@every(CLASSES)
def test_the_next_fit_forgets_the_last(case):
    model = case.make()
    doubled = np.hstack([case.X, case.X])
    model.fit(case.X, **case.more()).set_params(n_clusters=2).fit(doubled, **case.more())
    fresh = case.make(n_clusters=2).fit(doubled, **case.more())
    assert_equal_fits(model, fresh)
    assert set(vars(model)) == set(vars(fresh))
