"""A fit with ``storage=`` that is stopped goes on where it stopped; a store of something else is refused.

This file is also the program that is killed: it runs as a script, and forks children that die by SIGKILL when they are
about to write or rename a file. What they know of the package is that its store holds products, one folder each.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster as dc
from tests.blocks import blocks_of
from tests.counting import Interrupted, count_tasks, interrupt_after
from tests.estimators.cases import CASES, CLASSES, Case, as_parameter, assert_equal_fits, every, of_ids, reference
from tests.slow import slowly

pytestmark = pytest.mark.usefixtures("small_blocks")

KEY = "daskcluster.json"

#: Those with other kinds of products: of rows, of members, of labels, with constraints. They are killed before each.
CHAINED = of_ids("USENC", "ISEC", "FastCSC")
#: They and others are killed on their way; all are interrupted. A fork after OpenMP has run may hang in OpenMP.
KILLED = CHAINED + of_ids("USPEC", "KMeans-weights", "Ensemble-KMeans-BipartiteCut", "SECRP", "FastCSPML")
FEW_KILLED = of_ids("USENC", "KMeans-weights", "SECRP")


def products(store: Path) -> list[str]:
    """What is complete in a store."""
    return sorted(path.name for path in store.glob("[!.]*"))


def grows(name: str) -> bool:
    """Whether something in a store is a part of a product, with which the next run goes on."""
    return re.fullmatch(r"\.+[a-z0-9-]+\.(growing|parts)", name) is not None


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def stamps(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}


def work(tasks: Counter[str]) -> int:
    """Tasks but those that look whether kept products are whole."""
    return sum(number for name, number in tasks.items() if "dc-check-" not in name and not name.startswith("finalize"))


def kept(store: Path) -> dict[str, Any]:
    """The products of a store that the next run takes as they are, with the times of their files."""
    there = products(store)
    # A base clustering is a model and its labels: the model alone is made again.
    alone = {name for name in there if re.fullmatch(r"base-\d+", name) and f"{name}-labels" not in there}
    return {name: stamps(store / name) for name in there if name not in alone}


def without_models(case: Case) -> dict[str, Any]:
    """What a resumed fit does not have."""
    return {"but": ("estimators_",)} if case.foreign else {}


# -- the program that is killed --------------------------------------------------------------------------------------

Watcher = Callable[[bool], None]
_watcher: list[tuple[str, Watcher]] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Tell the watcher of every file under its folder that is about to be opened for writing, or renamed."""
    if not _watcher or event not in ("open", "os.rename"):
        return
    folder, watcher = _watcher[0]
    if event == "os.rename":
        if str(arguments[0]).startswith(folder):
            target = str(arguments[1])
            watcher(os.path.dirname(target) == folder and not os.path.basename(target).startswith("."))
    elif isinstance(arguments[0], str) and arguments[0].startswith(folder) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        watcher(False)


@contextmanager
def watching(store: Path, watcher: Watcher) -> Iterator[None]:
    """Call `watcher(finishes a product)` before every write into a store."""
    _watcher[:] = [(str(store), watcher)]
    yield
    _watcher.clear()


class Dying:
    """Kills its process before a write of this number, or before the completion of a product of this number."""

    def __init__(self, number: int, *, of_products: bool) -> None:
        self.left, self.of_products = number, of_products

    def __call__(self, finishes: bool) -> None:
        self.left -= finishes or not self.of_products
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def run_and_die(case: Case, store: Path, dying: Dying, *, chunked: bool, scheduler: str) -> int:
    """Exit code of a child that dies at some moment of a fit, or ends it."""
    child = os.fork()
    if child == 0:
        with watching(store, dying), dask.config.set(scheduler=scheduler):
            (case.fit_chunked if chunked else case.fit)(storage=store)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_everywhere(case: Case, folder: Path, *, slow: bool) -> dict[str, Any]:
    """Stores of a whole run, of runs killed on their way, and of one that was killed before each of its products."""
    writes: list[bool] = []
    with watching(folder / "whole", writes.append), dask.config.set(scheduler="synchronous"):  # no threads in a fork
        case.fit(storage=folder / "whole")
    codes = [
        run_and_die(case, folder / name, Dying(number, of_products=False), chunked=chunked, scheduler=scheduler)
        for name, number, chunked, scheduler in (
            ("a third", len(writes) // 3, True, "threads"),
            ("two thirds", 2 * len(writes) // 3, False, "synchronous"),
        )
    ]
    chain: list[list[str]] = []
    number, most = 1, 0
    while case in (CHAINED if slow else CHAINED[:1]):
        dying = Dying(number, of_products=True)
        code = run_and_die(case, folder / "chain", dying, chunked=len(chain) % 2 == 0, scheduler="threads")
        if code == 0:
            return {"codes": codes, "chain": chain}
        codes.append(code)
        chain.append(products(folder / "chain"))
        # The first product of the next run is the one that this run could not complete. Where this run is no further
        # than one before, it died between the products of a base clustering, which count together only.
        number = 2 if len(chain[-1]) > most or number == 1 else number + 1
        most = max(most, len(chain[-1]))
        assert number < 6, chain
    return {"codes": codes}


def main(folder: Path, *, slow: bool) -> None:
    """Kill runs of every estimator; write the report."""
    sys.addaudithook(_audit)
    with blocks_of(128):
        cases = KILLED if slow else FEW_KILLED
        report = {case.id: kill_everywhere(case, folder / case.id, slow=slow) for case in cases}
    sys.stdout.write(json.dumps(report))


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, run_slow: bool) -> tuple[Path, dict[str, Any]]:
    """A folder a case with its stores, and the report."""
    if not hasattr(os, "fork"):
        pytest.skip("kills forked processes")
    folder = tmp_path_factory.mktemp("killed")
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, __file__, str(folder), str(run_slow)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


# -- stopped runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["two thirds", *slowly("a third")])
@pytest.mark.parametrize("case", [as_parameter(case, slow=case not in FEW_KILLED) for case in KILLED])
def test_a_killed_run_goes_on(case, moment, killed, tmp_path):
    folder, report = killed
    assert set(report[case.id]["codes"]) == {-signal.SIGKILL}
    whole = folder / case.id / "whole"
    store = tmp_path / "run"
    shutil.copytree(folder / case.id / moment, store)
    there = products(store)
    assert KEY in there
    assert len(there) < len(products(whole))
    for product in there:  # what looks complete is complete
        assert contents(store / product) == contents(whole / product)
    before = kept(store)
    with count_tasks() as tasks:
        model = case.fit(storage=store)
    assert_equal_fits(model, reference(case))
    assert products(store) == products(whole)
    assert sorted(path.name for path in store.iterdir()) == products(store), "no leftovers of the killed run"
    assert before.items() <= kept(store).items(), "nothing was made twice"
    if moment == "two thirds":
        with count_tasks() as all_tasks:
            case.fit(storage=tmp_path / "new")
        assert work(tasks) < work(all_tasks)


@pytest.mark.parametrize("case", [CHAINED[0], *slowly(*CHAINED[1:])], ids=lambda case: case.id)
def test_a_run_that_is_killed_before_each_product_ends_with_the_same_labels(case, killed):
    folder, report = killed
    chain = report[case.id]["chain"]
    whole = products(folder / case.id / "whole")
    assert chain[0] == []
    assert len(chain) >= len(whole)
    assert len(set(whole) - set(chain[-1])) == 1
    assert_equal_fits(case.fit_chunked(storage=folder / case.id / "chain"), reference(case))


#: Share of the tasks after which a run is interrupted -> scheduler.
MOMENTS = {0.05: "threads", 0.4: "synchronous", 0.7: "threads", 0.95: "synchronous"}


@pytest.mark.parametrize(
    ("case", "share", "scheduler"),
    # Every case once, at one moment or another.
    [
        as_parameter(case, share, scheduler, slow=case not in CLASSES)
        for number, case in enumerate(CASES)
        for moment, (share, scheduler) in enumerate(MOMENTS.items())
        if number % len(MOMENTS) == moment
    ],
)
def test_an_interrupted_run_goes_on(case, share, scheduler, finished, tmp_path):
    """By an error in the process itself, after some of the tasks."""
    store = tmp_path / "run"
    n_tasks = int(share * finished.tasks(case))
    with dask.config.set(scheduler=scheduler), pytest.raises(Interrupted), interrupt_after(n_tasks):
        case.fit(storage=store)
    before = kept(store)
    if scheduler == "synchronous" and store.exists():  # else other tasks run on for a while
        # What grows stays, and the edges of graphs whose labels are not there yet.
        stay = [path.name for path in store.glob(".*") if not grows(path.name) and not path.name.startswith(".edges-")]
        assert not stay, "no leftovers of the stopped run"
    model = case.fit_chunked(storage=store)
    assert_equal_fits(model, reference(case), **without_models(case))
    assert before.items() <= kept(store).items(), "nothing was made twice"
    assert products(store) == products(finished.store(case))


# -- finished runs ---------------------------------------------------------------------------------------------------


class Finished:
    """Stores of whole runs, each made when it is asked for; not to be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tasks: dict[Case, int] = {}

    def store(self, case: Case) -> Path:
        store = self.folder / case.id
        if case not in self._tasks:
            with count_tasks() as tasks, blocks_of(128):
                case.fit(storage=store)
            self._tasks[case] = tasks.total()
        return store

    def tasks(self, case: Case) -> int:
        self.store(case)
        return self._tasks[case]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return Finished(tmp_path_factory.mktemp("finished"))


@every(CASES, options=False)
def test_a_finished_run_is_not_computed_again(case, finished):
    store = finished.store(case)
    before = stamps(store)
    with count_tasks() as tasks:
        model = case.fit(storage=store)
    assert work(tasks) <= finished.tasks(case) / 2, "the rows are looked at, and that is all"
    assert_equal_fits(model, reference(case), **without_models(case))
    assert isinstance(model.labels_, np.ndarray)
    for given in (None, da.from_array(case.X, chunks=(50, 1))):
        model = case.fit_chunked(given, storage=str(store))
        assert_equal_fits(model, reference(case), **without_models(case))
        assert isinstance(model.labels_, da.Array)
    assert stamps(store) == before
    stored = zarr.open_array(store / "labels" / "rows", mode="r")
    np.testing.assert_array_equal(stored[:], reference(case).labels_)
    assert stored.dtype == np.int32


@every(of_ids("KMeans", "USPEC", "USENC", "Ensemble-KMeans-BipartiteCut", "SEC", "FastCSPML"))
def test_without_a_seed_the_store_keeps_one(case, tmp_path):
    first = case.fit(storage=tmp_path / "run", random_state=None)
    assert_equal_fits(case.fit(storage=tmp_path / "run", random_state=None), first, **without_models(case))
    seed = json.loads((tmp_path / "run" / KEY).read_text())["seed"]
    assert_equal_fits(case.fit(random_state=seed), first)


@every(case for case in CLASSES if not case.consensus)
def test_missing_rows_in_a_store(case, tmp_path):
    X = case.X.copy()
    X[40:80] = np.nan
    expected = case.fit(X, missing="label")
    assert (expected.labels_[40:80] == -1).all()
    for _ in range(2):
        model = case.fit(X, missing="label", storage=tmp_path / "run")
        assert_equal_fits(model, expected, **without_models(case))


@every(of_ids("USPEC", "KMeans", "FastCSC"))
def test_fewer_clusters_are_warned_of_in_every_run(case, tmp_path):
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 100, axis=0)
    for _ in range(2):
        with pytest.warns(dc.FewerClustersWarning, match="found 2 clusters, not n_clusters=3"):
            case.make(storage=tmp_path / "run").fit(X)


# -- what is refused -------------------------------------------------------------------------------------------------


def other_value(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X[-1, -1] = X[-1, -1] + 1 if X.dtype.kind == "i" else np.nextafter(X[-1, -1], 100, dtype=X.dtype)
    return X


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "a value": other_value,
    "a row less": lambda X: X[:-1],
    "order": lambda X: X[::-1],
    "dtype": lambda X: X.astype(np.float64),
    "order of features": lambda X: X[:, ::-1],
    "features": lambda X: np.hstack([X, X]),
    "shape": lambda X: X.reshape(-1, 4),
}


def refuse(fit: Callable[[], Any], store: Path, match: str) -> None:
    before = stamps(store)
    with pytest.raises(dc.StorageMismatchError, match=match):
        fit()
    assert stamps(store) == before


OTHER_DATA = "was made from other data.* give the same data, another storage"


@pytest.mark.parametrize("change", ["a value", "order"])
@every(CASES, options=False)
def test_other_rows_are_refused(case, change, finished):
    store = finished.store(case)
    other = np.ascontiguousarray(CHANGES[change](case.X))
    refuse(lambda: case.fit(other, storage=store), store, OTHER_DATA)
    refuse(lambda: case.fit_chunked(da.from_array(other, chunks=50), storage=store), store, OTHER_DATA)


@pytest.mark.parametrize("change", CHANGES)
@every(of_ids("USPEC", "KMeans"))
def test_other_data_are_refused(case, change, finished):
    store = finished.store(case)
    refuse(lambda: case.fit(np.ascontiguousarray(CHANGES[change](case.X)), storage=store), store, OTHER_DATA)


@every(case for case in CASES if case.more())
def test_other_weights_labels_and_constraints_are_refused(case, finished):
    store = finished.store(case)
    for name, value in case.more().items():
        others: list[Any] = [None]
        if isinstance(value, np.ndarray):
            others += [value[::-1], da.from_array(value[::-1], chunks=47)]
        if name == "constraints":
            others += [dc.Constraints.from_pairs([(0, 1)]), dc.Constraints.from_labels(np.arange(len(case.X)) % 3)]
        for other in others:
            refuse(partial(case.make(storage=store).fit, case.X, **{name: other}), store, "was made from other data")


#: Parameter -> two values, one of which is another than that of any case.
OTHER_PARAMETERS: dict[str, tuple[Any, Any]] = {
    "n_clusters": (4, 5),
    "n_representatives": (61, 62),
    "n_landmarks": (61, 62),
    "n_neighbors": (4, 6),
    "n_components": (11, 13),
    "n_base_clusterings": (4, 5),
    "n_graphs": (2, 3),
    "affinity": ("adaptive", "gaussian"),
    "k_range": ((3, 8), (3, 10)),
    "selection": ("random", "kmeans"),
    "neighbors": ("exact", "approximate"),
    "candidate_factor": (9, 8),
    "neighbor_factor": (11, 12),
    "metric": ("cosine", "euclidean"),
    "alpha": (0.75, 7.0),
    "gamma": (0.75, 7.0),
    "direction_factor": (0.75, None),
    "unlinked": ("neutral", "penalized"),
    "lambda_1": (0.2, 0.3),
    "lambda_2": (0.2, 0.3),
    "partition": ("Z", "H"),
    "sample_rate": (0.6, 0.9),
    "predict_unsampled": (True, False),
    "base": (dc.KMeans(max_iter=7), dc.FastCSC(n_representatives=50)),
    "consensus": (dc.BipartiteCut(n_init=7), dc.ISEC(n_representatives=50)),
    "weights": ("local", "none"),
    "theta": (0.3, 0.5),
    "n_steps": (10, 11),
    "decay": (0.5, 0.6),
    "linkage": ("complete", "single"),
    "max_distinct": (5000, 6000),
    "utility": ("entropy", "cosine"),
    "p": (2.5, 4.0),
    "init": ("random", "k-means++"),
    "n_init": (5, 6),
    "max_iter": (99, 98),
    "tol": (0.5, 0.25),
    "missing": ("label", "raise"),
    "random_state": (2, 2),
}


@every(CASES, options=False)
def test_other_parameters_are_refused(case, finished):
    store = finished.store(case)
    model = case.make()
    for parameter, value in model.get_params(deep=False).items():
        if parameter in ("storage", "verbose") or (parameter == "predict_unsampled" and not case.predicts):
            continue
        other = next(other for other in OTHER_PARAMETERS[parameter] if repr(other) != repr(value))
        words = r"other seed \(0 there and 2 here\)" if parameter == "random_state" else f"{parameter}="
        refuse(lambda: case.fit(storage=store, **{parameter: other}), store, words)  # noqa: B023


def test_a_store_from_before_there_were_weights_goes_on(finished):
    """What `BipartiteCut` kept then had neither parameter in its key."""
    (case,) = of_ids("BipartiteCut")
    store = finished.store(case)
    key = json.loads((store / "daskcluster.json").read_text())
    assert not {"weights", "theta"} & key["parameters"].keys()
    np.testing.assert_array_equal(case.fit(storage=store).labels_, reference(case).labels_)


def test_a_store_from_before_there_were_starts_goes_on(finished):
    """What `ISEC` kept then was made from the start that is still its default."""
    (case,) = of_ids("ISEC")
    assert "init" not in json.loads((finished.store(case) / "daskcluster.json").read_text())["parameters"]


def test_another_method_is_refused(finished):
    uspec, kmeans = of_ids("USPEC", "KMeans")
    store = finished.store(uspec)
    refuse(lambda: kmeans.fit(storage=store), store, r"other method \('USPEC' there and 'KMeans' here\)")


@every((case for case in CASES if not case.more()), options=False)
def test_a_mismatch_shows_before_a_row_is_read(case, finished):
    def fail(block: np.ndarray) -> np.ndarray:
        raise AssertionError("the rows were read")

    X = case.X
    lazy = da.from_array(X, chunks=(50, -1)).map_blocks(fail, dtype=X.dtype, meta=np.empty((0, 0), X.dtype))
    with pytest.raises(dc.StorageMismatchError):
        case.fit(lazy, storage=finished.store(case), n_clusters=4)


@every(of_ids("KMeans", "USENC", "FastCSC", "SEC"))
def test_what_is_no_store_is_refused_and_kept(case, tmp_path):
    (tmp_path / "file").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes").write_text("precious")
    zarr.create_array(str(tmp_path / "X.zarr"), data=case.X)
    before = stamps(tmp_path)
    for path in ("file", "folder", "X.zarr"):
        with pytest.raises(ValueError, match="storage must be a store made by daskcluster, or an empty or new folder"):
            case.fit(storage=tmp_path / path)
    assert stamps(tmp_path) == before
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "new" / "deep" / "run"):
        case.fit(storage=path)
        assert KEY in products(path)


@every(CLASSES)
def test_bad_input_makes_no_store(case, tmp_path):
    bad = case.X.astype(np.float64)
    bad[-1] = 0.5 if case.consensus else np.nan
    for X, parameters in [(bad, {}), (case.X, {"n_clusters": 3001}), (case.X[0], {}), (case.X, {"n_clusters": 0})]:
        with pytest.raises(ValueError, match=r"NaN|2D array|n_clusters|whole numbers"):
            case.fit(X, storage=tmp_path / "run", **parameters)
    assert not (tmp_path / "run").exists()


if __name__ == "__main__":
    main(Path(sys.argv[1]), slow=sys.argv[2] == "True")
