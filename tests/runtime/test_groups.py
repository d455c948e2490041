"""Tasks of several row blocks: the same numbers from fewer tasks, and nothing else changes."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest

from daskcluster.runtime import groups
from daskcluster.runtime.execution import FAN_IN, compute, map_rows, map_to_objects, objects_of, reduce_blocks
from daskcluster.runtime.groups import blocks_a_task, grouped, held_blocks
from daskcluster.runtime.parts import Parts, recorded
from daskcluster.runtime.passes import reduced
from daskcluster.runtime.pieces import once, read_pieces
from daskcluster.runtime.products import Products

N_BLOCKS = FAN_IN**2 + FAN_IN + 3


def read(source, block_id):
    return np.full((3, 1), source * block_id[0])


def blocks(n_blocks=N_BLOCKS):
    return read_pieces(read, 2, ((3,) * n_blocks, (1,)), np.dtype(int), name="read")


def counted(collection):
    """What a collection computes to, and how many tasks of each name ran."""
    names = Counter()
    with (
        dask.config.set(scheduler="synchronous"),
        dask.callbacks.Callback(posttask=lambda key, *others: names.update([dask.utils.key_split(key)])),
    ):
        return compute(collection)[0], names


def tell(block, number, weights=None, add=0):
    return {"value": int(block[0, 0]) + add, "number": number, "weight": None if weights is None else weights[0, 0]}


def value_of(block, weights=None):
    return {"rows": [int(block[0, 0]) + (0 if weights is None else int(weights[0, 0]))], "depth": 0, "most": 1}


def join(parts):
    return {
        "rows": list(chain(*(part["rows"] for part in parts))),
        "depth": 1 + max(part["depth"] for part in parts),
        "most": max([len(parts), *(part["most"] for part in parts)]),
    }


@pytest.mark.parametrize("n_blocks", [2, FAN_IN, N_BLOCKS])
def test_objects_of_blocks(several_blocks, n_blocks):
    weights = map_rows(np.ravel, blocks(n_blocks), name="dc-weights", columns=None, dtype=int)
    boxes = map_to_objects(tell, blocks(n_blocks), name="dc-tell", weights=weights, add=once(1, "one"))
    found, names = counted(grouped(boxes, FAN_IN).objects())
    expected = [{"value": 2 * i + 1, "number": i, "weight": 2 * i} for i in range(n_blocks)]
    assert list(found) == expected
    assert names["dc-tell"] == -(-n_blocks // FAN_IN)
    with dask.config.set(scheduler="synchronous"):
        assert objects_of(boxes) == expected


@pytest.mark.parametrize("n_blocks", [FAN_IN + 1, N_BLOCKS])
@pytest.mark.parametrize("weighed", [False, True])
def test_the_tree_of_a_reduction_stays(monkeypatch, several_blocks, n_blocks, weighed):
    weights = map_rows(np.ravel, blocks(n_blocks), name="dc-weights", columns=None, dtype=int) if weighed else None
    found, names = counted(reduce_blocks(value_of, join, blocks(n_blocks), name="dc-join", weights=weights))
    monkeypatch.setattr(groups, "LEAST_BLOCKS", 10**9)
    expected, single = counted(reduce_blocks(value_of, join, blocks(n_blocks), name="dc-join", weights=weights))
    assert found == expected
    assert found["rows"] == [(4 if weighed else 2) * i for i in range(n_blocks)]
    assert names["dc-join"] == -(-n_blocks // FAN_IN)
    assert n_blocks < N_BLOCKS or sum(names.values()) < sum(single.values()) / 4


def test_blocks_that_others_make_are_tasks_of_their_own(several_blocks):
    """They would all have to be there at a time."""
    array = da.from_array(np.arange(60).reshape(60, 1), chunks=(3, 1))
    assert grouped(map_to_objects(tell, array, name="dc-tell"), FAN_IN) is None
    assert grouped(map_to_objects(tell, blocks(), name="dc-tell"), 1) is None
    transposed = da.concatenate([blocks(4), blocks(4)])
    assert grouped(map_to_objects(tell, transposed, name="dc-tell"), FAN_IN) is None


@pytest.mark.parametrize(("threads", "least"), [(1, 512), (64, 512), (65, 8 * 65), (256, 8 * 256)])
def test_every_thread_has_a_task(threads, least):
    with dask.config.set(scheduler="threads", num_workers=threads):
        assert (blocks_a_task(least - 1), blocks_a_task(least)) == (1, FAN_IN)


def test_few_blocks_are_a_task_each(client_inprocess):
    threads = sum(client_inprocess.nthreads().values())
    least = max(groups.LEAST_BLOCKS, FAN_IN * groups.TASKS_A_THREAD * threads)
    assert blocks_a_task(least) == held_blocks(least, groups.HELD_BYTES // FAN_IN) == FAN_IN
    assert held_blocks(least, groups.HELD_BYTES // FAN_IN + 1) == 1
    with dask.config.set(scheduler="threads", num_workers=10**6):
        assert blocks_a_task(least) == 1
    with dask.config.set(scheduler="threads", num_workers=1):
        assert held_blocks(least, 1) == 1  # rows are held block by block where there are no workers


@pytest.mark.parametrize(
    ("workers", "several", "single"),
    [
        (1, [64, 77, 511], [2, 63]),
        (2, [64, 77, 80, 96], [63, 65, 70]),  # of 65 one worker would have 40, the other 25
        (4, [90, 96, 128], [64, 72, 97]),  # two tasks a worker are not spread
        (8, [185, 192, 256], [64, 128, 136, 193]),
    ],
)
def test_workers_share_tasks_of_few_blocks_evenly(monkeypatch, workers, several, single):
    client = SimpleNamespace(nthreads=lambda: dict.fromkeys(range(workers), 1))
    monkeypatch.setattr(groups, "active_client", lambda: client)
    assert [blocks_a_task(n_blocks) for n_blocks in several] == [FAN_IN] * len(several)
    assert [blocks_a_task(n_blocks) for n_blocks in single] == [1] * len(single)


def test_workers_hold_pieces(several_blocks, client_inprocess):
    """Later passes go over them in tasks of several blocks; who wants single blocks gets them."""

    def summarize(block):
        return {"sum": int(block.sum())}

    held, summaries = Products(None, "test", {}, 0).rows("rows", blocks(), summarize)
    assert [each["sum"] for each in summaries] == [6 * i for i in range(N_BLOCKS)]
    assert held.chunks == blocks().chunks
    assert np.array_equal(held.compute(), np.repeat(2 * np.arange(N_BLOCKS), 3)[:, None])
    assert held[4:8].compute().ravel().tolist() == [2, 2, 4, 4]
    boxes = map_to_objects(tell, held, name="dc-tell")
    lazy = grouped(boxes, FAN_IN)
    assert lazy is not None
    assert [each["value"] for each in compute(lazy.objects())[0]] == [2 * i for i in range(N_BLOCKS)]
    assert Products(None, "test", {}, 0).rows("rows", blocks())[1] == []


def test_what_takes_no_time_has_a_name_of_its_own():
    """A scheduler spreads the tasks of one name by the time that those before took."""

    def names(array):
        counts = Counter(map(dask.utils.key_split, dict(array.__dask_graph__())))
        return {name: counts[name] for name in counts if name.startswith(("dc-tell", "dc-join"))}

    _, entries = grouped(map_to_objects(tell, blocks(), name="dc-tell"), FAN_IN).pieces_and("value")
    n_tasks = -(-N_BLOCKS // FAN_IN)
    assert names(entries) == {"dc-tell": n_tasks, "dc-tell-entry": n_tasks}
    total = grouped(map_to_objects(value_of, blocks(), name="dc-join"), FAN_IN).total(join)
    assert names(total) == {"dc-join": n_tasks, "dc-join-sum": -(-n_tasks // FAN_IN) + 1}


def test_graphs_do_not_grow_with_the_blocks(several_blocks):
    """What every task shares travels once; a task is a few numbers."""
    from distributed.protocol.pickle import dumps

    shared = np.arange(100_000.0)

    def pickled(n_blocks, size):
        boxes = map_to_objects(tell, blocks(n_blocks), name="dc-tell", add=shared)
        array = boxes if size == 1 else grouped(boxes, size).objects()
        return len(dumps(dict(array.__dask_graph__())))

    few, many = pickled(FAN_IN, FAN_IN), pickled(50 * FAN_IN, FAN_IN)
    assert few > shared.nbytes
    assert many - few < 49 * 400


def test_what_was_summed_before_an_interruption_stays(several_blocks, tmp_path):
    done = []

    def value(block, stop):
        number = int(block[0, 0]) // 2
        if number == stop:
            raise KeyboardInterrupt
        done.append(number)
        return value_of(block)

    def run(stop):
        parts = Parts(tmp_path / "parts")
        with dask.config.set(scheduler="synchronous"), recorded(parts):
            return reduced(lambda block: value(block, stop), join, blocks(), name="dc-join")

    with pytest.raises(KeyboardInterrupt):
        run(3 * FAN_IN + 2)
    n_done = Counter(number // FAN_IN for number in done)
    whole = {group for group in n_done if n_done[group] == min(FAN_IN, N_BLOCKS - group * FAN_IN)}
    assert len(whole) >= 2
    done.clear()
    assert run(None)["rows"] == [2 * i for i in range(N_BLOCKS)]
    assert {number // FAN_IN for number in done} == set(range(-(-N_BLOCKS // FAN_IN))) - whole
