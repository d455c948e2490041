"""The command line: results on stdout, messages on stderr, exit codes, nothing half-written."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from click.testing import CliRunner, Result

import daskcluster
from daskcluster import cli, datasets, estimators
from daskcluster.cli import main
from daskcluster.io import load_model, open_rows, write_array

ROOT = Path(daskcluster.__file__).parents[1]
N = 3000
FAST = ["--representatives", "300"]


def run(*arguments: Any) -> Result:
    """Run a command in this process; stdout and stderr apart."""
    apart: dict[str, Any] = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
    return CliRunner(**apart).invoke(main, [str(argument) for argument in arguments])


def succeed(*arguments: Any) -> Result:
    result = run(*arguments)
    assert result.exit_code == 0, (result.stderr, result.exception)
    return result


def as_json(*arguments: Any) -> dict[str, Any]:
    """Run a command with --json: stdout is one object and nothing else."""
    lines = succeed(*arguments, "--json").stdout.splitlines()
    assert len(lines) == 1
    found: dict[str, Any] = json.loads(lines[0])
    return found


def fail(code: int, *arguments: Any) -> str:
    """Run a command that must fail: one clear line on stderr, nothing on stdout, no traceback."""
    result = run(*arguments)
    assert result.exit_code == code, (result.stderr, result.exception)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> Path:
    """A folder with rows, classes, a model and labels."""
    folder = tmp_path_factory.mktemp("stores")
    succeed("make", "concentric-circles", folder / "x.zarr", "-n", N, "--labels", folder / "y.zarr", "--quiet")
    options = ["--labels", folder / "labels.zarr", "--model", folder / "model.zarr", "--quiet"]
    succeed("fit", folder / "x.zarr", "-k", 3, *FAST, *options)
    return folder


# -- the group


def test_help_names_every_command_and_option():
    assert set(main.commands) == {"make", "convert", "fit", "predict", "consensus", "score", "info", "plan", "demo"}
    text = succeed("--help").stdout
    for name, command in main.commands.items():
        assert name in text
        assert command.help
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (name, parameter.name)
        succeed(name, "--help")
    assert succeed("--version").stdout.split()[-1] == daskcluster.__version__


def test_help_imports_nothing_heavy_and_is_quick():
    program = (
        "import sys; from daskcluster.cli import main; main(['fit', '--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'dask', 'zarr', 'numba', 'sklearn', 'scipy', 'rich', 'distributed'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, cwd=ROOT)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "daskcluster", "--help"], check=True, capture_output=True, cwd=ROOT)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


def test_works_as_a_command_of_another_group():
    """As ``dask daskcluster`` does it."""
    parent = click.Group("dask", commands={"daskcluster": main})
    result = CliRunner().invoke(parent, ["daskcluster", "info", "nowhere.zarr"])
    assert result.exit_code == 2
    assert "nothing exists there" in result.output


def test_entry_points_name_the_group():
    text = (ROOT / "pyproject.toml").read_text()
    assert text.count('daskcluster = "daskcluster.cli:main"') == 2
    assert isinstance(main, click.Group)


def test_tables_of_the_command_line_agree_with_the_package():
    assert [name.replace("-", "_") for name in cli.DATASETS] == [
        name.removeprefix("make_") for name in datasets.__all__ if name.startswith("make_")
    ]
    own = [option for option in cli._ESTIMATOR_OPTIONS if "__" not in option.parameter]
    for algorithm, name in cli.ALGORITHMS.items():
        parameters = inspect.signature(getattr(estimators, name)).parameters
        for option in own:
            if algorithm in option.defaults:
                assert parameters[option.parameter].default == option.defaults[algorithm], option.flag
            else:
                assert option.parameter not in parameters, option.flag
        offered = {option.parameter for option in own if algorithm in option.defaults}
        assert offered | {"n_clusters", "random_state", "storage", "verbose"} == set(parameters)
    inside = [option.parameter for option in cli._ESTIMATOR_OPTIONS if option not in own]
    assert inside == [f"consensus__{parameter}" for parameter in cli.CONSENSUS_PARAMETERS]
    for parameter, method in cli.CONSENSUS_PARAMETERS.items():
        assert parameter in inspect.signature(getattr(estimators, cli.CONSENSUS[method])).parameters


def test_choices_agree_with_the_estimators():
    from daskcluster.estimators.base import MISSING
    from daskcluster.estimators.kmeans import INITS
    from daskcluster.estimators.uspec import METRICS
    from daskcluster.pipeline.neighbors import NEIGHBORS
    from daskcluster.pipeline.representatives import SELECTIONS

    options = {option.parameter: option.type for option in cli._ESTIMATOR_OPTIONS}
    for parameter, choices in {
        "init": INITS,
        "metric": METRICS,
        "missing": MISSING,
        "neighbors": NEIGHBORS,
        "selection": SELECTIONS,
    }.items():
        kind = options[parameter]
        assert isinstance(kind, click.Choice)
        assert sorted(kind.choices) == sorted(choices)


def test_failures_of_a_run_have_code_1_and_show_where_with_debug(stores, monkeypatch):
    def broken(*arguments: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(cli, "_describe_array", broken)
    assert fail(1, "info", stores / "x.zarr") == (
        "Error: ZeroDivisionError: a bug (`daskcluster --debug COMMAND ...` shows where)"
    )
    assert isinstance(run("--debug", "info", stores / "x.zarr").exception, ZeroDivisionError)


def test_errors_of_libraries_are_failures_of_the_run(stores, monkeypatch):
    monkeypatch.setattr(cli, "_describe_array", lambda array: np.zeros(3).reshape(2))
    assert fail(1, "info", stores / "x.zarr").startswith("Error: ValueError: cannot reshape array")
    monkeypatch.setattr(cli, "_describe_array", lambda array: np.empty(2**55, dtype=np.int8))
    assert fail(1, "info", stores / "x.zarr").startswith("Error: out of memory")


def test_interrupt_has_code_130(stores, monkeypatch):
    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_describe_array", interrupted)
    assert fail(130, "info", stores / "x.zarr").startswith("Interrupted")


def test_results_are_a_table_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    cli._show({}, False, "a title", [("name", "value")])
    shown = click.unstyle(capsys.readouterr().out)
    assert "a title" in shown
    assert "│ name │ value │" in shown


# -- make


@pytest.mark.parametrize("name", cli.DATASETS)
def test_make(tmp_path, name):
    about = as_json("make", name.replace("-", "_"), tmp_path / "x.zarr", "-n", "1k", "--labels", tmp_path / "y.zarr")
    assert about["dataset"] == name
    X, y = getattr(datasets, f"make_{name.replace('-', '_')}")(1000, random_state=0)
    np.testing.assert_array_equal(open_rows(tmp_path / "x.zarr")[...], X.compute())
    np.testing.assert_array_equal(open_rows(tmp_path / "y.zarr")[...], y.compute())
    assert open_rows(tmp_path / "x.zarr").attrs.asdict() == {"dataset": name, "seed": 0}


def test_make_with_seed_and_chunks(tmp_path):
    succeed("make", "flower", tmp_path / "a.zarr", "-n", 1000, "--seed", 1, "--chunk-rows", 300)
    succeed("make", "flower", tmp_path / "b.zarr", "-n", "1e3", "--seed", 1)
    a, b = open_rows(tmp_path / "a.zarr"), open_rows(tmp_path / "b.zarr")
    assert (a.chunks, b.chunks) == ((300, 2), (1000, 2))
    np.testing.assert_array_equal(a[...], b[...])


@pytest.mark.parametrize("rows", ["0", "-5", "1.5", "many", "nan", "inf", ""])
def test_make_refuses_what_is_no_number_of_rows(tmp_path, rows):
    assert "is not a number of rows, such as 2000000, 2e6 or 2M" in fail(
        2, "make", "flower", tmp_path / "x", "-n", rows
    )


@pytest.mark.parametrize(("text", "rows"), [("2M", 2_000_000), ("2_000", 2000), ("1.5k", 1500), ("1e9", 10**9)])
def test_numbers_of_rows(text, rows):
    assert cli._Count().convert(text, None, None) == rows


def test_make_refuses_unknown_names(tmp_path):
    assert "'spiral' is not one of two-bananas, smiling-face" in fail(2, "make", "spiral", tmp_path / "x", "-n", 5)


# -- outputs and inputs


def test_existing_outputs_are_refused_before_any_work(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(estimators.USPEC, "fit", lambda *arguments: pytest.fail("worked"))
    taken = tmp_path / "taken.zarr"
    write_array(da.ones(3), taken)
    for option in ("--labels", "--model"):
        message = fail(2, "fit", stores / "x.zarr", "-k", 3, option, taken)
        assert message == f"Error: '{taken}' exists; give --overwrite to replace it"
    assert "exists" in fail(2, "predict", stores / "x.zarr", "--model", stores / "model.zarr", "--labels", taken)
    assert "exists" in fail(2, "make", "flower", taken, "-n", 5)
    (tmp_path / "x.csv").write_text("1,2\n")
    assert "exists" in fail(2, "convert", tmp_path / "x.csv", taken)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    assert "is a folder that is no Zarr store" in fail(2, "make", "flower", tmp_path / "folder", "-n", 5, "--overwrite")
    assert open_rows(taken).shape == (3,)


def test_overwrite(tmp_path):
    for rows in (10, 20):
        succeed("make", "flower", tmp_path / "x.zarr", "-n", rows, "--overwrite")
        assert open_rows(tmp_path / "x.zarr").shape == (rows, 2)


def test_an_output_is_neither_an_input_nor_another_output(stores, tmp_path):
    x, out = stores / "x.zarr", tmp_path / "out.zarr"
    assert f"--labels '{x}' is the input, too" in fail(2, "fit", x, "-k", 3, "--labels", x, "--overwrite")
    assert f"--model '{out}' is --labels, too" in fail(2, "fit", x, "-k", 3, "--labels", out, "--model", out)


def test_inputs_that_are_no_arrays(stores, tmp_path):
    out = ["--labels", tmp_path / "out.zarr"]
    assert "nothing exists there" in fail(2, "fit", tmp_path / "x.zarr", "-k", 3, *out)
    assert "is a folder, not a Zarr array" in fail(2, "fit", tmp_path, "-k", 3, *out)
    assert "is a saved model (USPEC)" in fail(2, "fit", stores / "model.zarr", "-k", 3, *out)
    assert "is a Zarr array, not a saved model" in fail(
        2, "predict", stores / "x.zarr", "--model", stores / "x.zarr", *out
    )
    assert os.listdir(tmp_path) == []


# -- fit and predict


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
    shown = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    assert shown["rows"].strip() == "3,000 x 2"
    assert {"clusters", "cluster sizes", "seconds", "peak memory", "labels"} <= shown.keys()
    about = as_json("fit", stores / "x.zarr", "-k", 3, *FAST, "--labels", tmp_path / "out.zarr", "--overwrite")
    assert sum(about["cluster_sizes"].values()) == N
    assert about["parameters"]["n_representatives"] == 300
    assert about["peak_memory_bytes"] > 10**7
    assert about["model"] is None


def test_quiet_is_quiet(stores, tmp_path):
    options = ["-k", 3, *FAST, "--labels", tmp_path / "out.zarr", "--quiet"]
    assert succeed("fit", stores / "x.zarr", *options).stderr == ""


def test_fit_passes_every_option_on(stores, tmp_path, monkeypatch):
    made: dict[str, Any] = {}
    original = estimators.USPEC.fit

    def recorded(self, X):
        made.update(self.get_params(deep=False))
        return original(self, X)

    monkeypatch.setattr(estimators.USPEC, "fit", recorded)
    expected = {
        "--representatives": ("n_representatives", 50),
        "--neighbors": ("n_neighbors", 4),
        "--selection": ("selection", "random"),
        "--neighbor-search": ("neighbors", "exact"),
        "--candidate-factor": ("candidate_factor", 5),
        "--neighbor-factor": ("neighbor_factor", 6),
        "--metric": ("metric", "cosine"),
        "--n-init": ("n_init", 2),
        "--max-iter": ("max_iter", 7),
        "--missing": ("missing", "label"),
        "--storage": ("storage", str(tmp_path / "storage")),
        "--seed": ("random_state", 9),
        "--clusters": ("n_clusters", 2),
    }
    options = [part for flag, (_, value) in expected.items() for part in (flag, value)]
    succeed("fit", stores / "x.zarr", *options, "--labels", tmp_path / "out.zarr", "--quiet")
    assert made == {**dict(expected.values()), "verbose": False}
    about = as_json("info", tmp_path / "storage")
    assert about["kind"] == "storage"
    assert about["method"] == "USPEC"
    assert "labels" in about["products"]
    assert "complete" in succeed("info", tmp_path / "storage").stdout


def test_kmeans(stores, tmp_path):
    options = ["--algorithm", "kmeans", "-k", 4, "--init", "random", "--tol", "1e-3", "--quiet"]
    outputs = ["--labels", tmp_path / "out.zarr", "--model", tmp_path / "m.zarr"]
    about = as_json("fit", stores / "x.zarr", *options, *outputs)
    assert about["class"] == "KMeans"
    assert (about["parameters"]["tol"], about["parameters"]["init"]) == (1e-3, "random")
    succeed("predict", stores / "x.zarr", "--model", tmp_path / "m.zarr", "--labels", tmp_path / "again.zarr")
    np.testing.assert_array_equal(open_rows(tmp_path / "again.zarr")[...], open_rows(tmp_path / "out.zarr")[...])
    message = fail(2, "fit", stores / "x.zarr", "-k", 3, "--algorithm", "kmeans", *FAST, "--labels", tmp_path / "q")
    assert message == "Error: --representatives does not apply to --algorithm kmeans"


def test_fit_needs_something_to_keep(stores):
    assert "give --labels, --model or --picture" in fail(2, "fit", stores / "x.zarr", "-k", 3)


def test_bad_input_is_told_in_one_line(stores, tmp_path):
    out = ["--labels", tmp_path / "out.zarr", "--quiet"]
    assert "n_clusters must be at most the number of rows" in fail(2, "fit", stores / "x.zarr", "-k", N + 1, *out)
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


def test_warnings_are_lines_on_stderr(tmp_path):
    write_array(da.from_array(np.repeat(np.eye(2), 20, axis=0), chunks=40), tmp_path / "x.zarr")
    program = "import sys; from daskcluster.cli import main; main(sys.argv[1:])"
    options = ["fit", str(tmp_path / "x.zarr"), "-k", "3", "--labels", str(tmp_path / "l.zarr"), "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", program, *options], check=True, capture_output=True, text=True, cwd=ROOT
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith("Warning: ")
    assert "clusters       2\n" in done.stdout


# -- scaling


@pytest.fixture
def stretched(stores, tmp_path) -> np.ndarray:
    """Rows whose features differ by six orders of magnitude, stored with two chunkings."""
    values = open_rows(stores / "x.zarr")[...] * np.array([1e-3, 1e3]) + np.array([0, 1e5])
    for name, chunks in (("a.zarr", 1000), ("b.zarr", 217)):
        write_array(da.from_array(values, chunks=(chunks, 2)), tmp_path / name, chunks=chunks)
    return values


@pytest.mark.parametrize("scale", list(cli.SCALES))
def test_scaling_is_part_of_the_model(stores, tmp_path, stretched, scale):
    outputs = ["--labels", tmp_path / "l.zarr", "--model", tmp_path / "m.zarr", "--quiet"]
    succeed("fit", tmp_path / "a.zarr", "-k", 3, *FAST, "--scale", scale, *outputs)
    labels = open_rows(tmp_path / "l.zarr")[...]
    assert daskcluster.metrics.normalized_mutual_info(open_rows(stores / "y.zarr")[...], labels) > 0.95
    # another chunking gives the same labels, and so does the stored model
    succeed("fit", tmp_path / "b.zarr", "-k", 3, *FAST, "--scale", scale, "--labels", tmp_path / "l2.zarr", "--quiet")
    np.testing.assert_array_equal(open_rows(tmp_path / "l2.zarr")[...], labels)
    succeed("predict", tmp_path / "b.zarr", "--model", tmp_path / "m.zarr", "--labels", tmp_path / "p.zarr", "--quiet")
    np.testing.assert_array_equal(open_rows(tmp_path / "p.zarr")[...], labels)
    # in Python the scaling cannot be forgotten either
    pipeline = load_model(tmp_path / "m.zarr")
    np.testing.assert_array_equal(pipeline.predict(da.from_array(stretched, chunks=(100, 2))), labels)
    shown = succeed("info", tmp_path / "m.zarr").stdout
    assert f"dask_ml.preprocessing.{cli.SCALES[scale]}" in shown
    assert "USPEC" in shown


@pytest.mark.parametrize("scale", list(cli.SCALES))
def test_scaling_with_missing_values(tmp_path, stretched, scale):
    stretched[7, 1] = np.nan
    stretched[1000:2000] = np.inf  # a whole chunk
    write_array(da.from_array(stretched, chunks=(1000, 2)), tmp_path / "n.zarr", chunks=1000)
    options = ["-k", 3, *FAST, "--scale", scale, "--labels", tmp_path / "l.zarr", "--quiet"]
    message = fail(2, "fit", tmp_path / "n.zarr", *options)
    assert "at row 7, column 1; --missing label gives the label -1" in message
    about = as_json("fit", tmp_path / "n.zarr", *options, "--missing", "label")
    assert about["cluster_sizes"].pop("-1") == 1001
    assert sum(about["cluster_sizes"].values()) == N - 1001
    # as if those rows were absent
    finite = stretched[np.isfinite(stretched).all(axis=1)]
    write_array(da.from_array(finite, chunks=(1000, 2)), tmp_path / "f.zarr", chunks=1000)
    options[-2] = tmp_path / "lf.zarr"
    succeed("fit", tmp_path / "f.zarr", *options)
    labels = open_rows(tmp_path / "l.zarr")[...]
    assert isinstance(labels, np.ndarray)
    np.testing.assert_array_equal(open_rows(tmp_path / "lf.zarr")[...], labels[labels >= 0])


def test_scaling_without_any_finite_row_or_of_labels(stores, tmp_path):
    write_array(da.full((10, 2), np.nan), tmp_path / "n.zarr")
    options = ["-k", 2, "--scale", "standard", "--labels", tmp_path / "l.zarr", "--quiet"]
    assert "has no row without NaN" in fail(2, "fit", tmp_path / "n.zarr", *options, "--missing", "label")
    assert "expected a table of numbers" in fail(2, "fit", stores / "y.zarr", *options)


# -- score, info, plan, convert


def test_score(stores, tmp_path):
    true, pred = open_rows(stores / "y.zarr")[...], open_rows(stores / "labels.zarr")[...]
    scores = as_json("score", stores / "y.zarr", stores / "labels.zarr")
    assert scores.pop("command") == "score"
    for name, (function, _) in cli.METRICS.items():
        assert scores.pop(name) == getattr(daskcluster.metrics, function)(true, pred)
    assert scores == {}
    assert "  normalized mutual information\n" in succeed("score", stores / "y.zarr", stores / "labels.zarr").stdout
    write_array(da.ones(5), tmp_path / "short.zarr")
    assert "5" in fail(2, "score", stores / "y.zarr", tmp_path / "short.zarr")
    zarr.create_group(str(tmp_path / "g.zarr")).create_array("y", shape=(5,), dtype="i4")
    assert "is a Zarr group" in fail(2, "score", stores / "y.zarr", tmp_path / "g.zarr")


def test_score_takes_labels_from_a_csv_file(stores, tmp_path):
    np.savetxt(tmp_path / "y.csv", np.asarray(open_rows(stores / "y.zarr")[...]), fmt="%d")
    succeed("convert", tmp_path / "y.csv", tmp_path / "y.zarr", "--dtype", "int32")
    assert open_rows(tmp_path / "y.zarr").shape == (N, 1)
    assert as_json("score", stores / "y.zarr", tmp_path / "y.zarr")["NMI"] == 1


def test_info(stores, tmp_path):
    about = as_json("info", stores / "x.zarr")
    assert (about["kind"], about["shape"], about["dtype"]) == ("array", [N, 2], "float32")
    assert about["attributes"] == {"dataset": "concentric-circles", "seed": 0}
    about = as_json("info", stores / "model.zarr")
    assert (about["kind"], about["class"]) == ("model", "USPEC")
    assert about["parameters"]["n_representatives"] == 300
    assert about["arrays"]["representatives_"]["shape"] == [300, 2]
    shown = succeed("info", stores / "model.zarr").stdout
    assert "300 x 2 float64" in shown
    assert "n_representatives" in shown
    group = zarr.create_group(str(tmp_path / "g.zarr"), attributes={"made": "by hand"})
    group.create_array("deep/X", shape=(5, 2), dtype="f4", chunks=(5, 2))
    about = as_json("info", tmp_path / "g.zarr")
    assert about["arrays"] == {"deep/X": {"shape": [5, 2], "dtype": "float32", "chunks": [5, 2]}}
    assert "by hand" in succeed("info", tmp_path / "g.zarr").stdout
    assert "nothing exists there" in fail(2, "info", tmp_path / "no.zarr")
    assert "is a folder, not a Zarr array" in fail(2, "info", tmp_path)


def test_plan_computes_nothing(stores, monkeypatch):
    monkeypatch.setattr(estimators.USPEC, "fit", lambda *arguments: pytest.fail("worked"))
    forecast = as_json("plan", stores / "x.zarr", "-k", 3, *FAST)
    assert forecast["n_samples"] == N
    assert forecast == json.loads(
        json.dumps(estimators.USPEC(3, n_representatives=300).plan(stores / "x.zarr").to_dict())
    )
    assert "3,000 rows" in succeed("plan", stores / "x.zarr", "-k", 3).stdout
    assert "n_clusters" in fail(2, "plan", stores / "x.zarr", "-k", N + 1)


def test_convert(tmp_path):
    (tmp_path / "x.csv").write_text("name,x,y\na,1,2\nb,3,4\n")
    message = fail(2, "convert", tmp_path / "x.csv", tmp_path / "x.zarr")
    assert message.endswith("column 'name' is not numeric: 'a' in row 0; choose others with --columns")
    options = ["--columns", "y, 1", "--dtype", "float32", "--chunk-rows", 1]
    about = as_json("convert", tmp_path / "x.csv", tmp_path / "x.zarr", *options)
    assert (about["shape"], about["dtype"], about["chunks"]) == ([2, 2], "float32", [1, 2])
    np.testing.assert_array_equal(open_rows(tmp_path / "x.zarr")[...], [[2, 1], [4, 3]])
    np.savez(tmp_path / "x.npz", a=np.eye(3), b=np.eye(4))
    succeed("convert", tmp_path / "x.npz", tmp_path / "b.zarr", "--member", "b")
    assert "2 x 2" in succeed("convert", tmp_path / "x.csv", tmp_path / "c.zarr", "--columns", "x,y").stdout
    assert "no file at" in fail(2, "convert", tmp_path / "no.csv", tmp_path / "no.zarr")


# -- pictures and the demo


def test_picture(stores, tmp_path):
    pytest.importorskip("matplotlib")
    for name, start in (("p.png", b"\x89PNG"), ("p.pdf", b"%PDF")):
        succeed("fit", stores / "x.zarr", "-k", 3, *FAST, "--picture", tmp_path / name, "--quiet")
        assert (tmp_path / name).read_bytes().startswith(start)
    assert sorted(os.listdir(tmp_path)) == ["p.pdf", "p.png"]


def test_pictures_that_could_not_be_drawn_are_refused_first(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(estimators.USPEC, "fit", lambda *arguments: pytest.fail("worked"))
    write_array(da.ones((10, 1)), tmp_path / "thin.zarr")
    picture = ["-k", 2, "--picture", tmp_path / "p.png"]
    assert "needs rows with two features" in fail(2, "fit", tmp_path / "thin.zarr", *picture)
    assert "expected a .png" in fail(2, "fit", stores / "x.zarr", "-k", 2, "--picture", tmp_path / "p.doc")
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    assert "pip install 'daskcluster[plot]'" in fail(2, "fit", stores / "x.zarr", *picture)


def test_demo(tmp_path):
    pytest.importorskip("matplotlib")
    for _ in range(2):  # outputs of an earlier demo are replaced
        about = as_json("demo", "-n", 5000, "--directory", tmp_path / "demo", "--quiet")
        assert about["n_samples"] == 5000
        assert about["n_clusters"] == 13
        assert about["scores"]["NMI"] > 0.9
        assert sorted(os.listdir(tmp_path / "demo")) == [
            "classes.zarr",
            "flower.zarr",
            "labels.zarr",
            "model.zarr",
            "picture.png",
        ]


def test_demo_of_a_store(stores, tmp_path):
    shown = succeed("demo", stores / "x.zarr", 3, "--directory", tmp_path / "demo", "--quiet").stdout
    assert "cluster sizes" in shown
    assert not (tmp_path / "demo" / "flower.zarr").exists()
    assert "give both STORE.zarr and K" in fail(2, "demo", stores / "x.zarr")
    assert "-n is for the flower data" in fail(2, "demo", stores / "x.zarr", 3, "-n", 5)
    (tmp_path / "file").touch()
    assert "is not a folder" in fail(2, "demo", "--directory", tmp_path / "file")


# -- schedulers


def test_scheduler_options_exclude_each_other(stores):
    message = fail(2, "score", stores / "y.zarr", stores / "y.zarr", "--workers", 2, "--scheduler", "tcp://x:1")
    assert "give one of --scheduler, --scheduler-file and --workers" in message


def test_report_needs_a_cluster(stores, tmp_path):
    options = ["--report", tmp_path / "r.html"]
    assert "--report needs a Dask cluster" in fail(2, "score", stores / "y.zarr", stores / "y.zarr", *options)


def test_scheduler_file_that_does_not_exist(stores, tmp_path):
    options = ["--scheduler-file", tmp_path / "s.json"]
    assert "no scheduler file at" in fail(2, "score", stores / "y.zarr", stores / "y.zarr", *options)


@pytest.mark.parametrize("how", ["address", "file", "configuration"])
def test_running_scheduler_is_used_and_left_running(stores, tmp_path, cluster_processes, how):
    client = cluster_processes
    (tmp_path / "s.json").write_text(json.dumps({"address": client.scheduler.address}))
    options = {
        "address": ["--scheduler", client.scheduler.address],
        "file": ["--scheduler-file", tmp_path / "s.json"],
        "configuration": [],
    }[how]
    address = client.scheduler.address if how == "configuration" else None
    with dask.config.set({"scheduler-address": address}):
        result = succeed(
            "predict", stores / "x.zarr", "--model", stores / "model.zarr", "--labels", tmp_path / "l.zarr", *options
        )
    assert "2 workers of" in result.stderr
    np.testing.assert_array_equal(open_rows(tmp_path / "l.zarr")[...], open_rows(stores / "labels.zarr")[...])
    assert len(client.nthreads()) == 2


def start(*arguments: Any) -> subprocess.Popen[str]:
    """Start the command line in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "daskcluster", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
        # A shell starts what runs in the background with the signal ignored, and that would be inherited.
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) if os.name == "posix" else None,
    )


def wait_for_end_of_group(group: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("processes are left")


def test_workers_are_started_and_ended(stores, tmp_path):
    options = ["--workers", 2, "--labels", tmp_path / "l.zarr", "--json"]
    with start("fit", stores / "x.zarr", "-k", 3, *FAST, *options) as process:
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert "2 worker processes" in stderr
    assert json.loads(stdout)["peak_worker_memory_bytes"] > 10**7
    np.testing.assert_array_equal(open_rows(tmp_path / "l.zarr")[...], open_rows(stores / "labels.zarr")[...])
    wait_for_end_of_group(process.pid)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal to a group of processes")
def test_interrupted_run_leaves_nothing(tmp_path):
    with start("make", "flower", tmp_path / "x.zarr", "-n", "1G", "--quiet") as process:
        while not os.listdir(tmp_path):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        stdout, stderr = process.communicate(timeout=60)
    # An interrupt inside code from a string makes Python end by the signal itself, which a shell shows as 130 too.
    assert process.returncode in (130, -signal.SIGINT)
    assert stdout == ""
    assert stderr.splitlines() == ["Interrupted. Unfinished outputs are removed; --storage keeps finished stages."]
    assert os.listdir(tmp_path) == []
