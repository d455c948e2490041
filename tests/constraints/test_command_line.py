"""Constraints on the command line."""

from __future__ import annotations

import inspect
import json
from typing import Any

import dask.array as da
import numpy as np
import pytest
from click.testing import CliRunner

import daskcluster as dc
from daskcluster import io
from daskcluster.cli import main
from daskcluster.io import open_rows

FASTCSC = ["--algorithm", "fastcsc", "-k", 2, "--representatives", 60, "--quiet"]


def write_array(array: np.ndarray, path: Any) -> None:
    io.write_array(da.from_array(array), path)


def run(*arguments: Any) -> Any:
    apart: dict[str, Any] = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
    return CliRunner(**apart).invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def square(tmp_path):
    """A uniform square in a store, and the half in which each row lies."""
    X = np.random.default_rng(0).random((1000, 2))
    write_array(X, tmp_path / "X.zarr")
    return tmp_path, X, (X[:, 0] > 0.5).astype(int)


def test_partial_labels(square):
    folder, X, y = square
    write_array(np.where(np.arange(1000) % 5 == 0, y, -1), folder / "known.zarr")
    options = ["--partial-labels", folder / "known.zarr", "--labels", folder / "out.zarr", "--model", folder / "m.zarr"]
    done = run("fit", folder / "X.zarr", *FASTCSC, *options, "--json")
    assert done.exit_code == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["class"] == "FastCSC"
    assert result["constraints"]["must_link"]["kept"] > 0.8
    count = sum(kind["count"] for kind in result["constraints"].values())
    assert count == 200 * 199 // 2
    labels = open_rows(folder / "out.zarr")[:]
    assert dc.metrics.clustering_accuracy(y, labels) > 0.9
    expected = dc.FastCSC(2, n_representatives=60, random_state=0).fit(X, np.where(np.arange(1000) % 5 == 0, y, -1))
    np.testing.assert_array_equal(labels, expected.labels_)
    np.testing.assert_array_equal(dc.load_model(folder / "m.zarr").predict(X), labels)
    assert "must-links kept" in run("fit", folder / "X.zarr", *FASTCSC, *options, "--overwrite").stdout


def test_pairs_from_files(square):
    folder, X, y = square
    pairs = np.random.default_rng(1).integers(0, 1000, (800, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    np.save(folder / "must.npy", pairs[same])
    weighted = np.column_stack([pairs[~same], np.full((~same).sum(), 0.5)])
    np.savetxt(folder / "cannot.csv", weighted, delimiter=",", header="first,second,weight", comments="", fmt="%g")
    options = ["--must-link", folder / "must.npy", "--cannot-link", folder / "cannot.csv", "--alpha", 3]
    done = run("fit", folder / "X.zarr", *FASTCSC, *options, "--labels", folder / "out.zarr", "--json")
    assert done.exit_code == 0, done.stderr
    known = dc.Constraints.from_pairs(pairs[same], pairs[~same], cannot_link_weight=0.5)
    expected = dc.FastCSC(2, n_representatives=60, alpha=3, random_state=0).fit(X, constraints=known)
    np.testing.assert_array_equal(open_rows(folder / "out.zarr")[:], expected.labels_)


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
        ("nan,1\n", "must_link must hold row numbers, got the pair (nan, 1.0)"),
        ("0,1000\n", "must_link must name rows 0 to 999, got the pair (0, 1000)"),
        ("3,3\n", "must_link must not link a row to itself"),
        ("0,1,0\n", "must_link_weight must be above 0 and at most 1"),
        ("0,1.5\n", "must_link must hold row numbers"),
    ],
    ids=str,
)
def test_bad_files_are_refused(square, text, message):
    folder, _, _ = square
    (folder / "must.csv").write_text(text)
    done = run("fit", folder / "X.zarr", *FASTCSC, "--must-link", folder / "must.csv", "--labels", folder / "out.zarr")
    assert done.exit_code == 2, done.stderr
    assert message in done.stderr
    assert not (folder / "out.zarr").exists()


def test_bad_options_are_refused(square):
    folder, _, y = square
    write_array(y[:-1], folder / "known.zarr")
    (folder / "must.csv").write_text("0,1\n")
    out = ["--labels", folder / "out.zarr"]
    labels, must = ["--partial-labels", folder / "known.zarr"], ["--must-link", folder / "must.csv"]
    for options, message in (
        ([*FASTCSC, *labels, *must], "give --partial-labels, or --must-link and --cannot-link"),
        (["-k", 2, "--quiet", *labels], "need --algorithm fastcsc, or --algorithm ensemble with --base fastcsc"),
        ([*FASTCSC, *labels], "y must have one entry for each of the 1000 rows of X, got 999"),
        ([*FASTCSC, "--must-link", folder / "none.csv"], "--must-link: no file at"),
        ([*FASTCSC, "--partial-labels", folder / "none.zarr"], "none.zarr"),
    ):
        done = run("fit", folder / "X.zarr", *options, *out)
        assert done.exit_code == 2, done.stderr
        assert message in done.stderr


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
    folder, _, _ = square
    (folder / "must.csv").write_bytes(text)
    options = ["--must-link", folder / "must.csv", "--labels", folder / "out.zarr", "--json"]
    done = run("fit", folder / "X.zarr", *FASTCSC, *options)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["constraints"]["must_link"]["count"] == 2


def test_a_file_that_is_no_text_is_refused(square):
    folder, _, _ = square
    (folder / "must.csv").write_bytes(b"\xff\xfe1\x00,\x002\x00")
    done = run("fit", folder / "X.zarr", *FASTCSC, "--must-link", folder / "must.csv", "--labels", folder / "out.zarr")
    assert done.exit_code == 2, done.stderr
    assert "must.csv' is no table of numbers" in done.stderr


@pytest.mark.filterwarnings("default:FastCSC. no constraints:UserWarning")
def test_an_empty_file_is_no_constraints(square):
    folder, _, _ = square
    (folder / "must.csv").write_text("")
    done = run("fit", folder / "X.zarr", *FASTCSC, "--must-link", folder / "must.csv", "--labels", folder / "out.zarr")
    assert done.exit_code == 0, done.stderr
    assert "Warning: FastCSC: no constraints" in done.stderr
