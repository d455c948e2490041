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
        ["--algorithm", "ensemble", "--sample-rate", 0.5, "--base", "kmeans"],
    ],
    ids=str,
)
def test_fit_and_predict(folder, options):
    found = result_of("fit", "X.zarr", "-k", 3, *options, "--labels", "labels.zarr", "--model", "model.zarr")
    assert found["n_clusters"] == 3
    assert dc.metrics.clustering_accuracy("y.zarr", "labels.zarr") > 0.95
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


def test_text_output(folder):
    done = run("consensus", "base.zarr", "-k", 3, "--labels", "labels.zarr", "--quiet")
    assert done.exit_code == 0, done.output
    assert "5 of 400 rows" in done.output


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["consensus", "base.zarr", "-k", 3, "--components", 5, "--labels", "o.zarr"], "--components does not apply"),
        (["consensus", "X.zarr", "-k", 3, "--labels", "o.zarr"], "whole numbers"),
        (["consensus", "none.zarr", "-k", 3, "--labels", "o.zarr"], "none.zarr"),
        (["fit", "X.zarr", "-k", 3, "--base", "kmeans", "--labels", "o.zarr"], "--base does not apply"),
        (["fit", "X.zarr", "-k", 3, "--algorithm", "usenc", "--k-range", 5, 2, "--labels", "o.zarr"], "k_range"),
    ],
)
def test_one_line_says_what_is_wrong(folder, arguments, match):
    done = run(*arguments, "--quiet")
    assert done.exit_code != 0
    assert match in done.output
    assert "Traceback" not in done.output
    assert not (folder / "o.zarr").exists()
