"""`fit`, `predict` and `plan`."""

from __future__ import annotations

import json
import os
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster
from daskcluster import estimators
from daskcluster.io import load_model, open_rows, write_array
from daskcluster.runtime.limits import Room
from tests.cli.calls import FAST, N, as_json, fail, run, shown, succeed
from tests.slow import slowly


def test_fit_stores_labels_and_model(stores):
    labels = open_rows(stores / "labels.zarr")
    assert labels.shape == (N,)
    assert labels.dtype == np.int32
    about: Any = labels.attrs["daskcluster"]
    assert about["class"] == "USPEC"
    assert about["parameters"]["random_state"] == 0
    model = load_model(stores / "model.zarr")
    assert model.n_clusters == 3
    assert model.verbose is False
    np.testing.assert_array_equal(model.predict(open_rows(stores / "x.zarr")).compute(), labels[...])
    truth = open_rows(stores / "y.zarr")[...]
    assert daskcluster.metrics.normalized_mutual_info(truth, labels[...]) > 0.95


def test_fit_tells_what_it_did(stores, tmp_path):
    result = run("fit", stores / "x.zarr", "-k", 3, *FAST, "--labels", tmp_path / "out.zarr")
    assert "discretize" in result.stderr  # progress
    names = [line.split("  ")[0] for line in result.stdout.splitlines()]
    assert names == ["rows", "clusters", "cluster sizes", "seconds", "peak memory", "labels"]
    assert result.stdout.startswith("rows           3,000 x 2\n")
    about = as_json("fit", stores / "x.zarr", "-k", 3, *FAST, "--labels", tmp_path / "out.zarr", "--overwrite")
    assert sum(about["cluster_sizes"].values()) == N
    assert about["parameters"]["n_representatives"] == 300
    assert about["peak_memory_bytes"] > 10**7
    assert about["model"] is None


def test_quiet_is_quiet(stores, tmp_path):
    options = ["-k", 3, *FAST, "--labels", tmp_path / "out.zarr", "--quiet"]
    assert succeed("fit", stores / "x.zarr", *options).stderr == ""


def test_kmeans(stores, tmp_path):
    options = ["--algorithm", "kmeans", "-k", 4, "--init", "random", "--tol", "1e-3", "--quiet"]
    outputs = ["--labels", tmp_path / "out.zarr", "--model", tmp_path / "m.zarr"]
    about = as_json("fit", stores / "x.zarr", *options, *outputs)
    assert about["class"] == "KMeans"
    assert (about["parameters"]["tol"], about["parameters"]["init"]) == (1e-3, "random")
    succeed("predict", stores / "x.zarr", "--model", tmp_path / "m.zarr", "--labels", tmp_path / "again.zarr")
    np.testing.assert_array_equal(open_rows(tmp_path / "again.zarr")[...], open_rows(tmp_path / "out.zarr")[...])


def test_fit_needs_something_to_keep(stores):
    assert "give --labels, --model or --picture" in fail(2, "fit", stores / "x.zarr", "-k", 3)


def test_bad_input_is_told_in_one_line(stores, tmp_path):
    out = ["--labels", tmp_path / "out.zarr", "--quiet"]
    assert "--clusters must be at most the number of rows" in fail(2, "fit", stores / "x.zarr", "-k", N + 1, *out)
    values = open_rows(stores / "x.zarr")[...]
    assert isinstance(values, np.ndarray)
    values[1234, 1] = np.nan
    write_array(da.from_array(values, chunks=500), tmp_path / "nan.zarr")
    assert "NaN at row 1234, column 1" in fail(2, "fit", tmp_path / "nan.zarr", "-k", 3, *FAST, *out)
    write_array(da.ones((5, 3)), tmp_path / "wide.zarr")
    model = ["--model", stores / "model.zarr"]
    assert "3 features" in fail(2, "predict", tmp_path / "wide.zarr", *model, *out)
    assert "NaN at row 1234, column 1" in fail(2, "predict", tmp_path / "nan.zarr", *model, *out)
    assert sorted(os.listdir(tmp_path)) == ["nan.zarr", "wide.zarr"]


def test_plan_computes_nothing(stores, monkeypatch):
    monkeypatch.setattr(estimators.USPEC, "fit", lambda *arguments: pytest.fail("worked"))
    forecast = as_json("plan", stores / "x.zarr", "-k", 3, *FAST)
    assert forecast["n_samples"] == N
    assert forecast == json.loads(
        json.dumps(estimators.USPEC(3, n_representatives=300).plan(stores / "x.zarr").to_dict())
    )
    assert "3,000 rows" in succeed("plan", stores / "x.zarr", "-k", 3).stdout
    assert "--clusters must" in fail(2, "plan", stores / "x.zarr", "-k", N + 1)


ENSEMBLES = [
    ["usenc", "--base-clusterings", 4, "--representatives", 50, "--k-range", 4, 8],
    ["ensemble", "--base", "kmeans", "--consensus", "eac", "--consensus-weights", "wct"],
    ["ensemble", "--sample-rate", 0.5, "--base", "kmeans", "--predict-unsampled"],
    *slowly(
        ["ensemble", "--base", "kmeans", "--consensus", "sec", "--base-clusterings", 4],
        ["ensemble", "--base", "kmeans", "--consensus-weights", "local", "--base-clusterings", 4],
        ["ensemble", "--base", "kmeans", "--consensus", "kcc", "--consensus-utility", "cosine"],
        ["ensemble", "--base", "kmeans", "--consensus", "eac", "--consensus-linkage", "complete"],
        ["ensemble", "--base", "kmeans", "--consensus", "ptgp", "--consensus-max-distinct", 9000],
        ["ensemble", "--base", "kmeans", "--consensus", "sec", "--consensus-components", 40],
        ["ensemble", "--base", "kmeans", "--consensus", "isec", "--consensus-representatives", 99],
    ),
]


@pytest.mark.parametrize("options", ENSEMBLES, ids=str)
def test_ensembles(blobs, options):
    options = ["--algorithm", *options] + ([] if "--base-clusterings" in options else ["--base-clusterings", 8])
    outputs = ["--labels", "labels.zarr", "--model", "model.zarr"]
    found = as_json("fit", "X.zarr", "-k", 3, *options, *outputs, "--quiet")
    assert found["n_clusters"] == 3
    assert daskcluster.metrics.clustering_accuracy("y.zarr", "labels.zarr") > 0.95
    assert min(zarr.open_array("labels.zarr")) == 0
    model = daskcluster.load_model("model.zarr")
    if "--consensus-components" in options:
        assert (model.consensus.n_components, model.consensus_.cluster_centers_.shape) == (40, (3, 40))
    if "--consensus-representatives" in options:
        assert (model.consensus.n_representatives, model.consensus_.embedding_.shape) == (99, (99, 3))
    found = as_json("predict", "X.zarr", "--model", "model.zarr", "--labels", "again.zarr", "--quiet")
    assert found["n_samples"] == 400
    assert daskcluster.metrics.clustering_accuracy("labels.zarr", "again.zarr") > 0.95
    assert as_json("plan", "X.zarr", "-k", 3, *options) == json.loads(json.dumps(model.plan("X.zarr").to_dict()))
    assert succeed("info", "model.zarr").stdout.startswith("kind ")


@pytest.mark.filterwarnings("ignore:.* rows have no label")
def test_rows_that_no_base_clusterer_saw_are_told(blobs):
    sampled = ["--algorithm", "ensemble", "--base", "kmeans", "--base-clusterings", 2, "--sample-rate", 0.3]
    about = shown("fit", "X.zarr", "-k", 3, *sampled, "--labels", "sampled.zarr", "--quiet")
    assert about["rows without label"].endswith("(NaN or infinity, or no label in any base clustering)")
    assert about["clusters"] == "3"


def test_what_does_not_fit_into_memory_is_refused(stores, monkeypatch):
    monkeypatch.setattr("daskcluster.runtime.forecast.rooms", lambda: [Room(2, 2**29)])
    said = fail(2, "fit", stores / "x.zarr", "-k", 3, "--labels", stores / "never.zarr", "--representatives", 2000)
    assert "needs a memory limit of" in said
    assert "512 MiB" in said
    assert not (stores / "never.zarr").exists()
    assert succeed("plan", stores / "x.zarr", "-k", 3).stdout.rstrip().endswith("512 MiB are there: refused")


@pytest.mark.parametrize("parts", [3, 7])
def test_parts_of_rows_are_all_rows(stores, tmp_path, parts):
    """A job each: labels of the parts, one after the other, are those of the store; 7 parts do not fit its chunks."""
    fit = ("fit", stores / "x.zarr", "--algorithm", "kmeans", "-k", 3, "--scale", "standard", "--seed", 0)
    succeed(*fit, "--model", tmp_path / "m.zarr", "--labels", tmp_path / "all.zarr")
    predict = ("predict", stores / "x.zarr", "--model", tmp_path / "m.zarr", "--overwrite", "--json")
    found, stop = [], 0
    for part in range(parts):
        told = as_json(*predict, "--part", f"{part}/{parts}", "--labels", tmp_path / "part.zarr")
        stored = zarr.open_array(tmp_path / "part.zarr")
        start, stop = stop, stored.attrs["daskcluster"]["rows"][1]
        assert stored.attrs["daskcluster"]["rows"] == [start, stop]
        assert told["n_samples"] == stop - start == stored.shape[0]
        found.append(stored[:])
    np.testing.assert_array_equal(np.concatenate(found), zarr.open_array(tmp_path / "all.zarr")[:])
    for part in ("3/3", "-1/3", "1", "0/0"):
        assert "is no part I/N" in fail(2, *predict, "--part", part, "--labels", tmp_path / "part.zarr")
    assert "expected at most as many parts" in fail(2, *predict, "--part", "0/99999", "--labels", tmp_path / "p.zarr")
