"""Checks that need no pass over the data: what passes, and the words of each refusal."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from daskcluster.validation import check_integer, check_n_features, check_option, check_real, check_table


@pytest.mark.parametrize("value", [1, 8, np.int64(3), np.uint8(255), 2**70])
def test_integers_pass_as_int(value):
    found = check_integer("n_clusters", value, 1)
    assert found == value
    assert type(found) is int


@pytest.mark.parametrize("value", [2.0, "2", None, True, np.True_, np.float32(3), [2], np.array([2])])
def test_what_is_no_integer_is_a_type_error(value):
    with pytest.raises(TypeError, match=r"n_clusters must be an integer >= 1, got "):
        check_integer("n_clusters", value, 1)


@pytest.mark.parametrize("value", [0, -5, np.int8(-1)])
def test_an_integer_below_the_minimum_is_named(value):
    with pytest.raises(ValueError, match=f"^n_init must be an integer >= 1, got {value}$"):
        check_integer("n_init", value, 1)


@pytest.mark.parametrize("value", [0, 0.5, np.float32(2), np.int16(4), Fraction(1, 2)])
def test_numbers_pass_as_float(value):
    found = check_real("tol", value, 0.0)
    assert found == float(value)
    assert type(found) is float


@pytest.mark.parametrize("value", ["0.1", None, False, 1j, [0.1]])
def test_what_is_no_number_is_a_type_error(value):
    with pytest.raises(TypeError, match=r"tol must be a number >= 0\.0, got "):
        check_real("tol", value, 0.0)


@pytest.mark.parametrize("value", [-1e-9, np.nan, np.inf, -np.inf, np.float32(-2)])
def test_a_number_out_of_range_is_named(value):
    with pytest.raises(ValueError, match=rf"^tol must be a number >= 0\.0, got {value}$"):
        check_real("tol", value, 0.0)


def test_options():
    assert check_option("metric", "cosine", ("euclidean", "cosine")) == "cosine"
    assert check_option("metric", "a", {"a": 1, "b": 2}) == "a"
    for value in ("cosin", None, 3, ["cosine"], np.array(["cosine"])):
        with pytest.raises(ValueError, match=r"^metric must be one of 'euclidean', 'cosine', got "):
            check_option("metric", value, ("euclidean", "cosine"))


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "f8", ">i4", ">f8", np.longdouble])
def test_tables_of_real_numbers_pass(dtype):
    check_table((5, 2), np.dtype(dtype))
    check_table((1, 1), np.dtype(dtype))


@pytest.mark.parametrize(
    ("shape", "dtype", "words"),
    [
        ((), "f8", r"X: Expected 2D array .* got scalar array instead, shape \(\)"),
        ((5,), "f8", r"got 1D array instead, shape \(5,\)\. Reshape your data, as with X\.reshape\(-1, 1\)"),
        ((5, 2, 3), "f8", r"got 3D array instead, shape \(5, 2, 3\)"),
        ((5, 2), "c8", "Complex data not supported, got dtype complex64"),
        ((5, 2), "U3", "X must hold real numbers, got dtype <U3"),
        ((5, 2), "O", "X must hold real numbers, got dtype object"),
        ((5, 2), "M8[s]", r"X must hold real numbers, got dtype datetime64\[s\]"),
        ((0, 2), "f8", r"Found array with 0 sample\(s\) \(shape=\(0, 2\)\) while a minimum of 1 is required"),
        ((5, 0), "f8", r"Found array with 0 feature\(s\) \(shape=\(5, 0\)\) while a minimum of 1 is required"),
    ],
)
def test_what_is_no_table_is_refused(shape, dtype, words):
    with pytest.raises(ValueError, match=words):
        check_table(shape, np.dtype(dtype))


def test_another_number_of_features_is_refused():
    class Model(SimpleNamespace):
        pass

    check_n_features(Model(n_features_in_=3), (5, 3))
    with pytest.raises(ValueError, match=r"^X has 2 features, but Model is expecting 3 features as input$"):
        check_n_features(Model(n_features_in_=3), (5, 2))
