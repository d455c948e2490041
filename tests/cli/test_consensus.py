"""`consensus`."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

import daskcluster
from tests.cli.calls import as_json, fail, shown
from tests.slow import slowly


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--method", "sec", "--components", 20],
        ["--method", "eac", "--weights", "wct", "--linkage", "complete", "--max-distinct", 500],
        *slowly(
            ["--weights", "local"],
            ["--method", "sec"],
            ["--method", "ecpcs"],
            ["--method", "kcc"],
            ["--method", "kcc", "--utility", "cosine"],
            ["--method", "eac"],
            ["--method", "ptgp"],
            ["--method", "isec", "--representatives", 100],
        ),
    ],
    ids=str,
)
def test_consensus(blobs, options):
    outputs = ["--labels", "labels.zarr", "--agreement", "a.zarr", "--model", "m.zarr"]
    found = as_json("consensus", "base.zarr", "-k", 3, *options, *outputs, "--quiet")
    assert (found["n_samples"], found["n_base_clusterings"], found["n_clusters"]) == (400, 5, 3)
    assert daskcluster.metrics.clustering_accuracy("y.zarr", "labels.zarr") > 0.95
    agreement = zarr.open_array("a.zarr")
    assert agreement.shape == (400,)
    assert agreement[:].min() > 0.2
    np.testing.assert_array_equal(
        daskcluster.load_model("m.zarr").predict("base.zarr").compute(), zarr.open_array("labels.zarr")
    )
    assert "exists" in fail(2, "consensus", "base.zarr", "-k", 3, "--labels", "labels.zarr")


@pytest.mark.filterwarnings("ignore:.* rows have no label")
def test_rows_without_label_are_told(blobs):
    base = zarr.open_array("base.zarr", mode="r+")
    base[:20] = -1
    about = shown("consensus", "base.zarr", "-k", 3, "--labels", "labels.zarr", "--model", "model.zarr", "--quiet")
    assert about["base clusterings"] == "5 of 400 rows"
    assert about["clusters"] == "3"
    assert about["rows without label"] == "20 (no known label in any base clustering)"
    about = shown("predict", "base.zarr", "--model", "model.zarr", "--labels", "again.zarr", "--quiet")
    assert about["rows without label"] == "20 (no known label in any base clustering)"


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["base.zarr", "--components", 5], "--components does not apply to --method cut"),
        (["base.zarr", "--utility", "entropy"], "--utility does not apply to --method cut"),
        (["base.zarr", "--weights", "wct"], "--weights wct does not apply to --method cut"),
        (["base.zarr", "--linkage", "single"], "--linkage does not apply to --method cut"),
        (["base.zarr", "--method", "sec", "--max-distinct", 9], "--max-distinct does not apply to --method sec"),
        (["base.zarr", "--method", "ptgp", "--max-distinct", 1], "distinct rows of labels, more than --max-distinct 1"),
        (["base.zarr", "--method", "sec", "--weights", "local"], "--weights does not apply to --method sec"),
        (["base.zarr", "--method", "sec", "--representatives", 5], "--representatives does not apply to --method sec"),
        (["X.zarr"], "whole numbers"),
        (["none.zarr"], "none.zarr"),
    ],
)
def test_bad_arguments_are_refused(blobs, arguments, match):
    assert match in fail(2, "consensus", *arguments, "-k", 3, "--labels", "o.zarr", "--quiet")
    assert not (blobs / "o.zarr").exists()
