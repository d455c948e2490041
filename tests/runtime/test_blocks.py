"""Blocks that are not what their array promises: refused, before a kernel or a product sees them."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import daskcluster as dc
from daskcluster.io import write_array
from daskcluster.io.columns import open_column
from daskcluster.io.inputs import check_rows
from daskcluster.runtime.blocks import check_blocks
from daskcluster.runtime.products import Products

pytestmark = pytest.mark.usefixtures("small_blocks")

ROWS = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)


def promising(second: Any, dtype: Any = "f4", columns: int = 3) -> da.Array:
    """Three chunks of 100 rows, of which the second one is something else."""
    given = [ROWS[:100, :columns], second, ROWS[200:, :columns]]
    parts = [da.from_delayed(dask.delayed(part, traverse=False), (100, columns), dtype) for part in given]
    return da.concatenate(parts)


#: What a task gave -> what is said of it.
LIES: dict[str, tuple[Any, str]] = {
    "fewer rows": (ROWS[:70], r"has shape \(70, 3\), and was declared with shape \(100, 3\)"),
    "more rows": (ROWS[:130], r"has shape \(130, 3\), and was declared with shape \(100, 3\)"),
    "no rows": (ROWS[:0], r"has shape \(0, 3\)"),
    "fewer columns": (ROWS[:100, :2], r"has shape \(100, 2\)"),
    "more columns": (np.ones((100, 5), "f4"), r"has shape \(100, 5\)"),
    "flat": (np.ones(100, "f4"), r"has shape \(100,\)"),
    "a scalar": (np.float32(1), r"has shape \(\)"),
    "None": (None, r"has shape \(\)"),
    "transposed": (ROWS[:100].T, r"has shape \(3, 100\)"),
    "a frame with another column": (pd.DataFrame(np.ones((100, 4), "f4")), r"has shape \(100, 4\)"),
    "doubles": (np.ones((100, 3)), "has dtype float64, and was declared with dtype float32"),
    "objects": (ROWS[:100].astype(object), "has dtype object"),
    "strings": (ROWS[:100].astype(str), "has dtype <U"),
    "complex": (ROWS[:100].astype(complex), "has dtype complex128"),
    "large integers": (np.ones((100, 3), "i8"), "has dtype int64"),
    "sparse": (scipy.sparse.csr_matrix(ROWS[:100]), r"is sparse \(csr_matrix\)"),
    "masked": (np.ma.masked_less(ROWS[:100], 0), "has masked values"),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("chunks", [None, (64, 3), (300, 1)], ids=["as they are", "blocks", "columns"])
def test_a_block_that_is_not_as_declared_is_named(lie, chunks):
    block, words = LIES[lie]
    X = promising(block)
    with pytest.raises(ValueError, match=rf"chunk \(1, 0\) of X {words}"):
        check_rows(X).blocks.compute()


@pytest.mark.parametrize(
    "make",
    [
        lambda: dc.KMeans(3),
        lambda: dc.USPEC(3, n_representatives=40),
        lambda: dc.FastCSPML(3, n_landmarks=40),
        lambda: dc.Ensemble(3, base=dc.KMeans(), n_base_clusterings=2),
    ],
    ids=["KMeans", "USPEC", "FastCSPML", "Ensemble"],
)
@pytest.mark.parametrize("lie", ["fewer rows", "more rows", "more columns", "objects"])
def test_no_estimator_takes_it(make, lie):
    block, words = LIES[lie]
    with pytest.raises(ValueError, match=rf"chunk \(1, 0\) of X {words}"):
        make().fit(promising(block))


@pytest.mark.parametrize("lie", ["fewer rows", "more rows", "objects"])
def test_no_prediction_takes_it(lie):
    model = dc.KMeans(3, random_state=0).fit(ROWS)
    block, words = LIES[lie]
    with pytest.raises(ValueError, match=rf"chunk \(1, 0\) of X {words}"):
        model.predict(promising(block)).compute()


@pytest.mark.parametrize("length", [70, 130])
def test_columns_beside_the_rows_are_held_to_their_shape_too(length):
    parts = [da.from_delayed(dask.delayed(np.ones)(n), (100,), float) for n in (100, length, 100)]
    column = da.concatenate(parts)
    with pytest.raises(ValueError, match=rf"chunk \(1,\) of sample_weight has shape \({length},\)"):
        dc.KMeans(3).fit(ROWS, sample_weight=column)
    with pytest.raises(ValueError, match=rf"chunk \(1,\) of y has shape \({length},\)"):
        dc.FastCSC(3, n_representatives=40).fit(ROWS, column.astype(int))


def test_lengths_that_change_after_they_were_counted():
    reads: list[int] = []

    def rows() -> np.ndarray:
        reads.append(0)
        return ROWS[: 100 if len(reads) == 1 else 90]

    X = da.from_delayed(dask.delayed(rows, pure=False)(), (np.nan, 3), "f4")
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(ValueError, match=r"chunk \(0, 0\) of X has shape \(90, 3\), and was declared with shape \(100"),
    ):
        dc.KMeans(3).fit(X)


@pytest.mark.parametrize(
    "block",
    [ROWS[:100].astype("f2"), np.ones((100, 3), "i2"), ROWS[:100] > 0, ROWS[:100].astype(">f4"), ROWS[:100].tolist()],
    ids=["f2", "i2", "bool", "swapped", "float64 that is declared"],
)
def test_numbers_that_the_declared_dtype_holds_are_taken_as_they_are(block):
    dtype = np.float64 if isinstance(block, list) else np.float32
    found = check_rows(promising(block, dtype)).blocks.compute()
    assert found.dtype == dtype
    np.testing.assert_array_equal(found[100:200], np.asarray(block))


def test_a_mask_that_hides_nothing_is_no_mask():
    found = check_rows(promising(np.ma.array(ROWS[:100]))).blocks.compute()
    np.testing.assert_array_equal(found[100:200], ROWS[:100])


def test_irregular_chunks_are_held_to_their_lengths():
    lengths = tuple(np.random.default_rng(0).permutation(np.arange(1, 60)).tolist())
    X = da.zeros((sum(lengths), 2), chunks=(lengths, (2,)))
    np.testing.assert_array_equal(check_blocks("X", X).compute(), 0)
    one = da.concatenate([X, da.from_delayed(dask.delayed(np.zeros)((3, 2)), (4, 2), float)])
    with pytest.raises(ValueError, match=r"chunk \(59, 0\) of X has shape \(3, 2\), and was declared with shape \(4"):
        check_blocks("X", one).compute()


def test_checks_cost_no_tasks():
    X = da.ones((1000, 3), chunks=(10, 3))
    assert len(dask.optimize(check_blocks("X", X))[0].__dask_graph__()) == 100
    delayed = da.concatenate([da.from_delayed(dask.delayed(np.ones)((10, 3)), (10, 3), float) for _ in range(50)])
    plain, checked = (len(dask.optimize(array)[0].__dask_graph__()) for array in (delayed, check_blocks("X", delayed)))
    assert checked <= plain


@pytest.mark.parametrize("where", ["memory", "scratch", "named"])
@pytest.mark.parametrize("lie", ["fewer rows", "more columns", "doubles"])
def test_no_product_takes_it(where, lie, tmp_path):
    block, words = LIES[lie]
    with dask.config.set({"daskcluster.memory-budget": 0 if where == "scratch" else "1 MiB"}):
        products = Products(tmp_path / "run" if where == "named" else None, "method", {}, 0)
        products.open("input")
        with pytest.raises(ValueError, match=rf"block 1 of the product 'edges' {words}"):
            products.rows("edges", promising(block))
    assert not list(tmp_path.glob("run/edges*"))  # nothing that looks finished


def test_no_product_on_a_cluster_takes_it(client_inprocess):
    products = Products(None, "method", {}, 0)
    with pytest.raises(ValueError, match=r"chunk \(1, 0\) of the product 'edges' has shape \(70, 3\)"):
        products.rows("edges", promising(ROWS[:70]))[0].compute()


def test_no_output_takes_it(tmp_path):
    with pytest.raises(ValueError, match=r"chunk \(1, 0\) of the array to store has shape \(70, 3\)"):
        write_array(promising(ROWS[:70]), tmp_path / "X.zarr")
    assert not list(tmp_path.iterdir())


def test_unknown_columns_are_counted(caplog):
    column = da.from_array(np.arange(10), chunks=4)
    assert open_column("y", column[column > 3]).shape == (6,)


@pytest.mark.parametrize("block", [0, 3, 9])
def test_a_block_that_is_not_there_is_never_read_as_zeros(block, tmp_path):
    """Whole, in part, across blocks, in a scratch store and in a named one."""
    rows = da.from_array(np.arange(2000.0).reshape(1000, 2) + 1, chunks=(100, 2))
    for where in ("scratch", "named"):
        with dask.config.set({"daskcluster.memory-budget": 0, "temporary-directory": str(tmp_path / "scratch")}):
            products = Products(tmp_path / "run" if where == "named" else None, "method", {}, 0)
            products.open("input")
            held, _ = products.rows("edges", rows)
        np.testing.assert_array_equal(held.compute(), rows.compute())
        folder = tmp_path / ("run" if where == "named" else "scratch")
        (file,) = folder.glob(f"**/edges/rows/c/{block}/0")
        file.unlink()
        part = slice(100 * block + 40, 100 * block + 60)
        for read in (held, held[part], held[100 * block + 7], held[[3, 100 * block + 7, 990]], held[:, 1], held[::7]):
            with pytest.raises(dc.MissingChunksError, match=rf"block {block} of '.*edges/rows' is not there"):
                read.compute()
        others = np.r_[0 : 100 * block, 100 * (block + 1) : 1000]
        np.testing.assert_array_equal(held[others].compute(), rows.compute()[others])
