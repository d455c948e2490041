"""What good, odd and bad input gets, as NumPy and as chunked arrays, in `fit` and in `predict`."""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Callable, Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.exceptions import NotFittedError

import daskcluster as dc
from daskcluster.io import write_array
from tests.blocks import blocks_of
from tests.estimators.cases import (
    BLOBS,
    CASES,
    CLASSES,
    TRUTH,
    Case,
    as_parameter,
    assert_equal_fits,
    every,
    fitted,
    of_ids,
    reference,
    same_partition,
)

#: Each class that clusters rows and labels new ones; of the two ensembles, which read alike, one.
ROWS = {case.id: case.make for case in CLASSES if case.predicts and not case.consensus and case.id != "USENC"}
#: Those among them that are one clustering, where what matters are the numbers, or the one door for all (`io.inputs`).
SINGLE = {case.id: case.make for case in of_ids("USPEC", "KMeans", "FastCSC")}

BLOCK_ROWS = 128
pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.fixture(params=ROWS)
def make(request: pytest.FixtureRequest) -> Any:
    """Make an estimator of each class, for three clusters."""
    return ROWS[request.param]


@pytest.fixture(params=SINGLE)
def make_single(request: pytest.FixtureRequest) -> Any:
    """Make an estimator of each class that is one clustering, for three clusters."""
    return SINGLE[request.param]


def as_numpy(X: np.ndarray) -> np.ndarray:
    return X


def as_dask(X: np.ndarray) -> da.Array:
    return da.from_array(X, chunks=77)


@pytest.fixture(params=[as_numpy, as_dask], ids=["numpy", "dask"])
def given(request: pytest.FixtureRequest) -> Any:
    """Turn a NumPy array into what the user gives."""
    return request.param


def fit_and_check(model: Any, X: Any) -> np.ndarray:
    """Labels of a fit; checks what always holds."""
    before = dict(model.get_params())
    model.fit(X)
    labels = np.asarray(model.labels_)
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(model.predict(X), labels)
    valid = labels[labels >= 0]
    assert set(valid) == set(range(model.n_clusters_))
    _, first = np.unique(valid, return_index=True)
    assert (np.diff(first) > 0).all(), "clusters are numbered by their first row"
    points = np.asarray(model.transform(X))
    assert np.isfinite(points[labels >= 0]).all()
    assert np.isnan(points[labels < 0]).all()
    assert all(model.get_params()[name] is value for name, value in before.items())
    return labels


class CannotBeRead:
    """Rows that no one may read."""

    def __init__(self, shape: tuple[int, ...], dtype: Any = np.float64) -> None:
        self.shape, self.dtype, self.ndim = shape, np.dtype(dtype), len(shape)

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("the rows were read")

    def lazy(self) -> da.Array:
        meta = np.empty((0,) * self.ndim, self.dtype)
        return da.from_array(self, chunks=(50, *self.shape[1:]), name=False, asarray=False, meta=meta)


# -- the same rows in any form: laws for every estimator -------------------------------------------------------------

Form = Callable[[np.ndarray, Path], Any]


def as_zarr(X: np.ndarray, folder: Path, **options: Any) -> zarr.Array[Any]:
    return zarr.create_array(str(folder / "X.zarr"), data=X, **{"chunks": (70, X.shape[1])} | options)


def path_of(array: Any) -> Path:
    return Path(array.store.root)


def as_memory_map(X: np.ndarray, folder: Path) -> Any:
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def as_dask_dataframe(X: np.ndarray, folder: Path) -> Any:
    import dask.dataframe as dd

    return dd.from_pandas(as_frame(X, folder), npartitions=3)


def as_frame(X: np.ndarray, folder: Path) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"c{number}" for number in range(X.shape[1])])


def as_xarray(X: np.ndarray, folder: Path, *, chunked: bool = True) -> Any:
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(da.from_array(X, chunks=(70, -1)) if chunked else X, dims=("row", "feature"))


#: Forms that give NumPy labels, and those that give lazy ones.
IN_MEMORY: dict[str, Form] = {
    "fortran": lambda X, folder: np.asfortranarray(X),
    "strided": lambda X, folder: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X, folder: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "read-only memory map": as_memory_map,
    "pandas": as_frame,
    "xarray": lambda X, folder: as_xarray(X, folder, chunked=False),
}
CHUNKED: dict[str, Form] = {
    "dask": lambda X, folder: da.from_array(X, chunks=(41, -1)),
    "unknown chunk lengths": lambda X, folder: unknown(X, (41, X.shape[1])),
    "dask dataframe": as_dask_dataframe,
    "dask dataframe's values": lambda X, folder: as_dask_dataframe(X, folder).values,
    "zarr": as_zarr,
    "zarr, format 2": lambda X, folder: as_zarr(X, folder, zarr_format=2),
    "path": lambda X, folder: path_of(as_zarr(X, folder)),
    "name of a path": lambda X, folder: str(path_of(as_zarr(X, folder))),
    "dask over xarray": as_xarray,
}


def unknown(X: np.ndarray, chunks: Any = (77, 2)) -> da.Array:
    """The same rows in chunks of unknown length."""
    array = da.from_array(X, chunks=chunks)
    array = array[array[:, 0] > -np.inf]
    assert np.isnan(array.shape[0])
    return array


@pytest.fixture
def blocks_of_64():
    with blocks_of(128):
        yield


#: Those that look at their input in different ways: rows block by block, also with weights and for other clusterers;
#: all rows at once; labels. All forms go through one door (`io.inputs`), which does not know who asks, so that these
#: get every form, and the others one that is in memory and one that is not.
READERS = of_ids("USPEC", "KMeans-weights", "Ensemble-KMeans-BipartiteCut", "CSPML", "BipartiteCut")


def for_readers(forms: Iterable[str], others: Collection[str], cases: Iterable[Case] = CASES) -> pytest.MarkDecorator:
    """Run a law for every form with `READERS`, and for some forms with every other case."""
    pairs = [(case, form) for case in cases for form in forms if case in READERS or form in others]
    return pytest.mark.parametrize(
        ("case", "form"), [as_parameter(case, form, slow=case not in READERS + CLASSES) for case, form in pairs]
    )


@for_readers(IN_MEMORY | CHUNKED, others=["pandas", "zarr"])
def test_every_form_of_the_rows_gives_the_same(case, form, tmp_path):
    model = case.fit((IN_MEMORY | CHUNKED)[form](case.X, tmp_path))
    assert isinstance(model.labels_, np.ndarray if form in IN_MEMORY else da.Array)
    expected = fitted(reference(case))
    if hasattr(model, "feature_names_in_"):
        assert list(model.feature_names_in_) == [f"c{number}" for number in range(case.X.shape[1])]
        expected = without_names(expected)
    np.testing.assert_equal(without_names(fitted(model)), expected)


def without_names(values: Any) -> Any:
    """Fitted attributes without the names of columns, of models inside too."""
    if isinstance(values, dict):
        return {name: without_names(value) for name, value in values.items() if name != "feature_names_in_"}
    return [without_names(value) for value in values] if isinstance(values, list) else values


@every(CLASSES)
def test_python_numbers_are_rows_in_float64(case):
    X = case.X if case.consensus else case.X.astype(np.float64)
    assert_equal_fits(case.fit(X.tolist()), case.fit(X))


@for_readers(["i1", "f2", ">f8"], others=["f2"], cases=[case for case in CASES if not case.foreign])
def test_the_dtype_does_not_matter_where_it_holds_the_values(case, form):
    """Small whole numbers, which every dtype that a computation may run in holds."""
    X = case.X if case.consensus else np.round(4 * case.X).clip(-127, 127)
    np.testing.assert_array_equal(case.fit(X.astype(form)).labels_, whole_numbers(case).labels_)


@cache
def whole_numbers(case: Case) -> Any:
    return case.fit(case.X if case.consensus else np.round(4 * case.X).clip(-127, 127))


LABEL_FORMS: dict[str, Form] = {
    "int8": lambda y, folder: y.astype(np.int8),
    "NaN for unknown": lambda y, folder: np.where(y < 0, np.nan, y),
    "masked": lambda y, folder: np.ma.masked_array(np.where(y < 0, 7, y), mask=y < 0),
    "list": lambda y, folder: y.tolist(),
    "dask": lambda y, folder: da.from_array(y, chunks=47),
    "path": lambda y, folder: path_of(zarr.create_array(str(folder / "y.zarr"), data=y, chunks=(50,))),
}


@for_readers(LABEL_FORMS, others=["masked", "path"], cases=[case for case in CASES if "y" in case.more()])
def test_every_form_of_partial_labels_gives_the_same(case, form, tmp_path):
    y = LABEL_FORMS[form](case.more()["y"], tmp_path)
    assert_equal_fits(case.make().fit(case.X, y), reference(case))
    if form != "list":
        constraints = dc.Constraints.from_labels(y)
        assert_equal_fits(case.make().fit(da.from_array(case.X, chunks=70), constraints=constraints), reference(case))


@pytest.mark.parametrize("form", ["list", "dask"])
def test_every_form_of_weights_gives_the_same(form, tmp_path):
    (case,) = of_ids("KMeans-weights")
    weights = LABEL_FORMS[form](case.more()["sample_weight"], tmp_path)
    assert_equal_fits(case.make().fit(case.X, sample_weight=weights), reference(case))


@every(CLASSES)
def test_nothing_that_was_given_is_modified(case):
    X, more = case.X.copy(), copy.deepcopy(case.more())
    model = case.make().fit(X, **more)
    if case.predicts:
        model.predict(X)
        model.transform(X)
    np.testing.assert_array_equal(X, case.X)
    for name, value in case.more().items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(more[name], value)


@every(CLASSES)
def test_parameters_stay_as_given_and_a_fit_adds_fitted_names_only(case):
    model = case.make()
    given = dict(vars(model))
    model.fit(case.X, **case.more())
    assert all(vars(model)[name] is value for name, value in given.items())
    assert all(name.endswith("_") or name.startswith("_") for name in vars(model).keys() - given.keys())


@every(case for case in CLASSES if not case.consensus)
def test_rows_with_nan_get_no_label_and_have_no_say(case):
    missing = np.random.default_rng(5).permutation(len(case.X))[:20]
    X = case.X.copy()
    X[missing, 0] = np.nan
    first = missing.min()
    with pytest.raises(ValueError, match=f"X contains NaN at row {first}, column 0; pass missing='label'"):
        case.fit(X)
    with pytest.raises(ValueError, match=f"X contains NaN at row {first}, column 0; pass missing='label'"):
        case.fit_chunked(da.from_array(X, chunks=(70, -1)))
    model = case.fit(X, missing="label")
    assert np.flatnonzero(model.labels_ < 0).tolist() == sorted(missing)
    other = X.copy()
    other[missing] = np.inf
    np.testing.assert_array_equal(case.fit(other, missing="label").labels_, model.labels_)
    lazy = case.fit_chunked(da.from_array(X, chunks=(70, -1)), missing="label")
    np.testing.assert_array_equal(lazy.labels_, model.labels_)
    if case.predicts:
        np.testing.assert_array_equal(model.predict(X), model.labels_)


# -- NaN and infinity ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "word", "dtype"),
    [
        *((np.nan, "NaN", dtype) for dtype in ("f8", "f4", "f2", ">f4", "g")),
        (np.inf, r"infinity \(inf\)", "f4"),
        (-np.inf, r"infinity \(inf\)", "g"),
    ],
)
def test_a_value_that_is_not_finite_is_named(make_single, given, value, word, dtype):
    X = BLOBS.astype(dtype)
    X[597, 1] = value
    X[599, 0] = np.nan
    words = rf"X contains {word} at row 597, column 1; pass missing='label'"
    with pytest.raises(ValueError, match=words):
        make_single().fit(given(X))
    model = make_single().fit(given(BLOBS.astype(dtype)))
    with pytest.raises(ValueError, match=words):
        np.asarray(model.predict(given(X)))
    with pytest.raises(ValueError, match=words):
        np.asarray(model.transform(given(X)))


def test_the_first_bad_value_of_many_is_named(make, given):
    X = BLOBS.copy()
    X[[130, 131, 400, 599]] = np.nan
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match=r"infinity .* at row 3, column 1"):
        make().fit(given(X))
    with pytest.raises(ValueError, match=r"infinity .* at row 3, column 1"):
        make().fit(BLOBS).predict(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_missing_rows_get_minus_one_and_count_as_absent(make, given, dtype):
    X = BLOBS.astype(dtype)
    X[599, 1] = np.nan
    X[128:256] = np.nan  # a whole block
    X[300:310, 0] = np.inf
    X[2] = -np.inf
    valid = np.isfinite(X).all(axis=1)
    model = make(missing="label")
    labels = fit_and_check(model, given(X))
    assert (labels[~valid] == -1).all()
    alone = make().fit(X[valid])
    np.testing.assert_array_equal(labels[valid], alone.labels_)
    np.testing.assert_array_equal(alone.predict(X[valid]), labels[valid])


def test_missing_rows_in_predict_only(make, given):
    model = make(missing="label").fit(given(BLOBS))
    X = BLOBS.copy()
    X[[0, 300]] = np.nan
    labels = np.asarray(model.predict(given(X)))
    np.testing.assert_array_equal(np.flatnonzero(labels == -1), [0, 300])
    kept = labels >= 0
    np.testing.assert_array_equal(labels[kept], np.asarray(model.labels_)[kept])
    np.testing.assert_array_equal(np.asarray(model.predict(given(X[[0, 300]]))), [-1, -1])


def test_only_missing_rows(make, given):
    with pytest.raises(ValueError, match="X has no row without NaN or infinity"):
        make(missing="label").fit(given(np.full((10, 2), np.nan)))


def test_fewer_valid_rows_than_clusters(make, given):
    X = np.full((10, 2), np.nan)
    X[4:6] = [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match="n_clusters=3 and 2 such rows"):
        make(missing="label").fit(given(X))
    assert list(fit_and_check(make(missing="label", n_clusters=2), given(X))) == [-1] * 4 + [0, 1] + [-1] * 4


# -- too few rows, too few distinct rows ---------------------------------------------------------------------


def test_all_rows_equal(make, given):
    with pytest.warns(dc.FewerClustersWarning, match="found 1 clusters, not n_clusters=3") as caught:
        model = make().fit(given(np.full((300, 2), 7.0)))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.n_clusters_ == 1
    assert not np.asarray(model.labels_).any()
    assert not np.asarray(model.predict(given(np.full((300, 2), 7.0)))).any()


@pytest.mark.parametrize("distance", [1.0, 1e-9, 1e6])
def test_fewer_distinct_rows_than_clusters(make_single, given, distance):
    X = np.repeat([[0.0, 0.0], [0.0, distance]], [200, 100], axis=0)
    with pytest.warns(dc.FewerClustersWarning, match="found 2 clusters, not n_clusters=3") as caught:
        model = make_single().fit(given(X))
    assert len(caught) == 1
    np.testing.assert_array_equal(model.labels_, np.repeat([0, 1], [200, 100]))
    np.testing.assert_array_equal(model.predict(given(X)), model.labels_)


def test_as_many_distinct_rows_as_clusters_is_no_warning(make, given):
    X = np.repeat([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0]], 50, axis=0)
    np.testing.assert_array_equal(fit_and_check(make(), given(X)), np.repeat([0, 1, 2], 50))


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("cls", [dc.USPEC, dc.KMeans])
def test_fewer_rows_than_the_default_number_of_clusters(cls, given, n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    with pytest.raises(ValueError, match=f"n_clusters=8 and n_samples={n}$"):
        cls().fit(given(X))
    for k in range(1, n + 1):
        fit_and_check(cls(k, random_state=0), given(X))


@pytest.mark.parametrize("n", [50, 51])
@pytest.mark.parametrize("cls", [dc.USPEC, dc.KMeans])
def test_few_rows_with_the_defaults(cls, given, n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    model = cls(random_state=0)
    fit_and_check(model, given(X))
    assert model.n_clusters_ == 8


def test_one_cluster(make, given):
    labels = fit_and_check(make(n_clusters=1), given(BLOBS))
    assert not labels.any()


@pytest.mark.parametrize("n", [2, 30])
def test_as_many_clusters_as_rows(make_single, given, n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    np.testing.assert_array_equal(fit_and_check(make_single(n_clusters=n), given(X)), np.arange(n))


def test_more_clusters_than_rows(make, given):
    with pytest.raises(ValueError, match="n_clusters must be at most the number of rows, got n_clusters=601 and n_s"):
        make(n_clusters=601).fit(given(BLOBS))


def test_one_row_to_predict(make, given):
    model = make().fit(BLOBS)
    for i in (0, 1, 599):
        assert list(np.asarray(model.predict(given(BLOBS[i : i + 1])))) == [model.labels_[i]]


@pytest.mark.parametrize("n_neighbors", [60, 61, 1000])
def test_more_neighbors_than_representatives(given, n_neighbors):
    model = SINGLE["USPEC"](n_neighbors=n_neighbors)
    assert same_partition(fit_and_check(model, given(BLOBS)), TRUTH)


def test_one_neighbor_cuts_the_rows_by_their_nearest_representative(given):
    model = SINGLE["USPEC"](n_neighbors=1, n_representatives=3, n_clusters=3)
    labels = fit_and_check(model, given(BLOBS))
    nearest = ((BLOBS[:, None] - model.representatives_) ** 2).sum(axis=2).argmin(axis=1)
    assert same_partition(labels, nearest)


@pytest.mark.parametrize("n_representatives", [1, 2])
def test_fewer_representatives_than_clusters(given, n_representatives):
    model = SINGLE["USPEC"](n_neighbors=1, n_representatives=n_representatives)
    with pytest.warns(dc.FewerClustersWarning, match=f"found {n_representatives} clusters, not n_clusters=3"):
        fit_and_check(model, given(BLOBS))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (dc.USPEC(20, n_representatives=12), "n_representatives=12"),
        (dc.FastCSC(20, n_representatives=12), "n_representatives=12"),
        (dc.USENC(20, n_representatives=12, n_base_clusterings=3), "n_representatives=12"),
    ],
    ids=str,
)
def test_more_clusters_than_representatives_are_said(model, name):
    with pytest.warns(UserWarning, match=f"{name} and n_clusters=20|clusters, not n_clusters=20") as said:
        model.set_params(random_state=0).fit(BLOBS)
    assert len(said) == 1
    assert (model.n_clusters_ < 20) == ("not n_clusters=20" in str(said[0].message))


# -- types, layouts, magnitudes ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "i8", "u8", ">i4", ">u2", "f2", "f4", ">f4", ">f8", "g"])
def test_every_real_dtype(given, dtype):
    make_single = SINGLE["KMeans" if np.dtype(dtype).itemsize > 4 else "USPEC"]  # they are read by one door
    X = ((BLOBS + 4) * 8).astype(dtype)
    model = make_single()
    labels = fit_and_check(model, given(X))
    assert same_partition(labels, TRUTH)
    np.testing.assert_array_equal(labels, make_single().fit(X.astype(np.longdouble).astype("f8")).labels_)


def test_booleans(make, given):
    X = BLOBS > 2.5
    assert same_partition(fit_and_check(make(), given(X)), 2 * X[:, 0] + X[:, 1])


def test_integers_beyond_the_digits_of_float32(make_single, given):
    X = 2**40 + np.repeat([[0], [1], [3]], 40, axis=0)
    np.testing.assert_array_equal(fit_and_check(make_single(), given(X)), np.repeat([0, 1, 2], 40))


def test_one_feature(make, given):
    X = np.concatenate([np.linspace(low, low + 1, 200) for low in (0.0, 8.0, 20.0)])[:, None]
    assert same_partition(fit_and_check(make(), given(X)), np.repeat([0, 1, 2], 200))


def test_float32_rows_near_a_million_that_differ_by_one(make_single, given):
    X = np.float32(1e6) + np.random.default_rng(0).integers(2, size=(400, 2)).astype(np.float32)
    labels = fit_and_check(make_single(n_clusters=4), given(X))
    assert same_partition(labels, (X - X.min(axis=0)) @ [1, 2])


SCALES = [1e6, 1e-6, 1e30, 1e-30]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_unit_of_the_features_does_not_matter(make_single, given, scale, dtype):
    X = (BLOBS * scale).astype(dtype)
    model = make_single()
    assert same_partition(fit_and_check(model, given(X)), TRUTH)
    np.testing.assert_allclose(model.transform(X[:0:-1]), model.transform(X)[:0:-1])


@pytest.mark.parametrize("shift", [1e6, -1e9, [1e3, -1e7]])
def test_the_origin_does_not_matter(make_single, given, shift):
    assert same_partition(fit_and_check(make_single(), given(BLOBS + shift)), TRUTH)


@pytest.mark.parametrize("scale", [1e6, 1e-6, 1e30, 1e-30])
def test_unit_and_origin_do_not_change_nonlinear_clusters(given, scale):
    X, y = (array.compute() for array in dc.datasets.make_concentric_circles(2000, chunks=2000, random_state=0))
    X = X.astype(np.float64)
    for changed in (X * scale, X + scale if scale < 1e7 else X):
        model = dc.USPEC(3, n_representatives=300, random_state=0)
        assert same_partition(fit_and_check(model, given(changed)), y)


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e-310])
def test_magnitudes_at_the_ends_of_float64(make_single, given, scale):
    assert same_partition(fit_and_check(make_single(), given(BLOBS * scale)), TRUTH)


def test_more_than_the_range_of_float64(make, given):
    with pytest.raises(ValueError, match="X spans more than the range of float64"):
        make(n_clusters=2).fit(given(np.array([[-1.7e308], [1.7e308], [-1.7e308]])))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_outlier_does_not_cost_the_others_their_digits(given, dtype):
    X = np.concatenate([BLOBS, [[1e9, 0.0]]]).astype(dtype)
    assert same_partition(fit_and_check(SINGLE["USPEC"](), given(X))[:600], TRUTH)
    labels = fit_and_check(SINGLE["KMeans"](n_clusters=4, n_init=5), given(X))
    assert same_partition(labels, [*TRUTH, 3])


# -- chunks, containers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chunks",
    [
        ((0, 5, 0, 7), (2,)),
        ((12,), (1, 1)),
        ((3, 9), (1, 0, 1)),
        ((1,) * 12, (2,)),
        ((12, 0), (2,)),
    ],
    ids=str,
)
def test_odd_chunks(make_single, chunks):
    X = da.from_array(BLOBS[:12], chunks=(12, 2)).rechunk(chunks)
    assert X.chunks == chunks
    labels = fit_and_check(make_single(), X)
    np.testing.assert_array_equal(labels, make_single().fit(BLOBS[:12]).labels_)


@pytest.mark.parametrize("chunks", [(77, 2), (77, 1), (1000, 2)], ids=str)
def test_unknown_chunk_lengths(make_single, chunks, caplog):
    with caplog.at_level(logging.INFO, logger="daskcluster"):
        labels = fit_and_check(make_single(), unknown(BLOBS, chunks))
    np.testing.assert_array_equal(labels, make_single().fit(BLOBS).labels_)
    n_chunks = len(unknown(BLOBS, chunks).chunks[0])
    assert f"counted the rows of {n_chunks} chunks of unknown length: 600 rows" in caplog.text


def test_rows_of_unknown_chunks_are_counted_once(make_single):
    reads = []

    def touch(block: np.ndarray) -> np.ndarray:
        reads.append(len(block))
        return block

    def count(X: da.Array) -> int:
        reads.clear()
        with dask.config.set(scheduler="synchronous"):
            make_single(max_iter=1).fit(X)
        return sum(reads)

    known = da.from_array(BLOBS, chunks=(77, 2)).map_blocks(touch, dtype=float, meta=np.empty((0, 0)))
    lengths_unknown = known.copy()
    lengths_unknown._chunks = ((np.nan,) * 8, (2,))
    assert count(lengths_unknown) == count(known) + 600


def test_a_selection_without_rows(make_single):
    X = unknown(BLOBS)
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        make_single().fit(X[X[:, 0] > 1e9])


def test_an_unknown_number_of_features(make_single):
    X = da.from_array(BLOBS, chunks=77)
    with pytest.raises(ValueError, match="X must have a known number of features"):
        make_single().fit(X[:, X[0] > -1e9])


def test_dask_dataframes(make_single):
    import dask.dataframe as dd

    frame = dd.from_pandas(pd.DataFrame(BLOBS, columns=["a", "b"]), npartitions=4)
    expected = make_single().fit(BLOBS).labels_
    for X in (frame, frame.values, frame.to_dask_array(lengths=True)):
        np.testing.assert_array_equal(fit_and_check(make_single(), X), expected)
    assert isinstance(make_single().fit(frame).labels_, da.Array)
    with pytest.raises(ValueError, match="X must hold real numbers, got column 'name' of dtype"):
        make_single().fit(frame.assign(name="word"))
    with pytest.raises(ValueError, match=r"Expected 2D array .* got 1D"):
        make_single().fit(frame["a"])


def test_pandas_and_lists(make_single):
    expected = make_single().fit(BLOBS).labels_
    for X in (pd.DataFrame(BLOBS), pd.DataFrame({"a": BLOBS[:, 0], "b": BLOBS[:, 1]}), BLOBS.tolist()):
        labels = fit_and_check(make_single(), X)
        np.testing.assert_array_equal(labels, expected)
        assert isinstance(make_single().fit(X).labels_, np.ndarray)
    mixed = pd.DataFrame({"a": BLOBS[:, 0].astype("f4"), "b": (BLOBS[:, 1] * 10).astype(int)})
    assert same_partition(fit_and_check(make_single(), mixed), make_single().fit(mixed.to_numpy()).labels_)


def test_objects_that_are_numbers(make_single):
    np.testing.assert_array_equal(make_single().fit(BLOBS.astype(object)).labels_, make_single().fit(BLOBS).labels_)


# -- Zarr ----------------------------------------------------------------------------------------------------


def stored(path: Path, X: np.ndarray, **options: Any) -> zarr.Array[Any]:
    array = zarr.create_array(str(path), shape=X.shape, dtype=X.dtype, **options)
    array[...] = X
    return array


LAYOUTS: dict[str, dict[str, Any]] = {
    "aligned": {"chunks": (128, 2)},
    "other rows": {"chunks": (50, 2)},
    "one row": {"chunks": (13, 2)},
    "large": {"chunks": (500, 2)},
    "by columns": {"chunks": (90, 1)},
    "sharded": {"chunks": (10, 2), "shards": (70, 2)},
    "sharded by columns": {"chunks": (10, 1), "shards": (300, 2)},
    "format 2": {"chunks": (100, 2), "zarr_format": 2},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_zarr_stores(layout, tmp_path):
    make = SINGLE["USPEC"]
    array = stored(tmp_path / "X.zarr", BLOBS, **LAYOUTS[layout])
    model = make()
    np.testing.assert_array_equal(fit_and_check(model, array), make().fit(BLOBS).labels_)
    assert isinstance(model.labels_, da.Array)


@pytest.mark.parametrize("name", [str, Path])
def test_zarr_paths(make_single, name, tmp_path):
    stored(tmp_path / "X.zarr", BLOBS, chunks=(100, 2))
    model = make_single()
    np.testing.assert_array_equal(fit_and_check(model, name(tmp_path / "X.zarr")), make_single().fit(BLOBS).labels_)
    assert isinstance(model.labels_, da.Array)


@pytest.mark.parametrize("rows", [1000, 77])
def test_labels_are_written_into_chunks_that_do_not_align(make_single, rows, tmp_path):
    stored(tmp_path / "X.zarr", BLOBS, chunks=(41, 2))
    model = make_single().fit(tmp_path / "X.zarr")
    for name, labels in {"fit": model.labels_, "predict": model.predict(tmp_path / "X.zarr")}.items():
        written = write_array(labels, tmp_path / f"{name}.zarr", chunks=rows)
        assert written.dtype == np.int32
        np.testing.assert_array_equal(written[:], make_single().fit(BLOBS).labels_)


def test_an_array_inside_a_group(make_single, tmp_path):
    group = zarr.open_group(tmp_path / "all.zarr", mode="w")
    group.create_array("X", data=BLOBS)
    group.create_array("y", data=TRUTH)
    np.testing.assert_array_equal(
        fit_and_check(make_single(), tmp_path / "all.zarr" / "X"), make_single().fit(BLOBS).labels_
    )
    np.testing.assert_array_equal(fit_and_check(make_single(), group["X"]), make_single().fit(BLOBS).labels_)
    with pytest.raises(ValueError, match=r"is a Zarr group, not an array; it holds X \(600, 2\), y \(600,\)"):
        make_single().fit(tmp_path / "all.zarr")
    with pytest.raises(ValueError, match="is a Zarr group, not an array"):
        make_single().fit(group)
    with pytest.raises(ValueError, match=r"Expected 2D array .* got 1D .* shape \(600,\)"):
        make_single().fit(tmp_path / "all.zarr" / "y")


def test_paths_without_an_array(make_single, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no Zarr array at .*nothing\.zarr': nothing exists there"):
        make_single().fit(tmp_path / "nothing.zarr")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="is a folder, not a Zarr array"):
        make_single().fit(str(tmp_path / "folder"))
    (tmp_path / "X.bin").write_bytes(BLOBS.tobytes())
    with pytest.raises(ValueError, match="is a file, not a Zarr array"):
        make_single().fit(tmp_path / "X.bin")
    model = make_single().fit(BLOBS)
    model.save(tmp_path / "model.zarr")
    with pytest.raises(ValueError, match="is a saved model"):
        make_single().fit(tmp_path / "model.zarr")


def test_zarr_in_memory(make_single):
    array = zarr.create_array(zarr.storage.MemoryStore(), data=BLOBS, chunks=(100, 2))
    np.testing.assert_array_equal(fit_and_check(make_single(), array), make_single().fit(BLOBS).labels_)
    with (
        dask.config.set(scheduler="processes"),
        pytest.raises(ValueError, match="X lives in a zarr MemoryStore, which the worker processes"),
    ):
        make_single().fit(array)


# -- refused -------------------------------------------------------------------------------------------------

WORDS = np.array([["a", "b"]] * 9)

#: (input as NumPy, expected error, its words for NumPy, its words for chunked input)
NO_TABLES: dict[str, tuple[Any, type[Exception], str, str]] = {
    "1-D": (np.arange(9.0), ValueError, r"Expected 2D array .* got 1D", r"Expected 2D array .*got 1D .* shape \(9,\)"),
    "3-D": (np.ones((3, 3, 3)), ValueError, r"\(band, y, x\)", "Expected 2D array .* got 3D"),
    "complex": (np.ones((9, 2)) * 1j, ValueError, "Complex data not supported", "got dtype complex128"),
    "strings": (WORDS, ValueError, "strings", "X must hold real numbers, got dtype <U1"),
    "bytes": (WORDS.astype("S1"), ValueError, "bytes/strings", r"X must hold real numbers, got dtype \|S1"),
    "objects": (WORDS.astype(object), ValueError, "could not convert string", "real numbers, got dtype object"),
    "times": (np.ones((9, 2), "M8[s]"), ValueError, "real numbers, got dtype datetime64", "got dtype datetime64"),
    "no rows": (np.ones((0, 2)), ValueError, r"Found array with 0 sample\(s\)", r"0 sample\(s\) \(shape=\(0, 2\)\)"),
    "no features": (np.ones((9, 0)), ValueError, r"0 feature\(s\)", r"0 feature\(s\) \(shape=|has 0 features"),
    "masked": (np.ma.masked_less(BLOBS, 0), ValueError, "must not be a masked array", "must not be a masked array"),
}


@pytest.mark.parametrize("name", NO_TABLES)
@pytest.mark.parametrize("action", ["fit", "predict", "transform", "plan"])
def test_what_is_no_table_of_numbers(make_single, name, action):
    X, error, words, chunked_words = NO_TABLES[name]
    model = make_single() if action in ("fit", "plan") else make_single().fit(BLOBS)
    with pytest.raises(error, match=words if action != "plan" else f"{words}|{chunked_words}"):
        getattr(model, action)(X)
    lazy = da.ma.masked_less(as_dask(BLOBS), 0) if name == "masked" else da.from_array(X, chunks=5)
    with pytest.raises(error, match=chunked_words):
        getattr(model, action)(lazy)


def test_no_table_is_refused_before_a_row_is_read(make):
    for shape, dtype in [((100,), float), ((100, 2), complex), ((100, 2), "O"), ((100, 2, 2), float)]:
        with pytest.raises(ValueError, match="X"):
            make().fit(CannotBeRead(shape, dtype).lazy())
    lengths_unknown = CannotBeRead((100, 2), complex).lazy()
    lengths_unknown._chunks = ((np.nan, np.nan), (2,))
    with pytest.raises(ValueError, match="Complex data not supported"):
        make().fit(lengths_unknown)


@pytest.mark.parametrize("nothing", [None, 3, 2.5, {"a": 1}, object()], ids=["None", "int", "float", "dict", "object"])
def test_what_is_no_array_at_all(make, nothing):
    with pytest.raises((ValueError, TypeError)):
        make().fit(nothing)


@pytest.mark.parametrize("action", ["predict", "transform"])
@pytest.mark.parametrize("n_features", [1, 3])
def test_another_number_of_features(make_single, given, action, n_features):
    model = make_single().fit(given(BLOBS))
    name = type(model).__name__
    words = f"X has {n_features} features, but {name} is expecting 2 features as input"
    with pytest.raises(ValueError, match=words):
        getattr(model, action)(given(np.ones((5, n_features))))
    lengths_unknown = CannotBeRead((100, n_features)).lazy()
    lengths_unknown._chunks = ((np.nan, np.nan), (n_features,))
    with pytest.raises(ValueError, match=words):
        getattr(model, action)(lengths_unknown)


@pytest.mark.parametrize("action", ["predict", "transform", "save"])
def test_before_fit(make, given, action, tmp_path):
    argument = tmp_path / "model.zarr" if action == "save" else given(BLOBS)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(make(), action)(argument)
    assert not (tmp_path / "model.zarr").exists()


INTEGER = "must be an integer >= 1, got"
SEED = "must be None, an integer >= 0, or a numpy RandomState or Generator, got"
BAD_PARAMETERS: list[tuple[str, Any, type[Exception], str]] = [
    *(
        (name, value, error, f"{name} {INTEGER} {re.escape(repr(value))}")
        for name in ("n_clusters", "n_init", "max_iter")
        for value, error in [
            (0, ValueError),
            (-3, ValueError),
            (2.0, TypeError),
            (2.5, TypeError),
            ("3", TypeError),
            (None, TypeError),
            (True, TypeError),
            ([3], TypeError),
        ]
    ),
    ("missing", "drop", ValueError, "missing must be one of 'raise', 'label', got 'drop'"),
    ("missing", None, ValueError, "missing must be one of 'raise', 'label', got None"),
    ("random_state", -1, ValueError, "random_state must be an integer >= 0, got -1"),
    ("random_state", 1.5, TypeError, f"random_state {SEED} 1.5"),
    ("random_state", "seed", TypeError, f"random_state {SEED} 'seed'"),
    ("random_state", [1, 2], TypeError, rf"random_state {SEED} \[1, 2\]"),
    ("random_state", True, TypeError, f"random_state {SEED} True"),
    ("storage", 3, TypeError, "storage must be a path or None, got 3"),
    ("storage", "", TypeError, "storage must be a path or None, got ''"),
    ("storage", b"run", TypeError, "storage must be a path or None, got b'run'"),
]
BAD_USPEC: list[tuple[str, Any, type[Exception], str]] = [
    *(
        (name, value, error, f"{name} {INTEGER} {value!r}")
        for name in ("n_representatives", "n_neighbors", "candidate_factor", "neighbor_factor")
        for value, error in [(0, ValueError), (1.5, TypeError), ("5", TypeError), (None, TypeError)]
    ),
    ("selection", "all", ValueError, "selection must be one of 'hybrid', 'random', 'kmeans', got 'all'"),
    ("neighbors", "fast", ValueError, "neighbors must be one of 'approximate', 'exact', got 'fast'"),
    ("metric", "l1", ValueError, "metric must be one of 'euclidean', 'cosine', got 'l1'"),
    ("metric", None, ValueError, "metric must be one of 'euclidean', 'cosine', got None"),
]
INIT = r"init must be one of 'k-means\+\+', 'k-means\|\|', 'random'"
BAD_KMEANS: list[tuple[str, Any, type[Exception], str]] = [
    ("tol", -1, ValueError, "tol must be a number >= 0.0, got -1"),
    ("tol", np.nan, ValueError, "tol must be a number >= 0.0, got nan"),
    ("tol", "a", TypeError, "tol must be a number >= 0.0, got 'a'"),
    ("tol", None, TypeError, "tol must be a number >= 0.0, got None"),
    ("init", "kmeans", ValueError, f"{INIT}, got 'kmeans'"),
]
BAD_INIT: list[tuple[str, Any, type[Exception], str]] = [
    ("init", value, ValueError, rf"{INIT}, a finite array of shape \(3, 2\), or a function that gives one, got {words}")
    for value, words in [
        (None, "None"),
        (5, "5"),
        (np.zeros((2, 2)), "array"),
        ([[0, 1], [1, 2], [2, np.nan]], r"\[\[0, 1\]"),
        ([["a", "b"]] * 3, r"\[\['a', 'b'\]"),
    ]
]

BAD = [
    *(("USPEC", *case) for case in BAD_PARAMETERS + BAD_USPEC),
    *(("KMeans", *case) for case in BAD_PARAMETERS + BAD_KMEANS + BAD_INIT),
]


@pytest.mark.parametrize(
    ("cls", "name", "value", "error", "words"), BAD, ids=[f"{case[0]}-{case[1]}-{case[2]!r:.20}" for case in BAD]
)
def test_bad_parameters_are_refused_before_a_row_is_read(cls, name, value, error, words):
    X = CannotBeRead((100, 2)).lazy()
    if name != "init":
        X._chunks = ((np.nan, np.nan), (2,))  # a parameter needs no look at the rows, not even to count them
    with pytest.raises(error, match=words):
        SINGLE[cls](**{name: value}).fit(X)
    with pytest.raises(error, match=words):
        SINGLE[cls](**{name: value}).fit(BLOBS)


@pytest.mark.parametrize(("name", "value", "error", "words"), BAD_PARAMETERS[:-3], ids=lambda value: f"{value!r:.20}")
def test_plan_refuses_bad_parameters_too(make_single, name, value, error, words):
    with pytest.raises(error, match=words):
        make_single(**{name: value}).plan(CannotBeRead((100, 2)).lazy())


def test_plan_reads_nothing(make):
    plan = make().plan(CannotBeRead((1000, 2)).lazy())
    assert (plan.n_samples, plan.n_features, plan.n_blocks) == (1000, 2, 8)
    with pytest.raises(ValueError, match="n_clusters=3 and n_samples=2"):
        make().plan(CannotBeRead((2, 2)).lazy())


# -- side effects --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["raise", "label"])
def test_input_is_not_modified(make_single, given, missing):
    X = BLOBS.copy()
    if missing == "label":
        X[5] = np.nan
    before = X.copy()
    model = make_single(missing=missing).fit(given(X))
    np.asarray(model.predict(given(X)))
    np.asarray(model.transform(given(X)))
    np.testing.assert_array_equal(X, before)
    X.flags.writeable = False
    np.testing.assert_array_equal(np.asarray(make_single(missing=missing).fit(given(X)).labels_), model.labels_)


SEEDS = {"int": 5, "numpy int": np.int64(5), "RandomState": np.random.RandomState(5), "None": None}


@pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS.keys())
def test_fit_leaves_parameters_and_adds_fitted_names_only(make_single, given, seed):
    model = make_single(random_state=seed)
    parameters = copy.copy(vars(model))
    model.fit(given(BLOBS))
    assert all(vars(model)[name] is value for name, value in parameters.items())
    added = set(vars(model)) - set(parameters)
    assert all(name.endswith("_") or name.startswith("_") for name in added)
    fitted = set(vars(model))
    np.asarray(model.predict(given(BLOBS)))
    np.asarray(model.transform(given(BLOBS)))
    model.plan(given(BLOBS))
    assert set(vars(model)) == fitted


def test_given_centers_are_not_modified():
    init = BLOBS[:3].copy()
    model = dc.KMeans(3, init=init).fit(BLOBS)
    assert model.init is init
    np.testing.assert_array_equal(init, BLOBS[:3])


def test_a_failed_fit_says_so_and_the_next_one_works(make, given):
    model = make()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(given(np.full((10, 4), np.nan)))
    with pytest.raises(NotFittedError):
        model.predict(given(BLOBS))
    assert same_partition(fit_and_check(model, given(BLOBS)), TRUTH)
