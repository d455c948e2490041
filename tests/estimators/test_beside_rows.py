"""Outputs stand beside their rows: in the row chunks of a dask array or dataframe, unknown lengths included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn
import zarr

import daskcluster as dc
from tests.estimators.cases import BLOBS, CLASSES, every, of_ids, reference

pytestmark = pytest.mark.usefixtures("small_blocks")

PREDICTING = [case for case in CLASSES if case.predicts]

#: Chunks of 300, 200 or 150 rows: shorter and longer than blocks, uneven, single rows, empty ones.
LENGTHS: dict[str, Callable[[int], list[int]]] = {
    "even": lambda n: [50] * (n // 50),
    "uneven": lambda n: [1, 70, 2, n - 73],
    "one": lambda n: [n],
    "empty": lambda n: [0, 30, 0, n - 30, 0],
}


def array(X: Any, lengths: list[int]) -> da.Array:
    """Rows in chunks of these lengths."""
    return da.from_array(X, chunks=(tuple(lengths), X.shape[1]))


def unknown(X: Any, lengths: list[int]) -> da.Array:
    """The same, and no chunk tells its length."""
    rows = array(X, lengths)
    return rows[rows[:, 0] > -np.inf]


def frame(X: Any, lengths: list[int]) -> Any:
    """A dataframe of such partitions, whose lengths no one has counted."""
    return dd.from_dask_array(unknown(X, lengths), columns=[f"x{number}" for number in range(X.shape[1])])


def outputs_of(model: Any, X: Any) -> list[Any]:
    """What a fit left, and what the model says, of the rows."""
    fitted = [getattr(model, name) for name in ("labels_", "agreement_", "base_labels_") if hasattr(model, name)]
    return [*fitted, model.predict(X), model.transform(X)] if hasattr(model, "predict") else fitted


@every(CLASSES)
def test_outputs_have_the_chunks_of_an_array(case):
    for name in ("uneven", "empty"):
        X = array(case.X, LENGTHS[name](len(case.X)))
        for output in outputs_of(case.fit_chunked(X), X):
            assert output.chunks[0] == X.chunks[0]
    # The last one has empty chunks.
    np.testing.assert_array_equal(case.fit_chunked(X).labels_, reference(case).labels_)


def of_lengths(hardest: str) -> pytest.MarkDecorator:
    """Run a law for all lengths with one case, and with every other for the hardest ones: outputs have one maker."""
    all_lengths = of_ids("KMeans")
    pairs = [(case, name) for case in CLASSES for name in LENGTHS if case in all_lengths or name == hardest]
    values = [pytest.param(case, LENGTHS[name], id=f"{case.id}-{name}") for case, name in pairs]
    return pytest.mark.parametrize(("case", "lengths"), values)


@of_lengths(hardest="uneven")
@pytest.mark.parametrize("form", [array, unknown])
def test_rows_of_a_cluster_are_taken_by_a_mask(case, form, lengths):
    X = form(case.X, lengths(len(case.X)))
    model = case.fit_chunked(X)
    expected = case.X[reference(case).labels_ == 1]
    np.testing.assert_array_equal(X[model.labels_ == 1], expected)
    if case.predicts:
        np.testing.assert_array_equal(X[model.predict(X) == 1], expected)


@of_lengths(hardest="empty")
def test_labels_are_a_column_of_a_dataframe(case, lengths):
    X = frame(case.X, lengths(len(case.X)))
    model = case.fit_chunked(X)
    found = model.predict(X) if case.predicts else model.labels_
    assert found.chunks == (tuple(lengths(len(case.X))),)  # counted
    beside = X.assign(label=found).compute()
    np.testing.assert_array_equal(beside["label"], reference(case).labels_)
    np.testing.assert_array_equal(beside.drop(columns="label"), case.X)


def test_a_filtered_dataframe_keeps_its_index():
    whole = pd.DataFrame(BLOBS, columns=["a", "b"], index=np.arange(600) * 10)
    X = dd.from_pandas(whole, npartitions=4)
    X = X[X.a > 2.5]  # partitions of other lengths than before
    model = dc.KMeans(2, random_state=0).fit(X)
    beside = X.assign(label=model.predict(X)).compute()
    few = whole[whole.a > 2.5]
    assert beside.index.equals(few.index)
    np.testing.assert_array_equal(beside["label"], dc.KMeans(2, random_state=0).fit(few).labels_)


def test_outputs_of_a_named_store_and_of_a_cluster(tmp_path, client_inprocess):
    lengths = [0, 100, 500]
    for form, chunks in ((array, tuple(lengths)), (frame, tuple(lengths)), (unknown, (np.nan,) * 3)):
        X = form(BLOBS, lengths)
        for storage in (None, tmp_path / form.__name__):
            model = dc.KMeans(3, random_state=0, storage=storage).fit(X)
            np.testing.assert_equal(model.labels_.chunks, (chunks,))
            np.testing.assert_array_equal(model.labels_, dc.KMeans(3, random_state=0).fit(BLOBS).labels_)


def test_beside_a_zarr_array_outputs_keep_the_blocks(tmp_path):
    zarr.create_array(str(tmp_path / "X.zarr"), data=BLOBS, chunks=(70, 2))
    model = dc.KMeans(3, random_state=0).fit(tmp_path / "X.zarr")
    assert model.labels_.chunks == ((128,) * 4 + (88,),)
    X = da.from_zarr(str(tmp_path / "X.zarr"))
    np.testing.assert_array_equal(X[model.labels_ == 1], BLOBS[model.labels_.compute() == 1])


# -- what stands beside the rows comes in as they do -------------------------------------------------------------------


@pytest.mark.parametrize("form", ["array", "series", "table"])
def test_weights_and_labels_of_unknown_lengths(form):
    X = frame(BLOBS, [200, 0, 400])
    weights = np.linspace(1, 2, 600)
    y = np.where(np.arange(600) % 5, -1, np.arange(600) % 3)

    def beside(values: Any) -> Any:
        column = X.assign(w=da.from_array(values, chunks=((200, 0, 400),)))["w"]
        return {"array": column.to_dask_array(), "series": column, "table": column.to_frame()}[form]

    if form != "table":
        model = dc.KMeans(3, random_state=0).fit(X, sample_weight=beside(weights))
        assert model.inertia_ == dc.KMeans(3, random_state=0).fit(BLOBS, sample_weight=weights).inertia_
    guided = dc.FastCSC(3, n_representatives=60, random_state=0)
    expected = guided.fit(BLOBS, y).labels_
    np.testing.assert_array_equal(guided.fit(X, beside(y)).labels_, expected)


# -- set_output --------------------------------------------------------------------------------------------------------


@every(PREDICTING)
def test_frames_of_chunked_rows_are_lazy(case):
    model = case.fit()
    expected = model.transform(case.X)

    def read(block: Any) -> Any:
        raise AssertionError("the rows were read")

    lazy = array(case.X, [50] * (len(case.X) // 50)).map_blocks(read, dtype=case.X.dtype, meta=np.empty((0, 0)))
    assert isinstance(model.set_output(transform="pandas").transform(lazy), dd.DataFrame)
    for form in (array, unknown):
        X = form(case.X, [1, 70, 2, len(case.X) - 73])
        given = model.transform(X)
        assert isinstance(given, dd.DataFrame)
        assert list(given.columns) == list(model.get_feature_names_out())
        np.testing.assert_array_equal(given.compute(), expected)
    fresh = case.make().set_output(transform="pandas")
    given = fresh.fit_transform(array(case.X, [50] * (len(case.X) // 50)), **case.more())
    assert isinstance(given, dd.DataFrame)
    np.testing.assert_array_equal(given.compute(), expected)


def test_a_lazy_frame_has_the_index_of_the_rows():
    X = dd.from_pandas(pd.DataFrame(BLOBS, columns=["a", "b"], index=np.arange(600) * 10), npartitions=3)
    points = dc.KMeans(3, random_state=0).set_output(transform="pandas").fit_transform(X)
    assert points.index.compute().equals(X.index.compute())
    assert dd.concat([X, points], axis=1).compute().notna().all().all()


def test_what_set_output_has_no_lazy_form_for():
    X = array(BLOBS, [300, 300])
    model = dc.KMeans(3, random_state=0).fit(X)
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(model.transform(X), dd.DataFrame)
        assert isinstance(model.set_output(transform="default").transform(X), da.Array)
    with pytest.raises(ValueError, match=r"transform='polars'\) has no lazy form for chunked rows: take 'pandas'"):
        model.set_output(transform="polars").transform(X)
