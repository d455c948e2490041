"""A fit with ``storage=`` that is stopped inside a stage goes on with the blocks that it has: none is made again.

Runs are stopped after a number of tasks, by an error in the process or by SIGKILL in a child of this program.
The tasks that count are those that make a part of a product: `BESIDE` names the others.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from dask.callbacks import Callback
from dask.utils import key_split
from sklearn.base import BaseEstimator, ClusterMixin

import daskcluster as dc
from daskcluster.files.records import Records
from tests.blocks import blocks_of
from tests.cli.calls import as_json, succeed
from tests.counting import Interrupted, count_tasks
from tests.estimators.cases import CASES, Case, every, of_ids, reference
from tests.estimators.test_storage import products
from tests.slow import slowly

BLOCK_ROWS = 64
pytestmark = [pytest.mark.usefixtures("small_blocks"), pytest.mark.usefixtures("saved_at_once")]

#: Tasks that read, look at what is kept, add up, work on a sample in memory, or hand outputs over.
BESIDE = re.compile(
    r"dc-check-|dc-numbers|dc-source|finalize|concatenate|rechunk|reshape|dc-start|dc-improve|dc-exchange|dc-eigenproblem"
    r"|dc-representatives|(dc-read|dc-held|getitem|-sum|dc-project|dc-blocks|dc-decode|^dc|^array)$"
)


@pytest.fixture
def saved_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pass finds is written at once, and not with that of half a second."""
    monkeypatch.setattr("daskcluster.runtime.parts.SAVED_SECONDS", 0.0)


def counts(key: Any) -> bool:
    return BESIDE.search(key_split(key)) is None


class Stop(Callback):
    """Ends a run when so many tasks that count have run."""

    def __init__(self, number: int, end: Any) -> None:
        super().__init__(posttask=self._count)
        self.left, self.end = number, end

    def _count(self, key: Any, *more: Any) -> None:
        self.left -= counts(key)
        if self.left < 0:
            self.end()


def interrupt() -> None:
    raise Interrupted


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def own_tasks(tasks: Counter[str]) -> Counter[str]:
    """Tasks that make a part of a product, by their names."""
    return Counter({name: number for name, number in tasks.items() if counts(name)})


def stored(case: Case, folder: Path) -> str:
    """The rows of a case as a Zarr array."""
    path = folder / "X.zarr"
    if not path.exists():
        X = case.X
        zarr.create_array(str(path), shape=X.shape, chunks=(40, X.shape[1]), dtype=X.dtype)[:] = X
    return str(path)


def assert_same_labels(model: Any, case: Case) -> None:
    np.testing.assert_array_equal(np.asarray(model.labels_), reference(case, BLOCK_ROWS).labels_)


#: Those that take many runs are slow tests.
REST = [case for case in CASES if case.id not in ("USPEC", "KMeans-weights")]
#: Tasks of a run, of stages with five blocks a pass.
WALLTIME = 4

# -- runs whose stages are all longer than their walltime -------------------------------------------------------------


def walk(case: Case, X: Any, store: Path, walltime: int) -> tuple[Any, Counter[str], int]:
    """Call a fit until it ends, each time for so many tasks: the model, all tasks, and the number of calls."""
    done: Counter[str] = Counter()
    for number in range(1, 400):
        try:
            with count_tasks() as tasks, Stop(walltime, interrupt):
                model = case.fit(X, storage=store)
        except Interrupted:
            done += own_tasks(tasks)
            continue
        return model, done + own_tasks(tasks), number
    raise AssertionError(f"no end of {case.id}: {sorted(path.name for path in store.iterdir())}")


@pytest.mark.parametrize("case", [*of_ids("USPEC", "KMeans-weights"), *slowly(*REST)], ids=lambda case: case.id)
def test_a_run_whose_stages_are_longer_than_its_walltime_ends(case, tmp_path):
    """And makes each block once, but for the one that it was stopped at."""
    X = stored(case, tmp_path)
    with dask.config.set(scheduler="synchronous"):
        with count_tasks() as tasks:
            case.fit(X, storage=tmp_path / "whole")
        whole = own_tasks(tasks)
        model, done, n_calls = walk(case, X, tmp_path / "run", WALLTIME)
    assert n_calls >= whole.total() / (WALLTIME + 1)
    assert_same_labels(model, case)
    assert products(tmp_path / "run") == products(tmp_path / "whole")
    # Each call but the last one is stopped at a task, whose result it had not got.
    assert done.total() <= whole.total() + 2 * n_calls


# -- SIGKILL ---------------------------------------------------------------------------------------------------------

KILLED = ["FastCSC", "SEC", "KMeans-weights", "USENC"]


def main(folder: Path, ids: list[str]) -> None:
    """Kill runs after so many of their tasks, each in a child; write how many it took."""
    calls = {}
    import daskcluster.runtime.parts as parts

    parts.SAVED_SECONDS = 0.0
    for case in of_ids(*ids):
        own = folder / case.id
        own.mkdir()
        X = stored(case, own)
        for number in range(1, 100):
            child = os.fork()
            if child == 0:
                with blocks_of(BLOCK_ROWS), dask.config.set(scheduler="synchronous"), Stop(11, die):
                    model = case.fit(X, storage=own / "run")
                    np.save(own / "labels.npy", np.asarray(model.labels_))
                os._exit(0)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code == 0:
                calls[case.id] = number
                break
            assert code == -signal.SIGKILL, code
    sys.stdout.write(json.dumps(calls))


@pytest.mark.slow
@pytest.mark.parametrize("ids", [["USPEC"], *([name] for name in KILLED)], ids=str)
def test_killed_runs_end_with_the_same_labels(ids, tmp_path):
    if not hasattr(os, "fork"):
        pytest.skip("kills forked processes")
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, __file__, str(tmp_path), *ids],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert done.returncode == 0, done.stderr
    calls = json.loads(done.stdout)
    for case in of_ids(*ids):
        assert calls[case.id] >= 4, calls
        np.testing.assert_array_equal(np.load(tmp_path / case.id / "labels.npy"), reference(case, BLOCK_ROWS).labels_)
        assert not [path.name for path in (tmp_path / case.id / "run").glob(".*") if ".scan-" not in path.name]


# -- what a stopped run leaves ---------------------------------------------------------------------------------------


def stopped(case: Case, X: Any, store: Path, number: int) -> None:
    with dask.config.set(scheduler="synchronous"), pytest.raises(Interrupted), Stop(number, interrupt):
        case.fit(X, storage=store)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a USPEC that was stopped among its nearest representatives, and its rows; not to be changed."""
    folder = tmp_path_factory.mktemp("broken")
    with blocks_of(BLOCK_ROWS), pytest.MonkeyPatch.context() as patch:
        patch.setattr("daskcluster.runtime.parts.SAVED_SECONDS", 0.0)
        stopped(USPEC, stored(USPEC, folder), folder / "run", 8)
    return folder


USPEC = of_ids("USPEC")[0]
RECORDS, GROWING = ".nearest.parts", ".nearest.growing"


@pytest.fixture
def copy(broken: Path, tmp_path: Path) -> Path:
    shutil.copytree(broken / "run", tmp_path / "run")
    return tmp_path / "run"


def made_again(X: Any, store: Path) -> Counter[str]:
    """Tasks of the next run, whose labels are right."""
    with count_tasks() as tasks, dask.config.set(scheduler="synchronous"):
        model = USPEC.fit(X, storage=store)
    assert_same_labels(model, USPEC)
    return tasks


def test_only_missing_blocks_are_made(broken, copy):
    assert (copy / GROWING).is_dir()
    tasks = made_again(stored(USPEC, broken), copy)
    assert tasks["dc-nearest"] == 2
    assert not [name for name in tasks if name.endswith("dc-check")], "the rows have not changed, and are not read"


def test_a_torn_record_is_not_believed(broken, copy):
    content = (copy / RECORDS).read_bytes()
    (copy / RECORDS).write_bytes(content[:-3])
    assert made_again(stored(USPEC, broken), copy)["dc-nearest"] == 3


def test_lost_records_lose_the_blocks(broken, copy):
    (copy / RECORDS).unlink()
    assert made_again(stored(USPEC, broken), copy)["dc-nearest"] == 5


@pytest.mark.parametrize("harm", ["changed", "cut off", "lost"])
def test_a_damaged_block_is_made_again(harm, broken, copy):
    number = next(key for key in Records(copy / RECORDS) if key.isdigit())
    block = next(path for path in (copy / GROWING / "rows" / "c" / number).rglob("*") if path.is_file())
    content = block.read_bytes()
    if harm == "lost":
        block.unlink()
    else:
        block.write_bytes(content[:-8] if harm == "cut off" else bytes([content[0] ^ 1]) + content[1:])
    with pytest.warns(UserWarning, match="1 of 3 finished row blocks of the product 'nearest' .*made again"):
        assert made_again(stored(USPEC, broken), copy)["dc-nearest"] == 3


def test_rows_of_another_form_are_thrown_away(broken, copy):
    description = json.loads((copy / GROWING / "rows" / "zarr.json").read_text())
    description["shape"][0] -= 1
    (copy / GROWING / "rows" / "zarr.json").write_text(json.dumps(description))
    assert made_again(stored(USPEC, broken), copy)["dc-nearest"] == 5


def test_half_written_blocks_leave_nothing(broken, copy):
    chunk = next(path for path in (copy / GROWING / "rows" / "c").rglob("*") if path.is_file())
    chunk.with_name(f"{chunk.name}.growing-0123").write_bytes(b"half")
    made_again(stored(USPEC, broken), copy)
    assert not [path for path in (copy / "nearest").rglob("*growing*")]


def test_other_parameters_are_refused(broken, copy):
    with pytest.raises(dc.StorageMismatchError, match="other parameters"):
        USPEC.fit(stored(USPEC, broken), storage=copy, n_neighbors=4)


# -- input that changes ----------------------------------------------------------------------------------------------


@every(of_ids("USPEC", "KMeans-weights", "SEC", "FastCSC"))
def test_a_stopped_scan_goes_on(case, tmp_path):
    """The first pass is not made again, nor are its parts."""
    X = stored(case, tmp_path)
    with dask.config.set(scheduler="synchronous"), count_tasks() as tasks:
        for number in (1, 2):
            with pytest.raises(Interrupted), Stop(number, interrupt):
                case.fit(X, storage=tmp_path / "run")
        model = case.fit(X, storage=tmp_path / "run")
        case.fit(X, storage=tmp_path / "run")
    assert_same_labels(model, case)
    scans = {name: number for name, number in tasks.items() if re.fullmatch("dc-(check|count)", name)}
    assert 4 <= sum(scans.values()) <= 5 + 2, "each stop lost one block at most"


@pytest.mark.parametrize("moment", ["in the scan", "later"])
def test_changed_input_is_never_believed(moment, tmp_path):
    X = stored(USPEC, tmp_path)
    number = {"in the scan": 3, "later": 13}[moment]
    stopped(USPEC, X, tmp_path / "run", number)
    changed = zarr.open_array(X, mode="r+")
    changed[5] = changed[5] + 1
    if moment == "later":
        with pytest.raises(dc.StorageMismatchError, match="made from other data"):
            USPEC.fit(X, storage=tmp_path / "run")
        changed[5] = USPEC.X[5]
        assert_same_labels(USPEC.fit(X, storage=tmp_path / "run"), USPEC)  # read anew: it is the same
        return
    found = USPEC.fit(X, storage=tmp_path / "run")
    np.testing.assert_array_equal(found.labels_.compute(), USPEC.fit(X).labels_.compute())
    assert len(list((tmp_path / "run").glob(".scan-*"))) == 1


def test_input_that_is_refused_leaves_no_store(tmp_path):
    X = stored(USPEC, tmp_path)
    zarr.open_array(X, mode="r+")[7] = np.nan
    with pytest.raises(ValueError, match="NaN at row 7"):
        USPEC.fit(X, storage=tmp_path / "run")
    assert not list((tmp_path / "run").glob("*"))
    USPEC.fit(X, storage=tmp_path / "run", missing="label", n_neighbors=4)


def test_without_a_seed_a_stopped_scan_keeps_one(tmp_path):
    X = stored(USPEC, tmp_path)
    with dask.config.set(scheduler="synchronous"), pytest.raises(Interrupted), Stop(3, interrupt):
        USPEC.fit(X, storage=tmp_path / "run", random_state=None)
    seed = json.loads((tmp_path / "run" / "daskcluster.json").read_text())["seed"]
    assert USPEC.fit(X, storage=tmp_path / "run", random_state=None)._seed == seed


def test_rows_in_memory_are_looked_at_in_each_run(tmp_path):
    """Nothing tells whether they have changed."""
    stopped(USPEC, None, tmp_path / "run", 13)
    with count_tasks() as tasks:
        USPEC.fit(storage=tmp_path / "run")
    assert tasks["dc-check"] == 5


# -- on a cluster ----------------------------------------------------------------------------------------------------


@contextmanager
def written_by(folder: Path) -> Iterator[da.Array]:
    """Rows whose tasks note that they run; the ninth one that does kills its worker."""

    def note(block: np.ndarray, block_info: Any = None) -> np.ndarray:
        number = block_info[0]["chunk-location"][0]
        with open(folder / "notes", "a") as notes:
            notes.write(f"{number}\n")
        if number == 8 and not (folder / "killed").exists():
            (folder / "killed").touch()
            os._exit(1)
        return block

    yield da.zeros((40, 2), chunks=(1, 2)).map_blocks(note, dtype=float, meta=np.empty((0, 0)))


@pytest.mark.slow
def test_a_worker_that_dies_takes_no_finished_block_along(tmp_path):
    distributed = pytest.importorskip("distributed")
    from daskcluster.runtime.products import Products

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        written_by(tmp_path) as lazy,
    ):
        made = Products(tmp_path / "run", "M", {}, 0)
        made.open("data")
        made.rows("nearest", lazy)
    notes = Counter((tmp_path / "notes").read_text().split())
    assert len(notes) == 40
    again = {number for number, times in notes.items() if times > 1}
    assert "8" in again
    assert len(again) <= 4, "those that had been sent to the worker, and not those that it had finished"


# -- what is told ----------------------------------------------------------------------------------------------------


def test_a_resumed_run_says_so(broken, copy, caplog):
    with caplog.at_level("INFO", "daskcluster"):
        USPEC.fit(stored(USPEC, broken), storage=copy)
    lines = [record.getMessage() for record in caplog.records if "resumed" in record.getMessage()]
    assert lines == ["resumed: products of 1 of 5 stages, nearest representatives 3 of 5 blocks"]
    caplog.clear()
    with caplog.at_level("INFO", "daskcluster"):
        USPEC.fit(storage=copy.with_name("new"))
    assert not [record for record in caplog.records if "resumed" in record.getMessage()]


def test_info_says_how_far_a_run_is(broken, copy):
    about = as_json("info", copy)
    assert about["next"] == "goes on in 'nearest representatives': 3 of 5 blocks"
    assert about["holder"] is None
    stages = {stage["title"]: stage for stage in about["stages"]}
    assert stages["nearest representatives"]["grows"] == {"nearest": {"done": 3, "blocks": 5}}
    assert stages["check and sample"]["grows"] == {"the input": {"passes": 1}}
    shown = succeed("info", copy).stdout
    assert "0 of 1 products; 3 of 5 blocks" in shown
    assert "complete, as long as the input stays" in shown
    USPEC.fit(stored(USPEC, broken), storage=copy)
    assert as_json("info", copy)["next"] == "computes nothing: all products are there"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])


def test_a_refused_input_leaves_a_folder_that_takes_another_one(tmp_path):
    (case,) = of_ids("USPEC")
    path, store = stored(case, tmp_path), tmp_path / "run"
    with dask.config.set(scheduler="synchronous"), pytest.raises(Interrupted), Stop(2, interrupt):
        case.fit(path, storage=store)
    assert list(store.glob(".scan-*"))
    rows = zarr.open_array(path, mode="r+")
    value = rows[5, 0]
    rows[5, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        case.fit(path, storage=store)
    rows[5, 0] = value
    assert_same_labels(case.fit(path, storage=store), case)


def test_a_scheduler_that_calls_nobody_back(tmp_path):
    (case,) = of_ids("USPEC")

    def silent(graph: Any, keys: Any, **more: Any) -> Any:
        return dask.get(graph, keys)

    with dask.config.set(scheduler=silent):
        assert_same_labels(case.fit(stored(case, tmp_path), storage=tmp_path / "run"), case)


class OnView(ClusterMixin, BaseEstimator):
    """A clusterer of another package that fits one of this one, to other rows each time."""

    views: ClassVar[list[np.ndarray]] = []

    def __init__(self, n_clusters: int = 3) -> None:
        self.n_clusters = n_clusters

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        return dc.USPEC(self.n_clusters, n_representatives=30, random_state=0).fit(self.views.pop(0)).labels_


def test_rows_that_a_clusterer_of_the_user_draws_are_its_own(tmp_path):
    (case,) = of_ids("USPEC")
    X, other = case.X, case.X[np.random.default_rng(1).permutation(len(case.X))]

    def fit(views: list[np.ndarray], **more: Any) -> Any:
        OnView.views = list(views)
        ensemble = dc.Ensemble(3, base=OnView(), n_base_clusterings=2, k_range=(3, 3), random_state=0, **more)
        return np.asarray(ensemble.fit(X).base_labels_)

    store, expected = tmp_path / "run", fit([other, other])

    def end(*state: Any) -> None:
        if (store / ".base-000.inner" / "nearest").exists():
            raise Interrupted

    with dask.config.set(scheduler="synchronous"), contextlib.suppress(Interrupted), Callback(posttask=end):
        fit([X, X], storage=store)
    shutil.rmtree(store / "base-000-labels", ignore_errors=True)
    shutil.rmtree(store / "base-001-labels", ignore_errors=True)
    np.testing.assert_array_equal(fit([other, other], storage=store), expected)
