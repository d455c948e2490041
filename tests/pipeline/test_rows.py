"""Stage 0: canonical row blocks, and the first pass over them."""

import logging

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from dask.callbacks import Callback
from hypothesis import example, given, settings
from hypothesis import strategies as st

from daskcluster.io.columns import check_column
from daskcluster.io.inputs import block_rows, check_rows, is_chunked
from daskcluster.pipeline.rows import RowForm, check_finite_block
from daskcluster.pipeline.scan import scan
from tests.blocks import blocks_of
from tests.strategies import chunkings

N_ROWS = 100  # three blocks of 32 rows, and one of 4

each_chunking = given(lengths=chunkings(N_ROWS))
single_rows = example(lengths=(1,) * N_ROWS)
empty_chunks = example(lengths=(0, 5, 0, 0, 91, 4, 0))

BLOCK_ROWS = 32
pytestmark = pytest.mark.usefixtures("small_blocks")


def draw(seed=0, n_rows=N_ROWS, n_features=2, dtype="f4"):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features)).astype(dtype)


def rng(seed=0):
    return np.random.default_rng(seed)


def rescan(X, sample_size=40, missing="raise", **options):
    return scan(check_rows(X, missing), sample_size, rng(), **options)


def check_weights(values, rows):
    return check_column("sample_weight", values, rows).astype(np.float64)


def assert_same_scan(found, expected):
    assert found.valid.sum() == expected.valid.sum()
    assert found.sample.tobytes() == expected.sample.tobytes()
    assert found.sample.dtype == expected.sample.dtype
    assert found.form.shift.tobytes() == expected.form.shift.tobytes()
    assert found.form.scale == expected.form.scale
    assert found.fingerprint == expected.fingerprint
    assert found.sample_weights.tobytes() == expected.sample_weights.tobytes()


# -- canonical blocks


@pytest.mark.parametrize(
    ("n_features", "dtype", "expected"),
    [
        # At most 2**17 rows and 8 MiB in the computing dtype, rounded down to a power of two; at least 2**8 rows.
        (1, "f4", 2**17), (2, "f4", 2**17), (16, "f4", 2**17), (17, "f4", 2**16), (32, "f4", 2**16), (784, "f4", 2**11),
        (2, "f8", 2**17), (8, "f8", 2**17), (9, "f8", 2**16), (784, "f8", 2**10), (10**6, "f4", 2**8),
        (784, "u1", 2**11), (784, "f2", 2**11), (784, "i2", 2**11), (784, "i8", 2**10), (784, ">f4", 2**11),
    ],
)  # fmt: skip
def test_block_rows_by_hand(n_features, dtype, expected):
    with blocks_of(2**17):
        assert block_rows(n_features, np.dtype(dtype)) == expected


@each_chunking
@single_rows
@empty_chunks
@settings(max_examples=25)
def test_blocks_do_not_depend_on_chunks(lengths):
    X = draw()
    for columns in ((2,), (1, 1), (0, 2)):
        rows = check_rows(da.from_array(X, chunks=(lengths, columns)))
        assert rows.blocks.chunks == ((32, 32, 32, 4), (2,))
        assert np.array_equal(rows.blocks.compute(), X)


def test_every_kind_of_input_gives_the_same_blocks(tmp_path):
    X = draw()
    stored = zarr.create_array(str(tmp_path / "X.zarr"), data=X, chunks=(30, 1))
    sharded = zarr.create_array(str(tmp_path / "S.zarr"), data=X, chunks=(10, 2), shards=(50, 2))
    kinds = {
        "numpy": (X, False),
        "fortran": (np.asfortranarray(X), False),
        "view": (np.repeat(X, 2, axis=0)[::2], False),
        "lists": (X.tolist(), False),
        "dask": (da.from_array(X, chunks=(17, 2)), True),
        "zarr": (stored, True),
        "shards": (sharded, True),
        "path": (str(tmp_path / "X.zarr"), True),
        "pathlib": (tmp_path / "X.zarr", True),
    }
    for name, (given_, chunked) in kinds.items():
        rows = check_rows(given_)
        assert is_chunked(given_) is rows.chunked is chunked, name
        assert (rows.n_samples, rows.n_features, rows.block_rows) == (100, 2, 32), name
        assert rows.blocks.chunks == ((32, 32, 32, 4), (2,)), name
        assert np.array_equal(rows.blocks.compute(), X), name


def test_dataframes_of_dask_are_counted_and_taken(caplog):
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X = draw(dtype="f8")
    frame = frames.from_pandas(pandas.DataFrame(X, columns=["a", "b"]), npartitions=3)
    with caplog.at_level(logging.INFO, "daskcluster"):
        rows = check_rows(frame)
    assert rows.chunked
    assert "counted the rows of 3 chunks of unknown length: 100 rows" in caplog.text
    assert np.array_equal(rows.blocks.compute(), X)


def test_unknown_lengths_are_counted_once(caplog):
    X, computed = draw(), []

    def keep(block):
        computed.append(len(block))
        return block[block[:, 0] > 0]

    unknown = da.from_array(X, chunks=(25, 2)).map_blocks(keep, dtype=X.dtype, meta=np.empty((0, 0), "f4"))
    unknown._chunks = ((np.nan,) * 4, (2,))
    with caplog.at_level(logging.INFO, "daskcluster"):
        rows = check_rows(unknown)
    expected = X[X[:, 0] > 0]
    assert len(computed) == 4
    assert f"unknown length: {len(expected)} rows" in caplog.text
    assert rows.n_samples == len(expected)
    assert np.array_equal(rows.blocks.compute(), expected)


def test_an_unknown_number_of_features_is_refused():
    unknown = da.from_array(draw(), chunks=(25, 2))
    unknown._chunks = ((25,) * 4, (np.nan,))
    with pytest.raises(ValueError, match="X must have a known number of features"):
        check_rows(unknown)


def test_nothing_is_computed_before_the_first_pass(tmp_path):
    zarr.create_array(str(tmp_path / "X.zarr"), data=draw(), chunks=(30, 1))
    ran: list = []
    with Callback(posttask=lambda key, *others: ran.append(key)):
        for X in (draw(), da.from_array(draw(), chunks=(30, 1)), tmp_path / "X.zarr"):
            check_rows(X)
    assert not ran


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros(5), "Expected 2D array"),
        (da.zeros((5, 2, 2)), "Expected 2D array"),
        (np.zeros((0, 2)), "0 sample"),
        (da.zeros((5, 0)), "0 feature"),
        (np.zeros((5, 2), complex), "Complex data not supported"),
        ([["a", "b"]], "must hold real numbers"),
        ([["a", None]], "must hold real numbers"),
    ],
)
def test_what_is_no_table_is_refused(X, words):
    with pytest.raises(ValueError, match=words):
        check_rows(X)


def test_a_path_without_an_array_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing exists there"):
        check_rows(tmp_path / "missing.zarr")
    zarr.create_group(str(tmp_path / "group.zarr"))
    with pytest.raises(ValueError, match="empty Zarr group"):
        check_rows(tmp_path / "group.zarr")


def test_a_store_in_memory_is_refused_where_tasks_cannot_see_it():
    stored = zarr.create_array(zarr.storage.MemoryStore(), data=draw(), chunks=(30, 2))
    assert np.array_equal(check_rows(stored).blocks.compute(), draw())
    with dask.config.set(scheduler="processes"), pytest.raises(ValueError, match=r"MemoryStore.*save it to a folder"):
        check_rows(stored)


def test_the_content_of_a_store_may_change_under_its_path(tmp_path):
    stored = zarr.create_array(str(tmp_path / "X.zarr"), data=draw(), chunks=(30, 2))
    before = check_rows(tmp_path / "X.zarr").blocks
    stored[:] = 7
    after = check_rows(tmp_path / "X.zarr").blocks
    assert before.name != after.name
    assert (after.compute() == 7).all()


def test_large_stored_chunks_are_read_once(tmp_path):
    """A chunk of many blocks is read whole and cut; reading it for each block would read it many times."""
    stored = zarr.create_array(str(tmp_path / "X.zarr"), data=draw(n_rows=640), chunks=(320, 2))
    read = []

    class Watched(type(stored.store)):  # type: ignore[misc]
        async def get(self, key, *arguments, **options):
            read.append(key)
            return await super().get(key, *arguments, **options)

    watched = zarr.open_array(Watched(str(tmp_path / "X.zarr")), mode="r")
    read.clear()
    check_rows(watched).blocks.compute()
    assert sorted(key for key in read if key.startswith("c/")) == ["c/0/0", "c/1/0"]


def test_rechunking_never_shuffles(client_inprocess):
    """Column chunks that are exchanged all to all would go through the disks of the workers."""
    X = da.zeros((4_000_000, 20), chunks=(10**6, 1), dtype=np.float32)
    with blocks_of(2**17):
        layers = check_rows(X).blocks.dask.layers.values()
    assert not [layer for layer in layers if "P2P" in type(layer).__name__]


# -- the first pass


@each_chunking
@single_rows
@empty_chunks
@settings(max_examples=25)
def test_the_scan_does_not_depend_on_chunks(lengths):
    X = draw()
    expected = rescan(X, fingerprint=True)
    assert_same_scan(rescan(da.from_array(X, chunks=(lengths, (1, 1))), fingerprint=True), expected)


@each_chunking
@single_rows
@settings(max_examples=15)
def test_a_weighted_scan_does_not_depend_on_chunks(lengths):
    X, weights = draw(), np.arange(N_ROWS) % 7 / 2
    expected = rescan(X, weights=check_weights(weights, check_rows(X)), fingerprint=True)
    rows = check_rows(da.from_array(X, chunks=(lengths, (2,))))
    found = check_weights(da.from_array(weights, chunks=(lengths,)), rows)
    assert found.chunks == ((32, 32, 32, 4),)
    assert_same_scan(scan(rows, 40, rng(), weights=found, fingerprint=True), expected)


@each_chunking
@single_rows
@settings(max_examples=15)
def test_a_scan_with_missing_rows_is_that_of_the_others(lengths):
    """Whole blocks, chunks and single values may be missing."""
    X = draw()
    X[32:64] = np.nan
    X[[3, 70, 99], [0, 1, 1]] = np.nan, np.inf, -np.inf
    valid = np.isfinite(X).all(axis=1)
    expected = rescan(X[valid])
    found = rescan(da.from_array(X, chunks=(lengths, (2,))), missing="label")
    assert found.valid.tolist() == [31, 0, 31, 3]
    assert found.n_valid == valid.sum() == 65
    assert_same_scan(found, expected)


def test_the_sample_is_drawn_without_replacement_in_row_order():
    X = np.arange(100.0)[:, None]
    found = rescan(X, 40)
    assert len(found.sample) == 40
    assert (np.diff(found.sample.ravel()) > 0).all()
    assert set(found.sample.ravel()) <= set(X.ravel())
    assert found.sample_weights.shape == (0,)
    assert np.array_equal(rescan(X, 1000).sample, X)


def test_the_sample_keeps_the_raw_dtype():
    for dtype in ("u1", "f2", ">i4", "f8"):
        sample = rescan(np.arange(100).astype(dtype)[:, None]).sample
        assert sample.dtype.newbyteorder("=") == np.dtype(dtype).newbyteorder("=")


def test_the_sample_does_not_depend_on_what_is_drawn_elsewhere():
    X = draw()
    assert_same_scan(rescan(X, fingerprint=True), rescan(X, fingerprint=True))
    assert not np.array_equal(scan(check_rows(X), 40, rng(1)).sample, rescan(X).sample)


@pytest.mark.parametrize(
    ("row", "column", "value", "words"),
    [
        (0, 0, np.nan, "X contains NaN at row 0, column 0; pass missing='label' to give such rows the label -1"),
        (99, 1, np.inf, r"X contains infinity \(inf\) at row 99, column 1"),
        (64, 1, -np.inf, r"X contains infinity \(inf\) at row 64, column 1"),
    ],
)
def test_the_first_missing_value_is_named(row, column, value, words):
    X = draw()
    X[row, column] = value
    X[99, 1] = np.inf
    for form in (X, da.from_array(X, chunks=(13, 1))):
        with pytest.raises(ValueError, match=words):
            rescan(form)


def test_no_finite_row_at_all():
    with pytest.raises(ValueError, match="X has no row without NaN or infinity"):
        rescan(np.full((50, 2), np.nan), missing="label")


def test_check_finite_block_names_the_row_of_the_whole():
    block = np.zeros((3, 2))
    check_finite_block(block, 64, "")
    check_finite_block(block.astype(int), 64, "")
    block[1, 1] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row 65, column 1"):
        check_finite_block(block, 64, "")


def read_counts(X, chunk):
    """X as lazy blocks, and how often each was read."""
    counts: dict = {}

    def read(block_id):
        counts[block_id] = counts.get(block_id, 0) + 1
        return X[block_id[0] * chunk : (block_id[0] + 1) * chunk]

    lengths = tuple(min(chunk, len(X) - start) for start in range(0, len(X), chunk))
    array = da.map_blocks(
        read, chunks=(lengths, (X.shape[1],)), dtype=X.dtype, meta=np.empty((0, 0), X.dtype), name=f"read-{id(counts)}"
    )
    return array, counts


@pytest.mark.parametrize("chunk", [32, 50])
@pytest.mark.parametrize(("missing", "passes"), [(False, 1), (True, 2)])
def test_the_scan_reads_once_and_twice_with_missing_rows(chunk, missing, passes):
    X = draw()
    if missing:
        X[40] = np.nan
    array, counts = read_counts(X, chunk)
    rescan(array, missing="label", fingerprint=True)
    assert set(counts.values()) == {passes}


# -- the fingerprint


def test_the_fingerprint_is_of_the_content(tmp_path):
    X = draw()
    expected = rescan(X, fingerprint=True).fingerprint
    assert len(expected) == 32
    same = [
        X.copy(),
        np.asfortranarray(X),
        X.astype(">f4"),
        da.from_array(X, chunks=(7, 1)),
        zarr.create_array(str(tmp_path / "X.zarr"), data=X, chunks=(30, 1)),
        zarr.create_array(str(tmp_path / "big.zarr"), data=X.astype(">f4"), chunks=(99, 2)),
    ]
    assert {rescan(form, fingerprint=True).fingerprint for form in same} == {expected}
    assert rescan(X, 3, fingerprint=True).fingerprint == expected
    assert rescan(X).fingerprint == ""


def test_other_content_has_another_fingerprint():
    X = draw()
    weights = np.ones(N_ROWS)
    others = [X.astype("f8"), X[:99], X[::-1], X.reshape(50, 4), X.reshape(200, 1), X.T, X[:, ::-1]]
    for row in (0, 50, 99):
        changed = X.copy()
        changed[row, 1] = np.nextafter(changed[row, 1], np.float32(9))
        others.append(changed)
    found = [rescan(form, fingerprint=True).fingerprint for form in [X, *others]]
    for number in (0, 99):
        changed = weights.copy()
        changed[number] = 2
        found.append(rescan(X, weights=check_weights(changed, check_rows(X)), fingerprint=True).fingerprint)
    found.append(rescan(X, weights=check_weights(weights, check_rows(X)), fingerprint=True).fingerprint)
    assert len(set(found)) == len(found)


def test_the_fingerprint_tells_shapes_and_dtypes_apart():
    """Of the same bytes, within one block."""
    X = draw()[:8]
    same_bytes = [X, X.reshape(4, 4), X.reshape(2, 8), X.view("i4"), X.view("u4")]
    assert len({rescan(form, fingerprint=True).fingerprint for form in same_bytes}) == 5


# -- weights


def test_weights_that_do_not_fit_are_refused():
    rows = check_rows(draw())
    with pytest.raises(ValueError, match=r"sample_weight\.shape must be \(100,\), got \(99,\)"):
        check_weights(np.ones(99), rows)
    with pytest.raises(ValueError, match=r"sample_weight\.shape must be \(100,\), got \(100, 2\)"):
        check_weights(da.ones((100, 2)), rows)
    with pytest.raises(ValueError, match="sample_weight must hold real numbers"):
        check_weights(np.ones(100, complex), rows)


@pytest.mark.parametrize("bad", [-1e-9, np.nan, np.inf])
def test_bad_weights_are_refused(bad):
    X, weights = draw(), np.ones(N_ROWS)
    weights[99] = bad
    with pytest.raises(ValueError, match="sample_weight must be finite and >= 0"):
        rescan(X, weights=check_weights(weights, check_rows(X)))


def test_weights_of_0_only_are_refused():
    with pytest.raises(ValueError, match="sample_weight must be above zero for some row"):
        rescan(draw(), weights=check_weights(np.zeros(N_ROWS), check_rows(draw())))
    X, weights = draw(), np.zeros(N_ROWS)
    X[50], weights[50] = np.nan, 1.0  # the only row with weight is missing
    with pytest.raises(ValueError, match="sample_weight must be above zero for some row"):
        rescan(X, missing="label", weights=check_weights(weights, check_rows(X)))


def test_rows_without_weight_are_not_in_the_sample():
    X, weights = np.arange(100.0)[:, None], np.arange(100) % 3 * 1.0
    few = rescan(X, 40, weights=check_weights(weights, check_rows(X)))
    assert len(few.sample) == 40
    assert (few.sample % 3 > 0).all()
    assert few.sample_weights.shape == (0,)  # they are in the draw
    every = rescan(X, 80, weights=check_weights(weights, check_rows(X)))
    assert every.sample.ravel().tolist() == [value for value in range(100) if value % 3]
    assert every.sample_weights.tolist() == [value % 3 for value in range(100) if value % 3]


def test_rows_are_drawn_in_proportion_to_their_weights():
    """One row of 40 at a time: of 150 draws 112.5 fall on the half of the rows that weighs three times as much.

    One standard deviation is sqrt(150 * 3/4 * 1/4) = 5.3.
    """
    X = np.arange(40.0)[:, None]
    rows = check_rows(X)
    weights = check_weights(np.where(np.arange(40) % 2, 3.0, 1.0), rows)
    drawn = [float(scan(rows, 1, rng(seed), weights=weights).sample[0, 0]) for seed in range(150)]
    assert abs(sum(value % 2 for value in drawn) - 112.5) < 20
    assert len(set(drawn)) >= 28


# -- the form for computing


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "i8"])
def test_prepared_rows_are_below_1(dtype):
    X = (50 * draw() + 100).clip(0, 255).astype(dtype)
    form = rescan(X, 1000).form
    prepared = form.prepare(X)
    assert 0.25 < np.abs(prepared).max() < 1
    assert np.log2(form.scale) % 1 == 0
    assert form.restore(prepared) == pytest.approx(X.astype(float), rel=1e-6)
    assert form.prepare_points(X.astype(float)) == pytest.approx(prepared.astype(float), abs=1e-6)
    assert form.prepare_points(X).dtype == np.float64


@given(exponent=st.integers(-60, 60), offset=st.sampled_from([0, 2**20, -(2**20)]))
@settings(max_examples=25)
def test_shifting_and_scaling_change_nothing(exponent, offset):
    """Of values whose sums are exact: the prepared rows are the same to the last bit."""
    X = np.random.default_rng(3).integers(-8, 8, size=(50, 2)).astype(np.float32)
    expected = rescan(X).form.prepare(X)
    moved = ((X + np.float32(offset)) * np.float32(2.0**exponent)).astype(np.float32)
    assert np.array_equal(rescan(moved).form.prepare(moved), expected)


@pytest.mark.parametrize("outlier", [1e9, -1e9])
def test_an_outlier_does_not_cost_the_others_their_digits(outlier):
    """In float32, which resolves 64 at 10^9: the rows are shifted by their median, and scaled by 2**-30."""
    X = np.vstack([np.arange(99.0)[:, None] / 64, [[outlier]]]).astype(np.float32)
    form = rescan(X, 1000).form
    assert form.shift.tolist() in ([48 / 64], [49 / 64], [50 / 64])
    assert np.array_equal(np.diff(form.prepare(X)[:99, 0]), np.full(98, 2.0**-6 * 2.0**-30))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_ends_of_the_range(dtype):
    most = float(np.finfo(dtype).max)
    close = np.linspace(0.9 * most, most, 10).astype(dtype)[:, None]  # the mean of two of them overflows
    form = rescan(close).form
    assert np.isfinite(form.shift).all()
    assert np.isfinite(form.prepare(close) ** 2).all()
    assert form.restore(form.prepare(close)) == pytest.approx(close.astype(float), rel=1e-6)
    small = np.array([[0.0], [np.finfo(dtype).tiny]], dtype)
    form = rescan(small).form
    assert np.isfinite(form.scale)
    assert len(np.unique(form.prepare(small))) == 2


def test_both_ends_of_the_range_of_float32():
    X = np.array([[-3e38], [-3e38], [0], [3e38]], np.float32)
    prepared = rescan(X).form.prepare(X)
    assert np.isfinite(prepared).all()
    assert np.diff(prepared.ravel()) == pytest.approx([0, 0.5 * np.ptp(prepared), 0.5 * np.ptp(prepared)])


def test_more_than_the_range_of_float64_is_refused():
    with pytest.raises(ValueError, match="X spans more than the range of float64; scale it first"):
        rescan(np.array([[-1.7e308], [1.7e308]]))


def test_equal_rows():
    X = np.full((40, 2), 1e6, np.float32)
    form = rescan(X).form
    assert form.scale == 1
    assert not form.prepare(X).any()
    assert np.array_equal(form.restore(form.prepare(X)), X)


def test_rows_of_unit_length():
    X = draw() * 100
    form = rescan(X, unit_length=True).form
    assert form.unit_length
    assert np.linalg.norm(form.prepare(X), axis=1) == pytest.approx(np.ones(N_ROWS), rel=1e-6)
    assert np.array_equal(form.restore(form.prepare(X)), form.prepare(X))
    assert np.array_equal(RowForm(form.shift, form.scale, True).prepare(4 * X), form.prepare(X))
