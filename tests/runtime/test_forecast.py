"""The forecast: figures against hand calculations, and against what a fit then does."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from dask.callbacks import Callback

import daskcluster as dc
from daskcluster.io.inputs import check_rows, sizes_of
from daskcluster.runtime.forecast import (
    BASE_BYTES,
    Cost,
    Plan,
    make_plan,
    place_products,
    tree_tasks,
)
from daskcluster.runtime.limits import threads_per_worker

MIB = 2**20


def explode(block):
    raise AssertionError("the input was read")


def unreadable(n_rows, n_features=2, chunk_rows=2**17, dtype=np.float32):
    """Rows of which none exists: reading one is an error."""
    return da.zeros((n_rows, n_features), chunks=(chunk_rows, n_features), dtype=dtype).map_blocks(
        explode, dtype=dtype, meta=np.empty((0, 0), dtype)
    )


@pytest.mark.parametrize(
    ("n_blocks", "tasks"),
    [
        # Leaves, and then eight are combined at a time until one is left.
        (1, 1),
        (2, 2 + 1),
        (8, 8 + 1),
        (9, 9 + 2 + 1),
        (64, 64 + 8 + 1),
        (65, 65 + 9 + 2 + 1),
        (100_000, 100_000 + 12_500 + 1563 + 196 + 25 + 4 + 1),
    ],
)
def test_tasks_of_a_tree(n_blocks, tasks):
    assert tree_tasks(n_blocks) == tasks


def test_where_products_are_held():
    """Each in memory up to the budget; one that is larger goes to the scratch store, and those after it."""
    with dask.config.set({"daskcluster.memory-budget": "1 MiB"}):
        assert place_products(None, [MIB, 5]) == ("memory", MIB + 5, 0)
        assert place_products(None, [5, MIB + 1, 7]) == ("scratch store", 5, MIB + 8)
        assert place_products("store", [5, 6]) == ("named store", 0, 11)


def test_a_cluster_holds_products_in_its_workers(client_inprocess):
    assert place_products(None, [600 * MIB, 400 * MIB]) == ("workers", 1000 * MIB, 0)
    assert place_products("store", [5]) == ("named store", 0, 5)
    assert threads_per_worker() == 2


def test_threads_of_the_local_scheduler():
    with dask.config.set(num_workers=3):
        assert threads_per_worker() == 3
    with ThreadPoolExecutor(5) as pool, dask.config.set(pool=pool):
        assert threads_per_worker() == 5
    assert threads_per_worker() == dask.system.CPU_COUNT


@dataclass(frozen=True)
class Priced:
    """A stage of which only the price is known."""

    title: str
    price: Cost

    def cost(self, sizes):
        return self.price


def test_stages_are_summed_up():
    rows = check_rows(unreadable(300_000))

    def plan_of(held, storage=None):
        first = Cost(passes=1, input_passes=1, tasks=10, read_bytes=100, task_bytes=7000, held=(held,))
        second = Cost(3, 1, 5, 30, 8, task_bytes=9000, eager_bytes=1000, small_bytes=500)
        stages = [(Priced("first", first), sizes_of(rows)), (Priced("second", second), sizes_of(rows))]
        return make_plan("Method", rows, storage, stages)

    with dask.config.set({"daskcluster.memory-budget": "1 MiB", "num_workers": 4}):
        plan, beyond, named = plan_of(MIB), plan_of(2 * MIB), plan_of(2 * MIB, "store")
    assert (plan.n_samples, plan.n_features, plan.n_blocks, plan.block_rows) == (300_000, 2, 3, 131_072)
    assert (plan.tasks, plan.read_bytes, plan.written_bytes, plan.scratch_bytes) == (15, 130, 0, 0)
    assert (plan.held, plan.threads, plan.input_passes) == ("memory", 4, 2)
    assert [(stage.name, stage.passes, stage.task_bytes) for stage in plan.stages] == [
        ("first", 1, 7000),
        ("second", 3, 9000),
    ]
    assert plan.peak_bytes == BASE_BYTES + MIB + 500 + 4 * 9000 + 1000
    assert (beyond.held, beyond.written_bytes, beyond.scratch_bytes) == ("scratch store", 8, 2 * MIB)
    assert beyond.peak_bytes == BASE_BYTES + 500 + 4 * 9000 + 1000
    assert (named.held, named.written_bytes, named.scratch_bytes) == ("named store", 8, 0)


@pytest.mark.filterwarnings("ignore::daskcluster.MissingChunksWarning")
def test_memory_of_large_chunks_is_in_the_plan(tmp_path):
    """A chunk of all rows is read by one task, as it is stored and decoded, and stays until its blocks are used."""
    n_bytes = 1_000_000 * 4 * 4
    arrays = {
        chunks: zarr.create_array(str(tmp_path / f"{chunks}.zarr"), shape=(1_000_000, 4), chunks=chunks, dtype="f4")
        for chunks in ((131_072, 4), (1_000_000, 4), (1_000_000, 1))
    }
    small, one, columns = (dc.KMeans(3).plan(array).peak_bytes for array in arrays.values())
    assert one >= small + 2 * n_bytes
    assert columns >= small + 2 * n_bytes
    shard = zarr.create_array(
        str(tmp_path / "shard.zarr"), shape=(1_000_000, 4), chunks=(62_500, 4), shards=(1_000_000, 4), dtype="f4"
    )
    assert dc.KMeans(3).plan(shard).peak_bytes < small + n_bytes  # its inner chunks are read
    blocks = da.zeros((1_000_000, 4), chunks=(131_072, 4), dtype="f4")
    assert dc.KMeans(3).plan(blocks.compute()).peak_bytes >= dc.KMeans(3).plan(blocks).peak_bytes + n_bytes


def test_figures_of_uspec_by_hand():
    """10 million rows of two float32: 80 MB; five edges of 8 bytes a row: 400 MB; labels of 4 bytes: 40 MB."""
    with dask.config.set(num_workers=2):
        plan = dc.USPEC(11).plan(unreadable(10_000_000))
    assert (plan.n_samples, plan.n_features, plan.block_rows, plan.n_blocks) == (10**7, 2, 131_072, 77)
    assert plan.input_passes == 2
    assert plan.held == "scratch store"
    assert plan.scratch_bytes == plan.written_bytes == 440_000_000
    by_name = {stage.name: stage for stage in plan.stages}
    assert list(by_name) == [
        "check and sample",
        "representatives",
        "nearest representatives",
        "transfer cut",
        "discretize",
        "labels",
    ]
    assert by_name["check and sample"].read_bytes == by_name["nearest representatives"].read_bytes == 80_000_000
    assert by_name["nearest representatives"].written_bytes == by_name["transfer cut"].read_bytes == 400_000_000
    assert by_name["discretize"].read_bytes == by_name["discretize"].passes * 400_000_000
    assert by_name["labels"].written_bytes == 40_000_000
    assert [stage.passes for stage in plan.stages] == [1, 0, 1, 1, 6, 1]
    # The eigenproblem of 1000 representatives takes three matrices of 8 MB, and a partial result one.
    assert 32_000_000 <= by_name["transfer cut"].task_bytes < 100_000_000
    assert plan.peak_bytes < 1_200_000_000


def test_the_peak_does_not_grow_with_the_rows():
    small, large = (dc.USPEC(11).plan(unreadable(n_rows, 16)) for n_rows in (5_000_000, 40_000_000))
    assert small.peak_bytes == large.peak_bytes
    assert large.scratch_bytes == 8 * small.scratch_bytes


def test_kmeans_selection_reads_the_input_for_each_pass():
    plan = dc.USPEC(11, selection="kmeans", max_iter=30).plan(unreadable(1_000_000))
    assert plan.input_passes == 2 + 30
    assert plan.read_bytes >= 32 * 8_000_000


def test_figures_of_kmeans_by_hand():
    plan = dc.KMeans(5, max_iter=20).plan(unreadable(1_000_000))
    assert (plan.input_passes, plan.held) == (22, "memory")
    assert plan.read_bytes == 22 * 8_000_000
    assert dc.KMeans(5, max_iter=20, init="k-means||", n_init=2).plan(unreadable(1_000_000)).input_passes == 22 + 12


@pytest.mark.parametrize("model", [dc.USPEC(3), dc.KMeans(3)])
def test_nothing_is_read_or_run(model, tmp_path):
    ran: list = []
    with Callback(posttask=lambda key, *others: ran.append(key)):
        model.plan(unreadable(1_000_000))
        model.set_params(storage=str(tmp_path / "store")).plan(np.zeros((10, 2)))
    assert not ran
    assert not (tmp_path / "store").exists()
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("model", [dc.USPEC(0), dc.USPEC(8, n_neighbors=0), dc.KMeans(11), dc.KMeans(2, tol=-1.0)])
def test_what_a_fit_refuses_has_no_plan(model):
    with pytest.raises(ValueError, match="must be"):
        model.plan(unreadable(10))


def test_a_plan_is_told_in_words_and_in_json():
    plan = dc.USPEC(11).plan(unreadable(10_000_000))
    assert isinstance(plan, Plan)
    told = str(plan)
    assert told.startswith("USPEC: 10,000,000 rows x 2 features in 77 blocks of 131,072 rows")
    assert all(any(line.startswith(stage.name) for line in told.splitlines()) for stage in plan.stages)
    assert "input read 2 times" in told
    assert "products held in: scratch store; scratch space 419.62 MiB" in told
    values = json.loads(json.dumps(plan.to_dict()))
    assert values["peak_bytes"] == plan.peak_bytes
    assert values["stages"][2]["name"] == "nearest representatives"


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("held", ["memory", "scratch store", "named store"])
@pytest.mark.parametrize("source", ["numpy", "dask", "zarr"])
def test_a_fit_stays_within_its_plan(held, source, tmp_path):
    """Tasks, passes over the input, and bytes written, of 60 row blocks."""
    values = np.random.default_rng(0).normal(size=(3840, 2)).astype(np.float32)
    reads: Counter = Counter()

    def read(block):
        reads[int(block[0, 0])] += 1
        return values[int(block[0, 0]) :][:64]

    starts = da.from_array(np.arange(0, 3840, 64)[:, None], chunks=1)
    X = {
        "numpy": lambda: values,
        "dask": lambda: starts.map_blocks(read, chunks=((64,) * 60, (2,)), dtype="f4", meta=np.empty((0, 0), "f4")),
        "zarr": lambda: zarr.create_array(str(tmp_path / "X.zarr"), data=values, chunks=(64, 2)),
    }[source]()
    model = dc.USPEC(3, n_representatives=40, random_state=0)
    if held == "named store":
        model.set_params(storage=str(tmp_path / "store"))
    settings = {
        "daskcluster.memory-budget": "0 B" if held == "scratch store" else "1 MiB",
        "temporary-directory": str(tmp_path / "scratch"),
    }
    ran: list = []
    with dask.config.set(settings):
        plan = model.plan(X)
        with Callback(posttask=lambda key, *others: ran.append(key)):
            model.fit(X)
    assert plan.held == held
    (lloyd,) = (stage for stage in plan.stages if stage.name == "discretize")
    assert model.n_iter_ <= lloyd.passes
    planned = plan.tasks - (lloyd.passes - model.n_iter_) * lloyd.tasks // lloyd.passes
    assert len(ran) <= planned <= 2 * len(ran)
    if source == "dask":
        assert set(reads.values()) == {plan.input_passes}
    if held == "memory" or (held == "scratch store" and source == "numpy"):
        return  # nothing stays on disk
    folder = tmp_path / ("scratch" if held == "scratch store" else "store")
    stored = [zarr.open_array(str(path), mode="r") for path in folder.glob("**/rows")]
    assert sorted(path.parent.name for path in folder.glob("**/rows")) == ["labels", "nearest"]
    assert sum(array.nbytes for array in stored) == plan.written_bytes
