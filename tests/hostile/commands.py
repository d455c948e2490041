"""Commands that cannot be done, and what they say: one line on stderr, nothing on stdout, no traceback."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.calls import run
from tests.hostile.case import Case, refused, right

__all__ = ["CASES"]


class Refused(Exception):
    """The line that a command ends with."""


def ends_with(code: int, *arguments: Any) -> None:
    """Run a command that must fail, and raise its line."""
    result = run(*arguments)
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert result.exit_code == code, result.stderr
    raise Refused(result.stderr.strip().splitlines()[-1])


def command(line: str, words: str, code: int = 2) -> Case:
    """A command, with '' for an empty argument, and words of what it says."""
    arguments = ["" if word == "''" else word for word in line.split()]
    return refused(f"$ {line}", lambda: ends_with(code, *arguments), Refused, words)


FIT = "--labels out.zarr --quiet"
CSC = f"fit X.zarr -k 3 --algorithm fastcsc {FIT}"
KMEANS = f"-k 3 --algorithm kmeans {FIT}"

CASES: list[Case] = [
    # -- fit
    command("fit", "Missing argument 'X.zarr'"),
    command("fit X.zarr", "Missing option '-k'"),
    command("fit X.zarr -k 3", "nothing would be kept: give --labels, --model or --picture$"),
    command(f"fit X.zarr -k a {FIT}", "Invalid value for '-k'"),
    command(f"fit X.zarr -k 0 {FIT}", "0 is not in the range x>=1"),
    command(f"fit X.zarr -k -3 {FIT}", "-3 is not in the range"),
    command(f"fit X.zarr -k 3.5 {FIT}", "'3.5' is not a valid integer"),
    command(f"fit X.zarr -k 99 {FIT}", "^Error: --clusters must be at most the number of rows, got --clusters 99 and"),
    command(f"fit wide.zarr {KMEANS}", "n_samples=2; X has 60 columns, is it transposed\\?$"),
    command(f"fit nothing.zarr {KMEANS}", "^Error: no Zarr array at 'nothing.zarr': nothing exists there$"),
    command(f"fit '' {KMEANS}", "^Error: expected a path, got ''$"),
    command(f"fit group.zarr {KMEANS}", "Name one of them, such as 'group.zarr/X'$"),
    command(f"fit csr.zarr {KMEANS}", "is a damaged matrix: shape"),
    command(f"fit model.zarr {KMEANS}", "is a saved model .*; give it to `predict` with --model$"),
    command(f"fit text.txt {KMEANS}", "is a file, not a Zarr array; every pass would parse its text again: store"),
    command(f"fit data.h5 {KMEANS}", "data.h5' is not an HDF5 file that can be read"),
    command(f"fit folder {KMEANS}", "is a folder, not a Zarr array"),
    command(f"fit broken.zarr {KMEANS}", "has Zarr metadata that cannot be read"),
    command(f"fit raster.zarr {KMEANS}", r"Expected 2D array .* \(band, y, x\) every pixel is a row"),
    command(f"fit y.zarr {KMEANS}", "Expected 2D array .* got 1D array"),
    command(f"fit complex.zarr {KMEANS}", "Complex data not supported"),
    command(f"fit nan.zarr {KMEANS}", "NaN at row 3, column 1; give --missing label to give such rows the label -1$"),
    command(f"fit nope://x {KMEANS}", "Protocol not known: nope"),
    command(f"fit X.zarr -k 3 --algorithm dbscan {FIT}", "'dbscan' is not one of 'uspec', 'usenc'"),
    command(f"fit X.zarr -k 3 --metric l1 {FIT}", "'l1' is not one of 'euclidean', 'cosine'"),
    command(f"fit X.zarr -k 3 --alpha 2 {FIT}", "--alpha does not apply to --algorithm uspec"),
    command(f"fit X.zarr -k 3 --seed x {FIT}", "'x' is not a valid integer"),
    command(f"fit X.zarr -k 3 --seed -1 {FIT}", "^Error: --seed must be an integer >= 0, got -1$"),
    command(f"fit X.zarr -k 3 --representatives 0 {FIT}", "0 is not in the range x>=1"),
    command(f"fit X.zarr -k 3 --k-range 2 3 {FIT}", "--k-range does not apply to --algorithm uspec"),
    command(f"fit X.zarr -k 3 --algorithm usenc --k-range 5 2 {FIT}", "^Error: --k-range"),
    command(f"fit X.zarr -k 3 --algorithm ensemble --sample-rate 2 {FIT}", "2.* is not in the range"),
    command(f"fit X.zarr -k 3 --nope {FIT}", "No such option '?--nope"),
    # -- outputs
    command("fit X.zarr -k 3 --labels X.zarr --quiet", "--labels 'X.zarr' is the input; give another path$"),
    command("fit X.zarr -k 3 --labels X.zarr/y --quiet", "lies inside the input"),
    command("fit X.zarr -k 3 --labels y.zarr --quiet", "'y.zarr' exists; give --overwrite to replace it$"),
    command("fit X.zarr -k 3 --labels folder/a --model folder/a --quiet", "--model 'folder/a' is --labels"),
    command("fit X.zarr -k 3 --labels text.txt/y --quiet", "cannot create 'text.txt/y': .* is not a folder$"),
    command("fit X.zarr -k 3 --labels nope://b/y --quiet", "Protocol not known: nope"),
    command("fit X.zarr -k 3 --labels '' --quiet", "expected a path, got ''$"),
    command("fit X.zarr -k 3 --picture p.bmp", "--picture: expected a .png, .pdf, .svg or .jpg file, got 'p.bmp'$"),
    command("fit y.zarr -k 3 --picture p.png", "--picture needs rows with two features or more"),
    command(
        f"fit X.zarr -k 3 --storage text.txt {FIT}", "^Error: --storage must be a store made by daskcluster, or an"
    ),
    command(f"fit X.zarr -k 3 --storage model.zarr {FIT}", "^Error: --storage must be a store made by daskcluster"),
    command(f"fit X.zarr -k 3 --storage out.zarr {FIT}", "--labels 'out.zarr' is --storage; give another path$"),
    # -- constraints
    command(f"fit X.zarr -k 3 --partial-labels y.zarr {FIT}", "--partial-labels, .* need --algorithm fastcsc"),
    command(
        f"{CSC} --partial-labels short.zarr", "^Error: --partial-labels must have one entry for each of the 60 rows"
    ),
    command(f"{CSC} --partial-labels nothing", "no Zarr array at 'nothing'"),
    command(
        f"{CSC} --partial-labels X.zarr", "^Error: --partial-labels must have one entry a row, .* shape \\(60, 2\\)$"
    ),
    command(f"{CSC} --must-link nothing.csv", "^Error: --must-link: no file at 'nothing.csv'$"),
    command(f"{CSC} --must-link text.txt", "--must-link: 'text.txt', line 1: expected two row numbers"),
    command(f"{CSC} --must-link torn.npy", "--must-link: 'torn.npy' is no table of numbers"),
    command(f"{CSC} --must-link objects.npy", "--must-link: 'objects.npy' is no table of numbers"),
    command(f"{CSC} --must-link pairs.csv", r"^Error: --must-link must name rows 0 to 59, got the pair \(0, 99\)$"),
    # -- schedulers
    command(
        f"fit X.zarr {KMEANS} --scheduler localhost", "--scheduler: expected HOST:PORT, such as localhost:8786, got"
    ),
    command(f"fit X.zarr {KMEANS} --scheduler :8786", "--scheduler: expected HOST:PORT"),
    command(f"fit X.zarr {KMEANS} --scheduler localhost:99999", "--scheduler: expected HOST:PORT"),
    command(f"fit X.zarr {KMEANS} --scheduler http://localhost:80", "expected HOST:PORT or tcp://HOST:PORT"),
    command(f"fit X.zarr {KMEANS} --scheduler-file nothing.json", "no scheduler file at 'nothing.json'; start"),
    command(
        f"fit X.zarr {KMEANS} --scheduler-file torn.json", "'torn.json' is no file of `dask scheduler .*: Expecting"
    ),
    command(f"fit X.zarr {KMEANS} --scheduler-file list.json", "'list.json' is no file of .*: it names no address$"),
    command(f"fit X.zarr {KMEANS} --scheduler-file no-port.json", "'no-port.json': expected HOST:PORT"),
    command(f"fit X.zarr {KMEANS} --scheduler-file folder", "'folder' is no file of"),
    command(f"fit X.zarr {KMEANS} --workers 0", "0 is not in the range x>=1"),
    command(f"fit X.zarr {KMEANS} --workers 1 --scheduler a:1", "give one of --scheduler, --scheduler-file and"),
    command(f"fit X.zarr {KMEANS} --report r.html", "--report needs a Dask cluster"),
    # -- predict
    command(f"predict X.zarr {FIT}", "Missing option '--model'"),
    command(f"predict X.zarr --model nothing {FIT}", "^Error: no model at 'nothing': nothing exists there$"),
    command(f"predict X.zarr --model X.zarr {FIT}", "'X.zarr' is a Zarr array, not a saved model$"),
    command(f"predict X.zarr --model group.zarr {FIT}", "is a Zarr group, but not a model that daskcluster saved$"),
    command(f"predict X.zarr --model text.txt {FIT}", "is not a saved model, but a file$"),
    command(f"predict wide.zarr --model model.zarr {FIT}", "X has 60 features, .* expecting 2 .*; is X transposed\\?$"),
    command(f"predict nan.zarr --model model.zarr {FIT}", "NaN at row 3, column 1; give `fit` --missing label"),
    command(f"predict raster.zarr --model model.zarr {FIT}", "Expected 2D array"),
    command("predict X.zarr --model model.zarr --labels model.zarr --quiet", "--labels 'model.zarr' is --model"),
    # -- plan, consensus, score
    command("plan raster.zarr -k 3", "Expected 2D array"),
    command("plan X.zarr -k 99", "^Error: --clusters must be at most the number of rows"),
    command("plan nothing -k 3", "no Zarr array at 'nothing'"),
    command("consensus base.zarr -k 3", "Missing option '--labels'"),
    command(f"consensus flat.zarr -k 5 {FIT}", "n_samples=4; X has 60 columns, is it transposed\\?$"),
    command(f"consensus complex.zarr -k 3 {FIT}", "Complex data not supported"),
    command(f"consensus X.zarr -k 3 {FIT}", "X must hold labels, whole numbers >= 0"),
    command(f"consensus base.zarr -k 3 --components 3 {FIT}", "--components does not apply to --method cut$"),
    command(f"consensus base.zarr -k 3 --method isec --representatives 1 {FIT}", "^Error: --representatives must be"),
    command("score y.zarr", "Missing argument 'PRED.zarr'"),
    command("score y.zarr short.zarr", "TRUE.zarr has 60, PRED.zarr has 9$"),
    command("score y.zarr X.zarr", r"^Error: PRED.zarr must have 1 dimension, got shape \(60, 2\)$"),
    command("score nothing y.zarr", "no Zarr array at 'nothing'"),
    command("score group.zarr y.zarr", "Name one of them, such as 'group.zarr/band'$"),
    # -- info
    command("info nothing", "no Zarr array at 'nothing'"),
    command("info text.txt", "is a file, not a Zarr array"),
    command("info folder", "is a folder, not a Zarr array"),
    command("info torn.zip", "is not a zip file that can be read"),
    command("info text.zip", "is a zip file without a Zarr array$"),
    right("info of numbers that JSON has not", lambda: _attributes("nan.zarr"), ["NaN", "Infinity"]),
    right(
        "info of an array in a zip file", lambda: json.loads(run("info", "X.zip", "--json").stdout)["shape"], [60, 2]
    ),
    # -- convert
    command("convert nothing.csv out", "^Error: no file at 'nothing.csv'$"),
    command("convert text.txt out", "'text.txt' holds no rows$"),
    command(
        "convert header.csv out", "'0,1', may name the columns or be a row; say which with --header or --no-header$"
    ),
    command("convert words.csv out", "column 'b' is not numeric: 'x' in row 0; choose others with --columns$"),
    command(
        "convert data.xyz out", r"the name does not tell the format; give --format \(npy, npz, csv, parquet, hdf5\)$"
    ),
    command("convert torn.npy out", "'torn.npy' is not an npy file of numbers"),
    command("convert objects.npy out", "'objects.npy' is not an npy file of numbers"),
    command("convert torn.parquet out", "'torn.parquet' is not a parquet file"),
    command("convert folder out", "is a folder without .parquet files$"),
    command("convert X.npy X.zarr", "'X.zarr' exists; give --overwrite to replace it$"),
    command("convert X.npy X.npy --overwrite", "OUT 'X.npy' is the input; give another path$"),
    command("convert X.npy out --columns a", "^Error: --columns: no column 'a'; the columns have no names$"),
    command("convert X.npy out --columns 7", "^Error: --columns: expected numbers from 0 to 1, got 7$"),
    command("convert X.npy out --dtype zz", "^Error: --dtype: expected a numeric type such as float32, got 'zz'$"),
    command("convert X.npy out --dtype int8", r"^Error: --dtype: int8 cannot hold .* \(row 0, column 0\)$"),
    command("convert X.npy out --member a", "^Error: --member: serves npz files only"),
    command("convert X.npy out --header", "^Error: --header: serves csv files only"),
    command("convert X.npy out --chunk-rows 0", "'0' is not a number of rows"),
    command("convert X.npy out --format xls", "'xls' is not one of 'npy', 'npz', 'csv', 'parquet'"),
    # -- make, demo, and what is no command
    command("make flower out", "Missing option '-n'"),
    command("make spiral out -n 9", "'spiral' is not one of two-bananas"),
    command("make flower out -n 0", "'0' is not a number of rows, such as 2000000, 2e6 or 2M"),
    command("make flower out -n x", "'x' is not a number of rows"),
    command("make flower X.zarr -n 9", "'X.zarr' exists; give --overwrite"),
    command("make flower out -n 9 --labels out", "--labels 'out' is OUT; give another path$"),
    command("make flower nope://x -n 9", "Protocol not known: nope"),
    command("demo X.zarr", "give both STORE.zarr and K, or none of them"),
    command("demo nothing 3", "no Zarr array at 'nothing'"),
    command("nope", "No such command 'nope'"),
]


def _attributes(path: str) -> list[Any]:
    found = json.loads(run("info", path, "--json").stdout)["attributes"]
    return [found["a"], *found["b"]]
