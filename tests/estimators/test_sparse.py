"""Sparse rows give the labels of the dense ones, in any form in which they come."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans as InMemoryKMeans

import daskcluster as dc
from daskcluster.errors import UnreadableChunkError
from daskcluster.runtime.forecast import BASE_BYTES
from tests.slow import slowly

BLOCK_ROWS = 128
pytestmark = pytest.mark.usefixtures("small_blocks")


def draw_counts() -> np.ndarray:
    """Words of three topics, 300 documents."""
    rng = np.random.default_rng(0)
    counts = np.where(rng.random((300, 90)) < 0.04, rng.integers(1, 9, (300, 90)), 0)
    for topic in range(3):
        own = counts[topic::3, 30 * topic : 30 * topic + 30]
        own += np.where(rng.random(own.shape) < 0.3, rng.integers(1, 5, own.shape), 0)
    return counts.astype(np.uint8)


D = draw_counts()
S = sp.csr_array(D)
D.flags.writeable = S.data.flags.writeable = S.indices.flags.writeable = False
WEIGHTS = np.arange(300) % 5 + 0.5
PARTIAL = np.where(np.arange(300) % 10 == 0, np.arange(300) % 3, -1)

SPECTRAL: dict[str, Any] = {"n_representatives": 60, "neighbors": "exact", "random_state": 0}
FEW: dict[str, Any] = {"n_base_clusterings": 3, "random_state": 0}
SHARE: dict[str, Any] = {"sample_rate": 0.6, "predict_unsampled": True}
#: Estimator, and the other arguments of its fit.
ESTIMATORS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "KMeans": (lambda **more: dc.KMeans(3, random_state=0, **more), {}),
    "KMeans-weights": (lambda: dc.KMeans(4, max_iter=4, random_state=1), {"sample_weight": WEIGHTS}),
    "KMeans-parallel": (lambda: dc.KMeans(5, init="k-means||", random_state=0), {}),
    "KMeans-given": (lambda: dc.KMeans(3, init=D[:3].astype(float)), {}),
    "KMeans-cosine": (lambda: dc.KMeans(3, metric="cosine", random_state=0), {"sample_weight": WEIGHTS}),
    "KMeans-cosine-parallel": (lambda: dc.KMeans(3, metric="cosine", init="k-means||", random_state=0), {}),
    "USPEC": (lambda **more: dc.USPEC(3, **SPECTRAL, **more), {}),
    "USPEC-cosine": (lambda: dc.USPEC(3, metric="cosine", **SPECTRAL), {}),
    "USPEC-random": (lambda: dc.USPEC(3, selection="random", affinity="adaptive", **SPECTRAL), {}),
    "USPEC-kmeans": (lambda: dc.USPEC(3, selection="kmeans", metric="cosine", **SPECTRAL), {}),
    "FastCSC": (lambda: dc.FastCSC(3, **SPECTRAL), {"y": PARTIAL}),
    "USENC": (lambda: dc.USENC(3, n_base_clusterings=2, k_range=(4, 8), **SPECTRAL), {}),
    "Ensemble": (lambda **more: dc.Ensemble(3, base=dc.KMeans(), consensus=dc.SEC(), **FEW, **more), {}),
    "Ensemble-rate": (lambda: dc.Ensemble(3, base=dc.KMeans(), consensus=dc.SEC(), **SHARE, **FEW), {}),
}


@cache
def fit_of(name: str) -> Any:
    make, more = ESTIMATORS[name]
    return make().fit(S, **more)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_labels_are_those_of_dense_rows(name):
    make, more = ESTIMATORS[name]
    model, dense = fit_of(name), make().fit(D, **more)
    assert_array_equal(model.labels_, dense.labels_)
    assert_array_equal(model.predict(S), model.labels_)
    assert_array_equal(model.predict(D), dense.predict(D))
    assert_array_equal(dense.predict(S), dense.predict(D))
    np.testing.assert_allclose(model.transform(S), dense.transform(D), atol=1e-5)


@pytest.mark.parametrize(
    "name", ["KMeans", "USPEC", *slowly(*(name for name in ESTIMATORS if name not in ("KMeans", "USPEC")))]
)
def test_labels_of_tasks_of_several_blocks(name, several_blocks):
    make, more = ESTIMATORS[name]
    assert_array_equal(make().fit(S, **more).labels_, fit_of(name).labels_)


def test_numbers_are_those_of_dense_rows():
    model, dense = fit_of("KMeans-weights"), ESTIMATORS["KMeans-weights"][0]().fit(D, sample_weight=WEIGHTS)
    np.testing.assert_allclose(model.cluster_centers_, dense.cluster_centers_, atol=1e-12)
    assert model.inertia_ == pytest.approx(dense.inertia_)
    assert model.score(S) == pytest.approx(dense.score(D))
    spectral = fit_of("USPEC")
    assert spectral.representatives_.format == "csr"
    points = ESTIMATORS["USPEC"][0]().fit(D).representatives_
    np.testing.assert_allclose(spectral.representatives_.toarray(), points, atol=1e-12)


def test_clusterers_of_others_get_them_by_compressed_rows():
    base = InMemoryKMeans(n_init=1)
    model = dc.Ensemble(3, base=base, **FEW).fit(chunked(sp.csr_array))
    member = InMemoryKMeans(**model.estimators_[0].get_params()).fit(S)
    assert_array_equal(np.asarray(model.base_labels_)[:, 0], member.labels_)
    assert_array_equal(np.asarray(model.predict(S)), np.asarray(model.labels_))


# -- forms -----------------------------------------------------------------------------------------------------------


def chunked(make: Callable[[Any], Any], chunks: Any = 70) -> da.Array:
    return da.from_array(D, chunks=(chunks, -1)).map_blocks(make, dtype=D.dtype, meta=make(D[:0]))


def stored(folder: Any, X: Any = S, **parts: Any) -> str:
    """The path of a group as AnnData writes it."""
    group = zarr.open_group(f"{folder}/a.zarr", mode="w").create_group(
        "X", attributes={"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": list(X.shape)}
    )
    for name in ("data", "indices", "indptr"):
        group.create_array(name, data=parts.get(name, getattr(X, name)), chunks=(97,))
    return f"{folder}/a.zarr/X"


def h5ad(folder: Any, kind: str = "csr_matrix") -> str:
    """The path of the same in HDF5; in one piece, as small matrices are."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(f"{folder}/{kind}.h5ad", "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": kind, "encoding-version": "0.1.0", "shape": S.shape})
        for name in ("data", "indices", "indptr"):
            group.create_dataset(name, data=getattr(S, name))
    return f"{folder}/{kind}.h5ad/X"


def backed(folder: Any, kind: str = "csr_matrix") -> Any:
    """What ``adata.X`` of a backed object is: a class of AnnData's own over the group of a file."""
    h5py = pytest.importorskip("h5py")
    if not Path(f"{folder}/{kind}.h5ad").exists():
        h5ad(folder, kind)
    group = h5py.File(f"{folder}/{kind}.h5ad", "r")["X"]
    dataset = type("CSRDataset", (), {"__module__": "anndata._core", "group": group, "to_memory": None})
    return dataset()


def with_zeros_and_twice() -> Any:
    """The same matrix, columns in descending order, with zeros and a number in two parts."""
    rows, columns = (place[::-1] for place in S.nonzero())
    data = np.append(D[rows, columns], [0, 0])
    data[0] -= 1
    data[-1] = 1
    made = sp.coo_array((data, (np.append(rows, [0, rows[0]]), np.append(columns, [89, columns[0]]))), shape=S.shape)
    order = np.argsort(made.coords[0], kind="stable")
    indptr = np.searchsorted(made.coords[0][order], np.arange(301))
    return sp.csr_array((data[order], made.coords[1][order], indptr), shape=S.shape)


def pydata(kind: str) -> Callable[[Any], Any]:
    sparse = pytest.importorskip("sparse")
    return lambda X: getattr(sparse, kind).from_scipy_sparse(sp.csr_array(X))


FORMS: dict[str, Callable[[Any], Any]] = {
    "matrix": lambda folder: sp.csr_matrix(D),
    "COO": lambda folder: S.tocoo(),
    "CSC": lambda folder: S.tocsc(),
    "64-bit places": lambda folder: sp.csr_array((S.data, S.indices.astype(np.int64), S.indptr.astype(np.int64))),
    "not in order": lambda folder: with_zeros_and_twice(),
    "pydata COO": lambda folder: pydata("COO")(D),
    "pydata GCXS": lambda folder: pydata("GCXS")(D),
    "dask of CSR": lambda folder: chunked(sp.csr_matrix),
    "dask of uneven CSR": lambda folder: chunked(sp.csr_array, (1, 150, 9, 140)),
    "dask of pydata COO": lambda folder: chunked(pydata("COO")),
    "dask of unknown lengths": lambda folder: chunked(sp.csr_array).map_blocks(
        lambda block: block, dtype=D.dtype, chunks=((np.nan,) * 5, (90,)), meta=sp.csr_array(D[:0])
    ),
    "a path": stored,
    "an open group": lambda folder: zarr.open_group(stored(folder), mode="r"),
    "h5ad": h5ad,
    "a backed object's": backed,
}
#: Those whose labels are lazy, as are those of dask arrays.
ON_DISK = ("a path", "an open group", "h5ad", "a backed object's")


#: pydata compiles for seconds when a lazy array asks for an empty part.
FORM_IDS = [form for form in FORMS if form != "dask of pydata COO"] + slowly("dask of pydata COO")


@pytest.mark.parametrize("form", FORM_IDS)
def test_equal_fits_in_any_form(form, tmp_path):
    X = FORMS[form](tmp_path)
    lazy = form.startswith("dask") or form in ON_DISK
    for name in ("KMeans", "USPEC"):
        model = ESTIMATORS[name][0]().fit(X)
        assert isinstance(model.labels_, da.Array) == lazy
        assert_array_equal(np.asarray(model.labels_), fit_of(name).labels_)
        assert_array_equal(model.cluster_centers_, fit_of(name).cluster_centers_)
        assert_array_equal(np.asarray(model.predict(X)), fit_of(name).labels_)


@pytest.mark.parametrize("dtype", [bool, np.float32, np.int64])
def test_other_types_of_numbers(dtype):
    X = D.astype(dtype)
    for name in ("KMeans", "USPEC-cosine"):
        make = ESTIMATORS[name][0]
        assert_array_equal(make().fit(sp.csr_array(X)).labels_, make().fit(X).labels_)


def test_on_a_cluster(client_inprocess):
    assert_array_equal(np.asarray(fit_of("USPEC").labels_), dc.USPEC(3, **SPECTRAL).fit(S).labels_)
    model = dc.KMeans(3, random_state=0).fit(chunked(sp.csr_array))
    assert_array_equal(np.asarray(model.labels_), fit_of("KMeans").labels_)


@pytest.mark.slow
def test_processes():
    import dask

    with dask.config.set(scheduler="processes", num_workers=2):
        assert_array_equal(dc.KMeans(3, random_state=0).fit(S).labels_, fit_of("KMeans").labels_)


@pytest.mark.parametrize("name", ["KMeans", "USPEC", "Ensemble"])
def test_named_stores_and_models(name, tmp_path):
    path = stored(tmp_path)
    for _ in range(2):
        model = ESTIMATORS[name][0](storage=tmp_path / "run.zarr").fit(path)
        assert_array_equal(np.asarray(model.labels_), fit_of(name).labels_)
    model.save(tmp_path / "model.zarr")
    assert_array_equal(dc.load_model(tmp_path / "model.zarr").predict(S), fit_of(name).labels_)


def test_the_number_of_clusters():
    found = dc.select_n_clusters(S, k_max=6, estimator=dc.USPEC(**SPECTRAL), random_state=0)
    dense = dc.select_n_clusters(D, k_max=6, estimator=dc.USPEC(**SPECTRAL), random_state=0)
    assert found.n_clusters == dense.n_clusters
    np.testing.assert_allclose(found.stability, dense.stability)


# -- odd and bad rows ------------------------------------------------------------------------------------------------


def test_rows_of_zeros_and_missing_rows():
    X = D.astype(np.float64)
    X[7] = 0
    assert_array_equal(
        dc.KMeans(3, random_state=0).fit(sp.csr_array(X)).labels_, dc.KMeans(3, random_state=0).fit(X).labels_
    )
    for name in ("USPEC-cosine", "KMeans-cosine"):  # a row of zeros is 1 away from all: a tie
        sparse, dense = (ESTIMATORS[name][0]().fit(rows) for rows in (sp.csr_array(X), X))
        assert_array_equal(sparse.labels_, dense.labels_)
        assert_array_equal(dense.predict(sp.csr_array(X)), dense.labels_)
    X[200, 5] = np.nan
    with pytest.raises(ValueError, match="NaN at row 200, column 5;"):
        dc.KMeans(3).fit(sp.csr_array(X))
    with pytest.raises(ValueError, match="NaN at row 200, column 5;"):
        fit_of("KMeans").predict(sp.csr_array(X))
    model = dc.KMeans(3, missing="label", random_state=0).fit(sp.csr_array(X))
    assert_array_equal(model.labels_, dc.KMeans(3, missing="label", random_state=0).fit(X).labels_)
    assert model.labels_[200] == -1


#: With seed 2 a row shares no word with any start: equally far from all, which rounding decides, see `docs/text.md`.
@pytest.mark.parametrize("seed", range(2))
def test_rows_of_zeros_have_no_direction(seed):
    X = D.astype(np.float64)
    X[[7, 100, 299]] = 0
    for make in (dc.KMeans(3, metric="cosine"), dc.USPEC(3, metric="cosine", **SPECTRAL)):
        sparse, dense = (clone(make).set_params(random_state=seed).fit(rows) for rows in (sp.csr_array(X), X))
        assert_array_equal(sparse.labels_, dense.labels_)
        assert_array_equal(sparse.predict(X), dense.labels_)
        if isinstance(make, dc.KMeans):
            assert (dense.labels_[[7, 100, 299]] == 0).all()
            assert (dense.transform(X)[7] == 1).all()
            rows = np.delete(X, [7, 100, 299], axis=0)
            assert sparse.score(rows) == pytest.approx(-dense.inertia_)  # they count nowhere
            unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
            assert_array_equal(
                np.delete(dense.labels_, [7, 100, 299]), (unit @ dense.cluster_centers_.T).argmax(axis=1)
            )
            means = np.array([unit[dense.predict(rows) == c].sum(axis=0) for c in range(3)])
            means /= np.linalg.norm(means, axis=1, keepdims=True)
            np.testing.assert_allclose(dense.cluster_centers_, means, atol=0.02)  # as far as `tol` lets it go


def test_directions_that_are_none():
    with pytest.raises(ValueError, match="X must have rows that are not all 0"):
        dc.KMeans(2, metric="cosine").fit(np.zeros((9, 3)))
    with pytest.raises(ValueError, match=r"init must have no row of zeros .* row 1 is"):
        dc.KMeans(2, metric="cosine", init=np.eye(2, 3) * [[1], [0]]).fit(np.ones((9, 3)))


@pytest.mark.parametrize("action", ["fit", "plan"])
def test_what_takes_no_sparse_rows_says_what_does(action):
    for model in (dc.CSPML(3), dc.FastCSPML(3), dc.Ensemble(3, base=dc.FastCSPML())):
        for X in (S, chunked(sp.csr_array)):
            with pytest.raises(
                TypeError, match=r"X must be dense, got .*; KMeans, USPEC, .* take sparse rows, .*CSPML"
            ):
                getattr(model, action)(X)
    with pytest.raises(TypeError, match="X must be dense, got sparse data"):
        getattr(dc.SEC(3), action)(S)


@pytest.mark.parametrize("X", [S, chunked(sp.csr_array)], ids=["in memory", "lazy"])
def test_metrics_pictures_and_reports_take_dense_rows_and_say_so(X, tmp_path):
    model = fit_of("KMeans")
    for call in (
        lambda: dc.metrics.inertia(X, model.labels_, model.cluster_centers_),
        lambda: dc.plotting.plot_labels(X, model.labels_),
        lambda: dc.plotting.plot_profiles(X, model.labels_),
        lambda: model.report(tmp_path / "page.html", X),
    ):
        with pytest.raises(TypeError, match=r"X must be dense here, got sparse data \(csr_array\)"):
            call()


def test_other_numbers_of_columns():
    with pytest.raises(ValueError, match="X has 80 features, but KMeans is expecting 90"):
        fit_of("KMeans").predict(S[:, :80])


def test_chunks_that_are_not_as_declared():
    kinds = {
        "is dense": chunked(sp.csr_array).map_blocks(lambda block: block.toarray(), meta=sp.csr_array(D[:0])),
        "has shape": chunked(sp.csr_array).map_blocks(lambda block: block[:9], meta=sp.csr_array(D[:0]), dtype=D.dtype),
        "has dtype": chunked(sp.csr_array).map_blocks(
            lambda block: block * 0.5, dtype=D.dtype, meta=sp.csr_array(D[:0])
        ),
    }
    for words, X in kinds.items():
        with pytest.raises(ValueError, match=rf"chunk \(\d, 0\) of X {words}"):
            dc.KMeans(3, random_state=0)._open(X, reset=True).blocks.compute()
    across = da.from_array(D, chunks=(100, 45)).map_blocks(sp.csr_array, dtype=D.dtype, meta=sp.csr_array(D[:0]))
    with pytest.raises(ValueError, match="whole rows in each chunk where it is sparse, got 2 chunks a row"):
        dc.KMeans(3).fit(across)


def test_a_matrix_of_a_file_that_is_not_taken(tmp_path):
    for X in (h5ad(tmp_path, "csc_matrix"), backed(tmp_path, "csc_matrix")):
        with pytest.raises(ValueError, match=r"csc_matrix\), not an array: as csr_matrix it is rows for KMeans"):
            dc.KMeans(3).fit(X)
    for X in (h5ad(tmp_path), backed(tmp_path)):
        with pytest.raises(ValueError, match=r"csr_matrix\), not an array: as csr_matrix it is rows for KMeans"):
            dc.CSPML(3).fit(X, PARTIAL)


def test_damaged_groups(tmp_path):
    columns = S.indices.copy()
    columns[40] = 90
    with pytest.raises(UnreadableChunkError, match="places or columns are outside"):
        dc.KMeans(3).fit(stored(tmp_path, indices=columns))
    places = S.indptr.copy()
    places[3] = 2**20
    with pytest.raises(UnreadableChunkError, match="places or columns are outside"):
        dc.KMeans(3).fit(stored(tmp_path, indptr=places))
    with pytest.raises(ValueError, match="is a damaged matrix"):
        dc.KMeans(3).fit(stored(tmp_path, indptr=S.indptr[:-1]))


# -- memory ----------------------------------------------------------------------------------------------------------


def wide(n_rows: int = 2000, n_features: int = 300_000) -> sp.csr_array:
    """Rows of 20 numbers in so many columns that the dense ones would take gigabytes."""
    rng = np.random.default_rng(1)
    topic = np.repeat(np.arange(n_rows) % 3, 20) * (n_features // 3)
    columns = topic + (n_features // 3 * rng.random(20 * n_rows) ** 3).astype(np.int64)
    return sp.csr_array((np.ones(20 * n_rows), columns, np.arange(n_rows + 1) * 20), shape=(n_rows, n_features))


@pytest.mark.parametrize(
    "model",
    [dc.KMeans(3, max_iter=3, random_state=0), dc.USPEC(3, n_representatives=200, metric="cosine", random_state=0)],
    ids=["KMeans", "USPEC"],
)
def test_memory_is_that_of_the_numbers_and_below_the_plan(model):
    X = wide()
    planned = model.plan(X).peak_bytes - BASE_BYTES
    assert planned < X.shape[0] * X.shape[1]  # an eighth of what dense rows take
    model.fit(X[:300])  # compiled now
    tracemalloc.start()
    try:
        model.fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < planned
    assert peak < 60 * 2**20


def test_plans_follow_from_the_numbers(tmp_path):
    def plan(X: Any) -> Any:
        return dc.USPEC(3, n_representatives=100, random_state=0).plan(X)

    few = wide()
    assert plan(sp.hstack([few, few], format="csr")).peak_bytes > plan(few).peak_bytes
    read = plan(S).stages[0].read_bytes
    assert S.data.nbytes + S.indices.nbytes <= read <= 2 * (S.data.nbytes + S.indices.nbytes + S.indptr.nbytes)
    assert plan(stored(tmp_path)).stages[0].read_bytes == read
    assert plan(chunked(sp.csr_array, 128)).stages[0].read_bytes == read


def test_the_command_line(tmp_path):
    from click.testing import CliRunner

    from daskcluster.cli import main

    path, model, labels = stored(tmp_path), tmp_path / "model.zarr", tmp_path / "labels.zarr"
    for command in (
        f"plan {path} -k 3 --algorithm kmeans",
        f"fit {path} -k 3 --algorithm kmeans --seed 0 --model {model} --quiet",
        f"predict {path} --model {model} --labels {labels} --quiet",
    ):
        result = CliRunner().invoke(main, command.split(), catch_exceptions=False)
        assert result.exit_code == 0, result.output
    assert_array_equal(zarr.open_array(labels, mode="r")[:], fit_of("KMeans").labels_)
    scaled = CliRunner().invoke(main, f"fit {path} -k 3 --scale standard --labels {tmp_path}/l.zarr".split())
    assert scaled.exit_code == 2
    assert "--scale takes dense rows" in " ".join(scaled.output.split())
