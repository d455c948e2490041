"""Ensembles on the command line: `fit --algorithm usenc|ensemble`, `consensus`."""

import json

import dask.array as da
import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import daskcluster as dc
from daskcluster.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with X.zarr, three blobs, and base.zarr, five base clusterings of them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=400)
    X = np.array([[0, 0], [5, 5], [0, 6]])[truth] + 0.3 * rng.normal(size=(400, 2))
    base = np.stack([np.where(rng.random(400) < 0.1, rng.integers(3, size=400), truth) for _ in range(5)], axis=1)
    da.from_array(X, chunks=(100, 2)).to_zarr("X.zarr")
    da.from_array(base, chunks=(100, 5)).to_zarr("base.zarr")
    da.from_array(truth, chunks=100).to_zarr("y.zarr")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def result_of(*arguments):
    done = run(*arguments, "--json", "--quiet")
    assert done.exit_code == 0, done.output
    return json.loads(done.output.splitlines()[-1])


@pytest.mark.parametrize(
    "options",
    [
        ["--algorithm", "usenc", "--base-clusterings", 4, "--representatives", 50, "--k-range", 4, 8],
        ["--algorithm", "ensemble", "--base", "kmeans", "--consensus", "sec", "--base-clusterings", 4],
        ["--algorithm", "ensemble", "--sample-rate", 0.5, "--base", "kmeans", "--predict-unsampled"],
        ["--algorithm", "ensemble", "--base", "kmeans", "--consensus", "sec", "--consensus-components", 40],
        ["--algorithm", "ensemble", "--base", "kmeans", "--consensus", "isec", "--consensus-representatives", 99],
    ],
    ids=str,
)
def test_fit_and_predict(folder, options):
    found = result_of("fit", "X.zarr", "-k", 3, *options, "--labels", "labels.zarr", "--model", "model.zarr")
    assert found["n_clusters"] == 3
    assert dc.metrics.clustering_accuracy("y.zarr", "labels.zarr") > 0.95
    assert min(zarr.open_array("labels.zarr")) == 0
    model = dc.load_model("model.zarr")
    if "--consensus-components" in options:
        assert (model.consensus.n_components, model.consensus_.cluster_centers_.shape) == (40, (3, 40))
    if "--consensus-representatives" in options:
        assert (model.consensus.n_representatives, model.consensus_.embedding_.shape) == (99, (99, 3))
    assert result_of("predict", "X.zarr", "--model", "model.zarr", "--labels", "again.zarr")["n_samples"] == 400
    assert dc.metrics.clustering_accuracy("labels.zarr", "again.zarr") > 0.95
    assert result_of("plan", "X.zarr", "-k", 3, *options)["tasks"] > 0
    assert run("info", "model.zarr").exit_code == 0


@pytest.mark.parametrize(
    "options",
    [[], ["--method", "sec"], ["--method", "sec", "--components", 20], ["--method", "isec", "--representatives", 100]],
    ids=str,
)
def test_consensus(folder, options):
    found = result_of(
        "consensus",
        "base.zarr",
        "-k",
        3,
        *options,
        "--labels",
        "labels.zarr",
        "--agreement",
        "a.zarr",
        "--model",
        "m.zarr",
    )
    assert (found["n_samples"], found["n_base_clusterings"], found["n_clusters"]) == (400, 5, 3)
    assert dc.metrics.clustering_accuracy("y.zarr", "labels.zarr") > 0.95
    agreement = zarr.open_array("a.zarr")
    assert agreement.shape == (400,)
    assert agreement[:].min() > 0.2
    np.testing.assert_array_equal(
        dc.load_model("m.zarr").predict("base.zarr").compute(), zarr.open_array("labels.zarr")
    )
    assert run("consensus", "base.zarr", "-k", 3, "--labels", "labels.zarr").exit_code != 0  # it exists


def lines_of(*arguments):
    done = run(*arguments, "--quiet")
    assert done.exit_code == 0, done.output
    found = (line.split("  ", 1) for line in done.output.splitlines() if not line.startswith("Warning"))
    return {name: value.strip() for name, value in found}


@pytest.mark.filterwarnings("ignore:.* rows have no label")
def test_text_output(folder):
    base = zarr.open_array("base.zarr", mode="r+")
    base[:20] = -1
    about = lines_of("consensus", "base.zarr", "-k", 3, "--labels", "labels.zarr", "--model", "model.zarr")
    assert about["base clusterings"] == "5 of 400 rows"
    assert about["clusters"] == "3"
    assert about["rows without label"] == "20 (no known label in any base clustering)"
    about = lines_of("predict", "base.zarr", "--model", "model.zarr", "--labels", "again.zarr")
    assert about["rows without label"] == "20 (no known label in any base clustering)"
    sampled = ["--algorithm", "ensemble", "--base", "kmeans", "--base-clusterings", 2, "--sample-rate", 0.3]
    about = lines_of("fit", "X.zarr", "-k", 3, *sampled, "--labels", "sampled.zarr")
    assert about["rows without label"].endswith("(NaN or infinity, or no label in any base clustering)")
    assert about["clusters"] == "3"


def test_storage_of_other_partial_labels_is_refused(folder):
    y = np.full(400, -1)
    y[::10] = zarr.open_array("y.zarr")[::10]
    known = zarr.create_array("known.zarr", data=y, chunks=(100,))
    ensemble = ["--algorithm", "ensemble", "--base", "fastcsc", "--base-clusterings", 1, "--storage", "run"]
    fit = [
        "fit",
        "X.zarr",
        "-k",
        3,
        *ensemble,
        "--partial-labels",
        "known.zarr",
        "--labels",
        "labels.zarr",
        "--overwrite",
    ]
    result_of(*fit)
    result_of(*fit)
    known[7] = 2
    done = run(*fit, "--quiet")
    assert done.exit_code == 2
    assert "made from other data" in done.output


ENSEMBLE = ["fit", "X.zarr", "-k", 3, "--algorithm", "ensemble", "--labels", "o.zarr"]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["consensus", "base.zarr", "-k", 3, "--components", 5, "--labels", "o.zarr"], "--components does not apply"),
        (["consensus", "X.zarr", "-k", 3, "--labels", "o.zarr"], "whole numbers"),
        (["consensus", "none.zarr", "-k", 3, "--labels", "o.zarr"], "none.zarr"),
        (["fit", "X.zarr", "-k", 3, "--base", "kmeans", "--labels", "o.zarr"], "--base does not apply"),
        (
            ["fit", "X.zarr", "-k", 3, "--consensus-components", 9, "--labels", "o.zarr"],
            "does not apply to --algorithm",
        ),
        ([*ENSEMBLE, "--consensus-components", 9], "--consensus-components does not apply to --consensus cut"),
        ([*ENSEMBLE, "--consensus", "sec", "--consensus-representatives", 9], "does not apply to --consensus sec"),
        (["fit", "X.zarr", "-k", 3, "--algorithm", "usenc", "--k-range", 5, 2, "--labels", "o.zarr"], "k_range"),
    ],
)
def test_one_line_says_what_is_wrong(folder, arguments, match):
    done = run(*arguments, "--quiet")
    assert done.exit_code != 0
    assert match in done.output
    assert "Traceback" not in done.output
    assert not (folder / "o.zarr").exists()
