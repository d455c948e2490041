"""Records in a file: read back as they were, whatever a killed program left of the last one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcluster.files import records as records_module
from daskcluster.files.records import Records

VALUES: dict[str, Any] = {
    "plain": {"a": 1, "b": None, "c": "text", "d": True, "e": 0.1, 3: [1, (2, "x")]},
    "bytes": b"\x00\xff",
    "arrays": [np.arange(6.0).reshape(2, 3), np.empty((0, 2), np.int32), np.array(7, np.int8), np.array([True])],
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "numbers": (np.float32(0.5), np.int64(-1), np.bool_(True)),
    "not finite": [float("inf"), float("-inf")],
}


def test_values_come_back_as_they_were(tmp_path):
    path = tmp_path / "r"
    written = Records(path)
    for key, value in VALUES.items():
        written.put({key: value})
    for found in (written, Records(path)):
        assert list(found) == list(VALUES)
        for key, value in VALUES.items():
            np.testing.assert_equal(found.get(key), value)
    again = Records(path)
    assert again.get("fortran").flags.f_contiguous
    assert [array.dtype for array in again.get("arrays")] == [array.dtype for array in VALUES["arrays"]]
    assert [type(number) for number in again.get("numbers")] == [np.float32, np.int64, np.bool_]


@pytest.mark.parametrize("value", [object(), np.array([object()]), {1, 2}, Records])
def test_what_would_not_come_back_is_refused(value, tmp_path):
    with pytest.raises(TypeError, match="is kept in a record"):
        Records(tmp_path / "r").put({"a": value})


def test_a_torn_record_was_never_written(tmp_path):
    """Cut at every byte; and what is written next is found."""
    path = tmp_path / "r"
    Records(path).put({"a": np.arange(3), "b": "x"})
    first = len(path.read_bytes())
    Records(path).put({"c": np.arange(2)})
    whole = path.read_bytes()
    for length in range(first, len(whole)):
        path.write_bytes(whole[:length])
        found = Records(path)
        assert list(found) == ["a", "b"]
        if length % 7 == 0:
            found.put({"d": 1})
            assert list(Records(path)) == ["a", "b", "d"]


def test_any_changed_byte_is_found(tmp_path):
    path = tmp_path / "r"
    Records(path).put({"a": np.arange(3), "b": "x"})
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        found = Records(path)
        assert list(found) in ([], ["a"])
        if "a" in found:
            np.testing.assert_array_equal(found.get("a"), np.arange(3))


def test_superseded_records_do_not_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(records_module, "_MOST_DEAD_BYTES", 1000)
    path = tmp_path / "r"
    found = Records(path)
    for number in range(50):
        found.put({"sum": np.full(20, number), f"other {number % 2}": 1}, ("nothing",))
    assert len(path.read_bytes()) < 3000
    for each in (found, Records(path)):
        np.testing.assert_array_equal(each.get("sum"), np.full(20, 49))
    found.forget(["sum"])
    assert sorted(Records(path)) == ["other 0", "other 1"]
    found.clear()
    assert not path.exists()


def test_a_record_that_says_it_is_longer_than_the_file_was_never_written(tmp_path):
    path = tmp_path / "r"
    Records(path).put({"a": np.arange(3)})
    path.write_bytes(path.read_bytes() + b"00000000 %10d %11d\n" % (9, 99_999_999_999))
    assert list(Records(path)) == ["a"]


def test_what_could_not_be_written_is_not_there(tmp_path, monkeypatch):
    records = Records(tmp_path / "r")
    records.put({"a": 1})

    def full(content: bytes) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(records._log, "add", full)
        with pytest.raises(OSError, match="no space"):
            records.put({"b": 2}, forget=("a",))
    assert list(records) == ["a"]
    records.put({"c": 3})
    assert (records.get("a"), records.get("c")) == (1, 3)
    assert list(Records(tmp_path / "r")) == ["a", "c"]
