"""Where products are held: memory, a scratch store that goes by itself, a named store from which a run resumes."""

import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.base import clone
from sklearn.cluster import KMeans as InMemoryKMeans
from sklearn.pipeline import Pipeline

import daskcluster as dc
from daskcluster.errors import StorageMismatchError
from daskcluster.pipeline import cut as cut_module
from daskcluster.pipeline import discretize as discretize_module
from daskcluster.pipeline import kmeans as kmeans_module
from daskcluster.pipeline import representatives as representatives_module
from daskcluster.runtime.products import Products, budget_bytes

MIB = 2**20


class Source:
    """Lazy row blocks whose computations are counted; a block may be told to fail."""

    def __init__(self, n_rows=23, chunk=5, columns=2, fail_at=None):
        self.values = np.arange(n_rows * columns, dtype=np.int32).reshape(n_rows, columns)
        self.computed = []
        self.fail_at = fail_at
        self.chunk = chunk
        lengths = tuple(len(self.values[start : start + chunk]) for start in range(0, n_rows, chunk))
        self.array = da.map_blocks(
            self._block,
            chunks=(lengths, (columns,)),
            dtype=np.int32,
            meta=np.empty((0, 0), np.int32),
            name=f"source-{id(self)}",
        )

    def _block(self, block_id):
        if block_id[0] == self.fail_at:
            raise RuntimeError("the machine stops here")
        self.computed.append(block_id[0])
        return self.values[block_id[0] * self.chunk : (block_id[0] + 1) * self.chunk]


def first_value(block):
    return {"first": int(block[0, 0]), "rows": len(block)}


SUMMARIES = [{"first": 10 * block, "rows": 3 if block == 4 else 5} for block in range(5)]


def products(storage=None, method="Method", random_state=0, **parameters):
    return Products(storage, method, parameters, random_state)


def visible(folder):
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


@pytest.fixture
def scratch(tmp_path):
    """Everything goes to a scratch store, under the folder that is given to the test."""
    folder = tmp_path / "scratch"
    with dask.config.set({"daskcluster.memory-budget": "0 B", "temporary-directory": str(folder)}):
        yield folder


# -- rows in memory and in the scratch store


def test_the_budget_is_a_setting_of_dask():
    assert budget_bytes() == 128 * MIB
    for given, expected in [("1 GiB", 2**30), ("2MB", 2 * 10**6), (5000, 5000), ("0 B", 0)]:
        with dask.config.set({"daskcluster.memory-budget": given}):
            assert budget_bytes() == expected


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_rows_within_the_budget_are_held_in_memory(tmp_path, scheduler):
    source = Source()
    settings = {"daskcluster.memory-budget": source.array.nbytes, "temporary-directory": str(tmp_path)}
    with dask.config.set(settings, scheduler=scheduler):
        held, summaries = products().rows("nearest", source.array, first_value)
        assert sorted(source.computed) == [0, 1, 2, 3, 4]
        assert summaries == SUMMARIES
        assert held.chunks == source.array.chunks
        assert held.dtype == np.int32
        for _ in range(2):
            assert np.array_equal(held.compute(), source.values)
    assert len(source.computed) == 5
    assert os.listdir(tmp_path) == []


def test_rows_beyond_the_budget_go_to_the_scratch_store(tmp_path):
    source = Source()
    settings = {"daskcluster.memory-budget": source.array.nbytes - 1, "temporary-directory": str(tmp_path / "new")}
    with dask.config.set(settings):
        held, summaries = products().rows("nearest", source.array, first_value)
    (folder,) = os.listdir(tmp_path / "new")
    assert folder.startswith("daskcluster-")
    assert summaries == SUMMARIES
    assert held.chunks == source.array.chunks
    assert np.array_equal(held.compute(), source.values)
    assert len(source.computed) == 5


def test_each_stored_chunk_is_one_row_block(scratch):
    """So no two tasks write the same file."""
    held, _ = products().rows("nearest", Source().array)
    (folder,) = scratch.iterdir()
    stored = zarr.open_array(str(folder / "nearest" / "rows"), mode="r")
    assert stored.chunks == (5, 2)
    assert stored.shards is None
    assert held.numblocks == (5, 1)


@pytest.mark.parametrize("where", ["memory", "scratch store", "named store"])
def test_labels_are_arrays_of_one_axis(where, tmp_path):
    labels = da.arange(13, chunks=4, dtype=np.int32)
    settings = {"daskcluster.memory-budget": "0 B" if where == "scratch store" else "1 kB"}
    with dask.config.set({**settings, "temporary-directory": str(tmp_path)}):
        held, _ = products(tmp_path / "store" if where == "named store" else None).rows("labels", labels)
    assert held.chunks == ((4, 4, 4, 1),)
    assert held.compute().tolist() == list(range(13))


@pytest.mark.parametrize("where", ["memory", "scratch store", "named store"])
@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_held_arrays_are_indexed_as_others(where, dtype, tmp_path):
    """dask hands such an index to what holds the rows: whole blocks, parts of them, single rows, columns."""
    values = np.arange(26, dtype=dtype).reshape(13, 2)
    settings = {"daskcluster.memory-budget": "0 B" if where == "scratch store" else "1 kB"}
    with dask.config.set({**settings, "temporary-directory": str(tmp_path)}):
        source = da.from_array(values, chunks=(4, 2))
        held, _ = products(tmp_path / "store" if where == "named store" else None).rows("nearest", source)
    rows = [3, -1, slice(4, 8), slice(2, 9), slice(5, None), slice(None, None, 3), slice(None, None, -1), [0, 5, 12]]
    for row in rows:
        for column in (slice(None), 1, slice(1, None), [1, 0]):
            if isinstance(row, list) and isinstance(column, list):
                continue
            assert np.array_equal(held[row, column].compute(), values[row, column]), (row, column)
        assert np.array_equal(held[row].compute(), values[row]), row
    assert np.array_equal(held[values[:, 0] % 3 == 0].compute(), values[values[:, 0] % 3 == 0])
    assert held.sum().compute() == values.sum()
    assert np.array_equal(held.rechunk((5, 1)).compute(), values)


@pytest.mark.parametrize("dtype", ["i4", "f8", "f4"])
def test_a_whole_block_of_zeros_is_held(dtype, tmp_path):
    """A chunk that equals the fill value of its store need not exist there."""
    zeros = da.zeros((9, 2), chunks=(4, 2), dtype=dtype)
    held, _ = products(tmp_path / "store").rows("nearest", zeros)
    assert held.dtype == np.dtype(dtype)
    assert np.array_equal(held.compute(), np.zeros((9, 2)))
    stored = zarr.open_array(str(tmp_path / "store" / "nearest" / "rows"), mode="r")
    assert np.array_equal(stored[:], np.zeros((9, 2)))


@pytest.mark.parametrize("n_rows", [1, 4, 7, 8])
def test_what_is_stored_is_an_ordinary_zarr_array(n_rows, tmp_path):
    """Others may read a named store, its last and shorter chunk too."""
    values = np.arange(3 * n_rows, dtype=np.int32).reshape(n_rows, 3)
    products(tmp_path / "store").rows("nearest", da.from_array(values, chunks=(4, 3)))
    stored = zarr.open_array(str(tmp_path / "store" / "nearest" / "rows"), mode="r")
    assert np.array_equal(stored[:], values)


def test_the_scratch_store_lives_as_long_as_an_array_over_it(scratch):
    made = products()
    held, _ = made.rows("nearest", Source().array)
    other, _ = made.rows("labels", Source().array)
    (folder,) = scratch.iterdir()
    derived = other[3:9] + 1
    del made, held, other
    gc.collect()
    assert folder.exists()
    assert derived.compute()[0].tolist() == [7, 8]
    del derived
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_labels_in_the_scratch_store_outlive_the_model(scratch):
    X = np.random.default_rng(0).normal(size=(600, 2))
    model = dc.USPEC(3, n_representatives=30, random_state=0).fit(da.from_array(X, chunks=(100, 2)))
    labels, expected = model.labels_, model.predict(X)
    assert len(list(scratch.iterdir())) == 1
    del model
    gc.collect()
    assert np.array_equal(labels.compute(), expected)
    del labels
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_a_fit_of_numpy_leaves_no_scratch_store(scratch):
    model = dc.USPEC(3, n_representatives=30, random_state=0).fit(np.random.default_rng(0).normal(size=(600, 2)))
    gc.collect()
    assert isinstance(model.labels_, np.ndarray)
    assert list(scratch.iterdir()) == []


def test_a_failed_fit_leaves_no_scratch_store(scratch, monkeypatch):
    monkeypatch.setattr(cut_module, "cut_small_graph", lambda *arguments: 1 / 0)
    model = dc.USPEC(3, n_representatives=30, random_state=0)
    with pytest.raises(ZeroDivisionError):
        model.fit(np.random.default_rng(0).normal(size=(600, 2)))
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_a_held_array_travels_without_its_folder(scratch):
    """To another process: the folder belongs to the one that made it."""
    held, _ = products().rows("nearest", Source().array)
    expected = held.compute()
    travelled = pickle.loads(pickle.dumps(held))
    assert np.array_equal(travelled.compute(), expected)
    del travelled
    gc.collect()
    assert np.array_equal(held.compute(), expected)


def test_rows_are_held_by_the_workers_of_a_cluster(client_inprocess, scratch):
    values = Source().values
    held, summaries = products().rows("nearest", da.from_array(values, chunks=(5, 2)), first_value)
    assert summaries == SUMMARIES
    assert len(client_inprocess.who_has(held)) == 5
    assert np.array_equal(held.compute(), values)
    assert not scratch.exists()


# -- the named store


def test_small_products_are_made_once(tmp_path):
    made = []

    def make():
        made.append(1)
        return {"centers": np.array([[1.5, np.nan]]), "ids": np.arange(3, dtype=np.int32), "sum": 0.1 + 0.2, "n": 7}

    for _ in range(2):
        opened = products(tmp_path / "store")
        opened.open("data")
        found = opened.small("centers", make)
        assert np.array_equal(found["centers"], [[1.5, np.nan]], equal_nan=True)
        assert found["centers"].dtype == np.float64
        assert found["ids"].tolist() == [0, 1, 2]
        assert found["ids"].dtype == np.int32
        assert (found["sum"], found["n"]) == (0.1 + 0.2, 7)
        opened.close()
    assert len(made) == 1


def test_small_products_without_a_store_are_made_and_returned(tmp_path):
    product = {"n": 1}
    assert products().small("centers", lambda: product) is product
    assert os.listdir(tmp_path) == []


def test_rows_in_a_named_store_are_computed_once(tmp_path):
    first, second = Source(), Source()
    for source in (first, second):
        opened = products(tmp_path / "store")
        opened.open("data")
        assert opened.named
        held, summaries = opened.rows("nearest", source.array, first_value)
        assert summaries == SUMMARIES
        assert held.chunks == source.array.chunks
        opened.close()
        assert np.array_equal(held.compute(), source.values)
    assert len(first.computed) == 5
    assert second.computed == []
    assert visible(tmp_path / "store") == ["daskcluster.json", "nearest"]


def test_a_product_appears_only_when_it_is_whole(tmp_path):
    opened = products(tmp_path / "store")
    opened.open("data")
    with pytest.raises(RuntimeError, match="the machine stops here"):
        opened.rows("nearest", Source(fail_at=3).array, first_value)
    with pytest.raises(ZeroDivisionError):
        opened.small("cut", lambda: {"x": 1 / 0})
    assert visible(tmp_path / "store") == ["daskcluster.json"]
    held, _ = opened.rows("nearest", Source().array, first_value)
    assert np.array_equal(held.compute(), Source().values)


def test_a_half_written_product_is_no_product(tmp_path):
    """What a killed process leaves: a hidden folder with some of the blocks."""
    opened = products(tmp_path / "store")
    opened.open("data")
    left = tmp_path / "store" / ".nearest.partial-host-1-0123abcd"
    left.mkdir()
    (left / "zarr.json").write_text("{")
    source = Source()
    held, summaries = opened.rows("nearest", source.array, first_value)
    assert len(source.computed) == 5
    assert summaries == SUMMARIES
    assert np.array_equal(held.compute(), source.values)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_clusters": 4}, r"made with other parameters \(n_clusters=3 there and 4 here\)"),
        ({"metric": "cosine"}, r"made with other parameters \(metric='euclidean' there and 'cosine' here\)"),
        (
            {"n_clusters": 4, "metric": "cosine"},
            r"\(metric='euclidean' there and 'cosine' here, n_clusters=3 there and 4",
        ),
        ({"extra": 1}, r"\(extra=None there and 1 here\)"),
        ({"method": "Other"}, r"made with other method \('Method' there and 'Other' here\)"),
        ({"random_state": 1}, r"made with other seed \(0 there and 1 here\)"),
        (
            {"init": np.array([[0.0], [2.0]])},
            r"init='float64 array \(2, 1\) \w+' there and 'float64 array \(2, 1\) \w+' here",
        ),
    ],
)
def test_a_store_of_something_else_is_refused(tmp_path, change, words):
    given = {"n_clusters": 3, "metric": "euclidean", "init": np.array([[0.0], [1.0]])}
    products(tmp_path / "store", **given).open("data")
    products(tmp_path / "store", **given).open("data")
    with pytest.raises(StorageMismatchError, match=words) as refused:
        products(tmp_path / "store", **{**given, **change})
    assert str(tmp_path / "store") in str(refused.value)
    assert "give the same ones, another storage, or remove the folder" in str(refused.value)


def key_of(folder, value):
    made = products(folder, value=value)
    made.open("data")
    return made


def test_keys_tell_values_apart_by_content(tmp_path):
    large = np.arange(5000.0)
    other = large.copy()
    other[2500] = -1
    estimator = InMemoryKMeans(init=large[:, None])
    twins = [
        (large, large.copy(), other),
        (large, large.copy(), large.astype(np.float32)),
        (estimator, clone(estimator), InMemoryKMeans(init=other[:, None])),
        (Pipeline([("k", estimator)]), Pipeline([("k", clone(estimator))]), Pipeline([("k", InMemoryKMeans())])),
        (float("nan"), float("nan"), 0.0),
        ({"a": (1, large)}, {"a": (1, large.copy())}, {"a": (1, other)}),
        (np.float32(0.5), 0.5, 0.25),
        (Path("a"), "a", "b"),
        (np.sum, np.sum, np.mean),
    ]
    for number, (value, same, different) in enumerate(twins):
        key_of(tmp_path / str(number), value)
        key_of(tmp_path / str(number), same)
        with pytest.raises(StorageMismatchError, match="other parameters"):
            key_of(tmp_path / str(number), different)


def test_a_store_of_other_data_is_refused(tmp_path):
    products(tmp_path / "store").open("data")
    with pytest.raises(StorageMismatchError, match="was made from other data; give the same data, another storage"):
        products(tmp_path / "store").open("other data")


def test_the_stores_seed_is_taken_over(tmp_path):
    first = products(tmp_path / "store", random_state=None)
    first.open("data")
    first.close()
    second = products(tmp_path / "store", random_state=None)
    assert second.seed == first.seed
    assert products(tmp_path / "store", random_state=first.seed).seed == first.seed
    assert products(tmp_path / "other", random_state=None).seed != first.seed


def test_what_is_no_store_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("all of it")
    (tmp_path / "file").write_text("something")
    for name in ("folder", "file"):
        with pytest.raises(ValueError, match="storage must be a store made by daskcluster, or an empty or new folder"):
            products(tmp_path / name)
    assert (tmp_path / "folder" / "thesis.tex").read_text() == "all of it"


@pytest.mark.parametrize("leftover", [False, True])
def test_an_empty_folder_becomes_a_store(tmp_path, leftover):
    """Also when a killed run was about to write the key."""
    (tmp_path / "store").mkdir()
    if leftover:
        (tmp_path / "store" / ".daskcluster.json.partial-host-1-0123abcd").write_text("{")
    products(tmp_path / "store", random_state=5).open("data")
    assert json.loads((tmp_path / "store" / "daskcluster.json").read_text())["seed"] == 5


def test_a_broken_key_is_named(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "daskcluster.json").write_text('{"seed": ')
    with pytest.raises(ValueError, match=r"its daskcluster\.json cannot be read"):
        products(tmp_path / "store")


def test_nothing_is_made_before_the_input_is_known(tmp_path):
    products(tmp_path / "store")
    assert not (tmp_path / "store").exists()


# -- a whole fit


def draw_blobs(seed=0):
    rng = np.random.default_rng(seed)
    return (4 * rng.integers(3, size=(400, 1)) + rng.normal(size=(400, 2))).astype(np.float32)


def model(kind="USPEC", **parameters):
    if kind == "KMeans":
        return dc.KMeans(**{"n_clusters": 3, "random_state": 0, **parameters})
    return dc.USPEC(**{"n_clusters": 3, "n_representatives": 40, "random_state": 0, **parameters})


def fitted(model):
    names = [name for name in vars(model) if name.endswith("_") and name != "labels_"]
    return {name: np.asarray(getattr(model, name)).tolist() for name in names}


def forbid(monkeypatch, *functions):
    def computed(*arguments, **options):
        raise AssertionError("computed again")

    for module, name in functions:
        monkeypatch.setattr(module, name, computed)


STAGES = (
    (representatives_module, "choose_representatives"),
    (cut_module, "cut_small_graph"),
    (discretize_module, "discretize"),
)


@pytest.mark.usefixtures("small_blocks")
def test_a_finished_fit_is_not_computed_again(tmp_path, monkeypatch):
    X = draw_blobs()
    plain = model().fit(X)
    first = model(storage=tmp_path / "store").fit(X)
    assert np.array_equal(first.labels_, plain.labels_)
    assert fitted(first) == fitted(plain)
    forbid(monkeypatch, *STAGES)
    monkeypatch.setattr("daskcluster.pipeline.neighbors.finite_rows", lambda block: 1 / 0)  # the search of a block
    again = model(storage=tmp_path / "store", random_state=None).fit(X)
    assert np.array_equal(again.labels_, plain.labels_)
    assert fitted(again) == fitted(plain)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("stage", range(3))
def test_a_stopped_fit_goes_on_where_it_stopped(tmp_path, monkeypatch, stage):
    X = draw_blobs()
    plain = model().fit(X)
    with monkeypatch.context() as stopped:
        forbid(stopped, STAGES[stage])
        with pytest.raises(AssertionError, match="computed again"):
            model(storage=tmp_path / "store").fit(X)
    forbid(monkeypatch, *STAGES[:stage])
    continued = model(storage=tmp_path / "store").fit(X)
    assert np.array_equal(continued.labels_, plain.labels_)
    assert fitted(continued) == fitted(plain)


@pytest.mark.usefixtures("small_blocks")
def test_a_finished_kmeans_is_not_computed_again(tmp_path, monkeypatch):
    X = draw_blobs()
    first = model("KMeans", storage=tmp_path / "store").fit(X)
    forbid(monkeypatch, (kmeans_module, "center_starts"), (kmeans_module, "lloyd_over_blocks"))
    again = model("KMeans", storage=tmp_path / "store").fit(X)
    assert np.array_equal(again.labels_, first.labels_)
    assert fitted(again) == fitted(first)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", ["USPEC", "KMeans"])
def test_a_fit_refuses_a_store_of_another_one(tmp_path, kind):
    X = draw_blobs()
    store = tmp_path / "store"
    model(kind, storage=store).fit(X)
    changed = X.copy()
    changed[399, 1] = np.nextafter(changed[399, 1], np.float32(9))
    with pytest.raises(StorageMismatchError, match="other data"):
        model(kind, storage=store).fit(changed)
    with pytest.raises(StorageMismatchError, match="other data"):
        model(kind, storage=store).fit(X.astype(np.float64))
    with pytest.raises(StorageMismatchError, match=r"other parameters \(n_clusters=3 there and 2 here\)"):
        model(kind, storage=store, n_clusters=2).fit(X)
    with pytest.raises(StorageMismatchError, match=r"other seed \(0 there and 1 here\)"):
        model(kind, storage=store, random_state=1).fit(X)
    other = "KMeans" if kind == "USPEC" else "USPEC"
    with pytest.raises(StorageMismatchError, match=f"other method \\('{kind}' there and '{other}' here\\)"):
        model(other, storage=store).fit(X)
    model(kind, storage=store, verbose=False).fit(X)  # and still serves its own


@pytest.mark.usefixtures("small_blocks")
def test_weights_are_a_part_of_the_data(tmp_path):
    X, weights = draw_blobs(), np.ones(400)
    model("KMeans", storage=tmp_path / "store").fit(X, sample_weight=weights)
    model("KMeans", storage=tmp_path / "store").fit(X, sample_weight=weights.copy())
    weights[7] = 2
    with pytest.raises(StorageMismatchError, match="other data"):
        model("KMeans", storage=tmp_path / "store").fit(X, sample_weight=weights)


@pytest.mark.usefixtures("small_blocks")
def test_the_same_data_in_another_form_is_the_same_data(tmp_path, monkeypatch):
    X = draw_blobs()
    first = model(storage=tmp_path / "store").fit(X)
    forbid(monkeypatch, *STAGES)
    stored = zarr.create_array(str(tmp_path / "X.zarr"), data=X, chunks=(70, 1))
    for other in (np.asfortranarray(X), da.from_array(X, chunks=(33, 1)), stored, str(tmp_path / "X.zarr")):
        labels = model(storage=tmp_path / "store").fit(other).labels_
        assert np.array_equal(np.asarray(labels), first.labels_)


KILLED = """
    import os, signal, sys
    import numpy as np
    import daskcluster as dc
    from daskcluster.pipeline import neighbors
    from tests.blocks import blocks_of

    block = neighbors.nearest_block
    left = 3

    def killed_soon(*arguments, **options):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return block(*arguments, **options)

    neighbors.nearest_block = killed_soon
    with blocks_of(128):
        dc.USPEC(3, n_representatives=40, random_state=0, storage=sys.argv[2]).fit(np.load(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process")
@pytest.mark.usefixtures("small_blocks")
def test_a_killed_process_leaves_a_store_that_goes_on(tmp_path, monkeypatch):
    """It dies while the blocks of stage 2 are written."""
    X = draw_blobs()
    np.save(tmp_path / "X.npy", X)
    code = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / "X.npy"), str(tmp_path / "store")]
    killed = subprocess.run(code, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert visible(tmp_path / "store") == ["daskcluster.json", "representatives"]
    hidden = {name.split(".")[1] for name in os.listdir(tmp_path / "store") if name.startswith(".")}
    assert hidden == {"daskcluster", "nearest"}  # the lock of the killed run, and half of the nearest representatives
    plain = model().fit(X)
    forbid(monkeypatch, STAGES[0])
    continued = model(storage=tmp_path / "store").fit(X)
    assert np.array_equal(continued.labels_, plain.labels_)
    assert fitted(continued) == fitted(plain)
    assert sorted(os.listdir(tmp_path / "store")) == visible(tmp_path / "store")
