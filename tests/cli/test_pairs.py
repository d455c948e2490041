"""Constraints: their options, and files of pairs."""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster.io import open_rows, write_array
from tests.cli.calls import as_json, fail, shown, succeed

FIT = ["fit", "X.zarr", "-k", 2, "--labels", "out.zarr", "--quiet"]
FASTCSC = [*FIT, "--algorithm", "fastcsc", "--representatives", 60]


@pytest.fixture
def square(tmp_path, monkeypatch):
    """A uniform square, stored as X.zarr of the working folder, and the half in which each row lies."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).random((1000, 2))
    write_array(da.from_array(X), "X.zarr")
    return X, (X[:, 0] > 0.5).astype(int)


def test_partial_labels(square):
    X, y = square
    known = np.where(np.arange(1000) % 5 == 0, y, -1)
    write_array(da.from_array(known), "known.zarr")
    fit = [*FASTCSC, "--partial-labels", "known.zarr", "--model", "m.zarr"]
    result = as_json(*fit)
    assert result["class"] == "FastCSC"
    assert result["constraints"]["must_link"]["kept"] > 0.8
    assert sum(kind["count"] for kind in result["constraints"].values()) == 200 * 199 // 2
    labels = open_rows("out.zarr")[:]
    assert dc.metrics.clustering_accuracy(y, labels) > 0.9
    expected = dc.FastCSC(2, n_representatives=60, random_state=0).fit(X, known)
    np.testing.assert_array_equal(labels, expected.labels_)
    np.testing.assert_array_equal(dc.load_model("m.zarr").predict(X), labels)
    kept = result["constraints"]["must_link"]
    assert shown(*fit, "--overwrite")["must-links kept"] == f"{kept['kept']:.2%} of {kept['count']:,}"


def test_groups(square):
    X, y = square
    groups = np.empty(1000, int)
    for half in (0, 1):
        rows = np.flatnonzero(y == half)
        groups[rows] = np.arange(len(rows)) // 2
    write_array(da.from_array(groups), "groups.zarr")
    result = as_json(*FASTCSC, "--groups", "groups.zarr", "--direction-factor", 0.5)
    expected = dc.FastCSC(2, n_representatives=60, direction_factor=0.5, random_state=0)
    expected.fit(X, constraints=dc.Constraints.from_groups(groups))
    np.testing.assert_array_equal(open_rows("out.zarr")[:], expected.labels_)
    assert result["constraints"]["must_link"]["count"] == 0
    assert result["constraints"]["cannot_link"]["count"] > 1000
    assert "--groups needs --algorithm fastcsc" in fail(2, *FIT, "--overwrite", "--groups", "groups.zarr")
    for other in ("--partial-labels", "--must-link"):
        message = fail(2, *FASTCSC, "--overwrite", "--groups", "groups.zarr", other, "groups.zarr")
        assert "give --groups, --partial-labels, or --must-link and --cannot-link" in message


def test_pairs_from_files(square):
    X, y = square
    pairs = np.random.default_rng(1).integers(0, 1000, (800, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    np.save("must.npy", pairs[same])
    weighted = np.column_stack([pairs[~same], np.full((~same).sum(), 0.5)])
    np.savetxt("cannot.csv", weighted, delimiter=",", header="first,second,weight", comments="", fmt="%g")
    as_json(*FASTCSC, "--must-link", "must.npy", "--cannot-link", "cannot.csv", "--alpha", 3)
    known = dc.Constraints.from_pairs(pairs[same], pairs[~same], cannot_link_weight=0.5)
    expected = dc.FastCSC(2, n_representatives=60, alpha=3, random_state=0).fit(X, constraints=known)
    np.testing.assert_array_equal(open_rows("out.zarr")[:], expected.labels_)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "0,1\n2\n",
            "line 2: expected two row numbers, and a weight or none, separated by commas as on the lines above",
        ),
        ("0,1\n2,3,1\n", "line 2: expected two row numbers, and a weight or none, separated by commas as on"),
        ("a,b\nc,d\n", "line 2: expected two row numbers, and a weight or none, separated by commas, got 'c,d'"),
        ("0,1,1,1\n", "line 1: expected two row numbers, and a weight or none, separated by commas, got '0,1,1,1'"),
        ("1,2x\n3,4\n", "line 1: expected two row numbers, and a weight or none, separated by commas, got '1,2x'"),
        ("first,second\n1,2\n\n3,4x\n", "line 4: expected two row numbers"),
        ("1\t2\n", "line 1: expected two row numbers"),
        ("1;2\n3;4\n", "got '1;2'"),
        ("1 2\n", "got '1 2'"),
        ("-1,x\n", "got '-1,x'"),
        (".5,x\n", "got '.5,x'"),
        ("first second\n1,2\n", "line 1: expected two row numbers"),
        ("nan,1\n", "--must-link must hold row numbers, got the pair (nan, 1.0)"),
        ("0,1000\n", "--must-link must name rows 0 to 999, got the pair (0, 1000)"),
        ("3,3\n", "--must-link must not link a row to itself"),
        ("0,1,0\n", "must_link_weight must be above 0 and at most 1"),
        ("0,1.5\n", "--must-link must hold row numbers"),
    ],
    ids=str,
)
def test_bad_files_are_refused(square, text, message):
    Path("must.csv").write_text(text)
    assert message in fail(2, *FASTCSC, "--must-link", "must.csv")
    assert not Path("out.zarr").exists()


def test_bad_options_are_refused(square):
    _, y = square
    write_array(da.from_array(y[:-1]), "known.zarr")
    Path("must.csv").write_text("0,1\n")
    np.save("flat.npy", np.arange(4))
    labels, must = ["--partial-labels", "known.zarr"], ["--must-link", "must.csv"]
    for arguments, message in (
        ([*FASTCSC, *labels, *must], "give --partial-labels, or --must-link and --cannot-link"),
        ([*FIT, *labels], "need --algorithm fastcsc, or --algorithm ensemble with --base fastcsc"),
        ([*FASTCSC, *labels], "--partial-labels must have one entry for each of the 1000 rows of X, got 999"),
        ([*FASTCSC, "--must-link", "none.csv"], "--must-link: no file at"),
        ([*FASTCSC, "--cannot-link", "flat.npy"], "--cannot-link: expected two columns of row numbers"),
        ([*FASTCSC, "--partial-labels", "none.zarr"], "none.zarr"),
    ):
        assert message in fail(2, *arguments)


@pytest.mark.parametrize(
    "text",
    [
        b"1,2\n3,4\n",
        b"\xef\xbb\xbf1,2\n3,4\n",
        b"\xef\xbb\xbffirst,second\r\n1,2\r\n3,4\r\n",
        b'"first","second"\n 1 , 2\n\n3.0,4\n',
        b"# pairs of rows\n1,2  # sure\n3,4",
        b"+1,2\n3,4\n",
        b"i,j,weight\n1,2,1\n3,4,1\n",
    ],
    ids=str,
)
def test_every_pair_of_a_csv_file_is_read(square, text):
    Path("must.csv").write_bytes(text)
    assert as_json(*FASTCSC, "--must-link", "must.csv")["constraints"]["must_link"]["count"] == 2


def test_a_file_that_is_no_text_is_refused(square):
    Path("must.csv").write_bytes(b"\xff\xfe1\x00,\x002\x00")
    assert "must.csv' is no table of numbers" in fail(2, *FASTCSC, "--must-link", "must.csv")


@pytest.mark.filterwarnings("default:FastCSC. no constraints:UserWarning")
def test_an_empty_file_is_no_constraints(square):
    Path("must.csv").write_text("")
    assert "Warning: FastCSC: no constraints" in succeed(*FASTCSC, "--must-link", "must.csv").stderr


def test_storage_of_other_partial_labels_is_refused(blobs):
    y = np.full(400, -1)
    y[::10] = zarr.open_array("y.zarr")[::10]
    known = zarr.create_array("known.zarr", data=y, chunks=(100,))
    ensemble = ["--algorithm", "ensemble", "--base", "fastcsc", "--base-clusterings", 1, "--storage", "run"]
    options = ["--partial-labels", "known.zarr", "--labels", "labels.zarr", "--overwrite", "--quiet"]
    fit = ["fit", "X.zarr", "-k", 3, *ensemble, *options]
    succeed(*fit)
    succeed(*fit)
    known[7] = 2
    assert "made from other data" in fail(2, *fit)
