"""Products of a sparse matrix with columns, against the dense product."""

import numpy as np
import pytest
import scipy.sparse

from daskcluster.kernels.products import combine_product


@pytest.mark.parametrize("n_columns", [1, 5])
def test_the_step_of_a_recurrence(n_columns):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(30, 30)) * (rng.random((30, 30)) < 0.2)
    matrix[3] = 0  # a row without entries, and rows with odd and even numbers of them
    columns, before = rng.normal(size=(2, 30, n_columns))
    sparse, out = scipy.sparse.csr_array(matrix), np.full((30, n_columns), np.nan)
    combine_product(sparse.indptr, sparse.indices, sparse.data, columns, before, out, 0.5, -2.0, 3.0)
    assert out == pytest.approx(0.5 * matrix @ columns - 2 * columns + 3 * before)
