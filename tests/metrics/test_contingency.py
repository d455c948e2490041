"""Tables of two labelings: every kind of input, any chunking, any label names, and what is refused."""

from collections import Counter
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.cluster import contingency_matrix as sklearn_matrix

from daskcluster.errors import MissingChunksWarning
from daskcluster.kernels.contingency import (
    SLICE_ROWS,
    contingency_chunk,
    contingency_combine,
    contingency_finalize,
)
from daskcluster.metrics import contingency_matrix, count_labels
from daskcluster.metrics.contingency import count_pairs
from tests.strategies import pairs_of_labelings, rechunked

TRUE = np.array([3, 3, -1, 0, 0, 0, 3, -1], np.int64)
PRED = np.array([7, 7, 7, 1, 1, 7, 1, 1], np.int32)
TABLE = [[1, 1], [2, 1], [1, 2]]  # rows -1, 0, 3; columns 1, 7


def plain_table(labels_true, labels_pred) -> list[list[int]]:
    counted = Counter(zip(labels_true, labels_pred, strict=True))
    return [[counted[t, p] for p in sorted(set(labels_pred))] for t in sorted(set(labels_true))]


def store(path: Path, values: np.ndarray, **layout) -> zarr.Array:
    array = zarr.create_array(
        str(path), shape=values.shape, dtype=values.dtype, config={"write_empty_chunks": True}, **layout
    )
    array[...] = values
    return array


# -- the table --------------------------------------------------------------------------------------------------------


def test_by_hand():
    table = contingency_matrix(TRUE, PRED)
    assert table.dtype == np.int64
    assert table.tolist() == TABLE


@given(pairs_of_labelings())
def test_agrees_with_plain_counting(pair):
    assert contingency_matrix(*pair).tolist() == plain_table(*(labels.tolist() for labels in pair))


@given(pairs_of_labelings(min_rows=1))
def test_agrees_with_scikit_learn(pair):
    np.testing.assert_array_equal(contingency_matrix(*pair), sklearn_matrix(*pair))


@settings(max_examples=20)
@given(st.data(), pairs_of_labelings(max_rows=25))
def test_the_same_for_any_chunking(data, pair):
    expected = contingency_matrix(*pair)
    true, pred = (data.draw(st.one_of(st.just(labels), rechunked(labels))) for labels in pair)
    np.testing.assert_array_equal(contingency_matrix(true, pred), expected)


@given(pairs_of_labelings())
def test_exchanged_arguments_transpose(pair):
    np.testing.assert_array_equal(contingency_matrix(*pair), contingency_matrix(*pair[::-1]).T)


def test_empty():
    assert contingency_matrix([], []).shape == (0, 0)
    nothing = da.zeros((0,), chunks=1, dtype=np.int32)
    assert contingency_matrix(nothing, []).shape == (0, 0)


# -- kinds of input ---------------------------------------------------------------------------------------------------


@pytest.fixture
def inputs(tmp_path: Path):
    """The two labelings in every accepted form."""

    def forms(name: str, labels: np.ndarray) -> dict:
        path = tmp_path / "run.zarr" / name
        return {
            "numpy": labels,
            "list": labels.tolist(),
            "dask": da.from_array(labels, chunks=3),
            "dask uneven": da.from_array(labels, chunks=((1, 0, 5, 2),)),
            "unknown chunks": da.from_array(labels, chunks=4)[da.ones(len(labels), chunks=4, dtype=bool)],
            "zarr": store(path, labels, chunks=(3,)),
            "sharded": store(path.with_suffix(".sharded"), labels, chunks=(2,), shards=(4,)),
            "path": path,
            "text path": str(path),
        }

    zarr.create_group(str(tmp_path / "run.zarr"))
    return forms("true", TRUE), forms("pred", PRED)


def test_every_kind_of_input_with_every_other(inputs):
    for first, true in inputs[0].items():
        for second, pred in inputs[1].items():
            assert contingency_matrix(true, pred).tolist() == TABLE, (first, second)


def test_unknown_chunks_of_the_user_stay_unknown(inputs):
    unknown = inputs[0]["unknown chunks"]
    contingency_matrix(unknown, PRED)
    assert np.isnan(unknown.shape[0])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint64", "float16", "float32", "float64", "U5", "O"])
@pytest.mark.parametrize("chunked", [False, True])
def test_types(dtype, chunked):
    labels = np.array([4, 100, 4, 0, 100, 7]).astype(dtype)
    given_labels = da.from_array(labels, chunks=2) if chunked else labels
    table = contingency_matrix(given_labels, [0, 0, 1, 0, 0, 1])
    texts = np.dtype(dtype).kind == "U"
    # In alphabetic order: "0", "100", "4", "7".
    assert table.tolist() == ([[1, 0], [2, 0], [1, 1], [0, 1]] if texts else [[1, 0], [1, 1], [0, 1], [2, 0]])


def test_booleans_and_words():
    assert contingency_matrix([True, False, True], ["b", "a", "a"]).tolist() == [[1, 0], [1, 1]]
    assert contingency_matrix(np.array(["y", "x"], object), [1, 2]).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-(2**63), 2**63 - 1, 0, 2**63 - 1], np.int64),
        np.array([2**64 - 1, 0, 2**64 - 2, 0], np.uint64),
        np.array([2**64 - 1, 2**64 - 3, 2**64 - 2, 2**64 - 3], np.uint64),
        np.array([-128, 127, 0, 127], np.int8),
        np.array([1e300, -1e300, 0, -1e300]),
    ],
)
def test_extreme_values(labels):
    values, counts = count_labels(labels)
    expected_values, expected_counts = np.unique(labels, return_counts=True)
    np.testing.assert_array_equal(values, expected_values)
    np.testing.assert_array_equal(counts, expected_counts)
    np.testing.assert_array_equal(count_labels(da.from_array(labels, chunks=1))[0], expected_values)


def test_labels_in_memory_become_narrow_only_where_they_fit():
    labels = np.array([-1, 200, -1, 70_000])
    chunked = da.from_array(np.arange(4), chunks=2)
    assert contingency_matrix(labels, chunked).tolist() == contingency_matrix(labels, np.arange(4)).tolist()


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True])
def test_lengths_that_differ_are_both_named(chunked):
    true = da.zeros(7, chunks=2, dtype=int) if chunked else [0] * 7
    with pytest.raises(ValueError, match=r"labels_true has 7, labels_pred has 5"):
        contingency_matrix(true, [0] * 5)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[0, 1], [1, 0]], r"labels_pred must have 1 dimension, got shape \(2, 2\)"),
        ([0.0, np.nan], "labels_pred holds NaN"),
        ([0.0, np.inf], "labels_pred holds NaN or infinity"),
        ([0.0, 0.5], r"labels_pred must hold whole numbers, got 0\.5"),
        ([0, 1j], "labels_pred must hold integers"),
        (np.array([0, None], object), "labels_pred must hold labels of one kind.*NoneType"),
        (np.array([0, "a"], object), "labels_pred must hold labels of one kind.*int, str"),
        (np.array([0, 2**70], object), "labels_pred must hold labels of one kind"),
        (np.array(["2020-01-01", "NaT"], "M8[D]"), "labels_pred must hold integers"),
        (np.ma.masked_array([0, 1], [False, True]), "labels_pred has masked values"),
        (da.from_array(np.array([0, np.nan]), chunks=1), "labels_pred holds NaN"),
        (da.zeros((2, 2), dtype=int), "labels_pred must have 1 dimension"),
    ],
)
def test_rejects(labels, message):
    with pytest.raises(ValueError, match=message):
        contingency_matrix([0, 1], labels)


def test_paths_to_nothing_and_to_a_group(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing exists there"):
        contingency_matrix(tmp_path / "absent.zarr", [0])
    zarr.create_group(str(tmp_path / "group.zarr"))
    with pytest.raises(ValueError, match="group"):
        contingency_matrix([0], tmp_path / "group.zarr")


def test_a_table_of_identifiers_is_refused_before_it_is_made():
    identifiers = np.arange(20_000)
    with pytest.raises(ValueError, match=r"20,000 by 20,000 labels would take 3\.0 GiB"):
        contingency_matrix(identifiers, identifiers)
    assert len(count_pairs(identifiers, identifiers).counts) == 20_000


# -- cost and schedulers ----------------------------------------------------------------------------------------------


def test_one_pass_and_nothing_before():
    reads = []

    def read(block):
        reads.append(len(block))
        return block

    labels = da.from_array(np.arange(10) % 3, chunks=3).map_blocks(read, dtype=np.int64, meta=np.empty(0, np.int64))
    with dask.config.set(scheduler="synchronous"):
        contingency_matrix(labels, np.zeros(10, int))
    assert sorted(reads) == [1, 3, 3, 3]


def test_a_large_stored_chunk_is_not_read_for_every_part_of_it(tmp_path):
    array = store(tmp_path / "labels.zarr", np.arange(1000) % 4, chunks=(1000,))
    small = da.from_array(np.arange(1000) % 3, chunks=10)
    table = contingency_matrix(small, array)
    assert table.tolist() == plain_table((np.arange(1000) % 3).tolist(), (np.arange(1000) % 4).tolist())


def test_on_a_cluster_of_processes(cluster_processes, inputs):
    true, pred = inputs
    assert contingency_matrix(true["path"], pred["dask"]).tolist() == TABLE
    assert contingency_matrix(true["list"], pred["zarr"]).tolist() == TABLE
    with pytest.raises(ValueError, match="labels_true holds NaN"):
        contingency_matrix(da.from_array(np.array([np.nan, 1]), chunks=1), [0, 1])
    memory = zarr.create_array(zarr.storage.MemoryStore(), shape=(8,), dtype="i4")
    with pytest.raises(ValueError, match="labels_pred lives in a zarr MemoryStore"):
        contingency_matrix(true["path"], memory)


def test_on_dask_processes_and_threads(inputs, pool):
    for scheduler in ("synchronous", "threads", "processes"):
        with dask.config.set(scheduler=scheduler, num_workers=2, pool=pool if scheduler == "processes" else None):
            assert contingency_matrix(inputs[0]["dask"], inputs[1]["path"]).tolist() == TABLE


# -- labels of one labeling -------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.data(), pairs_of_labelings(max_rows=20))
def test_count_labels(data, pair):
    values, counts = count_labels(data.draw(st.one_of(st.just(pair[0]), rechunked(pair[0]))))
    expected = np.unique(pair[0], return_counts=True)
    np.testing.assert_array_equal(values, expected[0])
    np.testing.assert_array_equal(counts, expected[1])
    assert counts.dtype == np.int64


def test_count_labels_names_its_argument(inputs):
    assert count_labels(inputs[0]["unknown chunks"])[1].tolist() == [2, 3, 3]
    with pytest.raises(ValueError, match=r"^labels holds NaN"):
        count_labels([np.nan])


# -- the kernel -------------------------------------------------------------------------------------------------------


@given(pairs_of_labelings(max_rows=30), st.integers(1, 2**40))
def test_counting_in_place_equals_sorting(pair, spread):
    near = contingency_chunk(*pair)
    far = contingency_chunk(pair[0] * spread, pair[1] * spread)
    np.testing.assert_array_equal(near.values_true * spread, far.values_true)
    np.testing.assert_array_equal(near.values_pred * spread, far.values_pred)
    for ours, theirs in zip(near[2:], far[2:], strict=True):
        np.testing.assert_array_equal(ours, theirs)


@given(st.lists(pairs_of_labelings(max_rows=12), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_combining_is_exact_in_any_order_and_grouping(pairs, random):
    parts = [contingency_chunk(*pair) for pair in pairs]
    whole = contingency_chunk(*(np.concatenate(side) for side in zip(*pairs, strict=True)))
    random.shuffle(parts)
    while len(parts) > 1:
        taken = random.randint(2, len(parts))
        parts = [*parts[taken:], contingency_combine(parts[:taken])]
    for ours, theirs in zip(parts[0], whole, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_blocks_longer_than_a_slice():
    rng = np.random.default_rng(0)
    true, pred = rng.integers(-2, 3, (2, 2 * SLICE_ROWS + 17))
    table = contingency_finalize(contingency_chunk(true, pred))
    np.testing.assert_array_equal(table, sklearn_matrix(true, pred))


@pytest.mark.parametrize("labels", [3, None, {0, 1}, iter([0, 1])])
def test_rejects_what_is_no_array(labels):
    with pytest.raises(TypeError, match="labels_pred must be an array of 1 dimension, got"):
        contingency_matrix([0, 1], labels)


def test_lost_chunks_of_labels_are_said(tmp_path):
    labels = store(tmp_path / "labels.zarr", np.arange(12) % 3 + 1, chunks=3)
    (tmp_path / "labels.zarr" / "c" / "2").unlink()
    with pytest.warns(MissingChunksWarning, match="labels_pred: 1 of 4 chunks .* first at row 6; 3 rows"):
        contingency_matrix(np.zeros(12, int), labels)


def test_a_chunk_that_is_shorter_than_declared_is_named():
    short = da.concatenate([da.from_delayed(dask.delayed(np.zeros)(n, int), (4,), int) for n in (4, 3)])
    with pytest.raises(ValueError, match=r"chunk \(1,\) of labels_pred has shape \(3,\), and was declared with"):
        contingency_matrix(np.zeros(8, int), short)


@pytest.mark.parametrize("chunks", [None, {"y": 2, "x": 3}], ids=["NumPy", "dask"])
def test_labels_on_a_grid(chunks):
    xr = pytest.importorskip("xarray")
    values = np.arange(24).reshape(4, 6) % 3
    grid = xr.DataArray(values, dims=("y", "x"), coords={"y": np.arange(4), "x": np.arange(6)})
    if chunks:
        grid = grid.chunk(chunks)
    whole = np.diag([8, 8, 8])
    for other in (grid, grid.transpose("x", "y"), values.ravel(), da.from_array(values.ravel(), chunks=5)):
        np.testing.assert_array_equal(contingency_matrix(grid, other), whole)
        np.testing.assert_array_equal(contingency_matrix(other, grid.transpose("y", "x")), whole)
    np.testing.assert_array_equal(count_labels(grid)[1], [8, 8, 8])
    with pytest.raises(ValueError, match="labels_pred must have the coordinates of X along 'y'"):
        contingency_matrix(grid, grid.assign_coords(y=np.arange(4) + 1))
    with pytest.raises(ValueError, match=r"labels_pred must have the shape \(4, 6\) of the pixels, got \(3, 6\)"):
        contingency_matrix(grid, grid[:3])
