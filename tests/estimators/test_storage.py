"""A fit with ``storage=`` that is killed goes on where it stopped; a store of something else is refused.

This file is also the program that is killed: it runs as a script, forks a child for every moment, and each child kills
itself there with SIGKILL.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster.io import inputs as row_blocks

ROWS = dc.datasets.make_flower(3000, chunks=3000, random_state=0)[0].compute()
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2, size=3000)
BLOCK_ROWS = 512
N_BLOCKS = 6

ESTIMATORS: dict[str, Any] = {
    "USPEC": lambda **parameters: dc.USPEC(
        n_clusters=parameters.pop("n_clusters", 13),
        **{"n_representatives": 150, "random_state": 1, "selection": "kmeans", "max_iter": 5} | parameters,
    ),
    "KMeans": lambda **parameters: dc.KMeans(**{"n_clusters": 13, "random_state": 1, "max_iter": 5} | parameters),
}


def make_small_blocks() -> None:
    row_blocks.MOST_BLOCK_ROWS = BLOCK_ROWS
    row_blocks.LEAST_BLOCK_ROWS = 64


# -- moments -------------------------------------------------------------------------------------------------

KEY = "daskcluster.json"

#: Estimator -> moment -> (function, the call at which the process dies, what is complete then).
MOMENTS: dict[str, dict[str, tuple[str, int, list[str]]]] = {
    "USPEC": {
        "checking": ("pipeline.scan._scan_block", 3, []),
        "before the key": ("runtime.products.atomic_path", 1, []),
        "key written, not renamed": ("files.atomic._publish", 1, []),
        "first pass of k-means": ("pipeline.kmeans._lloyd_block", 2, [KEY]),
        "later pass of k-means": ("pipeline.kmeans._lloyd_block", N_BLOCKS + 3, [KEY]),
        "representatives, not renamed": ("files.atomic._publish", 2, [KEY]),
        "writing the nearest": ("pipeline.neighbors.nearest_block", 4, [KEY, "representatives"]),
        "nearest, not renamed": ("files.atomic._publish", 3, [KEY, "representatives"]),
        "transfer cut": ("pipeline.cut._small_graph_block", 5, [KEY, "nearest", "representatives"]),
        "cut, not renamed": ("files.atomic._publish", 4, [KEY, "nearest", "representatives"]),
        "discretize": ("pipeline.discretize.discretize", 1, [KEY, "cut", "nearest", "representatives"]),
        "centers, not renamed": ("files.atomic._publish", 5, [KEY, "cut", "nearest", "representatives"]),
        "writing labels": (
            "pipeline.discretize.assign_block",
            3,
            [KEY, "centers", "cut", "nearest", "representatives"],
        ),
        "labels, not renamed": ("files.atomic._publish", 6, [KEY, "centers", "cut", "nearest", "representatives"]),
    },
    "KMeans": {
        "checking": ("pipeline.scan._scan_block", 2, []),
        "starts": ("pipeline.kmeans.center_starts", 1, [KEY]),
        "starts, not renamed": ("files.atomic._publish", 2, [KEY]),
        "a pass": ("pipeline.kmeans._lloyd_block", 4, [KEY, "starts"]),
        "writing labels": ("pipeline.discretize.assign_block", 5, [KEY, "centers", "starts"]),
        "labels, not renamed": ("files.atomic._publish", 4, [KEY, "centers", "starts"]),
    },
}


def find(function: str) -> tuple[Any, str]:
    module, _, name = function.rpartition(".")
    return importlib.import_module(f"daskcluster.{module}"), name


def everywhere(function: str) -> list[tuple[Any, str]]:
    """The modules of the package that hold a function under its name."""
    module, name = find(function)
    original = getattr(module, name)
    modules = [m for key, m in sys.modules.items() if key.startswith("daskcluster") and m is not None]
    return [(m, name) for m in modules if vars(m).get(name) is original]


class Dying:
    """A function that kills its process at some call."""

    def __init__(self, function: Any, calls: int) -> None:
        self.function = function
        self.left = calls

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.function(*arguments, **options)


def die_in(function: str, calls: int) -> None:
    places = everywhere(function)
    dying = Dying(getattr(*places[0]), calls)
    for module, name in places:
        setattr(module, name, dying)


def fit(name: str, storage: Path | None, X: Any, **parameters: Any) -> Any:
    return ESTIMATORS[name](storage=storage, **parameters).fit(X)


def main(orders: list[dict[str, Any]]) -> None:
    """Run every order in a child that dies, one after the other; write their exit codes."""
    make_small_blocks()
    for name in ESTIMATORS:  # compiled once, here: a fork of a process without threads
        with dask.config.set(scheduler="synchronous"):
            fit(name, None, ROWS)
    codes = []
    for order in orders:
        child = os.fork()
        if child == 0:
            die_in(order["function"], order["calls"])
            X = ROWS if order["input"] == "numpy" else da.from_array(ROWS, chunks=(700, 2))
            with dask.config.set(scheduler=order["scheduler"]):
                fit(order["estimator"], Path(order["storage"]), X)
            os._exit(0)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    sys.stdout.write(json.dumps(codes))


def run_and_kill(orders: list[dict[str, Any]]) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, __file__, json.dumps(orders)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [-signal.SIGKILL] * len(orders), done.stderr


# -- tests ---------------------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "MOST_BLOCK_ROWS", BLOCK_ROWS)
    monkeypatch.setattr(row_blocks, "LEAST_BLOCK_ROWS", 64)


@pytest.fixture(params=ESTIMATORS)
def name(request: pytest.FixtureRequest) -> str:
    """Each estimator."""
    return str(request.param)


CHUNKED = da.from_array(ROWS, chunks=(700, 2))


def visible(folder: Path) -> list[str]:
    """What is complete in a store."""
    return sorted(path.name for path in folder.glob("[!.]*")) if folder.exists() else []


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


#: Product -> a function that its stage calls, and nothing else does.
STAGES = {
    "representatives": ["pipeline.representatives.choose_representatives"],
    "nearest": ["pipeline.neighbors.distance_sum"],
    "cut": ["pipeline.cut.transfer_cut", "pipeline.cut._small_graph_block"],
    "centers": ["pipeline.discretize.discretize", "pipeline.kmeans.lloyd_over_blocks"],
    "starts": ["pipeline.kmeans.center_starts"],
    "labels": ["pipeline.discretize.assign_block"],
}


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls of the stages, by product."""
    calls: Counter[str] = Counter()

    def counting(product: str, function: Any) -> Any:
        def counted(*arguments: Any, **options: Any) -> Any:
            calls[product] += 1
            return function(*arguments, **options)

        return counted

    for product, functions in STAGES.items():
        for function in functions:
            module, attribute = find(function)
            monkeypatch.setattr(module, attribute, counting(product, getattr(module, attribute)))
    return calls


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Models whose fit was not interrupted, each with its store."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "MOST_BLOCK_ROWS", BLOCK_ROWS)
        patch.setattr(row_blocks, "LEAST_BLOCK_ROWS", 64)
        return {name: fit(name, folder / name, ROWS) for name in ESTIMATORS}


PRODUCTS = {
    "USPEC": ["centers", "cut", "labels", "nearest", "representatives"],
    "KMeans": ["centers", "labels", "starts"],
}


def assert_equal_fits(model: Any, expected: Any) -> None:
    for attribute in vars(expected):
        if attribute.endswith("_"):
            np.testing.assert_array_equal(
                np.asarray(getattr(model, attribute)), np.asarray(getattr(expected, attribute)), err_msg=attribute
            )


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store for every moment in which a process was killed; and one store that was killed in all of them."""
    folder = tmp_path_factory.mktemp("killed")
    orders = []
    for name, moments in MOMENTS.items():
        for number, (moment, (function, calls, _)) in enumerate(moments.items()):
            order = {"estimator": name, "function": function, "calls": calls, "input": ("numpy", "dask")[number % 2]}
            order["scheduler"] = "threads" if number % 3 else "synchronous"
            orders.append({**order, "storage": str(folder / f"{name} {moment}")})
        for moment, (function, calls, _) in moments.items():
            orders.append(
                {
                    "estimator": name,
                    "function": function,
                    # What the runs before have finished is not renamed any more.
                    "calls": 1 if function == "files.atomic._publish" else calls,
                    "input": "dask" if len(moment) % 2 else "numpy",
                    "scheduler": "threads",
                    "storage": str(folder / f"{name} chain"),
                }
            )
    run_and_kill(orders)
    return folder


MOMENTS_BY_NAME = [(name, moment) for name, moments in MOMENTS.items() for moment in moments]


@needs_fork
@pytest.mark.parametrize("given", ["numpy", "dask"])
@pytest.mark.parametrize(("name", "moment"), MOMENTS_BY_NAME)
def test_a_killed_run_goes_on(name, moment, given, killed, finished, computed, tmp_path):
    store = tmp_path / "run"
    origin = killed / f"{name} {moment}"
    assert visible(origin) == sorted(MOMENTS[name][moment][2])
    if origin.exists():
        shutil.copytree(origin, store)
    X = ROWS if given == "numpy" else CHUNKED
    there = set(visible(store))
    model = fit(name, store, X)
    assert_equal_fits(model, finished[name])
    assert {product for product in computed if computed[product]} == set(PRODUCTS[name]) - there
    assert visible(store) == sorted([KEY, *PRODUCTS[name]])
    assert sorted(path.name for path in store.iterdir()) == visible(store), "no leftovers of the killed run"
    assert isinstance(model.labels_, np.ndarray if given == "numpy" else da.Array)
    computed.clear()
    assert_equal_fits(fit(name, store, X), finished[name])
    assert not computed


@needs_fork
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_labels(name, killed, finished, computed):
    assert visible(killed / f"{name} chain") == sorted(MOMENTS[name]["labels, not renamed"][2])
    model = fit(name, killed / f"{name} chain", CHUNKED)
    assert {product for product in computed if computed[product]} == {"labels"}
    assert_equal_fits(model, finished[name])


def test_a_finished_run_is_not_computed_again(name, computed, tmp_path):
    first = fit(name, tmp_path / "run", ROWS)
    before = contents(tmp_path / "run")
    computed.clear()
    for given in (ROWS, CHUNKED, da.from_array(ROWS, chunks=(100, 1))):
        assert_equal_fits(fit(name, tmp_path / "run", given), first)
    assert_equal_fits(fit(name, str(tmp_path / "run"), ROWS, verbose=False), first)
    assert not computed
    assert contents(tmp_path / "run") == before


def test_labels_are_read_from_the_store(name, tmp_path):
    model = fit(name, tmp_path / "run", CHUNKED)
    assert isinstance(model.labels_, da.Array)
    stored = zarr.open_array(tmp_path / "run" / "labels" / "rows", mode="r")
    np.testing.assert_array_equal(stored[:], model.labels_)
    assert stored.dtype == np.int32
    assert type(fit(name, tmp_path / "run", ROWS).labels_) is np.ndarray


def test_without_a_seed_the_store_keeps_one(name, tmp_path):
    first = fit(name, tmp_path / "run", ROWS, random_state=None)
    assert_equal_fits(fit(name, tmp_path / "run", ROWS, random_state=None), first)
    seed = json.loads((tmp_path / "run" / KEY).read_text())["seed"]
    assert_equal_fits(fit(name, None, ROWS, random_state=seed), first)


def other_value(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X[-1, -1] = np.nextafter(X[-1, -1], 100, dtype=X.dtype)
    return X


@pytest.mark.parametrize(
    "change",
    [
        other_value,
        lambda X: X[:-1],
        lambda X: X[::-1],
        lambda X: X.astype(np.float64),
        lambda X: X[:, ::-1],
        lambda X: np.hstack([X, X]),
        lambda X: X.reshape(-1, 4),
    ],
    ids=["a value", "a row less", "order", "dtype", "order of features", "features", "shape"],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_other_data_are_refused(name, change, chunked, finished):
    store = Path(finished[name].storage)
    before = contents(store)
    other = np.ascontiguousarray(change(ROWS))
    with pytest.raises(dc.StorageMismatchError, match="was made from other data; give the same data, another storage"):
        fit(name, store, da.from_array(other, chunks=500) if chunked else other)
    assert contents(store) == before
    assert_equal_fits(fit(name, store, ROWS), finished[name])


def test_other_weights_are_refused(tmp_path):
    first = ESTIMATORS["KMeans"](storage=tmp_path / "run").fit(ROWS, sample_weight=WEIGHTS)
    for weights in (None, np.ones(3000), np.r_[WEIGHTS[:-1], 1.0]):
        with pytest.raises(dc.StorageMismatchError, match="was made from other data"):
            ESTIMATORS["KMeans"](storage=tmp_path / "run").fit(ROWS, sample_weight=weights)
    lazy = da.from_array(WEIGHTS, chunks=100)
    assert_equal_fits(ESTIMATORS["KMeans"](storage=tmp_path / "run").fit(CHUNKED, sample_weight=lazy), first)


OTHER_PARAMETERS: dict[str, dict[str, Any]] = {
    "USPEC": {
        "n_clusters": 12,
        "n_representatives": 151,
        "n_neighbors": 4,
        "selection": "hybrid",
        "neighbors": "exact",
        "candidate_factor": 9,
        "neighbor_factor": 11,
        "metric": "cosine",
        "n_init": 2,
        "max_iter": 6,
        "missing": "label",
        "random_state": 2,
    },
    "KMeans": {
        "n_clusters": 12,
        "init": ROWS[:13],
        "n_init": 2,
        "max_iter": 6,
        "tol": 1e-3,
        "missing": "label",
        "random_state": 2,
    },
}


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, parameter) for name, others in OTHER_PARAMETERS.items() for parameter in others]
)
def test_other_parameters_are_refused(name, parameter, finished):
    assert OTHER_PARAMETERS[name].keys() == ESTIMATORS[name]().get_params().keys() - {"storage", "verbose"}
    store = Path(finished[name].storage)
    before = contents(store)
    value = OTHER_PARAMETERS[name][parameter]
    words = r"was made with other seed \(1 there and 2 here\)" if parameter == "random_state" else f"{parameter}="
    with pytest.raises(dc.StorageMismatchError, match=words):
        fit(name, store, ROWS, **{parameter: value})
    assert contents(store) == before


def test_another_method_is_refused(finished):
    with pytest.raises(dc.StorageMismatchError, match=r"other method \('USPEC' there and 'KMeans' here\)"):
        fit("KMeans", finished["USPEC"].storage, ROWS)


def test_a_mismatch_shows_before_a_row_is_read(finished):
    def fail(block: np.ndarray) -> np.ndarray:
        raise AssertionError("the rows were read")

    lazy = CHUNKED.map_blocks(fail, dtype=ROWS.dtype, meta=np.empty((0, 0), ROWS.dtype))
    with pytest.raises(dc.StorageMismatchError):
        fit("KMeans", finished["KMeans"].storage, lazy, n_clusters=3)


def test_what_is_no_store_is_refused_and_kept(name, tmp_path):
    (tmp_path / "file").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes").write_text("precious")
    zarr.create_array(str(tmp_path / "X.zarr"), data=ROWS)
    before = contents(tmp_path)
    for path in ("file", "folder", "X.zarr"):
        with pytest.raises(ValueError, match="storage must be a store made by daskcluster, or an empty or new folder"):
            fit(name, tmp_path / path, ROWS)
    assert contents(tmp_path) == before
    (tmp_path / "empty").mkdir()
    fit(name, tmp_path / "empty", ROWS)
    fit(name, tmp_path / "new" / "deep" / "run", ROWS)


def test_bad_input_makes_no_store(name, tmp_path):
    bad = ROWS.copy()
    bad[-1] = np.nan
    for X, parameters in [(bad, {}), (ROWS, {"n_clusters": 3001}), (ROWS[0], {}), (ROWS, {"n_init": 0})]:
        with pytest.raises(ValueError, match=r"NaN|2D array|n_clusters|n_init"):
            fit(name, tmp_path / "run", X, **parameters)
    assert not (tmp_path / "run").exists()


def test_missing_rows_in_a_store(name, tmp_path):
    X = ROWS.copy()
    X[600:700] = np.nan
    expected = fit(name, None, X, missing="label")
    assert_equal_fits(fit(name, tmp_path / "run", X, missing="label"), expected)
    assert_equal_fits(fit(name, tmp_path / "run", X, missing="label"), expected)
    assert (expected.labels_[600:700] == -1).all()


def test_fewer_clusters_are_warned_of_in_every_run(name, tmp_path):
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 300, axis=0)
    for _ in range(2):
        with pytest.warns(dc.FewerClustersWarning, match="found 2 clusters, not n_clusters=13"):
            fit(name, tmp_path / "run", X)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
