"""Benchmark sets from a folder: every kind of file, and what is missing."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from daskcluster.datasets import files, load_benchmark

LABELS = np.array([0, 2, 1], np.uint8)


def save_sparse(path: Path, matrix) -> None:
    """As the text sets are stored: the arrays of `scipy.sparse.save_npz`, and y."""
    parts = {"indices": matrix.indices, "indptr": matrix.indptr, "data": matrix.data, "shape": matrix.shape}
    np.savez(path, format=b"csr", y=LABELS, **parts)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "pools").mkdir()
    np.savez(tmp_path / "dense.npz", X=np.arange(6, dtype=np.uint8).reshape(3, 2), y=LABELS)
    save_sparse(tmp_path / "text.npz", scipy.sparse.csr_matrix(np.array([[0, 2, 0], [1, 0, 0], [0, 0, 0]], np.uint16)))
    np.savez(tmp_path / "pools" / "dense.npz", labels=np.ones((3, 4), np.uint8), y=LABELS)
    monkeypatch.setenv("DASKCLUSTER_DATA", str(tmp_path))
    return tmp_path


def test_dense(folder):
    X, y = load_benchmark("dense")
    assert X.dtype == np.uint8
    assert X.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert y.dtype == np.int32
    assert y.tolist() == [0, 2, 1]


def test_sparse(folder):
    X, y = load_benchmark("text")
    assert isinstance(X, scipy.sparse.csr_matrix)
    assert X.dtype == np.uint16
    assert X.toarray().tolist() == [[0, 2, 0], [1, 0, 0], [0, 0, 0]]
    assert y.tolist() == [0, 2, 1]


def test_pool(folder):
    labels, y = load_benchmark("pools/dense")
    assert labels.dtype == np.int32
    assert labels.shape == (3, 4)
    assert y.tolist() == [0, 2, 1]


def test_an_unknown_name_lists_the_known(folder):
    with pytest.raises(FileNotFoundError, match=r"no set 'mnist' in .*DASKCLUSTER_DATA.*: dense, pools/dense, text"):
        load_benchmark("mnist")


@pytest.mark.parametrize("name", ["", "../dense", "pools/../../dense", "/etc/passwd"])
def test_names_stay_inside_the_folder(folder, name):
    with pytest.raises(ValueError, match="name must be that of a set"):
        load_benchmark(name)


@pytest.mark.parametrize("content", [{"X": np.ones((3, 2))}, {"y": LABELS}, {"X": 1, "labels": 2, "y": LABELS}])
def test_a_file_of_another_kind(folder, content):
    np.savez(folder / "other.npz", **content)
    with pytest.raises(ValueError, match=r"other\.npz must hold y and one of X, indptr, labels"):
        load_benchmark("other")


def test_a_file_whose_arrays_do_not_fit(folder):
    np.savez(folder / "other.npz", X=np.ones((4, 2)), y=LABELS)
    with pytest.raises(ValueError, match=r"one class for each row, got shapes \(4, 2\) and \(3,\)"):
        load_benchmark("other")


def test_a_missing_folder_names_itself_and_the_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("DASKCLUSTER_DATA", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match=r"absent .*DASKCLUSTER_DATA="):
        load_benchmark("mnist")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A copy of the module's place in a checkout beside which there are no data."""
    root = tmp_path / "work" / "checkout"
    module = root / "daskcluster" / "datasets" / "files.py"
    module.parent.mkdir(parents=True)
    monkeypatch.setattr(files, "__file__", str(module))
    monkeypatch.delenv("DASKCLUSTER_DATA", raising=False)
    return root


def test_the_default_lies_beside_the_checkout(checkout):
    (checkout / "pyproject.toml").touch()
    with pytest.raises(FileNotFoundError, match=r"DASKCLUSTER_DATA is not set") as caught:
        load_benchmark("dense")
    data = checkout.parent / "shared" / "data"
    assert str(data) in str(caught.value)
    data.mkdir(parents=True)
    np.savez(data / "dense.npz", X=np.ones((3, 2)), y=LABELS)
    assert load_benchmark("dense")[0].shape == (3, 2)


def test_the_default_of_an_installed_package_lies_beside_the_current_folder(checkout, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    with pytest.raises(FileNotFoundError) as caught:
        load_benchmark("dense")
    assert str(tmp_path / "shared" / "data") in str(caught.value)
