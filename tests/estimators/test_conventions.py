"""scikit-learn's conventions of today: callbacks, metadata routing, dtypes, names of features."""

from __future__ import annotations

import pickle
from typing import Any

import dask.array as da
import numpy as np
import pytest
import sklearn
from dask_ml.preprocessing import StandardScaler as LazyScaler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import daskcluster as dc
from tests.estimators.cases import BLOBS, CLASSES, TRUTH, every, of_ids

pytestmark = pytest.mark.usefixtures("small_blocks")

CHUNKED = da.from_array(BLOBS, chunks=(77, 2))


class Told:
    """A callback of scikit-learn's that notes what it is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.total: int | None = None
        self.fitted: Any = None
        self.open = 0

    def setup(self, estimator: Any, context: Any) -> None:
        self.open += 1
        self.total = context.max_subtasks

    def teardown(self, estimator: Any, context: Any) -> None:
        self.open -= 1

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any) -> None:
        self.ended.append(context.task_name)
        self.fitted = fitted_estimator


class InsidePipelines(Told):
    """The same, handed on to the steps of a pipeline."""

    max_propagation_depth = None


# -- callbacks -------------------------------------------------------------------------------------------------------


@pytest.fixture
def callbacks() -> None:
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from version 1.9 on")


@every(CLASSES)
def test_callbacks_are_told_of_stages(case, callbacks):
    told = Told()
    model = case.make().set_callbacks(told).fit(case.X, **case.more())
    assert told.begun[0] == told.ended[-1] == "fit"
    assert told.begun[1:] == told.ended[:-1]
    assert told.begun[1:] == [title for title, _ in model._record.seconds]
    assert 2 <= len(told.begun[1:]) <= told.total
    assert told.open == 0
    assert told.fitted.n_clusters_ == model.n_clusters_


def test_callbacks_end_with_a_fit_that_fails(callbacks):
    told = Told()
    model = dc.KMeans(3).set_callbacks(told)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(BLOBS > 5, np.nan, BLOBS))
    assert told.open == 0
    assert "fit" not in told.ended
    assert model.set_callbacks().fit(BLOBS).n_clusters_ == 3


def test_callbacks_reach_the_last_step_of_a_pipeline(callbacks):
    told = InsidePipelines()
    pipeline = make_pipeline(StandardScaler(), dc.KMeans(3, random_state=0)).set_callbacks(told).fit(BLOBS)
    assert {"starts", "Lloyd passes", "labels"} <= set(told.ended)
    assert told.open == 0
    assert not vars(pipeline[-1]).keys() & {"_callback_fit_ctx", "_parent_callback_ctx", "_skl_callbacks_to_teardown"}


def test_progress_bar_of_scikit_learn(callbacks, capsys):
    from sklearn.callback import ProgressBar

    model = dc.USPEC(3, n_representatives=50, random_state=0).set_callbacks(ProgressBar()).fit(CHUNKED)
    shown = capsys.readouterr().out
    assert "USPEC - fit" in shown
    assert "100%" in shown
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(BLOBS), model.labels_)


# -- metadata routing ------------------------------------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("X", [BLOBS, CHUNKED], ids=["NumPy", "dask"])
def test_weights_are_routed(X, routing):
    weights = np.where(TRUTH == 1, 50.0, 1.0)
    step = dc.KMeans(2, random_state=0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    scaler = LazyScaler() if X is CHUNKED else StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, step).fit(X, sample_weight=weights)
    scaled = pipeline[:-1].transform(X)
    alone = dc.KMeans(2, random_state=0).fit(scaled, sample_weight=weights)
    np.testing.assert_array_equal(pipeline[-1].cluster_centers_, alone.cluster_centers_)
    assert pipeline.score(X, sample_weight=weights) == alone.score(scaled, sample_weight=weights)
    assert not np.allclose(alone.cluster_centers_, dc.KMeans(2, random_state=0).fit(scaled).cluster_centers_)


def test_weights_without_a_request_are_refused(routing):
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        make_pipeline(dc.KMeans(2)).fit(BLOBS, sample_weight=np.ones(len(BLOBS)))


@every(of_ids("FastCSC", "CSPML", "FastCSPML"))
def test_constraints_are_routed(case, routing):
    constraints = dc.Constraints.from_labels(np.where(np.arange(600) % 20 == 0, TRUTH, -1))
    step = case.make().set_fit_request(constraints=True)
    pipeline = make_pipeline(StandardScaler(), step).fit(BLOBS, constraints=constraints)
    alone = case.make().fit(StandardScaler().fit_transform(BLOBS), constraints=constraints)
    np.testing.assert_array_equal(pipeline[-1].labels_, alone.labels_)


# -- dtypes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True], ids=["NumPy", "dask"])
def test_centers_and_distances_of_float32_rows_are_float32(chunked, tmp_path):
    X = (BLOBS + 1000).astype(np.float32)
    model = dc.KMeans(3, random_state=0).fit(da.from_array(X, chunks=(77, 2)) if chunked else X)
    exact = dc.KMeans(3, random_state=0).fit(X.astype(np.float64))
    assert model.cluster_centers_.dtype == np.float32
    np.testing.assert_allclose(model.cluster_centers_, exact.cluster_centers_, rtol=1e-6)
    assert (model.transform(X).dtype, model.transform(X.astype(float)).dtype) == (np.float32, np.float64)
    assert exact.transform(X).dtype == np.float64
    model.save(tmp_path / "model.zarr")
    for same in (model, dc.load_model(tmp_path / "model.zarr"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(same.predict(X), model.labels_)
        assert same.cluster_centers_.dtype == np.float32
        assert same.score(X) == pytest.approx(-model.inertia_, rel=1e-12)


def test_rounded_centers_do_not_move_a_border():
    # Spacing of float32 near 2**24 is 1 below and 2 above: rounded, the centre 16777217.5 is ...218.
    X = np.array([[2**24 - 3], [2**24 - 2], [2**24 - 1], [2**24 + 2]], dtype=np.float32)
    model = dc.KMeans(2, init=[[2**24 - 3], [2**24 + 2]]).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.score(X) == -model.inertia_


def test_centers_that_are_put_in_place_are_used():
    model = dc.KMeans(2, random_state=0).fit(np.float32([[0], [1], [10], [11]]))
    model.cluster_centers_ = np.float32([[20], [0]])
    np.testing.assert_array_equal(model.predict(np.float32([[1], [19]])), [1, 0])


# -- parameters that other classes have ------------------------------------------------------------------------------


def test_starts_by_number_or_automatic():
    for init, n_init in [("random", 10), ("k-means++", 1), ("k-means||", 1)]:
        automatic = dc.KMeans(3, init=init, n_init="auto", random_state=0).fit(BLOBS)
        counted = dc.KMeans(3, init=init, n_init=n_init, random_state=0).fit(BLOBS)
        np.testing.assert_array_equal(automatic.cluster_centers_, counted.cluster_centers_)
    with pytest.raises(TypeError, match="n_init must be an integer >= 1, got 'many'; 'auto' is"):
        dc.KMeans(3, n_init="many").fit(BLOBS)


def test_given_centers_are_one_start():
    given = BLOBS[:3]
    with pytest.warns(RuntimeWarning, match="only one init in KMeans instead of n_init=10"):
        dc.KMeans(3, init=given, n_init=10).fit(BLOBS)
    dc.KMeans(3, init=given, n_init="auto").fit(BLOBS)


# -- names of features -----------------------------------------------------------------------------------------------


def test_feature_names_of_a_grid():
    xr = pytest.importorskip("xarray")
    values = da.from_array(BLOBS.T.reshape(2, 20, 30).copy(), chunks=(1, 10, 30))
    scene = xr.DataArray(values, dims=("band", "y", "x"), coords={"band": ["red", "blue"]})
    model = dc.KMeans(3, random_state=0).fit(scene)
    assert list(model.feature_names_in_) == ["red", "blue"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(scene[::-1])
    assert model.transform(scene).data.chunks is not None
