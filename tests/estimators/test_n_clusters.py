"""How many clusters: the spectrum of a fitted graph, and what several graphs say."""

from __future__ import annotations

import pickle

import dask.array as da
import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import make_blobs

import daskcluster as dc
from daskcluster.pipeline.spectrum import ZERO
from tests.cli.calls import as_json, succeed
from tests.slow import slowly

SETS = {
    "two_bananas": (2, dc.datasets.make_two_bananas),
    "smiling_face": (4, dc.datasets.make_smiling_face),
    "concentric_circles": (3, dc.datasets.make_concentric_circles),
    "circles_gaussians": (11, dc.datasets.make_circles_gaussians),
    "flower": (13, dc.datasets.make_flower),
}


def rows(name: str, n: int = 8000, seed: int = 0) -> np.ndarray:
    """Rows of a generator, in memory."""
    return SETS[name][1](n, chunks=n, random_state=seed)[0].compute()


@pytest.fixture(scope="module")
def fits() -> dict[int, dc.USPEC]:
    """The flower, 13 clusters, fitted with other numbers as well."""
    return {k: dc.USPEC(k, random_state=0).fit(rows("flower")) for k in (10, 13, 20)}


def test_the_number_does_not_depend_on_that_of_the_fit(fits):
    spectra = [model.spectrum(30) for model in fits.values()]
    assert {spectrum.n_clusters for spectrum in spectra} == {13}
    for spectrum in spectra[1:]:
        np.testing.assert_array_equal(spectrum.eigenvalues, spectra[0].eigenvalues)


def test_its_first_eigenvalues_are_those_of_the_fit(fits):
    np.testing.assert_allclose(fits[13].spectrum(30).eigenvalues[:13], fits[13].eigenvalues_, atol=1e-12)


def test_against_the_dense_graph():
    """Eigenvalues of the normalized cut of all rows, by SciPy: gamma (2 - gamma) = lambda, eq. (10)."""
    X = rows("two_bananas", 600)
    model = dc.USPEC(2, n_representatives=40, random_state=0).fit(X)
    spectrum = model.spectrum(6)
    B = np.zeros((600, 40))
    squared = ((X[:, None] - model.representatives_) ** 2).sum(axis=2)
    near = np.argsort(squared, axis=1)[:, : model.n_neighbors_]
    np.put_along_axis(
        B, near, np.exp(-np.take_along_axis(squared, near, 1) / (2 * model.bandwidth_**2)).astype("f4"), axis=1
    )
    W = np.block([[np.zeros((600, 600)), B], [B.T, np.zeros((40, 40))]])
    D = W.sum(axis=1)
    gamma = scipy.linalg.eigh(np.diag(D) - W, np.diag(D), eigvals_only=True)[:7]
    np.testing.assert_allclose(spectrum.eigenvalues, gamma * (2 - gamma), atol=1e-4)
    expected = np.diff(spectrum.eigenvalues) / (spectrum.eigenvalues[1:] + ZERO / 40**2)
    np.testing.assert_allclose(spectrum.relative_gaps, expected)


def test_it_reads_no_row_and_stays_with_the_model(fits, tmp_path):
    model = fits[13]
    expected = np.asarray(model.spectrum(20))
    model.save(tmp_path / "m.zarr")
    for other in (dc.load_model(tmp_path / "m.zarr"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.spectrum(20), expected)


def test_models_of_earlier_versions(fits):
    model = pickle.loads(pickle.dumps(fits[13]))
    del model._places
    with pytest.raises(ValueError, match="earlier version of daskcluster: fit again"):
        model.spectrum()


@pytest.mark.parametrize("k_max", [1, 0, -3, 1000])
def test_numbers_that_are_none(k_max, fits):
    with pytest.raises(ValueError, match="k_max must be"):
        fits[13].spectrum(k_max)


def test_constraints_do_not_change_it():
    X, y = make_blobs(2000, centers=4, random_state=3, cluster_std=0.5)
    partial = np.where(np.arange(2000) < 40, y, -1)
    models = [dc.FastCSC(4, random_state=0).fit(X, labels) for labels in (partial, None)]
    one, other = (np.asarray(model.spectrum(10)) for model in models)
    np.testing.assert_allclose(one, other, atol=1e-12)
    assert models[0].spectrum(10).n_clusters == 4


def test_outliers_are_no_clusters():
    X, _ = make_blobs(6000, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    X[:6] = [[100, 100], [-90, 50], [60, -80], [200, 0], [0, 300], [-250, -250]]
    spectrum = dc.USPEC(3, random_state=0).fit(X).spectrum(20)
    assert spectrum.n_clusters == 3
    assert 0 < spectrum.left_out < 0.01


@pytest.mark.parametrize("name", ["two_bananas", "circles_gaussians", *slowly("flower", "smiling_face")])
@pytest.mark.parametrize("seed", [0, *slowly(*range(1, 10))])
def test_select_n_clusters_is_right(name, seed):
    found = dc.select_n_clusters(rows(name, 20_000, seed), random_state=seed)
    assert found.n_clusters == int(found) == SETS[name][0]
    assert found.candidates[0] == SETS[name][0]
    assert str(found).startswith(f"{SETS[name][0]} clusters")


@pytest.mark.parametrize("n_features", [2, *slowly(8)])
def test_nothing_is_apart(n_features):
    X = np.random.default_rng(0).random((5000, n_features))
    found = dc.select_n_clusters(X, 10, random_state=0)
    assert found.n_clusters is None
    assert "no clear number" in found.summary
    assert "no clear number" in found._repr_html_()
    with pytest.raises(ValueError, match="no clear number of clusters"):
        int(found)


def test_lazy_rows_say_the_same():
    X = rows("concentric_circles", 4000)
    estimator = dc.USPEC(n_representatives=300)
    one = dc.select_n_clusters(X, 10, estimator=estimator, random_state=1)
    other = dc.select_n_clusters(da.from_array(X, chunks=(900, 2)), 10, estimator=estimator, random_state=1)
    assert one.n_clusters == other.n_clusters == 3
    np.testing.assert_array_equal(one.eigenvalues, other.eigenvalues)
    np.testing.assert_array_equal(one.stability, other.stability)
    assert not hasattr(estimator, "labels_")


def test_rows_with_names_are_opened_once_and_nothing_is_warned_of(recwarn, monkeypatch):
    xarray, pandas = pytest.importorskip("xarray"), pytest.importorskip("pandas")
    X = rows("concentric_circles", 2000)
    opened, open_rows = [], dc.USPEC._open
    monkeypatch.setattr(dc.USPEC, "_open", lambda self, X, **o: opened.append(type(X)) or open_rows(self, X, **o))
    estimator = dc.USPEC(n_representatives=100)
    scene = xarray.DataArray(X.reshape(40, 50, 2), dims=("down", "right", "what"), coords={"what": ["red", "blue"]})
    forms = [(X, {}), (pandas.DataFrame(X, columns=["red", "blue"]), {}), (scene, {"feature_dim": "what"})]
    found = [dc.select_n_clusters(form, 6, estimator=estimator, random_state=0, **names) for form, names in forms]
    # Representatives of a graph are embedded by the others, which opens them; the rows are opened once.
    assert len(opened) == len(forms) * (1 + 3)
    assert opened.count(pandas.DataFrame) == 2
    for other in found[1:]:
        np.testing.assert_array_equal(other.eigenvalues, found[0].eigenvalues)
        np.testing.assert_array_equal(other.stability, found[0].stability)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"k_max": 1}, ValueError, "k_max must be"),
        ({"k_max": 1000}, ValueError, "k_max must be below n_representatives"),
        ({"n_fits": 1}, ValueError, "n_fits must be"),
        ({"estimator": dc.KMeans()}, TypeError, "estimator must be a USPEC, got KMeans"),
    ],
)
def test_what_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        dc.select_n_clusters(rows("two_bananas", 100), **arguments)


def test_few_rows():
    """More clusters than rows can show are not asked for."""
    X, _ = make_blobs(60, centers=[[0, 0], [50, 0], [0, 50]], random_state=0)
    found = dc.select_n_clusters(X, 30, random_state=0)
    assert found.n_clusters == 3


def test_on_the_command_line(tmp_path):
    X = rows("concentric_circles", 4000)
    da.from_array(X, chunks=(1000, 2)).to_zarr(str(tmp_path / "x.zarr"))
    told = as_json("n-clusters", tmp_path / "x.zarr", "--k-max", "8", "--json")
    assert told["n_clusters"] == 3
    assert "3 clusters" in succeed("n-clusters", tmp_path / "x.zarr", "--k-max", "8", "--quiet").stdout
